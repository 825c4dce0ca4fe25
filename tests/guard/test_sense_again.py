"""What could not be opened once is tried again: descriptors were short, a controller was late."""

import errno
import os
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container, look, pod, table

from seawall.guard.sense import group_pressure, group_table, member
from seawall.guard.sense import group_table as groups_module
from seawall.guard.sense.files import open_quietly

MIB = 1 << 20


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "tree", 2)


class Short:
    """No descriptors for files of these names; and who was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: tuple[str, ...] = ()
        self.asked: list[str] = []
        for module in (groups_module, group_table, member, group_pressure):
            monkeypatch.setattr(module, "open_quietly", self)

    def __call__(self, path: str, flags: int = os.O_RDONLY) -> int:
        self.asked.append(path)
        return -errno.EMFILE if path.endswith(self.names) else open_quietly(path, flags)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Short:
    return Short(monkeypatch)


@pytest.mark.parametrize("is_near", [False, True])
def test_when_descriptors_come_back_all_is_seen(
    fake: FakeTree, short: Short, *, is_near: bool
) -> None:
    fake.make(container(1), memory__current=f"{60 * MIB}\n", memory__swap__current=f"{MIB}\n",
              memory__max=f"{64 * MIB}\n", memory__low="4096\n")  # fmt: skip
    short.names = ("memory.current", "memory.max", "memory.swap.current")
    groups = table(fake)
    group = groups.by_path[container(1)]
    for now in (1.0, 2.0):
        look(groups, now, is_near=is_near, swap_cached=0)
    assert (group.charge_bytes, group.limit_bytes, group.swapped_bytes) == (0, None, None)
    assert groups.problem.endswith("Too many open files; raise LimitNOFILE to 65536")
    # Not in each tick, however near the end is.
    short.asked.clear()
    for now in range(3, 11):
        look(groups, float(now), is_near=is_near, swap_cached=0)
    assert [path for path in short.asked if "pressure" not in path] == []
    look(groups, 11.5, is_near=is_near, swap_cached=0)
    assert len([path for path in short.asked if path.endswith("memory.current")]) == 1
    assert groups.problem.endswith("Too many open files; raise LimitNOFILE to 65536")
    short.names = ()
    look(groups, 22.0, is_near=is_near, swap_cached=0)
    look(groups, 23.0, is_near=is_near, swap_cached=0)
    assert (group.charge_bytes, group.limit_bytes) == (60 * MIB, 64 * MIB)
    assert group.swapped_bytes == MIB
    assert group.charge_slope == 0.0, "what it had when it was first seen is no growth"
    assert (groups.problem, groups.swap_problem) == ("", "")
    short.asked.clear()
    look(groups, 34.0, is_near=is_near, swap_cached=0)
    assert [path for path in short.asked if not path.startswith(f"{fake.mount}/memory")] == []


@pytest.mark.parametrize("name", ["memory.current", "memory.max", "memory.swap.current"])
def test_each_of_them_alone_is_told_and_opened_again(
    fake: FakeTree, short: Short, name: str
) -> None:
    fake.make(container(1), memory__current=f"{60 * MIB}\n", memory__max=f"{64 * MIB}\n")
    short.names = (name,)
    groups = table(fake)
    for now in (1.0, 2.0, 3.0, 13.0, 14.0, 24.0):
        look(groups, now, swap_cached=0)
        told = groups.problem + groups.swap_problem
        assert now == 1.0 or f"/{name}: Too many open files" in told
        assert "CONFIG" not in told
    short.names = ()
    look(groups, 35.0, swap_cached=0)
    assert groups.problem + groups.swap_problem == ""
    group = groups.by_path[container(1)]
    assert (group.charge_bytes, group.limit_bytes) == (60 * MIB, 64 * MIB)
    assert group.swapped_bytes == 0


def test_a_controller_that_comes_after_the_folder(fake: FakeTree) -> None:
    """A runtime makes the folders first; its promises are read when it has any."""
    own = fake.make(container(1), memory__max=f"{64 * MIB}\n", memory__low="4096\n",
                    memory__current=f"{60 * MIB}\n", memory__swap__max="0\n")  # fmt: skip
    texts = {file: file.read_text() for file in own.iterdir() if file.name.startswith("memory.")}
    above = fake.mount / pod(1).strip("/") / "memory.max"
    texts[above] = f"{32 * MIB}\n"
    for file in texts:
        file.unlink()
    groups = table(fake)
    look(groups, 1.0)
    look(groups, 50.0)
    group = groups.by_path[container(1)]
    assert (group.charge_bytes, group.limit_bytes, groups.problem) == (0, None, "")
    for file, text in texts.items():
        file.write_text(text)
    look(groups, 61.0)
    assert (group.charge_bytes, group.limit_bytes) == (60 * MIB, 32 * MIB)
    assert group.request_bytes == 4096
    assert groups.unswappable_bytes == 60 * MIB


def test_a_kernel_that_counts_no_swap_is_told_on_and_on(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "tree", 1)
    folder = fake.make(container(1))
    (folder / "memory.memsw.usage_in_bytes").unlink()
    groups = table(fake, 1)
    look(groups, 1.0)
    look(groups, 2.0, swap_cached=0)
    for now in (12.0, 22.0):
        look(groups, now)  # nothing moves in swap
        assert "swapaccount=0" in groups.swap_problem


def test_what_is_opened_on_demand(fake: FakeTree, short: Short) -> None:
    """Hits at the limit, and pressure."""
    own = fake.make(container(1), memory__max=f"{64 * MIB}\n", memory__current=f"{64 * MIB}\n")
    short.names = ("memory.events", "memory.pressure")
    groups = table(fake)
    groups.names.unified = str(fake.mount)
    for now in (1.0, 2.0):
        look(groups, now)
    short.names = ()
    look(groups, 12.0)
    (own / "memory.events").write_text("max 20\noom_kill 0\n")
    (own / "memory.pressure").write_text("some avg10=0 total=0\nfull avg10=0 total=1000000\n")
    look(groups, 14.0)
    group = groups.by_path[container(1)]
    assert (group.events_max, group.stall) == (10.0, 0.5)


def test_trying_again_leaves_nothing_behind(fake: FakeTree, short: Short) -> None:
    for number in range(5):
        fake.make(container(number))
    groups = table(fake)
    look(groups, 1.0, swap_cached=0)
    look(groups, 2.0, swap_cached=0)
    before = len(os.listdir("/proc/self/fd"))
    for now in range(12, 600, 11):
        look(groups, float(now), swap_cached=0)
    assert len(os.listdir("/proc/self/fd")) == before
    groups.close()
