"""A real guard, whose whole scope is a subtree of ours: its files fail, it dies while it kills."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import Room, missing, room, within
from tests.end_to_end.innocents import why_no_rings

MIB = 1 << 20
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.skipif(not shutil.which("strace"), reason="faults: apt-get install strace"),
]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        yield found


@contextlib.contextmanager
def fault(pid: int, path: str, inject: str) -> Iterator[None]:
    """Of calls on that file, by the guard's own process alone."""
    strace = subprocess.Popen(
        ["strace", "-P", path, "-e", f"inject={inject}", "-o", "/dev/null", "-p", str(pid)],
        stderr=subprocess.DEVNULL,
    )
    try:
        status = Path(f"/proc/{pid}/status")
        assert within(10, lambda: "TracerPid:\t0\n" not in status.read_text())
        yield
    finally:
        strace.terminate()
        strace.wait(10)


def test_memory_that_cannot_be_read_is_said_and_judged_by_nobody(own: Room, tmp_path: Path) -> None:
    own.write(mode="enforce", watch=False, tick_most_seconds=1)
    guard = own.begin(tmp_path / "out")
    assert within(10, lambda: own.page()["state"] != "blind"), own.text()
    for number, words in (
        ("EIO", "Input/output error"), ("ENOMEM", "Cannot allocate memory"),
        ("ESTALE", "Stale file handle"),
    ):  # fmt: skip
        with fault(guard.pid, "/proc/meminfo", f"preadv2,preadv,pread64,openat:error={number}"):
            assert within(10, lambda: own.page()["state"] == "blind"), (number, own.text())
            assert any(f"/proc/meminfo: {words}" in row for row in own.page()["blind"])
            assert "guard is BLIND" in own.text()
            assert "headroom   not known: the node's memory could not be read" in own.text()
        assert within(10, lambda: own.page()["state"] != "blind"), (number, own.text())
        assert not any("meminfo" in row for row in own.page()["blind"])
    assert guard.poll() is None
    assert not [row for row in own.journal() if row["kind"] == "verdict"]


@pytest.mark.skipif(why_no_rings() is not None, reason=why_no_rings() or "")
def test_killed_while_it_kills_it_leaves_nobody_frozen_and_the_next_blames_no_other(
    own: Room, tmp_path: Path
) -> None:
    """By SIGKILL at the very write that thaws whom it has signalled: of v1 nobody frozen dies."""
    own.write(
        mode="enforce", over_limit="kill", over_limit_opt_in=[f"{own.scope}/hog"],
        over_limit_seconds=1, tick_most_seconds=1,
    )  # fmt: skip
    guard = own.begin(tmp_path / "out")
    for name in ("hog", "forker"):
        own.make(name, (100 if name == "hog" else 64) * MIB)
    beside = own.start("forker", "forks", "200")
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # that only SIGKILL ends it
    try:
        hog = own.start("hog", "rings", str(250 * MIB), "0", "stdin", own_network=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    state = str(own.folders("hog")[-1] / "freezer.state")
    if not Path(state).exists():
        pytest.skip("frozen for a kill only on v1; of v2 there is test_faults_61")
    assert within(20, lambda: own.page()["watcher"].startswith("heard ")), own.text()
    time.sleep(6)  # that it has no name is known by then
    with fault(guard.pid, state, "write:signal=SIGKILL:when=2"):
        assert hog.stdin
        hog.stdin.write("go\n")
        hog.stdin.flush()
        assert within(40, lambda: guard.poll() is not None), own.text()
        ended = time.monotonic()
        assert guard.returncode == -signal.SIGKILL
        assert within(2, lambda: own.state("hog") == "THAWED")
        assert time.monotonic() - ended < 2
    assert within(5, lambda: hog.poll() is not None), "whom it has signalled dies once thawed"
    own.begin(tmp_path / "again")
    said = "the guard before was ended while it sent SIGKILL"
    assert within(5, lambda: said in own.sentences())  # it is ready a moment before it has said all
    assert own.state("forker") == "THAWED"
    time.sleep(5)
    assert beside.poll() is None
    acted = [order["cgroup"] for row in own.journal() for order in row.get("orders") or []]
    assert set(acted) <= {f"{own.scope}/hog"}
    done = own.guard("undo")
    assert done.stdout == "Nothing was left to undo.\n"
