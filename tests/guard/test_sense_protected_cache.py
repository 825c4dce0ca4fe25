"""Page cache behind memory.min: on a node that has nothing left it is no headroom.  And when
watermarks are read.
"""

from pathlib import Path

import pytest
from tests.guard.sense_trees import FakeTree, container
from tests.guard.test_sense_wiring import (
    GIB,
    LOW,
    MIB,
    RARELY,
    Machine,
    machine,  # noqa: F401 - the fixture
)

from seawall.actions.orders import Mounts
from seawall.guard.sense.member import Names
from seawall.guard.sense.protected_cache import protected_cache
from seawall.guard.sense.tree import GroupTree

SERVICE = "/system.slice/postgres.service"


def stat(lists: int, mapped: int = 0, dirty: int = 0) -> str:
    return (
        f"anon 0\nfile {lists * MIB}\nfile_mapped {mapped * MIB}\nfile_dirty {dirty * MIB}\n"
        f"file_writeback 0\ninactive_file {lists // 2 * MIB}\n"
        f"active_file {(lists - lists // 2) * MIB}\n"
    )


def keeps(fake: FakeTree, path: str, least: int | str, usage: int = 0, **of_stat: int) -> None:
    """MiB; a number, or what stands in memory.min."""
    text = least if isinstance(least, str) else f"{least * MIB}\n"
    changed = {"memory__min": text, "memory__current": f"{usage * MIB}\n"}
    if of_stat:
        changed["memory__stat"] = stat(**of_stat)
    fake.make(path, **changed)


def found(fake: FakeTree, version: int = 2) -> int:
    """MiB."""
    tree = GroupTree(str(fake.mount))
    tree.open(0.0)
    bytes_ = protected_cache(tree, Names(Mounts(str(fake.mount), version)))
    tree.close()
    return bytes_ // MIB


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "memory", 2)


def test_what_it_uses_below_its_promise_nobody_else_gets(fake: FakeTree) -> None:
    keeps(fake, "/system.slice", 4096, 3100)
    keeps(fake, SERVICE, 4096, 3000, lists=2500)
    assert found(fake) == 2500


def test_of_what_it_uses_beyond_that_cache_can_be_had(fake: FakeTree) -> None:
    keeps(fake, "/system.slice", 4096, 5000)
    keeps(fake, SERVICE, 4096, 5000, lists=2500)
    assert found(fake) == 2500 - (5000 - 4096)
    keeps(fake, SERVICE, 4096, 7000, lists=2500)
    assert found(fake) == 0


def test_a_promise_that_no_slice_above_gave_counts_for_nothing(fake: FakeTree) -> None:
    """MemoryMin= of a unit whose slice has none."""
    keeps(fake, "/system.slice", 0, 3000)
    keeps(fake, SERVICE, 4096, 3000, lists=2500)
    assert found(fake) == 0


def test_those_who_ask_for_more_than_there_is_get_their_parts(fake: FakeTree) -> None:
    keeps(fake, "/system.slice", 1000, 4000)
    for name in ("a", "b"):
        keeps(fake, f"/system.slice/{name}.service", 2000, 2000, lists=1500)
    # Each is promised 500 of its 2,000: 1,500 of it can be had, which is all of its cache.
    assert found(fake) == 0
    keeps(fake, "/system.slice", 3000, 4000)
    assert found(fake) == 2 * (1500 - 500)


def test_what_headroom_leaves_out_anyway_is_not_taken_twice(fake: FakeTree) -> None:
    keeps(fake, "/system.slice", "max\n", 3000)
    keeps(fake, SERVICE, "max\n", 3000, lists=2500, mapped=400, dirty=100)
    assert found(fake) == 2000


def test_what_is_not_sure_is_not_told(fake: FakeTree) -> None:
    """Whether those below share in it hangs on how the tree is mounted."""
    keeps(fake, "/system.slice", 4096, 3000)
    keeps(fake, SERVICE, 4096, 3000, lists=2500)
    (fake.mount / SERVICE[1:] / "below").mkdir()
    assert found(fake) == 0


def test_v1_has_no_such_promise(tmp_path: Path) -> None:
    assert found(FakeTree(tmp_path / "memory", 1), 1) == 0


def test_a_node_whose_cache_is_promised_is_not_in_peace(machine: Machine) -> None:  # noqa: F811
    keeps(machine.tree, "/system.slice", 50 << 10, 45 << 10)
    keeps(machine.tree, SERVICE, 50 << 10, 45 << 10, lists=40 << 10)
    machine.meminfo(1, **{"Active(file)": 20, "Inactive(file)": 22})
    node = machine.look(RARELY)
    assert node.headroom_bytes == 3 * GIB - 2 * LOW * MIB
    assert node.comparable_bytes == 43 * GIB - LOW * MIB
    assert machine.sense.is_near


@pytest.mark.parametrize(("seconds", "is_read"), [(4.0, False), (11.0, True)])
def test_watermarks_are_read_every_ten_seconds_in_peace(
    machine: Machine,  # noqa: F811
    seconds: float,
    *,
    is_read: bool,
) -> None:
    full = {"memory__max": f"{100 * MIB}\n", "memory__current": f"{90 * MIB}\n"}
    machine.tree.make(container(1), **full)  # who is close to a limit ends the deep peace
    machine.look(RARELY)
    machine.look(RARELY)
    machine.zone((LOW - 1) * MIB)
    assert machine.look(seconds).is_low is is_read
