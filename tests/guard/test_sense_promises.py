"""What was promised, as the sense reads it: ``max`` is all, a user's own wish is nothing, and a
request that is stale is not known.
"""

from pathlib import Path

import pytest
from tests.guard.sense_trees import GIB, FakeTree, container, look, pod, table
from tests.guard.test_sense_wiring import Machine, machine  # noqa: F401 - the fixture

from seawall.actions.orders import Mounts
from seawall.guard.judge.evidence import is_hollow, promised_to
from seawall.guard.sense.details import Details
from seawall.guard.sense.group_table import GroupTable
from seawall.guard.sense.member import Names
from seawall.guard.tick_facts import SYSTEM, Group

TOTAL = 64 * GIB
DB = "/batch.slice/db.service"
MANAGER = "/user.slice/user-1000.slice/user@1000.service"
ROOTLESS = f"{MANAGER}/user.slice/libpod-{7:064x}.scope"
OLDEST = 40.0
"""Seconds: promises are not read any more but of those that lead."""


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "memory", 2)


def promise_of(group: Group) -> int:
    return promised_to(group, TOTAL, group.limit_bytes)


@pytest.mark.parametrize("name", ["memory__low", "memory__min"])
@pytest.mark.parametrize(("limit", "promise"), [("max", TOTAL), (str(8 * GIB), 8 * GIB)])
def test_all_of_it_is_promised(fake: FakeTree, name: str, limit: str, promise: int) -> None:
    """MemoryLow=infinity: up to its limit, or all that there is."""
    fake.make(DB, **{name: "max\n", "memory__max": f"{limit}\n"})
    assert promise_of(table(fake).by_path[DB]) == promise


def test_the_larger_of_both_is_its_request(fake: FakeTree) -> None:
    fake.make(DB, memory__low=f"{3 * GIB}\n", memory__min=f"{GIB}\n")
    assert table(fake).by_path[DB].request_bytes == 3 * GIB


@pytest.mark.parametrize("path", [f"{MANAGER}/app.slice/x.service", ROOTLESS])
@pytest.mark.parametrize("text", ["max\n", f"{7 * GIB}\n"])
def test_what_a_user_wishes_for_the_own_units_is_no_promise(
    fake: FakeTree, path: str, text: str
) -> None:
    """The kernel gives it nothing: the cgroups above have none."""
    fake.make(path, memory__low=text, memory__min=text)
    assert table(fake).by_path[path].request_bytes is None


class Pod:
    """One container of the kubelet's, with a limit of 2 GiB, that asked for one."""

    def __init__(self, folder: Path, path: str, version: int = 2, adj: int = 985) -> None:
        self.fake = FakeTree(folder / "memory", version)
        self.limit = "memory.max" if version == 2 else "memory.limit_in_bytes"
        self.folder = self.fake.make(path, cgroup__procs="7\n")
        self.sets(2)
        (folder / "proc" / "7").mkdir(parents=True)
        (folder / "proc" / "7" / "oom_score_adj").write_text(f"{adj}\n")
        self.groups: GroupTable = table(self.fake, version)
        names = Names(Mounts(str(self.fake.mount), version))
        self.details = Details(names, str(folder / "proc"))
        self.member = self.groups.members[path]
        self.now = 0.0
        self.after(20.0)
        self.after(OLDEST)

    def sets(self, gib: int) -> None:
        (self.folder / self.limit).write_text(f"{gib * GIB}\n")

    def after(self, seconds: float) -> Group:
        """As in a tick in which it leads."""
        self.now += seconds
        look(self.groups, self.now, is_near=True)
        self.details.read(self.member, self.now, has_swap=False)
        return self.member.group


@pytest.mark.parametrize("version", [1, 2])
def test_who_was_resized_asks_for_what_nobody_tells(tmp_path: Path, version: int) -> None:
    """oom_score_adj stays that of the start: its limit is what is left, and hollow."""
    one = Pod(tmp_path, container(1), version)
    group = one.after(1.0)
    assert promise_of(group) == TOTAL * 16 // 1000
    group.request_bytes = TOTAL * 16 // 1000  # as the watcher says it
    one.sets(16)
    group = one.after(1.0)
    assert (group.request_bytes, group.adj) == (None, None)
    assert promise_of(group) == 16 * GIB
    assert is_hollow(group, TOTAL, 16 * GIB)
    one.sets(2)
    assert promise_of(one.after(1.0)) == TOTAL * 16 // 1000


def test_a_limit_that_was_lowered_tells_nothing(tmp_path: Path) -> None:
    """It may be our own clamp, and what is put back is no resize."""
    one = Pod(tmp_path, container(1))
    for gib in (1, 2):
        one.sets(gib)
        assert one.after(1.0).adj == 985


def test_the_limit_that_a_runtime_writes_late_is_the_first(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "memory", 2)
    folder, groups = fake.make(container(1)), table(fake)
    member = groups.members[container(1)]
    assert member.first_limit is None
    (folder / "memory.max").write_text(f"{GIB}\n")
    look(groups, 5.0, is_near=True)
    assert member.first_limit == GIB


@pytest.mark.parametrize(
    ("path", "adj"),
    [(f"/docker/{1:064x}", 985), (container(1, "besteffort"), 985), (container(1), -997)],
    ids=["docker", "best effort", "critical"],
)
def test_of_others_nothing_is_forgotten(tmp_path: Path, path: str, adj: int) -> None:
    one = Pod(tmp_path, path, adj=adj)
    one.sets(16)
    assert one.after(1.0).adj == adj


def test_the_judge_is_told_by_what_the_kubelet_reckons(machine: Machine) -> None:  # noqa: F811
    """A reserved pool of huge pages is part of the node's capacity."""
    machine.meminfo(30, Hugetlb=60)
    node = machine.look()
    assert (node.total_bytes, node.capacity_bytes) == (40 * GIB, 100 * GIB)
    path = container(1)
    assert pod(1) in path
    group = machine.sense.groups[path]
    group.adj = 901
    assert group.class_rank != SYSTEM
    assert promised_to(group, node.capacity_bytes, None) == 10 * GIB
