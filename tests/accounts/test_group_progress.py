"""Stuck or busy: from pressure where there is any, else from processor time."""

from dataclasses import replace

import pytest

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.group_progress import GroupProgress, progress_of, refused_per_s
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.memcg import Memcg
from seawall.readings.pressure import Pressure, Stall
from seawall.readings.process import Process, Processes

GIB = 1 << 30
LIMIT = 8 * GIB
KERNEL = Kernel(
    release="2.6.32-431.el6.x86_64", boot_id="b", node_name="n", machine="x86_64", page_size=4096,
    page_size_source="probe", clock_ticks=100, cpus_online=4, cpus_possible=4, uptime_seconds=1.0,
    taken_at_unix_seconds=1.0, monotonic_seconds=1.0, reader_uid=0, reader_capabilities=(),
)  # fmt: skip
SEEN = GroupProgress(full=None, user_cpus=None, cache=0.0, processes=10, largest=0.5)


def moment(pids: range, *, full_seconds: float | None = None, **fields: int) -> MemoryGroups:
    stall = None if full_seconds is None else Stall(0.0, 0.0, 0.0, full_seconds)
    memcg = Memcg(
        path="/c", version=1, limit=LIMIT, stat={}, events={}, events_local={},
        memory_pressure=None if stall is None else Pressure(stall, stall),
        **{"usage": LIMIT, "active_file": 0, "inactive_file": 0, **fields},
    )  # fmt: skip
    group = MemoryGroup(memcg, None, "/sys/fs/cgroup/memory/c", tuple(pids))
    return MemoryGroups(1, "/sys/fs/cgroup/memory", {"/c": group}, None, ())


def tree(usages: dict[str, dict[str, int]], max_events: int) -> MemoryGroups:
    """v2; only the pod counts refused charges."""
    groups = {
        path: MemoryGroup(
            Memcg(
                path=path, version=2, limit=LIMIT, stat={}, events_local={},
                events=dict.fromkeys(("max", "oom"), max_events if path == "/pod" else 0),
                **fields,
            ),
            None, "/sys/fs/cgroup" + path, (),
        )
        for path, fields in usages.items()
    }  # fmt: skip
    return MemoryGroups(2, "/sys/fs/cgroup", groups, None, ())


def tasks(pids: range, utime: int, pages: int, start: int = 5) -> Processes:
    found = {
        pid: Process(pid, "node", "R", 1, 0, 0, 0, utime, 0, 1, start, 0, pages) for pid in pids
    }
    return Processes(found, ())


def seen(earlier: Processes, later: Processes, count: int) -> GroupProgress:
    pids = range(100, 100 + count)
    window = TopicWindow(moment(pids), moment(pids), 2.0)
    group = window.later.by_path["/c"]
    return progress_of(group, window, TopicWindow(earlier, later, 2.0), KERNEL)


def test_the_published_swarm() -> None:
    """1,280 processes of 8 MiB under 8 GiB: each below one thousandth of the limit."""
    pids = range(100, 1380)
    found = seen(tasks(pids, 7, 2048), tasks(pids, 7, 2048), 1280)
    assert found.processes == 1280
    assert found.largest == 2048 * 4096 / LIMIT < 0.001
    assert found.is_swarm
    assert found.is_stuck(0.5, 0.05)


def test_eighty_larger_ones_are_no_swarm() -> None:
    pids = range(100, 180)
    assert not seen(tasks(pids, 7, 32768), tasks(pids, 7, 32768), 80).is_swarm


def test_user_time_is_progress() -> None:
    pids = range(100, 110)
    found = seen(tasks(pids, 7, 2048), tasks(pids, 47, 2048), 10)
    assert found.user_cpus == pytest.approx(10 * 40 / 100 / 2.0)
    assert not found.is_stuck(0.5, 0.05)


def test_a_pid_that_came_again_is_another_process() -> None:
    pids = range(100, 110)
    found = seen(tasks(pids, 900, 2048), tasks(pids, 950, 2048, start=6), 10)
    assert found.user_cpus is None


def test_without_processes_nothing_is_known() -> None:
    pids = range(100, 110)
    assert seen(tasks(range(0), 0, 0), tasks(range(0), 0, 0), 10).user_cpus is None
    window = TopicWindow(moment(pids), moment(pids), 2.0)
    missing = Unread("/proc", "refused")
    found = progress_of(window.later.by_path["/c"], window, missing, KERNEL)
    assert (found.user_cpus, found.largest, found.full) == (None, None, None)


def test_pressure_decides_where_there_is_any() -> None:
    pids = range(1)
    window = TopicWindow(moment(pids, full_seconds=1.0), moment(pids, full_seconds=2.2), 2.0)
    missing = Unread("/proc", "refused")
    found = progress_of(window.later.by_path["/c"], window, missing, KERNEL)
    assert found.full == pytest.approx(0.6)
    assert found.is_stuck(0.5, 0.05)
    assert not found.is_stuck(0.7, 0.05)


