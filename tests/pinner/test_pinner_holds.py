"""A pinner on this machine: what it holds stays, what it let go can be dropped."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end import cgroups
from tests.pinner import pinner_room
from tests.pinner.pinner_room import Room, of
from tests.pinner.text_program import (
    PAGE,
    copied,
    drop,
    frames,
    locked_bytes,
    read_whole,
    resident_bytes,
    running,
    segments,
)

pytestmark = pytest.mark.system
PYTHON = "/usr/bin/python3.11"
AGAIN_SECONDS = 60
"""A replaced file is held anew within that."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    if os.geteuid():
        pytest.skip("other processes' mappings are root's: sudo make test-system")
    with pinner_room.room(tmp_path) as made:
        yield made


def text_bytes(pid: int, path: Path) -> int:
    return sum(segment.end - segment.start for segment in segments(pid, str(path)))


def test_text_stays_and_the_rest_of_the_file_does_not(room: Room, tmp_path: Path) -> None:
    path, control = copied(tmp_path, "held-program"), copied(tmp_path, "control-program")
    with running(path) as pid, running(control) as other:
        read_whole(path)
        room.start(str(path))
        page = room.page(lambda page: of(page, path) and page["pinned_bytes"])
        (row,) = of(page, path)
        assert row["inode"] == path.stat().st_ino
        assert row["pinned_bytes"] == row["mapped_bytes"] <= text_bytes(pid, path)
        assert page["by_kernel_bytes"] == page["pinned_bytes"] == row["pinned_bytes"]
        assert page["pinned_bytes"] <= locked_bytes(room.pid)
        whole = text_bytes(other, control)
    # Nobody runs either now: what is not pinned goes.
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    drop(control)
    assert resident_bytes(path) >= row["pinned_bytes"]
    assert resident_bytes(control) < whole // 2
    room.end()
    drop(path)
    assert resident_bytes(path) < row["pinned_bytes"] // 2


def test_only_what_was_in_memory_is_held(room: Room, tmp_path: Path) -> None:
    """Nothing is read in, and the table says how much was there."""
    if not os.path.exists(PYTHON):
        pytest.skip("a program of some size is missing: apt-get install python3.11")
    path = copied(tmp_path, "cold-program", Path(PYTHON))
    with running(path, "-S", "-c", "import time; time.sleep(1000)"):
        time.sleep(1)
        drop(path)  # all but what it has touched
        before = resident_bytes(path)
        room.start(str(path))
        page = room.page(lambda page: of(page, path) and page["pinned_bytes"])
        (row,) = of(page, path)
        assert row["before_bytes"] <= before
        assert 0 < row["pinned_bytes"] == row["pinned_resident_bytes"] <= before
        assert resident_bytes(path) <= before + 64 * PAGE
        assert row["before_bytes"] < row["mapped_bytes"]
        share = row["before_bytes"] / row["mapped_bytes"]
        print(f"{share:.0%} of {row['mapped_bytes'] >> 10} KiB was in memory")  # noqa: T201


def test_a_replaced_program_is_held_anew_and_the_old_one_let_go(
    room: Room, tmp_path: Path
) -> None:  # fmt: skip
    path = copied(tmp_path, "upgraded")
    with running(path) as old:
        old_inode = path.stat().st_ino
        kept = os.open(path, os.O_RDONLY)
        room.start("upgraded")
        first = room.page(lambda page: of(page, path) and page["pinned_bytes"])
        fresh = copied(tmp_path, "upgraded.new")
        os.rename(fresh, path)
        # It runs on: the old pages are still what it executes.
        assert text_bytes(old, Path(f"{path} (deleted)")) > 0
    began = time.monotonic()
    with running(path):
        new_inode = path.stat().st_ino
        assert new_inode != old_inode
        page = room.page(
            lambda page: [row["inode"] for row in of(page, path) if row["pinned_bytes"]]
            == [new_inode], AGAIN_SECONDS,
        )  # fmt: skip
        took = time.monotonic() - began
        print(f"held anew after {took:.1f} s")  # noqa: T201
        assert page["pinned_bytes"] <= first["pinned_bytes"] + 64 * PAGE
        os.posix_fadvise(kept, 0, 0, os.POSIX_FADV_DONTNEED)
        left = resident_bytes(Path(f"/proc/self/fd/{kept}"))
        os.close(kept)
        assert left < first["pinned_bytes"] // 2, "the old file's pages are still held"


