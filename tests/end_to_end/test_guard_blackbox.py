"""The recorder beside a real guard: it writes, it may hang or die, and the guard goes on."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.guard_room import Room, missing, room, within

from seawall.blackbox.reader import Box

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        yield found


def begun(own: Room, tmp_path: Path, **keys: Any) -> tuple[int, Path]:
    """The guard's pid, and its box; a frame is in it."""
    box = tmp_path / "state/blackbox"
    box.parent.mkdir(mode=0o700)
    own.write(
        mode="observe", tick_most_seconds=0.2, blackbox=str(box), blackbox_size="4 MiB", **keys
    )
    guard = own.begin(tmp_path / "out")
    assert within(30, lambda: "last frame" in str(own.page().get("blackbox"))), own.text()
    return guard.pid, box


def test_the_box_holds_what_the_guard_saw_and_said(own: Room, tmp_path: Path) -> None:
    guard, box = begun(own, tmp_path)
    words = own.page()["blackbox"]
    assert words.startswith(f"{box}, last frame ")
    assert f"black box  {box}"[:40] in own.text()
    page = own.page()
    end(own, guard)
    found = Box.open(str(box))
    kinds = {head.kind for head in found.heads}
    assert {"start", "tick", "round"} <= kinds, kinds
    assert found.torn == 0
    assert {head.boot_id for head in found.heads} == {page["host"]["boot_id"]}
    assert box.stat().st_mode & 0o777 == 0o600
    lines = [row for row in own.journal() if row.get("frame")]
    assert lines, own.journal()
    said = [found.frame(head).body.get("line") for head in found.heads if head.kind == "line"]
    assert json.loads(str(said[-1])) == lines[-1]
    assert "stopped" in lines[-1]["sentence"]
    assert lines[-1]["frame"] == max(head.tick for head in found.heads)


def test_numbers_go_on_with_the_next_guard(own: Room, tmp_path: Path) -> None:
    guard, box = begun(own, tmp_path)
    end(own, guard)
    last = max(head.tick for head in Box.open(str(box)).heads)
    own.begin(tmp_path / "out2")
    assert within(30, lambda: frame_of(own) > last), own.text()


def end(own: Room, guard: int) -> None:
    """As systemd does; the recorder is gone, too."""
    recorder = own.child(guard, "recorder")
    os.kill(guard, signal.SIGTERM)
    assert next(process for process in own.processes if process.pid == guard).wait(12) == 0
    assert within(5, lambda: has_ended(recorder))


def has_ended(pid: int) -> bool:
    """Also when nobody has asked how."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def frame_of(own: Room) -> int:
    words = str(own.page().get("blackbox")).partition("last frame ")[2].partition(",")[0]
    return int(words) if words.isdigit() else 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_recorder_that_dies_or_hangs_is_replaced_and_holds_nobody_up(
    own: Room, tmp_path: Path, how: signal.Signals
) -> None:
    guard, _ = begun(own, tmp_path)
    first = own.child(guard, "recorder")
    assert first
    was = own.page()["unix_seconds"]
    os.kill(first, how)
    began = time.monotonic()
    told = "its recorder is gone" if how is signal.SIGKILL else "its recorder hangs"
    assert within(40, lambda: told in own.sentences()), own.text()
    assert own.page()["unix_seconds"] > was
    aide = own.child(guard, "aide")
    assert within(60, lambda: own.child(aide, "recorder") not in (0, first)), own.text()
    frame = frame_of(own)
    assert within(60, lambda: frame_of(own) > frame), own.text()
    print(  # noqa: T201 - how long it took, and what was lost
        f"after {time.monotonic() - began:.1f} s: {own.page()['blackbox']}"
    )


def test_without_one_there_is_none(own: Room, tmp_path: Path) -> None:
    own.write(mode="observe", blackbox="")
    guard = own.begin(tmp_path / "out")
    assert own.page()["blackbox"] == 'none: blackbox = ""'
    assert own.child(guard.pid, "recorder") == 0
