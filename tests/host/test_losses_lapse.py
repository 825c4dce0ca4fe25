"""Reads that were lost: whoever asks for weeks asks again, a single run of a verb does not."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clock import Clock

from seawall.host import expendable
from seawall.host.expendable import LAPSE_SECONDS, LOSSES_BEFORE_REFUSAL, Expendable
from seawall.host.host import Unread
from seawall.host.live import LiveHost

SILENCE_SECONDS = 0.02
"""A read that hangs is given up after so long."""
PATIENCE_SECONDS = 30.0
"""One that must come back may take so long: a busy machine forks its child late."""
_FILE = "/sys/kernel/debug/x"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The seconds by which losses are dated."""
    return Clock.of(expendable, monkeypatch)


@pytest.fixture
def hangs(tmp_path: Path) -> Path:
    """While there is such a file, reads hang."""
    return tmp_path / "hangs"


@pytest.fixture
def children() -> Iterator[list[Expendable]]:
    """Reading children to end."""
    children: list[Expendable] = []
    yield children
    for child in children:
        child.close()


def of_host(host: LiveHost, hangs: Path) -> Expendable:
    def reader(path: str, limit_bytes: int) -> bytes:
        if hangs.exists():
            time.sleep(60)
        return path.encode()

    host._expendable._reader = reader
    return host._expendable


def why_unread(child: Expendable, wait_seconds: float) -> str:
    """Why it was not read; empty: it was."""
    answer = child.read(_FILE, 100, wait_seconds)
    return answer.detail if isinstance(answer, Unread) else ""


def lose(child: Expendable, hangs: Path) -> None:
    """As many as it takes until it asks no more."""
    hangs.touch()
    for _ in range(LOSSES_BEFORE_REFUSAL):
        assert "no answer in" in why_unread(child, SILENCE_SECONDS)
    assert "not asked: 5 kernel reads" in why_unread(child, PATIENCE_SECONDS)
    hangs.unlink()


def test_of_every_kind_they_lapse_for_whoever_asks_for_weeks(
    hangs: Path, clock: Clock, children: list[Expendable]
) -> None:
    children.append(child := of_host(LiveHost("/"), hangs))
    lose(child, hangs)
    clock.now += LAPSE_SECONDS - 1
    assert "not asked" in why_unread(child, PATIENCE_SECONDS)
    clock.now += 1
    assert why_unread(child, PATIENCE_SECONDS) == ""
    lose(child, hangs)  # as many again, before it asks no more


def test_one_run_of_a_verb_does_not_wait_for_the_same_again(
    hangs: Path, clock: Clock, children: list[Expendable]
) -> None:
    until = time.monotonic() + 600
    children.append(child := of_host(LiveHost("/", until=until), hangs))
    lose(child, hangs)
    clock.now += 100 * LAPSE_SECONDS
    assert "not asked" in why_unread(child, PATIENCE_SECONDS)


def test_few_and_far_between_never_add_up(
    hangs: Path, clock: Clock, children: list[Expendable]
) -> None:
    """Five in the whole life of a watcher are no reason."""
    children.append(child := of_host(LiveHost("/"), hangs))
    hangs.touch()
    for _ in range(2 * LOSSES_BEFORE_REFUSAL):
        assert "no answer in" in why_unread(child, SILENCE_SECONDS)
        clock.now += LAPSE_SECONDS
    assert len(child.losses["kernel"]) <= LOSSES_BEFORE_REFUSAL