def test_the_budget_is_never_exceeded(room: Room, tmp_path: Path) -> None:
    """Programs come and go; at no moment does the kernel count more than was allowed."""
    most = 3 << 20
    room.start("budget-*", most_bytes=most)
    room.page(lambda page: page["round"])
    base = shared_bytes(room.pid)
    worst, ends = 0, time.monotonic() + 14
    number = 0
    while time.monotonic() < ends:
        paths = [copied(tmp_path, f"budget-{number}-{at}") for at in range(3)]
        number += 1
        with running(paths[0]), running(paths[1]), running(paths[2]):
            until = time.monotonic() + 3
            while time.monotonic() < until:
                worst = max(worst, shared_bytes(room.pid) - base)
    assert 0 < worst <= most
    with running(paths[0]), running(paths[1]), running(paths[2]):
        page = room.page(lambda page: page["refused"] and page["pinned_bytes"], 40)
        assert page["pinned_bytes"] <= most
        assert page["refused"][0]["why"] == "the budget is used up"
        assert page["left_bytes"] == most - page["pinned_bytes"]


def shared_bytes(pid: int) -> int:
    from seawall.pinner.holding import by_kernel

    return by_kernel(f"/proc/{pid}/maps")


def test_it_stays_in_a_cgroup_that_thrashes(room: Room, tmp_path: Path) -> None:
    """The program runs in a cgroup with a small limit, and so does what presses on it."""
    if why := cgroups.missing():
        pytest.skip(why)
    path, control = copied(tmp_path, "in-a-group"), copied(tmp_path, "control")
    big = tmp_path / "big"
    with open(big, "wb") as file:
        file.write(os.urandom(1 << 20) * 64)
        os.fsync(file.fileno())
    for one in (path, control, big):
        drop(one)
    with cgroups.cgroup(f"seawall-TEST-pins-{os.getpid()}", 12 << 20) as group:
        enter = ["sh", "-c", f'echo $$ > {group.entry}; exec "$@"', "sh"]
        with running(path, group=group.entry), running(control, group=group.entry):
            subprocess.run([*enter, "cat", path, control], stdout=subprocess.DEVNULL, check=True)
            room.start(str(path))
            page = room.page(lambda page: of(page, path) and page["pinned_bytes"])
            (row,) = of(page, path)
            for _ in range(6):
                subprocess.run([*enter, "cat", big], stdout=subprocess.DEVNULL, check=True)
            left = resident_bytes(control) / row["mapped_bytes"]
            share = resident_bytes(path) / row["mapped_bytes"]
            print(f"pinned {share:.0%} in memory, not pinned {left:.0%}")  # noqa: T201
            assert resident_bytes(path) >= row["pinned_bytes"] == row["mapped_bytes"]
            assert left < 1
            assert group.limit_hits() > 0


def test_the_pages_are_the_very_same(room: Room, tmp_path: Path) -> None:
    """Frame by frame, by /proc/PID/pagemap of both."""
    path = copied(tmp_path, "same-frames")
    with running(path) as pid:
        room.start(str(path))
        room.page(lambda page: of(page, path) and page["pinned_bytes"])
        theirs = frames(pid, str(path))
        ours = frames(room.pid, str(path))
        both = theirs.keys() & ours.keys()
        assert len(both) > 20
        assert all(theirs[at] == ours[at] for at in both)


def test_it_ends_with_its_parent_and_there_is_one(room: Room, tmp_path: Path) -> None:
    room.start("nobody-is-called-so")
    page = room.page(lambda page: page["round"])
    assert page["names_nobody"] == ["nobody-is-called-so"]
    first = room.process
    second = Room(room.folder)
    second.start("nobody-is-called-so")  # of the same parent: it takes over
    assert first
    assert first.wait(20) == 0
    page = room.page(lambda page: page["pid"] == second.pid)
    assert oct((room.folder / "pins").stat().st_mode)[-3:] == "640"
    second.end()
    assert not (room.folder / "pins").exists()
