"""Reads that were lost: whoever asks for weeks asks again, a single run of a verb does not."""

import time
from pathlib import Path

import pytest

from seawall.host import live
from seawall.host.expendable import LOSSES_BEFORE_REFUSAL, Expendable
from seawall.host.host import Unread
from seawall.host.live import LiveHost

LAPSE_SECONDS = 1.0
WAIT_SECONDS = 0.02


def asked(child: Expendable, path: str) -> str:
    """Why it was not read; empty: it was."""
    answer = child.read(path, 100, WAIT_SECONDS)
    return answer.detail if isinstance(answer, Unread) else ""


def lose(child: Expendable, hangs: Path) -> None:
    hangs.touch()
    for _ in range(LOSSES_BEFORE_REFUSAL):
        assert "no answer in" in asked(child, "/sys/kernel/debug/x")
    assert "not asked: 5 kernel reads" in asked(child, "/sys/kernel/debug/x")
    hangs.unlink()


@pytest.fixture
def hangs(tmp_path: Path) -> Path:
    """While there is such a file, reads hang."""
    return tmp_path / "hangs"


def of_host(host: LiveHost, hangs: Path) -> Expendable:
    def reader(path: str, limit_bytes: int) -> bytes:
        if hangs.exists():
            time.sleep(30)
        return path.encode()

    host._expendable._reader = reader
    return host._expendable


def test_of_every_kind_they_lapse_for_whoever_asks_for_weeks(
    hangs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LAPSE_SECONDS", LAPSE_SECONDS)
    child = of_host(LiveHost("/"), hangs)
    lose(child, hangs)
    assert asked(child, "/sys/kernel/debug/x"), "not at once"
    time.sleep(LAPSE_SECONDS)
    assert asked(child, "/sys/kernel/debug/x") == ""
    lose(child, hangs)  # as many again, before it asks no more
    child.close()


def test_one_run_of_a_verb_does_not_wait_for_the_same_again(
    hangs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LAPSE_SECONDS", 0.0)
    child = of_host(LiveHost("/", until=time.monotonic() + 600), hangs)
    lose(child, hangs)
    time.sleep(WAIT_SECONDS)
    assert "not asked" in asked(child, "/sys/kernel/debug/x")
    child.close()


def test_few_and_far_between_never_add_up(hangs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five in the whole life of a watcher are no reason."""
    monkeypatch.setattr(live, "LAPSE_SECONDS", 0.05)
    child = of_host(LiveHost("/"), hangs)
    for _ in range(2 * LOSSES_BEFORE_REFUSAL):
        hangs.touch()
        assert "no answer in" in asked(child, "/sys/kernel/debug/x")
        hangs.unlink()
        time.sleep(0.06)
    assert len(child.losses["kernel"]) <= LOSSES_BEFORE_REFUSAL
    child.close()
