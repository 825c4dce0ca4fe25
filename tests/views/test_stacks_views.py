"""``seawall stacks`` as text and as JSON, from samples made by hand."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.readings.sysrq_samples import BLOCKED_NEW, X86_5_16, X86_6_18

from seawall.accounts.stacks.stack_tally import StackTally, grouped
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.readings.sysrq_backtraces import FILES, Backtraces, parse
from seawall.readings.task_stacks import Stack, StackFrame, StackTask, TaskStacks
from seawall.views.document import head, render
from seawall.views.documents.stacks_document import STACKS
from seawall.views.stacks_page import StacksPage
from seawall.views.stacks_text import frames_line, lines
from seawall.views.stacks_unseen import Missing, unseen
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/stacks.json").read_text())
SHOP = Workload(kind="container", name="shop/\x1b[31mcart/app", cgroup="/kubepods/shop")
FAULT = tuple(
    StackFrame(name, None)
    for name in (
        "folio_wait_bit_common", "filemap_fault", "__do_fault", "do_fault", "__handle_mm_fault",
        "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault",
    )
)  # fmt: skip
RECLAIM = (
    StackFrame("shrink_lruvec", None),
    StackFrame("nv_alloc", "nvidia"),
    StackFrame("do_syscall_64", None),
)
QUEUE = (StackFrame("vm_mmap_pgoff", None),)
HOSTILE = "\x1b[2J\nx\udcff"


def task(tid: int, frames: Stack | None, **values: Any) -> StackTask:
    made = StackTask(
        pid=tid, tid=tid, comm="java", state="D", flags=0, start_ticks=1, utime_ticks=0,
        stime_ticks=0, turns=4, stack=frames, why="" if frames is not None else "refused", wchan="",
    )  # fmt: skip
    return made._replace(**values)


def page(*tasks: StackTask, samples: int = 3, cpus: tuple[Backtraces, ...] = ()) -> StacksPage:
    tally = StackTally()
    for number in range(samples):
        moment = TaskStacks(
            tasks=tasks, threads=250, threads_left_out=0, processes_left_out=0,
            stacks_left_out=0, scan_seconds=0.01, is_hidden=False,
        )  # fmt: skip
        tally.add(moment, float(number))
    owner = {7: SHOP}.get
    return StacksPage(
        tally=tally, found=grouped(tally, owner, lambda _: True), every_seconds=1.0, wanted=None,
        cpus=cpus, unseen=(), bundle_notes=(),
    )  # fmt: skip


THREADS = (
    task(7, FAULT, comm=HOSTILE),
    *(task(100 + n, FAULT, pid=100, comm="kubelet") for n in range(5)),
    task(200, RECLAIM, state="R"),
    task(101, QUEUE, pid=100, comm="kubelet", start_ticks=9),
)


def shown(made: StacksPage, **paper: Any) -> str:
    return "\n".join(lines(made, Console(**paper)))


def test_the_largest_group_comes_first_with_its_share_and_processes() -> None:
    text = shown(page(*THREADS))
    assert text.startswith("3 samples in 2.0 s: 8.0 tasks at a time were busy or blocked")
    assert "  75 %   page fault: waiting for file data (code or a mapped file)" in text
    assert "6.0 tasks at a time, in 3 of 3 samples; 100 % of it blocked (D)" in text
    assert "kubelet 100, 5 threads: 83 %" in text
    assert text.index("  75 %") < text.index("  12 %")
    assert "called by driver nvidia: 100 %" in text
    assert "waiting for a lock: mmap_lock" in text
    assert "has it, by its own stack: kubelet 100 thread 100" in " ".join(text.split())


def test_what_stands_still_is_told_with_how_long() -> None:
    text = " ".join(shown(page(*THREADS)).split())
    assert "Stand still: had no CPU at all for so long, to the end" in text
    assert "2 s kubelet 100, 5 threads: page fault: waiting for file data" in text
    assert "2 s java 200" not in text, "it is in state R"


def test_threads_of_one_process_that_stand_still_are_one_line() -> None:
    threads = [task(100 + n, FAULT, pid=100, comm="kubelet") for n in range(3000)]
    text = " ".join(shown(page(*threads, task(7, FAULT))).split())
    assert "2 s kubelet 100, 3,000 threads: page fault: waiting for file data" in text
    assert text.count("kubelet 100, 3,000 threads: page") == 1
    assert "2 s java 7 (shop" in text


def test_what_was_left_out_makes_the_average_a_least() -> None:
    made = page(*THREADS)
    made.tally.left_out["stacks"] = 5
    assert "at least 8.0 tasks at a time" in shown(made)


def test_names_cannot_steer_a_terminal_and_lines_fit() -> None:
    text = shown(page(*THREADS))
    assert "\x1b" not in text
    assert "\\x1b[2J\\x0ax\\xff 7 (shop/\\x1b[31mcart/app)" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    painted = shown(page(*THREADS), colour=True)
    assert "\x1b[1m  75 %" in painted


def test_frames_lose_only_how_the_kernel_was_entered() -> None:
    assert frames_line(FAULT[:3]) == "folio_wait_bit_common < filemap_fault < __do_fault"
    assert frames_line(RECLAIM) == "shrink_lruvec < nv_alloc [nvidia]"
    assert frames_line(FAULT).endswith("< exc_page_fault")
    assert frames_line(FAULT + FAULT).endswith("< ...")
    assert frames_line((StackFrame("do_syscall_64", None),)) == "do_syscall_64"


@pytest.mark.parametrize("samples", [0, 1, 2])
def test_an_idle_machine_says_so(samples: int) -> None:
    text = " ".join(shown(page(samples=samples)).split())
    assert (
        text
        == {
            0: "No sample was taken.",
            1: "1 sample: no task was on a CPU, ready for one, or blocked (states R, D).",
            2: "2 samples in 1.0 s: no task was on a CPU, ready for one, or blocked (states R, D).",
        }[samples]
    )


def test_cpus_are_grouped_and_idle_ones_counted() -> None:
    text = shown(page(cpus=(parse(X86_5_16), parse(X86_6_18), parse(BLOCKED_NEW))))
    assert "Where the CPUs are (sysrq, asked 3 times): 8 backtraces, 2 idle" in text
    assert "     1   in a driver: nvidia\n         Xorg worker 4242 (1)" in text
    assert "nv_alloc_pages [nvidia] < nvidia_ioctl [nvidia] < __x64_sys_ioctl" in text
    assert "on a CPU: running its own code (user mode)\n         burn 77 (1)" in text
    assert "bash" not in text, "it is who asked"


def checked(made: StacksPage) -> dict[str, Any]:
    found = json.loads(render(STACKS.of(head("stacks", Unread("kernel", "absent"), 2.0), made)))
    jsonschema.validate(found, SCHEMA)
    assert isinstance(found, dict)
    return found


def test_json_holds_all_of_it() -> None:
    found = checked(page(*THREADS, cpus=(parse(X86_6_18),)))
    assert (found["schema"], found["samples"], found["observations"]) == ("seawall.stacks/1", 3, 24)
    fault = found["groups"][0]
    assert (fault["kind"], fault["share"], fault["tasks_average"]) == ("page_fault_disk", 0.75, 6.0)
    assert fault["frames"][0] == "folio_wait_bit_common"
    hostile = next(one for one in fault["tasks"] if one["pid"] == 7)
    assert hostile["comm"] == "\x1b[2J\nx\\xff"
    assert (hostile["cgroup"], hostile["still_seconds"]) == ("/kubepods/shop", 2.0)
    lock = next(group for group in found["groups"] if group["kind"] == "lock")
    assert (lock["name"], len(lock["holders"])) == ("mmap_lock", 5)
    nvidia = next(trace for trace in found["sysrq"] if trace["cpu"] == 3)
    assert (nvidia["kind"], nvidia["name"], nvidia["question"]) == ("driver", "nvidia", 1)


def test_json_of_nothing() -> None:
    found = checked(page(samples=0))
    assert (found["groups"], found["samples"], found["observations"]) == ([], 0, 0)


# --- could not see ---------------------------------------------------------------------


class Fixed:
    """A snapshot that answers for the kernel alone."""

    def __init__(self, kernel: Kernel | Unread) -> None:
        self._kernel = kernel

    def get(self, _: object) -> Kernel | Unread:
        return self._kernel

    def values(self) -> list[object]:
        return [self._kernel]


def kernel(machine: str = "x86_64", capabilities: tuple[str, ...] = ()) -> Kernel:
    return Kernel(
        release="6.1.0", boot_id="b", node_name="n", machine=machine, page_size=4096,
        page_size_source="probe", clock_ticks=100, cpus_online=2, cpus_possible=2,
        uptime_seconds=1.0, taken_at_unix_seconds=1.0, monotonic_seconds=1.0, reader_uid=1000,
        reader_capabilities=capabilities,
    )  # fmt: skip


def rows(made: StacksPage, of: Kernel | Unread | None = None, **more: Any) -> list[tuple[str, str]]:
    values = {"unread": (), "is_hidden": False, "has_cpus": False, **more}
    missing = Missing(untold=made.tally.untold, left_out=made.tally.left_out, **values)
    snapshot: Any = Fixed(of or kernel())
    assert isinstance(snapshot, Fixed | Snapshot)
    return [(row.what, row.provide) for row in unseen(missing, snapshot)]


def test_nothing_is_missing_where_everything_was_told() -> None:
    assert rows(page(*THREADS)) == []


def test_refused_stacks_say_what_would_give_them() -> None:
    found = rows(page(task(1, None), task(2, None)))
    assert found == [
        (
            "the stacks of 6 observations",
            "root on the host, or CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH",
        )
    ]
    root = kernel(capabilities=("SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH"))
    assert rows(page(task(1, None)), root)[0][1].startswith("nothing: root is refused too")


def test_tasks_on_a_cpu_need_sysrq_unless_it_was_asked() -> None:
    made = page(task(1, (), state="R"))
    ((what, provide),) = rows(made)
    assert what == "where 3 observations on a CPU were"
    assert provide.startswith("--sysrq (root)")
    assert rows(made, has_cpus=True) == []


def test_hidden_processes_and_stale_stacks_are_named() -> None:
    made = page(*THREADS)
    assert rows(made, is_hidden=True)[0][0] == "processes of other users"
    assert "stack of a task in state R" in rows(made, kernel("aarch64"))[0][0]
    unread = (Unread("task_stacks", "no_answer", "a process did not let go"),)
    assert rows(made, unread=unread)[0][0] == "task_stacks"


def test_a_refused_sysrq_is_told_even_where_it_does_not_exist() -> None:
    made = page(*THREADS)
    for why in ("absent", "refused", "failed"):
        unread = (Unread(FILES, why, "No such file or directory"),)  # type: ignore[arg-type]
        ((what, provide),) = rows(made, unread=unread)
        assert what == "where the CPUs are (sysrq)"
        assert provide.startswith("root on the host itself")


def test_a_bundle_without_samples_says_so() -> None:
    unread = (Unread("task_stacks", "not_captured", "the bundle does not hold it"),)
    assert rows(page(samples=0), unread=unread)[0] == (
        "kernel stacks", "the machine itself, or a bundle that this version captured there",
    )  # fmt: skip


def test_what_there_was_no_time_for_is_counted() -> None:
    made = page(*THREADS)
    made.tally.left_out.update({"threads": 90_000, "processes": 3})
    assert rows(made)[0][0] == "all together 3 processes, 90,000 threads"
