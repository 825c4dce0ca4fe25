"""Lines of a black box belong to the look by which they were taken, not to when they were told."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.blackbox.boxes import BOOT, OTHER_BOOT, UNIX, box_at, ring_at

from seawall.blackbox.frame import Frame, pack
from seawall.sources.box_lines import decision_time, is_unseen, lines_between

DECISION = f"{BOOT[:8]}-0001"


def line(number: int, after: float, **document: Any) -> bytes:
    """Told so many seconds after the look at 50.0 of the boot."""
    told = {"kind": "verdict", "decision": DECISION, "sentence": f"line {number}", **document}
    body = {"line": json.dumps(told)}
    return pack(Frame(number, "line", UNIX + after, 50.0 + after, BOOT, number, body))


def written(path: Path, *lines: bytes) -> Path:
    with ring_at(path) as ring:
        ring.write(b"".join(lines))
    return path


def test_a_kill_that_took_a_while_is_not_what_the_decision_saw(tmp_path: Path) -> None:
    path = written(
        tmp_path / "box", line(1, 0.25, seconds=50.0), line(2, 0.26, kind="outcome", seconds=50.0),
        line(3, 1.5, kind="told", seconds=51.4),
    )  # fmt: skip
    with box_at(path) as box:
        at = decision_time(box, DECISION)
        assert at == pytest.approx(UNIX, abs=1e-3)
        assert is_unseen(box, DECISION)
        assert at is not None
        assert [one.words for one in lines_between(box, at - 60, at)] == ["line 1", "line 2"]
        assert len(lines_between(box, at - 60, at + 1.6)) == 3


def test_a_decision_was_taken_when_its_own_tick_says(tmp_path: Path) -> None:
    """Not a rounding error before it: then what it saw would be left out."""

    def tick(number: int, unix: float, seconds: float, boot: str = BOOT) -> bytes:
        return pack(Frame(number, "tick", UNIX + unix, seconds, boot, number, {"n": number}))

    path = written(
        tmp_path / "box", tick(1, -0.1, 49.9), tick(2, 0.015625, 50.0),
        tick(3, 9.0, 50.0, OTHER_BOOT), tick(4, 0.1, 50.1), line(5, 0.25, seconds=50.0),
    )  # fmt: skip
    with box_at(path) as box:
        assert decision_time(box, DECISION) == UNIX + 0.015625
        assert not is_unseen(box, DECISION)
        assert not is_unseen(box, "2026-11-23T10:00:31Z")


@pytest.mark.parametrize("seconds", [None, "soon", 49.0 - 3600, 51.0, float("nan"), [1]])
def test_a_line_that_does_not_say_when_counts_when_it_was_told(
    tmp_path: Path, seconds: object
) -> None:
    with box_at(written(tmp_path / "box", line(1, 0.25, seconds=seconds))) as box:
        assert decision_time(box, DECISION) == UNIX + 0.25
