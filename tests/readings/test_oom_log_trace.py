"""What stands beside the tables: the call trace and SLUB's lines."""

import pytest
from tests.readings.oom_logs import case, log, only_report, reports_in

from seawall.readings.oom_log.oom_report import SlubFailure, TraceFrame


def test_a_report_that_ends_in_its_call_trace_is_of_a_limit() -> None:
    first, second = reports_in(case("trace-tells-memcg.txt"))
    assert (first.kind, first.trace, first.trace_domain) == ("memcg", (), None)
    assert (second.kind, second.trace_domain) == ("memcg", "memcg")
    assert (second.invoker_comm, second.invoker_pid) == ("uwsgi", 63635)
    assert second.is_cut
    assert [frame.function for frame in second.trace[5:]] == [
        "out_of_memory", "mem_cgroup_out_of_memory", "try_charge", "mem_cgroup_try_charge",
        "mem_cgroup_try_charge_delay", "do_anonymous_page",
    ]  # fmt: skip
    assert second.trace[4] == TraceFrame("get_mem_cgroup_from_page", None, is_uncertain=True)


def test_the_trace_of_32_bit_arm() -> None:
    _, report = reports_in(case("rpi-cma-min-free.txt"))
    functions = [frame.function for frame in report.trace]
    assert functions[4:7] == ["out_of_memory", "__alloc_pages", "new_slab"]
    assert "copy_process" in functions
    assert (report.kind, report.trace_domain) == ("global", "machine")


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        (" [<ffffffff8116c1ea>] ? out_of_memory+0x2aa/0x2d0",
         TraceFrame("out_of_memory", None, is_uncertain=True)),
        (" os_alloc_mem+0x1f/0xd0 [nvidia]", TraceFrame("os_alloc_mem", "nvidia")),
        (" ? uvm_api+0x1/0x20 [nvidia_uvm 0123abcd]",
         TraceFrame("uvm_api", "nvidia_uvm", is_uncertain=True)),
        (" out_of_memory.part.0+0x1df/0x3d0", TraceFrame("out_of_memory")),
        (" oom_kill_process.cold+0xb/0x10", TraceFrame("oom_kill_process")),
        (" [<c010e6b4>] (unwind_backtrace) from [<c010aebc>] (show_stack+0x10/0x14)",
         TraceFrame("show_stack")),
        ("[c0000003ff6d3a10] [c000000000a2f5dc] .dump_stack+0xb0/0xf4", TraceFrame("dump_stack")),
        (" dump_stack_lvl from dump_header+0x54/0x1fc", TraceFrame("dump_header")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("prefix", ["", "[   12.345678] ", "May  3 14:08:25 n kernel: "])
def test_frames(prefix: str, line: str, frame: TraceFrame) -> None:
    head = "x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    text = "\n".join(prefix + part for part in (head, "Call Trace:", line, line))
    assert only_report(text.encode()).trace == (frame, frame)


def test_a_trace_is_bounded() -> None:
    head = "x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    text = head + "[    1.000001]  f+0x1/0x2\n" * 5000
    assert len(only_report(text.encode()).trace) == 128


def test_a_whole_report_has_its_trace_once() -> None:
    trace = only_report(log("global-6.1.1-arch1-1-doxygen")).trace
    assert len(trace) == len(set(trace)) > 10
    assert only_report(log("global-6.1.1-arch1-1-doxygen")).trace_domain == "machine"
    assert only_report(log("memcg-v2-5.15.158-2-pve-php-fpm")).trace_domain == "memcg"


SLUB = """\
[  100.1] x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[  100.2] SLUB: Unable to allocate memory on node -1, gfp=0xcc0(GFP_KERNEL)
[  100.2]   cache: names_cache(5:pod), object size: 4096, buffer size: 4352, default order: 3, \
min order: 1
[  100.2]   node 0: slabs: 12, objs: 96, free: 3
[  100.2]   node 1: slabs: 1, objs: 8, free: 0
[  100.3] SLUB: Unable to allocate memory on CPU 3 (of node 0) on node 1, gfp=0x820(GFP_ATOMIC)
[  100.9] Memory cgroup out of memory: Killed process 7 (x) total-vm:4kB, anon-rss:4kB, \
file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:0
"""


def test_what_slub_could_not_allocate() -> None:
    report = only_report(SLUB.encode())
    assert report.slub_failures == (
        SlubFailure("names_cache(5:pod)", 4096, 4352, 1, None, 0xCC0, 13, 3, 2),
        SlubFailure(None, None, None, None, 1, 0x820, None, None, 6),
    )
    assert [kill.pid for kill in report.kills] == [7]


def test_slub_alone_is_no_report() -> None:
    assert reports_in("".join(SLUB.splitlines(keepends=True)[1:6]).encode()) == []
