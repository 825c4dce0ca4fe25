"""A real guard to which each user is one workload, on this machine's own cgroups: two users of
numbers that nobody has, and a scope that is these two alone.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import Room, missing, room, within
from tests.end_to_end.innocents import why_no_rings

MIB = 1 << 20
FIRST = 2_000_000_000 + 2 * os.getpid()
ALICE, BOB = (f"/user.slice/user-{uid}.slice" for uid in (FIRST, FIRST + 1))
RENAMED = "open('/proc/self/comm', 'w').write('sshd'); input()"
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


def named(path: str) -> str:
    """Beside the room's own subtree."""
    return f"..{path}"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    trees: list[Path] = []
    try:
        with room(tmp_path) as found:
            trees += found.trees
            for tree in trees:
                (tree / "user.slice").mkdir(exist_ok=True)
            yield found
    finally:
        for user in (ALICE, BOB):
            assert within(10, lambda user=user: is_removed(trees, user)), f"{user} is in use"
        for tree in trees:
            with contextlib.suppress(OSError):  # others' users are there
                (tree / "user.slice").rmdir()


def is_removed(trees: list[Path], user: str) -> bool:
    tops = [tree / user[1:] for tree in trees]
    for top in tops:
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    return not any(top.exists() for top in tops)


@pytest.mark.skipif(why_no_rings() is not None, reason=why_no_rings() or "")
def test_of_a_user_over_her_limit_one_session_goes_and_its_sshd_stays(
    own: Room, tmp_path: Path
) -> None:
    """100 MiB are hers, and 250 MiB of packet rings are in her second session."""
    own.write(
        mode="enforce", scope=[ALICE, BOB], user_slices=True, over_limit="kill",
        over_limit_opt_in=["user:*"], over_limit_seconds=1, tick_most_seconds=1,
        terminate_seconds=0,
    )  # fmt: skip
    own.make(named(ALICE), 100 * MIB)
    own.make(named(BOB), 64 * MIB)
    quiet, wild = f"{ALICE}/session-1.scope", f"{ALICE}/session-2.scope"
    busy = f"{BOB}/session-3.scope"
    for path in (quiet, wild, busy):
        own.make(named(path))
    own.begin(tmp_path / "out")
    beside = [
        own.start(named(quiet), "forks", "200"),
        own.start(named(busy), "load_model", str(tmp_path / "model"), str(128 * MIB), "100"),
        sshd_in(own, wild),
    ]
    hog = own.start(named(wild), "rings", str(250 * MIB), "0", "stdin", own_network=True)
    time.sleep(4)
    print("go", file=hog.stdin, flush=True)
    assert within(30, lambda: hog.poll() is not None), own.text()
    assert hog.returncode == -signal.SIGKILL
    assert within(10, lambda: own.page()["returned_bytes"] > 200 * MIB), own.text()
    assert [process.poll() for process in beside] == [None, None, None], own.sentences()
    (verdict, *_) = [line for line in own.journal() if line["kind"] == "verdict"]
    assert {order["cgroup"] for order in verdict["orders"]} == {wild}
    assert [order["name"] for order in verdict["orders"]] == [
        f"user:{FIRST} (unit:session-2.scope)"
    ]
    assert f"user:{FIRST} has " in verdict["sentence"]
    assert "holds 250 MiB of uncounted memory" in verdict["sentence"]


def sshd_in(own: Room, path: str) -> "subprocess.Popen[str]":
    """As root's monitor stands in each session."""
    entries = " ".join(f"{folder}/cgroup.procs" for folder in own.folders(named(path)))
    process = subprocess.Popen(
        ["sh", "-c", f'for f in {entries}; do echo 0 >$f; done; exec "$@"', "sh",
         "/usr/bin/python3", "-S", "-c", RENAMED],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    own.processes.append(process)
    return process
