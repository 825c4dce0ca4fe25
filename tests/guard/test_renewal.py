"""A guard that starts afresh: when, and that what it was asked meanwhile is not forgotten."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seawall.guard import entry, lock_file
from seawall.guard.loop import AFRESH, Loop
from seawall.guard.renewal import LOOK_SECONDS, TAKES_OVER, Renewal
from seawall.guard.tell import guard_sentences


class Worn:
    """Companions, of which only that is asked."""

    def __init__(self, *, is_worn_out: bool = False) -> None:
        self.answer = is_worn_out

    def is_worn_out(self, now: float, *, watch: bool, is_peace: bool) -> bool:
        return self.answer and is_peace


def renewal(folder: str, *, other: int, is_worn_out: bool = False) -> Renewal:
    handed: Any = SimpleNamespace(folder=folder, other_guard_pid=other, lock_fd=-1)
    companions: Any = Worn(is_worn_out=is_worn_out)
    return Renewal(companions, handed)


def why(of: Renewal, now: float, *, is_peace: bool = True) -> str:
    return of.why(now, watch=True, is_peace=is_peace)


@pytest.mark.parametrize("is_peace", [True, False])
def test_a_second_guard_takes_over_when_the_first_one_has_gone(
    tmp_path: Path, is_peace: bool
) -> None:
    """Also where the node is not in peace: until then nobody guards it."""
    first = lock_file.take(str(tmp_path))
    second = renewal(f"{tmp_path}/second", other=os.getpid())
    for now in range(100, 140):
        assert why(second, float(now), is_peace=is_peace) == ""
    os.close(first.fd)
    seconds = next(
        now for now in range(140, 200) if why(second, float(now), is_peace=is_peace) == TAKES_OVER
    )
    assert LOOK_SECONDS < seconds - 139 <= 2 * LOOK_SECONDS


def test_a_first_guard_that_is_started_again_stays_the_first(tmp_path: Path) -> None:
    """systemd needs a second or two; the second guard happens to look just then."""
    second = renewal(f"{tmp_path}/second", other=7)
    assert why(second, 100.0) == "", "free"
    again = lock_file.take(str(tmp_path))
    assert why(second, 100.0 + LOOK_SECONDS) == "", "and taken"
    os.close(again.fd)
    assert why(second, 100.0 + 2 * LOOK_SECONDS) == "", "free: once more is wanted"
    assert why(second, 100.0 + 3 * LOOK_SECONDS) == TAKES_OVER


def test_who_has_the_lock_itself_does_not_look_for_it(tmp_path: Path) -> None:
    """Nor does it wake for that in deep peace, as a second one has to."""
    second, first = renewal(f"{tmp_path}/second", other=7), renewal(str(tmp_path), other=0)
    assert (second.pause(20.0), second.pause(0.1), first.pause(20.0)) == (LOOK_SECONDS, 0.1, 20.0)
    assert {why(first, float(now)) for now in range(100, 200)} == {""}


def test_what_only_a_new_start_brings_is_brought_in_peace(tmp_path: Path) -> None:
    worn = renewal(str(tmp_path), other=0, is_worn_out=True)
    assert why(worn, 100.0, is_peace=False) == ""
    assert why(worn, 101.0) == guard_sentences.AFRESH


def test_whoever_only_looks_at_the_lock_has_it_for_no_time(tmp_path: Path) -> None:
    second = renewal(f"{tmp_path}/second", other=7)
    os.close(lock_file.take(str(tmp_path)).fd)
    why(second, 100.0)
    held = os.open(tmp_path / lock_file.NAME, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(held)


# --- signals --------------------------------------------------------------------------------


@pytest.mark.parametrize(("come", "status"), [([signal.SIGTERM], 0), ([], AFRESH)])
def test_sigterm_in_the_last_wait_before_it_starts_afresh(come: list[int], status: int) -> None:
    loop: Any = Loop.__new__(Loop)
    said: list[str] = []
    loop.parts = SimpleNamespace(teller=SimpleNamespace(event=said.append))
    loop._is_over = loop.is_afresh = False
    loop.tick = lambda _now: None
    loop._wait = lambda: [loop._take_signal(number) for number in come]
    loop._why_afresh = lambda _now: "afresh"
    loop._reload = SimpleNamespace(hand_on=lambda: None)
    assert loop.run() == status
    assert said == (["afresh"] if status == AFRESH else [])


PROGRAM = """
import os, signal, sys
sys.path.append({root!r})
from seawall.guard import guard_main, signals
heard = signals.Signals()
for number in {come}:
    os.kill(os.getpid(), number)
print(guard_main._is_to_end(heard))
for number in {late}:
    os.kill(os.getpid(), number)  # nobody hears it any more: it waits
print(*sorted(int(n) for n in signal.sigpending()), flush=True)
os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", {after!r}])
"""
AFTER = """
import os, signal
print(*sorted(int(n) for n in signal.sigpending()), flush=True)
signal.pthread_sigmask(signal.SIG_SETMASK, (signal.SIGHUP,))  # as the launcher does
print("goes on")
"""


@pytest.mark.parametrize(
    ("come", "late", "said", "status"),
    [
        ((), (), ["False", "", "", "goes on"], 0),
        ((15,), (), ["True", "", "", "goes on"], 0),  # ``main`` ends here
        ((2, 17), (), ["True", "", "", "goes on"], 0),
        ((1,), (), ["False", "1", "1", "goes on"], 0),
        ((), (15,), ["False", "15", "15"], -15),
        ((1,), (1, 2), ["False", "1 2", "1 2"], -2),
    ],
)
def test_what_comes_while_it_puts_everything_away_outlives_the_exec(
    come: tuple[int, ...], late: tuple[int, ...], said: list[str], status: int
) -> None:
    """A SIGTERM of that time ends it; of a later one, and of a SIGHUP, the next guard hears."""
    program = PROGRAM.format(root=entry.root(), come=come, late=late, after=AFTER)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout.splitlines(), done.returncode) == (said, status), done.stderr