@pytest.mark.parametrize(
    ("full", "user_cpus", "cache", "ooms", "stuck"),
    [(0.3, 0.0, 0.0, 900, True), (0.2, 0.0, 0.0, 900, False), (0.3, 0.06, 0.0, 900, False),
     (0.3, None, 0.0, 900, False), (0.3, 0.0, 0.2, 900, False), (0.3, 0.0, None, 900, False),
     (0.3, 0.0, 0.0, 0, False), (0.6, 0.06, 0.2, 0, True)],
)  # fmt: skip
def test_a_thousand_that_try_again_and_again(
    full: float, user_cpus: float | None, cache: float | None, ooms: float, stuck: bool
) -> None:
    """6.1, 1,076 of 300 KiB on two processors: full 0.50 to 0.74, 0.005 CPUs in user mode."""
    found = replace(SEEN, full=full, user_cpus=user_cpus, cache=cache, ooms=ooms)
    assert found.is_stuck(0.5, 0.05) is stuck
    # Those that run between two tries are not stalled, and are in the kernel all the same.
    if full < 0.5 and stuck:
        assert not replace(found, full=0.0).is_stuck(0.5, 0.05)
        assert replace(found, full=0.0, in_kernel=0.9).is_stuck(0.5, 0.05)
        assert not replace(found, full=0.0, in_kernel=0.9, ooms=0).is_stuck(0.5, 0.05)


def test_slow_is_not_stuck_where_nobody_tells_pressure() -> None:
    """A web server at its pod's limit with most of it in tmpfs: each page of a log that is dropped
    for the next is a hit of the limit, and it serves with a hundredth of a processor.
    """
    pids = range(100, 104)
    sleeps = Processes(
        {p: one._replace(state="S") for p, one in tasks(pids, 7, 9).by_pid.items()}, ()
    )
    serves = seen(sleeps, tasks(pids, 7, 9), 4)
    assert (serves.ooms, serves.in_kernel) == (None, 0.0)
    assert not serves.is_stuck(0.5, 0.05)
    hangs = seen(tasks(pids, 7, 9), tasks(pids, 8, 9), 4)
    assert hangs.in_kernel == 1.0
    assert hangs.is_stuck(0.5, 0.05)


def test_the_time_of_children_that_ended_is_progress() -> None:
    """``make -j``: no child is there at both looks."""
    pids = range(100, 110)
    later = {p: one._replace(cutime_ticks=40) for p, one in tasks(pids, 7, 9).by_pid.items()}
    found = seen(tasks(pids, 7, 9), Processes(later, ()), 10)
    assert found.user_cpus == pytest.approx(10 * 40 / 100 / 2.0)


def test_a_pod_that_refuses_for_its_container_counts_the_ooms() -> None:
    usages = {"/pod": {"usage": LIMIT}, "/pod/c": {"usage": LIMIT}}
    window = TopicWindow(tree(usages, 5), tree(usages, 2005), 2.0)
    group, place = window.later.by_path["/pod/c"], window.later.by_path["/pod"]
    missing = Unread("/proc", "refused")
    assert progress_of(group, window, missing, KERNEL).ooms == 0
    assert progress_of(group, window, missing, KERNEL, place).ooms == 1000


def test_a_container_with_a_file_cache_gets_on() -> None:
    busy_in_the_kernel = replace(SEEN, user_cpus=0.0, cache=0.9)
    assert not busy_in_the_kernel.is_stuck(0.5, 0.05)
    assert replace(SEEN, user_cpus=0.0, in_kernel=0.9).is_stuck(0.5, 0.05)
    assert not replace(SEEN, user_cpus=0.0, in_kernel=0.1).is_stuck(0.5, 0.05)


@pytest.mark.parametrize(
    ("earlier", "later", "rate"),
    [
        ({"failcnt": 10}, {"failcnt": 30}, 10.0),
        ({"failcnt": 30}, {"failcnt": 10}, None),  # counted anew
        ({"failcnt": 10, "oom_kill": 1}, {"failcnt": 30, "oom_kill": 2}, None),
        ({"failcnt": 10, "usage": LIMIT // 2}, {"failcnt": 30}, None),
        ({"failcnt": 10}, {"failcnt": 30, "oom_kill_disable": 1, "under_oom": 1}, None),
        ({}, {}, None),
    ],
)
def test_refused_charges(
    earlier: dict[str, int], later: dict[str, int], rate: float | None
) -> None:
    window = TopicWindow(moment(range(0), **earlier), moment(range(0), **later), 2.0)
    found = refused_per_s(window.later.by_path["/c"], window, 0.95)
    assert (found[0] if found else None) == rate


def test_the_pod_refuses_for_its_only_container() -> None:
    """As seen on 6.1: the pod has the same limit and a little more in it, so it is hit first."""
    container = {"/pod/c": {"usage": LIMIT - 4096}, "/pod": {"usage": LIMIT}}
    earlier, later = (tree(container, max_events) for max_events in (0, 500))
    window = TopicWindow(earlier, later, 2.0)
    found = refused_per_s(later.by_path["/pod/c"], window, 0.95)
    assert found is not None
    assert (found[0], found[1].path) == (250.0, "/pod")
