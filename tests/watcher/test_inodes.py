"""Which container a traced task was in, where its path comes again with another inode."""

from dataclasses import replace

import pytest
from tests.accounts.packet_scenes import APP_A, cgroups

from seawall.accounts import workloads
from seawall.accounts.tracing.task_workloads import TaskWorkloads
from seawall.accounts.watch.watched_claims import ClaimPlace
from seawall.host.host import JSON, Unread
from seawall.readings.cgroup import CgroupLayout
from seawall.readings.container_files import ContainerFiles
from seawall.readings.page_trace import PageTrace, TracedTask
from seawall.watcher.inodes import Inodes

HOME = "/lxc.payload.web"
SUB = f"{HOME}/system.slice/app.service"
MOUNT = "/sys/fs/cgroup"
OLD, NEW, OLD_SUB, NEW_SUB = 4711, 9999, 4800, 9800


class Folders:
    """Inodes of folders, by cgroup."""

    def __init__(self) -> None:
        self.inodes: dict[str, int] = {}

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        assert probe == "inode"
        inode = self.inodes.get(argument.removeprefix(MOUNT) or "/")
        return Unread(argument, "absent") if inode is None else {"inode": inode}


TREE = replace(
    cgroups(), paths=("/", HOME, f"{HOME}/system.slice", SUB, *cgroups().paths[1:])
)  # fmt: skip
PLACE = ClaimPlace("b", 1.0, MOUNT)
WORKLOADS = workloads.account(TREE, ContainerFiles({}, {}, ()))


def task(path: str, inode: int | None, tid: int = 7) -> TracedTask:
    return TracedTask(
        tid, tid, "x", 1, is_kernel_thread=False, cgroups=("1:name=systemd:/", f"0::{path}"),
        cgroup_inode=inode, known_by="proc", alive=True,
    )  # fmt: skip


def trace(*tasks: TracedTask) -> PageTrace:
    return PageTrace(1.0, 4096, "ring", 1, 0, 1, (), 0, 0, (), tasks, (), (), ())


def told(inodes: Inodes, *tasks: TracedTask) -> list[tuple[tuple[str, ...], int | None]]:
    places = TaskWorkloads(TREE, ContainerFiles({}, {}, ()), WORKLOADS)
    found = inodes.with_workload_cgroups(trace(*tasks), places, TREE, PLACE)
    return [(one.cgroups, one.cgroup_inode) for one in found.tasks]


def begun(**there: int) -> tuple[Inodes, Folders]:
    host = Folders()
    host.inodes = {HOME: OLD, SUB: OLD_SUB, **there}
    inodes = Inodes(host)  # type: ignore[arg-type]
    inodes.begin([HOME], PLACE, keeps=False)
    return inodes, host


def test_the_workload_above_a_cgroup_that_is_there() -> None:
    inodes, host = begun()
    assert told(inodes, task(SUB, OLD_SUB)) == [((f"0::{HOME}",), OLD)]
    host.inodes = {HOME: NEW, SUB: NEW_SUB}
    assert told(inodes, task(SUB, OLD_SUB), task(SUB, NEW_SUB)) == [
        ((f"0::{HOME}",), OLD), ((f"0::{HOME}",), NEW)
    ]  # fmt: skip


def test_what_was_taken_before_a_restart_is_not_the_new_ones() -> None:
    """Seen only afterwards: whose it was cannot be told, and no cgroup has that inode."""
    inodes, host = begun()
    host.inodes = {HOME: NEW, SUB: NEW_SUB}
    assert told(inodes, task(SUB, OLD_SUB), task(SUB, None)) == [
        ((f"0::{HOME}",), OLD_SUB), ((f"0::{HOME}",), 0)
    ]  # fmt: skip


def test_a_cgroup_that_came_and_went_does_not_hide_its_maker() -> None:
    inodes, host = begun()
    del host.inodes[SUB]
    assert told(inodes, task(SUB, OLD_SUB)) == [((f"0::{HOME}",), OLD)]


@pytest.mark.parametrize(("keeps", "inode"), [(True, OLD_SUB), (False, NEW)])
def test_what_is_followed_from_before_counts_from_before(keeps: bool, inode: int) -> None:
    inodes, host = begun()
    host.inodes = {HOME: NEW}
    inodes.begin([HOME], PLACE, keeps=keeps)
    assert told(inodes, task(SUB, OLD_SUB)) == [((f"0::{HOME}",), inode)]


def test_a_container_with_an_id_of_its_own_does_not_come_again() -> None:
    inodes, host = begun()
    host.inodes[APP_A] = 55
    nested = task(f"{APP_A}/nested", 56)
    assert told(inodes, nested) == [((f"0::{APP_A}",), 55)]


def test_tasks_in_the_workloads_own_cgroup_stay_as_they_are() -> None:
    inodes, _ = begun()
    own = task(APP_A, 55)
    assert told(inodes, own) == [(own.cgroups, 55)]


def test_in_a_part_of_the_tree_the_kernel_writes_the_whole_path() -> None:
    inodes, _ = begun()
    layout = CgroupLayout(v1={}, v2=MOUNT, v2_controllers=("memory",), roots={MOUNT: "/part"})
    part = replace(TREE, layout=layout)
    places = TaskWorkloads(part, ContainerFiles({}, {}, ()), WORKLOADS)
    found = inodes.with_workload_cgroups(trace(task(f"/part{SUB}", OLD_SUB)), places, part, PLACE)
    assert (found.tasks[0].cgroups, found.tasks[0].cgroup_inode) == ((f"0::/part{HOME}",), OLD)
