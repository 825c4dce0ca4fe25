"""Whether the guard of a black box was alive: by its ticks, for its page is kept once a minute."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.blackbox import box_maker
from tests.blackbox.box_maker import BOOT, DECISION, END, MIB, Plot, Told, tell, write
from tests.end_to_end.warm_verbs import seawall

import seawall as package
from seawall.host.recording import Round
from seawall.readings.guard_status import PATH
from seawall.recorder.recording_policy import RecordingPolicy
from seawall.replay.tick import Tick

START = END - 690.0
"""Peace, until 600 s later."""
HANGS = START + 300.0


def page(unix: float, state: str = "peace") -> bytes:
    """As the guard wrote it last before a whole pass."""
    told: dict[str, Any] = {
        **{key: [] for key in ("top", "blind", "problems", "others", "scope")},
        "schema": "seawall.guard-status-page/1", "host": {"boot_id": BOOT},
        "unix_seconds": unix, "since_unix_seconds": 10.0, "pid": 7, "mode": "observe",
        "mode_why": "", "state": state, "can_kill": True, "can_kill_words": "", "watcher": "",
        "config": "", "decisions": 0, "headroom_bytes": 1, "headroom_seconds": None,
        "residual_bytes": None, "kills": 0, "residual_grown_bytes": 0, "returned_bytes": 0,
        "last_decision": None,
    }  # fmt: skip
    return json.dumps(told).encode()


def told_by(
    monkeypatch: pytest.MonkeyPatch, said: Callable[[float], bytes], ends: float = END + 1
) -> Told:
    """The story of ``box_maker`` with the guard's page in it, which says nothing after ``ends``."""
    whole, ticked = box_maker.World.round, RecordingPolicy.ticked

    def with_page(world: Any, of: str, unix: float) -> Round:
        found = whole(world, of, unix)
        if of == "full":
            found.files[PATH] = said(min(unix, ends))
        return found

    def alive(story: RecordingPolicy, tick: Tick) -> None:
        if tick.unix_seconds <= ends:
            ticked(story, tick)

    monkeypatch.setattr(box_maker.World, "round", with_page)
    monkeypatch.setattr(RecordingPolicy, "ticked", alive)
    return tell(Plot())


def boxed(told: Told, folder: Path) -> str:
    write(told, folder / "blackbox", 4 * MIB)
    return str(folder / "blackbox")


def guard_at(path: str, at: float | str) -> dict[str, Any]:
    when = at if isinstance(at, str) else f"@{at:.1f}"
    shown = seawall("why", "--from", path, "--at", when, "--json").answered().document
    schema = Path(package.__file__).parent / "views/schemas/why.json"
    jsonschema.validate(shown, json.loads(schema.read_text()))
    assert isinstance(shown["guard"], dict)
    return shown["guard"]


def line_at(path: str, at: float | str) -> str:
    when = at if isinstance(at, str) else f"@{at:.1f}"
    text = seawall("why", "--whole", "--from", path, "--at", when).answered().text
    return " ".join(text.partition("\nguard: ")[2].partition("\n\n")[0].split())


def test_alive_between_two_whole_passes_and_at_its_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = boxed(told_by(monkeypatch, lambda unix: page(unix - 0.1)), tmp_path)
    assert line_at(path, START + 175) == "observes only, in peace"
    found = guard_at(path, START + 175)
    assert found["age_seconds"] <= 10
    assert not found["is_old"]
    # Its page is of peace still: the tick knows better.
    assert line_at(path, DECISION) == "observes only, THE NODE IS SHORT OF MEMORY"
    assert guard_at(path, DECISION)["state"] == "short"


def test_one_that_hangs_while_the_recorder_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = boxed(told_by(monkeypatch, page, HANGS), tmp_path)
    assert line_at(path, HANGS + 25) == "observes only, in peace"
    words = "observes only, in peace, but it wrote that 35 s ago: it has ended, or it hangs"
    assert line_at(path, HANGS + 35) == words
    assert guard_at(path, HANGS + 35)["is_old"]


def test_one_that_had_ended_where_nothing_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it ended its recorder; the next guard began two minutes later."""
    told = told_by(monkeypatch, page)
    told.frames = [
        one for one in told.frames if not HANGS < one.unix_seconds < HANGS + 120
    ]  # fmt: skip
    path = boxed(told, tmp_path)
    assert line_at(path, HANGS + 20) == "observes only, in peace"
    assert "it has ended, or it hangs" in line_at(path, HANGS + 60)


def test_one_that_was_stopped_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(unix: float) -> bytes:
        return page(unix, "stopped" if unix >= HANGS else "peace")

    path = boxed(told_by(monkeypatch, said, HANGS), tmp_path)
    assert line_at(path, HANGS + 100) == "observes only, stopped 100 s ago"


def test_an_export_has_no_ticks_and_says_what_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = boxed(told_by(monkeypatch, page), tmp_path)
    out = str(tmp_path / "x.bundle")
    at = f"@{START + 170:.1f}"
    seawall("blackbox", "export", path, "--at", at, "--for", "120", "-o", out).answered()
    words = line_at(out, at)
    assert "it has ended" not in words
    assert "before; what it said later is not in this record" in words
    assert not guard_at(out, at)["is_old"]
