"""Backtraces that the kernel prints, in the forms of 2.6.39 to 6.18, x86-64 and arm64."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readings import sysrq_samples as samples

from seawall.readings.sysrq_backtraces import Backtrace, parse
from seawall.readings.task_stacks import StackFrame

ALL = [getattr(samples, name) for name in dir(samples) if name.isupper()]


def by_cpu(data: bytes) -> dict[int | None, Backtrace]:
    return {trace.cpu: trace for trace in parse(data).traces}


def names(trace: Backtrace) -> list[str]:
    return [frame.function for frame in trace.frames]


def test_kswapd_of_an_old_kernel_is_read_once() -> None:
    cpus = by_cpu(samples.KSWAPD_2_6_39)
    assert set(cpus) == {1, 2}
    assert (cpus[2].pid, cpus[2].comm, cpus[2].state) == (46, "kswapd0", "running")
    assert names(cpus[2]) == [
        "zone_watermark_ok_safe", "sleeping_prematurely.part.11", "kswapd", "kthread",
        "kernel_thread_helper",
    ]  # fmt: skip
    assert cpus[1].state == "idle"


def test_unreliable_frames_and_registers_are_left_out() -> None:
    (trace,) = parse(samples.DRAIN_4_6).traces
    assert (trace.cpu, trace.pid, trace.comm) == (2, 1181, "smbd")
    assert names(trace)[:3] == ["smp_call_function_many", "on_each_cpu_mask", "drain_all_pages"]
    assert "page_alloc_cpu_notify" not in names(trace)
    assert "xfs_ilock" not in names(trace)
    assert StackFrame("xfs_filemap_fault", "xfs") in trace.frames
    assert names(trace)[-1] == "page_fault"


def test_who_asked_is_told_from_who_runs_and_who_idles() -> None:
    cpus = by_cpu(samples.X86_5_16)
    states = {cpu: trace.state for cpu, trace in cpus.items()}
    assert states == {0: "own", 7: "running", 5: "idle", 4: "idle"}
    assert (cpus[7].pid, cpus[7].comm) == (1187, "unattended-upgr")
    assert names(cpus[7]) == [
        "kmem_cache_free", "user_path_at_empty", "vfs_statx", "__do_sys_newfstatat",
        "do_syscall_64", "entry_SYSCALL_64_after_hwframe",
    ]  # fmt: skip


def test_a_recent_kernel_names_uid_and_build_id() -> None:
    cpus = by_cpu(samples.X86_6_18)
    assert (cpus[3].pid, cpus[3].comm) == (4242, "Xorg worker")
    assert cpus[3].frames[:2] == (
        StackFrame("nv_alloc_pages", "nvidia"),
        StackFrame("nvidia_ioctl", "nvidia"),
    )
    assert "__x64_sys_ioctl" in names(cpus[3])
    assert (cpus[1].state, cpus[1].comm, cpus[1].frames) == ("user_mode", "burn", ())


def test_arm64_without_nmi_shows_what_was_interrupted() -> None:
    cpus = by_cpu(samples.ARM64_IPI)
    assert {cpu: trace.state for cpu, trace in cpus.items()} == {
        2: "own", 3: "idle", 1: "running", 0: "user_mode",
    }  # fmt: skip
    assert names(cpus[1]) == [
        "shrink_lruvec", "shrink_node", "balance_pgdat", "kswapd", "kthread", "ret_from_fork",
    ]  # fmt: skip


def test_arm64_with_pseudo_nmi() -> None:
    cpus = by_cpu(samples.ARM64_NMI)
    assert cpus[0].state == "idle"
    assert (cpus[1].comm, cpus[1].pid) == ("dd", 612)
    assert names(cpus[1])[:3] == ["__arch_copy_to_user", "copy_page_to_iter", "filemap_read"]


def test_blocked_tasks_of_old_and_new_kernels() -> None:
    old = parse(samples.BLOCKED_OLD).traces
    assert [(one.comm, one.pid, one.state, one.cpu) for one in old] == [
        ("jbd2/dm-1-8", 464, "blocked", None), ("tar", 2345, "blocked", None),
    ]  # fmt: skip
    assert names(old[0]) == ["jbd2_journal_commit_transaction", "kjournald2", "kthread"]
    new = parse(samples.BLOCKED_NEW).traces
    assert [(one.comm, one.pid, one.state) for one in new] == [
        ("kworker/u17:0", 72, "blocked"), ("cat", 5512, "blocked"),
    ]  # fmt: skip
    assert names(new[0])[-1] == "io_ring_exit_work"
    assert new[1].frames[1] == StackFrame("request_wait_answer", "fuse")


def test_nothing_of_another_message_becomes_a_backtrace() -> None:
    assert parse(b"usb 1-1: new device\nCall Trace:\n secret+0x1/0x2\n").traces == ()
    assert parse(b"NMI backtrace for cpu 1\nusb 1-1: CPU: hot\n").traces == ()


@pytest.mark.parametrize("sample", ALL)
def test_damaged_lines_never_escape(sample: bytes) -> None:
    @given(st.data())
    def check(data: st.DataObject) -> None:
        lines = sample.split(b"\n")
        for _ in range(data.draw(st.integers(1, 5))):
            at = data.draw(st.integers(0, len(lines) - 1))
            lines[at] = (
                data.draw(st.binary(max_size=80)) + lines[at][data.draw(st.integers(0, 20)) :]
            )
        found = parse(b"\n".join(lines))
        assert all(len(trace.frames) <= 128 for trace in found.traces)

    check()


def test_a_cpu_that_is_printed_for_ever_is_bounded() -> None:
    data = b"NMI backtrace for cpu 1\nCall Trace:\n" + b" f+0x1/0x2\n g+0x1/0x2\n" * 100_000
    (trace,) = parse(data).traces
    assert len(trace.frames) == 128
