"""A child that may hang: it holds nothing of ours, and is reaped when it has ended."""

import os
import signal
import time
from pathlib import Path

import pytest

from seawall.proc import forked_child
from seawall.proc.forked_child import ForkedChild, bury, hangs


def told(child: ForkedChild) -> bytes:
    parts = b""
    while part := os.read(child.fd, 1 << 16):
        parts += part
    child.wait()
    return parts


def test_it_has_what_it_was_given_and_nothing_else() -> None:
    kept, other = os.pipe()
    child = ForkedChild(
        lambda to: void(os.write(to, b" ".join(map(os.fsencode, os.listdir("/proc/self/fd"))))),
        (kept,), name="seawall-something-long",
    )  # fmt: skip
    pid = child.pid
    numbers = {int(number) for number in told(child).split()}
    assert kept in numbers
    assert other not in numbers
    assert len(numbers - {0, 1, 2, kept}) == 2, "its pipe, and the listing's own"
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    for fd in (kept, other):
        os.close(fd)


def void(_: object) -> None:
    """What a child's work returns."""


def test_its_name_is_in_ps() -> None:
    def tell(to: int) -> None:
        os.write(to, Path("/proc/self/comm").read_bytes())

    assert told(ForkedChild(tell, name="seawall-something")) == b"seawall-somethi\n"
    assert told(ForkedChild(tell)) == Path("/proc/self/comm").read_bytes()


def test_a_handler_of_ours_is_not_its_own() -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        child = ForkedChild(lambda to: (os.write(to, b"x"), time.sleep(60))[1])
        os.read(child.fd, 1)
        os.kill(child.pid, signal.SIGTERM)
        assert told(child) == b""
        kept = ForkedChild(lambda to: (os.write(to, b"x"), time.sleep(60))[1], survives=True)
        os.read(kept.fd, 1)
        os.kill(kept.pid, signal.SIGTERM)
        time.sleep(0.1)
        assert Path(f"/proc/{kept.pid}/stat").exists()
        kept.give_up()
        kept.give_up()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_hangs_is_counted_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_others()
    child = ForkedChild(lambda _: time.sleep(60))
    monkeypatch.setattr(os, "kill", lambda *_: None)  # as one in state D, whom no signal reaches
    child.give_up()
    assert bury() == 1
    assert hangs(child.pid)
    other = ForkedChild(lambda to: void(os.write(to, b"%d" % bury())))
    assert told(other) == b"0", "they are not its children"
    monkeypatch.undo()
    os.kill(child.pid, signal.SIGKILL)
    wait_for_others()
    assert not hangs(child.pid)
    assert child.pid not in forked_child._left_behind


def wait_for_others() -> None:
    until = time.monotonic() + 10
    while bury() and time.monotonic() < until:
        time.sleep(0.01)
    assert bury() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_fork_is_not_for_one_that_survives(number: int) -> None:
    """Its dispositions are set before the first signal reaches it."""
    for _ in range(20):
        child = ForkedChild(lambda to: (os.write(to, b"x"), signal.pause()), survives=True)
        os.kill(child.pid, number)
        assert os.read(child.fd, 1) == b"x"
        child.give_up()
