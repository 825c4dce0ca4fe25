"""A child that was forked beforehand takes the place of one that is lost, and nothing is forked."""

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from seawall.proc.serving_child import ChildDied, Lane, ServingChild, TooManyHang


def answered(question: bytes) -> bytes:
    if question == b"hang":
        signal.pause()
    return b"%d" % os.getpid()


@pytest.fixture
def child() -> Iterator[ServingChild]:
    child = ServingChild()
    yield child
    child.end()


def asked(lane: Lane, question: bytes, seconds: float = 10.0) -> int:
    frame = lane.ask(question, seconds)
    return int(frame.body) if frame is not None else 0


def test_the_spare_serves_when_the_child_hangs(
    child: ServingChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = child.lane(answered)
    child.start()
    child.prepare()
    first, spare = child.pid, child.spare_pid
    assert first != spare != 0
    child.may_fork = False
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it forked while memory is short"))
    assert asked(lane, b"hang", 0.2) == 0
    child.prepare()
    assert asked(lane, b"who") == spare
    assert (child.pid, child.spare_pid) == (spare, 0)
    assert asked(lane, b"hang", 0.2) == 0
    with pytest.raises(TooManyHang, match="none is forked while memory is short"):
        lane.ask(b"who", 1.0)
    monkeypatch.undo()
    child.may_fork = True
    assert asked(lane, b"who") not in (0, first, spare)


def test_a_spare_that_died_is_not_taken(child: ServingChild) -> None:
    lane = child.lane(answered)
    child.start()
    child.prepare()
    first, spare = child.pid, child.spare_pid
    os.kill(spare, signal.SIGKILL)
    os.waitid(os.P_PID, spare, os.WEXITED | os.WNOWAIT)
    child.prepare()
    second = child.spare_pid
    assert second not in (0, first, spare)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(ChildDied):
        lane.ask(b"who", 5.0)
    assert asked(lane, b"who") == second


def test_both_end_with_their_owner(child: ServingChild) -> None:
    child.lane(answered)
    child.start()
    child.prepare()
    pids = child.pid, child.spare_pid
    child.end()
    for pid in pids:
        with contextlib.suppress(ChildProcessError):  # it may have been reaped by ``end``
            os.waitpid(pid, 0)
        assert not os.path.exists(f"/proc/{pid}")
