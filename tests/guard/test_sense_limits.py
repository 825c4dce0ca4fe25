"""Which limit holds for a group, and for how long it has stood at it; over fake trees."""

from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import (
    FakeTree,
    container,
    look,
    pod,
    table,
)

from seawall.guard.sense.member import limiter_of

MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "tree", 2)


def test_the_lowest_limit_above_holds(fake: FakeTree) -> None:
    fake.make(pod(1), memory__max=f"{64 * MIB}\n")
    fake.make(container(1), memory__max=f"{100 * MIB}\n", memory__low=f"{5 * MIB}\n")
    fake.make(container(2))
    groups = table(fake)
    look(groups, 1.0)
    assert groups.by_path[container(1)].limit_bytes == 64 * MIB
    assert groups.by_path[container(1)].request_bytes == 5 * MIB
    assert groups.by_path[container(2)].limit_bytes is None
    limiter = limiter_of(groups.members[container(1)].folder)
    assert limiter is not None
    assert limiter.path == pod(1)
    (fake.mount / container(2).strip("/") / "memory.max").write_text("4096\n")
    look(groups, 2.0)
    assert groups.by_path[container(2)].limit_bytes is None  # every ten seconds
    look(groups, 11.5)
    assert groups.by_path[container(2)].limit_bytes == 4096
    (fake.mount / container(2).strip("/") / "memory.max").write_text("max\n")
    look(groups, 12.0, is_near=True)
    assert groups.by_path[container(2)].limit_bytes is None


def test_at_its_limit(fake: FakeTree) -> None:
    folder = fake.make(
        container(1), memory__max=f"{100 * MIB}\n", memory__current=f"{995 * MIB // 10}\n"
    )
    groups = table(fake)
    group = groups.by_path[container(1)]
    look(groups, 1.0)
    assert group.at_limit_seconds == 0.0
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 60\noom 1\n")
    (folder / "memory.pressure").write_text("some avg10=0 total=9\nfull avg10=0 total=1500000\n")
    look(groups, 4.0)
    assert group.at_limit_seconds == 3.0
    assert group.events_max == 20.0
    assert group.stall == 0.5
    (folder / "memory.current").write_text(f"{50 * MIB}\n")
    look(groups, 5.0)
    assert (group.at_limit_seconds, group.events_max) == (0.0, 0.0)


def test_failcnt_on_v1(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "v1", 1)
    folder = fake.make(
        container(1), memory__limit_in_bytes="1000000\n", memory__usage_in_bytes="999999\n"
    )
    fake.make(container(2))
    groups = table(fake, 1)
    look(groups, 1.0)
    (folder / "memory.failcnt").write_text("50\n")
    look(groups, 2.0)
    assert groups.by_path[container(1)].limit_bytes == 1_000_000
    assert groups.by_path[container(2)].limit_bytes is None  # 9223372036854771712 is none
    assert groups.by_path[container(1)].events_max == 50.0


@pytest.mark.parametrize("version", [1, 2])
def test_a_pod_of_one_container_is_full_first(tmp_path: Path, version: int) -> None:
    """Both have the same limit, and the pod holds its sandbox too: the container's is never hit.
    On v1 the kill is counted where the victim was.
    """
    fake = FakeTree(tmp_path / "one", version)
    limit, current = ("memory__max", "memory__current")
    if version == 1:
        limit, current = ("memory__limit_in_bytes", "memory__usage_in_bytes")
    full = {limit: f"{100 * MIB}\n", current: f"{100 * MIB - 4096}\n"}
    above, own = fake.make(pod(1), **full), fake.make(container(1), **full)
    groups = table(fake, version)
    group = groups.by_path[container(1)]
    look(groups, 1.0)

    def write(hits: int, kills: int) -> None:
        if version == 2:  # before 5.2 nothing of what is below is counted above
            (above / "memory.events").write_text(f"max {hits}\noom_kill 0\n")
            (own / "memory.events").write_text(f"max 0\noom_kill {kills}\n")
        else:
            (above / "memory.failcnt").write_text(f"{hits}\n")
            (own / "memory.oom_control").write_text(f"oom_kill {kills}\n")

    write(80, 0)
    look(groups, 5.0)
    assert (group.events_max, group.at_limit_seconds) == (20.0, 4.0)
    write(80, 1)
    look(groups, 6.0)
    assert group.at_limit_seconds == 0.0


def test_v1_counts_where_it_happens(tmp_path: Path) -> None:
    """Docker's ``--memory-swap`` equal to ``--memory``: the limit of both refuses first.  A kill in
    a cgroup that the container made is a kill in it.
    """
    fake = FakeTree(tmp_path / "v1", 1)
    full = {"memory__limit_in_bytes": "1000000\n", "memory__usage_in_bytes": "999999\n"}
    own, inner = fake.make(container(1), **full), fake.make(f"{container(1)}/docker/c")
    groups = table(fake, 1)
    group = groups.by_path[container(1)]
    (inner / "memory.oom_control").write_text("oom_kill 1\n")
    look(groups, 1.0)
    (own / "memory.memsw.failcnt").write_text("90\n")
    look(groups, 4.0)
    assert (group.events_max, group.at_limit_seconds) == (30.0, 3.0)
    (inner / "memory.oom_control").write_text("oom_kill 2\n")
    look(groups, 5.0)
    assert group.at_limit_seconds == 0.0


def test_another_limit_is_another_counter(fake: FakeTree) -> None:
    """A pod is resized: what its container had counted before is no burst of hits."""
    above = fake.make(pod(1), memory__max=f"{100 * MIB}\n")
    own = fake.make(container(1), memory__max="max\n", memory__current=f"{100 * MIB}\n")
    (own / "memory.events").write_text("max 9000\n")
    groups = table(fake)
    group = groups.by_path[container(1)]
    look(groups, 1.0)
    (own / "memory.max").write_text(f"{100 * MIB}\n")
    (above / "memory.max").write_text("max\n")
    look(groups, 12.0)
    assert group.events_max == 0.0
    (own / "memory.events").write_text("max 9020\n")
    look(groups, 14.0)
    assert group.events_max == 10.0


@pytest.mark.parametrize("version", [1, 2])
def test_a_kill_in_it_begins_its_time_at_the_limit_anew(tmp_path: Path, version: int) -> None:
    fake = FakeTree(tmp_path / "one", version)
    full = {"memory__max": "4096\n", "memory__current": "4096\n"}
    if version == 1:
        full = {"memory__limit_in_bytes": "4096\n", "memory__usage_in_bytes": "4096\n"}
    folder = fake.make(container(1), **full)
    groups = table(fake, version)
    group = groups.by_path[container(1)]
    file, text = ("memory.events", "max 9\noom_kill {}\n")
    if version == 1:
        file, text = ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n")
    for kills, now, seconds in ((2, 1.0, 0.0), (2, 31.0, 30.0), (3, 61.0, 0.0), (3, 91.0, 30.0)):
        (folder / file).write_text(text.format(kills))
        look(groups, now)
        assert group.at_limit_seconds == seconds
