"""The memory controller is switched off below a cgroup, and on again: the folder stays."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container, look, pod, table

from seawall.actions.orders import Mounts
from seawall.guard.sense.group_table import GroupTable

MIB = 1 << 20
PODS = 5


class Switch:
    """cgroup.subtree_control of the pods' parent: kernfs answers ENODEV for a file that went."""

    def __init__(self, fake: FakeTree, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fake = fake
        self.texts: dict[Path, str] = {}
        self.refused = 0
        real = os.pread

        def pread(fd: int, size: int, at: int) -> bytes:
            if self.refused or not os.fstat(fd).st_nlink:
                raise OSError(self.refused or errno.ENODEV, "")
            return real(fd, size, at)

        monkeypatch.setattr(os, "pread", pread)

    def off(self) -> None:
        for file in self.fake.mount.glob("kubepods/burstable/pod*/**/memory.*"):
            if file.name != "memory.pressure":
                self.texts[file] = file.read_text()
        for file in self.texts:
            file.unlink()

    def on(self) -> None:
        for file, text in self.texts.items():
            file.write_text(text)


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    fake = FakeTree(tmp_path / "tree", 2)
    for number in range(PODS):
        fake.make(pod(number), memory__max=f"{200 * MIB}\n")
        fake.make(container(number), memory__max=f"{100 * MIB}\n",
                  memory__current=f"{100 * MIB}\n",
                  memory__swap__current=f"{7 * MIB}\n")  # fmt: skip
    return fake


@pytest.fixture
def switch(fake: FakeTree, monkeypatch: pytest.MonkeyPatch) -> Switch:
    return Switch(fake, monkeypatch)


def seen(groups: GroupTable) -> list[tuple[object, ...]]:
    """Of the pods; where all say the same, once."""
    told = {
        (group.charge_bytes, group.swapped_bytes, group.limit_bytes, group.at_limit_seconds > 0.0)
        for group in groups.by_path.values()
    }
    return list(told)


def test_what_is_not_counted_is_not_known(fake: FakeTree, switch: Switch) -> None:
    groups = table(fake)
    for now in (1.0, 2.0):
        look(groups, now, swap_cached=0)
    assert seen(groups) == [(100 * MIB, 7 * MIB, 100 * MIB, True)]
    members = dict(groups.members)
    switch.off()
    look(groups, 3.0, swap_cached=0)
    assert seen(groups) == [(0, None, 200 * MIB, False)], "those above are read later"
    assert {group.charge_slope for group in groups.by_path.values()} == {0.0}
    assert groups.exits == 0
    for now in (14.0, 25.0, 36.0):
        look(groups, now, swap_cached=0)
        assert seen(groups) == [(0, None, None, False)]
    assert groups.problem + groups.swap_problem == ""
    switch.on()
    for now in (47.0, 48.0, 58.0):
        look(groups, now, swap_cached=0)
        assert {group.charge_slope for group in groups.by_path.values()} == {0.0}, "no growth"
    assert seen(groups) == [(100 * MIB, 7 * MIB, 100 * MIB, True)]
    assert groups.members == members, "names and roles are told once"


def test_off_and_on_between_two_ticks(fake: FakeTree, switch: Switch) -> None:
    """A job that is new to the tree then has another limit, and is at it or not."""
    groups = table(fake)
    look(groups, 1.0, swap_cached=0)
    switch.off()
    switch.on()
    for number in range(PODS):
        fake.make(container(number), memory__current=f"{30 * MIB}\n", memory__max="max\n")
    for now in (2.0, 13.0, 24.0):
        look(groups, now, swap_cached=0)
    assert seen(groups) == [(30 * MIB, 7 * MIB, 200 * MIB, False)]


def test_hits_are_counted_in_the_new_file(fake: FakeTree, switch: Switch) -> None:
    groups = table(fake)
    look(groups, 1.0)
    switch.off()
    switch.on()
    for now in (2.0, 13.0):
        look(groups, now)
    (fake.mount / container(1)[1:] / "memory.events").write_text("max 60\noom_kill 0\n")
    look(groups, 15.0)
    assert groups.by_path[container(1)].events_max == 30.0


def test_hits_of_one_above_it_too(fake: FakeTree, switch: Switch) -> None:
    """A clamp of the whole pod: its file is another one than the container's."""
    (fake.mount / pod(1)[1:] / "memory.max").write_text(f"{100 * MIB}\n")
    groups = table(fake)
    look(groups, 1.0)
    member = groups.members[container(1)]
    assert member.events_path.startswith(f"{fake.mount}{pod(1)}/memory")
    events = fake.mount / pod(1)[1:] / "memory.events"
    events.unlink()
    look(groups, 2.0)
    events.write_text("max 0\noom_kill 0\n")
    look(groups, 13.0)
    events.write_text("max 60\noom_kill 0\n")
    look(groups, 15.0)
    assert groups.by_path[container(1)].events_max == 30.0


def test_who_cannot_be_read_just_now_has_what_it_had(fake: FakeTree, switch: Switch) -> None:
    """ENOMEM, in a shortage: the largest must not look small then."""
    groups = table(fake)
    look(groups, 1.0)
    switch.refused = errno.ENOMEM
    for now in (2.0, 13.0):
        look(groups, now)
    assert seen(groups) == [(100 * MIB, None, 100 * MIB, True)]


def test_all_that_went_at_once_are_gone_in_the_next_tick(
    fake: FakeTree, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = table(fake)
    look(groups, 1.0)
    monkeypatch.setattr(type(groups.tree.watches), "events", lambda _: [])
    for number in range(PODS - 1):
        fake.remove(pod(number))
    look(groups, 2.0)
    look(groups, 3.0)
    assert set(groups.by_path) == {container(PODS - 1)}
    assert groups.exits == PODS - 1


def test_one_that_is_not_counted_and_went_is_soon_gone(
    fake: FakeTree, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch.off()
    groups = table(fake)
    look(groups, 1.0)
    monkeypatch.setattr(type(groups.tree.watches), "events", lambda _: [])
    fake.remove(pod(1))
    look(groups, 12.0)
    look(groups, 13.0)
    assert container(1) not in groups.by_path


def test_nothing_is_left_open(fake: FakeTree, switch: Switch) -> None:
    groups = table(fake)
    for now in (1.0, 2.0, 13.0):
        look(groups, now, swap_cached=0)
    before = len(os.listdir("/proc/self/fd"))
    for round_ in range(1, 20):
        now = 100.0 * round_
        switch.off()
        for later in (1.0, 12.0):
            look(groups, now + later, swap_cached=0)
        switch.on()
        for later in (30.0, 31.0, 42.0):
            look(groups, now + later, swap_cached=0)
    assert len(os.listdir("/proc/self/fd")) == before
    groups.close()


# --- a real kernel ----------------------------------------------------------------------------

UNIFIED = Path("/sys/fs/cgroup/unified")
FILE = "hugetlb.2MB.current"
"""Stands for memory.current where memory is counted by v1."""


@pytest.fixture
def real() -> Iterator[Path]:
    control, mine = UNIFIED / "cgroup.subtree_control", UNIFIED / f"seawall-TEST-{os.getpid()}"
    try:
        had = control.read_text().split()
        control.write_text("+hugetlb")
        mine.mkdir()
        (mine / control.name).write_text("+hugetlb")
        (mine / "job").mkdir()
    except OSError as refused:
        pytest.skip(f"{UNIFIED}: {refused.strerror}: needs root and hugetlb on a v2 tree")
    yield mine
    (mine / "job").rmdir()
    mine.rmdir()
    if "hugetlb" not in had:
        control.write_text("-hugetlb")


@pytest.mark.system
def test_a_real_controller_is_switched_off_and_on(real: Path) -> None:
    groups = GroupTable(Mounts(str(real), 2), are_told=False)
    groups.names.charge = FILE
    groups.open(0.0)
    member, control = groups.members["/job"], real / "cgroup.subtree_control"
    member.group.charge_bytes = 123 * MIB
    control.write_text("-hugetlb")
    for now in (2.0, 15.0):
        look(groups, now)
    assert (member.charge_fd < 0, member.group.charge_bytes) == (True, 0)
    control.write_text("+hugetlb")
    look(groups, 30.0)
    assert os.pread(member.charge_fd, 24, 0) == (real / "job" / FILE).read_bytes()
    assert groups.members["/job"] is member
    groups.close()
