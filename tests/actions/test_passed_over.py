"""Whom ``cgroup.kill`` passes over: a process whose main thread has ended while another lives and
forks on.  In the real tree of version 2, and in that of a hybrid host.
"""

import contextlib
import os
import platform
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import PYTHON, ROOT, group, hands, missing, remove, wait_until
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_order_of_writes import VERSION_2, container, order
from tests.actions.test_order_of_writes import hands as hands_of_folder
from tests.actions.test_pursuit import sleeper

from seawall.actions.cgroup_members import state
from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.orders import Mounts, Order, Target

NAME = f"/seawall-TEST-passed-{os.getpid()}"
V2 = ROOT / "unified"
EXIT = {"x86_64": 60, "aarch64": 93}.get(platform.machine(), 0)
"""exit(2), of the calling thread alone."""
LEADERLESS = """
import _thread, ctypes, os, sys, time

def works():
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        time.sleep(float(sys.argv[2]))
    time.sleep(60)

_thread.start_new_thread(works, ())
ctypes.CDLL(None).syscall(int(sys.argv[1]), 0)
"""
system = pytest.mark.system
on_hybrid = pytest.mark.skipif(
    missing() is not None or not (V2 / "cgroup.controllers").exists() or not EXIT,
    reason=str(missing() or "no unified tree beside v1, or no x86-64 or aarch64"),
)


@contextlib.contextmanager
def version_2() -> Iterator[tuple[Path, Order]]:
    """A cgroup of our own in the tree of version 2."""
    top = V2 / NAME[1:]
    top.mkdir()
    try:
        if not (top / "cgroup.kill").exists():
            pytest.skip("no cgroup.kill, which is there since 5.14")
        yield top, Order("b0-1", "kill", Target(NAME, top.stat().st_ino, NAME), "node_short")
    finally:
        remove(top)


def begun(top: Path, *entries: Path) -> "subprocess.Popen[bytes]":
    """In these cgroups, when it has forked some."""
    into = " ".join(f"{place}/cgroup.procs" for place in (top, *entries))
    child = subprocess.Popen(
        ["sh", "-c", f'for f in {into}; do echo 0 > $f; done; exec "$@"', "sh",
         PYTHON, "-I", "-S", "-c", LEADERLESS, str(EXIT), "0.02"],
    )  # fmt: skip
    wait_until(lambda: len(pids(top)) > 5 and state(child.pid) == "Z")
    return child


def pids(top: Path) -> list[str]:
    return (top / "cgroup.procs").read_text().split()


def tended(made: Executor, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        made.tend(time.monotonic())
        time.sleep(0.05)


@system
@on_hybrid
@pytest.mark.parametrize("seconds", [0.2, 0.0], ids=["in the kill", "from tick to tick"])
def test_v2_nobody_of_it_lives_on(tmp_path: Path, seconds: float) -> None:
    with version_2() as (top, kill):
        child = begun(top)
        made = Executor(Mounts(str(V2), 2), (NAME,), Journal(str(tmp_path / "guard.undo")))
        made.prepare()
        made._kills.seconds = seconds
        outcome = made.perform(kill)
        assert (outcome.is_done, outcome.problem) == (True, "")
        time.sleep(0.1)  # until the next tick: more would be forked
        tended(made, 1.5)
        assert pids(top) == []
        assert child.wait(5) == -signal.SIGKILL
        assert len(made.words) <= 1
        assert all("all are gone after" in text for text in made.words)


@system
@on_hybrid
def test_nobody_of_it_lives_on_where_both_versions_are(tmp_path: Path) -> None:
    with group(NAME, ("freezer", "unified", "memory")) as top:
        if not (V2 / NAME[1:] / "cgroup.kill").exists():
            pytest.skip("no cgroup.kill, which is there since 5.14")
        child = begun(*reversed(top.folders))
        made = hands(NAME, tmp_path)
        outcome = made.perform(top.order())
        assert (outcome.is_done, outcome.problem) == (True, "")
        tended(made, 1.0)
        assert top.pids() == []
        assert child.wait(5) == -signal.SIGKILL


def test_that_a_dying_one_may_not_be_signalled_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without CAP_KILL: ``cgroup.kill`` asks nobody whose they are, and they die of it."""

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with sleeper() as child:
        listed = {"cgroup.procs": f"{child.pid}\n", "cgroup.kill": ""}
        place = container(tmp_path, VERSION_2 | listed)
        mounts = Mounts(str(tmp_path), 2, None, str(tmp_path))
        made = hands_of_folder(mounts, tmp_path)
        monkeypatch.setattr(signal, "pidfd_send_signal", refused)
        outcome = made.perform(order(mounts, "kill"))
        assert (outcome.is_done, outcome.problem, outcome.left) == (True, "", 1)
        assert (place / "cgroup.kill").read_text() == "1"
        made.undo_all()
