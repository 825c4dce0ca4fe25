# SPDX-License-Identifier: Apache-2.0
"""What the journal holds and the black box does not, for its recorder was killed."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import wait_until
from tests.recorder.pair import BOOT_ID
from tests.recorder.recorder_run import Recorder

from seawall.blackbox.frame import FrameHead, compress_body
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile
from seawall.recorder.pretrigger_buffer import PendingFrame
from seawall.recorder.unrecorded_decisions import LINES_MOST, unrecorded_decisions
from seawall.recorder.writer import FrameRing, FrameWriter, packed
from seawall.sources.box_lines import decision_time

SIZE = 4 << 20


def _row(decision: str | None, looked: float | None, boot: str = BOOT_ID, **other: object) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    head = {"schema": "seawall.decision/1", "kind": "verdict", "decision": decision, "at": at,
            "seconds": looked, "boot_id": boot, "mode": "enforce", "frame": 7}  # fmt: skip
    return json.dumps({**head, "sentence": f"why {decision}", **other})


@pytest.fixture
def box(tmp_path: Path) -> Path:
    return tmp_path / "box" / "ring"


def _missed(box: Path, journal: Path, *rows: str) -> int:
    """How many lines more are in the box once a writer has begun and ended."""
    journal.write_text("".join(f"{row}\n" for row in rows), errors="surrogateescape")
    before = len(_lines(box)) if box.exists() else 0
    writer = FrameWriter(
        lambda: RingFile.open(str(box), SIZE), BOOT_ID,
        lambda ring: unrecorded_decisions(ring, str(journal.parent), BOOT_ID),
    )  # fmt: skip
    writer.start()
    wait_until(lambda: writer.opened)
    assert writer.close(20)
    return len(_lines(box)) - before


def _lines(box: Path) -> list[str]:
    found = Box.open(str(box))
    bodies = [found.frame(head).body for head in found.heads if head.kind == "line"]
    return [str(body["line"]) for body in bodies if "line" in body]  # the others are the kernel's


def test_a_decision_that_was_not_written_is_written_once(box: Path, tmp_path: Path) -> None:
    journal, now = tmp_path / "decisions.jsonl", time.monotonic()
    rows = [_row("12345678-0001", now - 3), _row("12345678-0002", now - 1.25)]
    assert _missed(box, journal, rows[0]) == 1
    assert _missed(box, journal, *rows) == 1
    assert _missed(box, journal, *rows) == 0
    assert _lines(box) == rows
    found = decision_time(Box.open(str(box)), "12345678-0002")
    assert found == pytest.approx(time.time() - (time.monotonic() - now) - 1.25, abs=0.2)
    head = Box.open(str(box)).heads[-1]
    assert (head.tick, head.boot_id) == (7, BOOT_ID)
    assert head.monotonic_seconds == pytest.approx(now - 1.25, abs=0.001)


def test_of_another_boot_without_decision_or_torn_nothing_is_taken(
    box: Path, tmp_path: Path
) -> None:
    now = time.monotonic()
    whole = _row("12345678-0001", now)
    other = "00000000-9abc-def0-1234-56789abcdef0"
    rows = [
        _row("00000000-0001", now, other), _row(None, None), _row("12345678-0003", None),
        whole[:-9], whole.replace(f"{now}", "1e999"),
        whole.replace('"frame": 7', f'"frame": {1 << 70}'), "null", "[" * 9000,
        "\udcff\udcfe", "",
    ]  # fmt: skip
    assert _missed(box, tmp_path / "decisions.jsonl", *rows) == 0
    ring = RingFile.open(str(box), SIZE)
    assert unrecorded_decisions(ring, str(tmp_path / "none"), BOOT_ID) == []
    ring.close()


def test_what_the_ring_has_overwritten_does_not_come_again(box: Path, tmp_path: Path) -> None:
    now = time.monotonic()
    ring = RingFile.open(str(box), SIZE)
    tick = PendingFrame("tick", time.time() - 10, now - 10, 3, compress_body({}))
    ring.write(packed([tick], ring.next_sequence, BOOT_ID))
    ring.close()
    rows = [_row("12345678-0001", now - 11), _row("12345678-0002", now - 9)]
    assert _missed(box, tmp_path / "decisions.jsonl", *rows) == 1
    assert _lines(box) == rows[1:]


def test_of_a_long_journal_the_last_lines_are_taken(box: Path, tmp_path: Path) -> None:
    now = time.monotonic()
    rows = [_row("12345678-0001", now - 900 + n, words="x" * 2000) for n in range(800)]
    assert _missed(box, tmp_path / "decisions.jsonl", *rows) == LINES_MOST
    assert _lines(box) == rows[-LINES_MOST:]


def test_where_the_clock_was_set_since_the_line_keeps_its_own_time(
    box: Path, tmp_path: Path
) -> None:
    now = time.monotonic()
    row = _row("12345678-0001", now, at="2026-01-02T03:04:05Z")
    assert _missed(box, tmp_path / "decisions.jsonl", row) == 1
    assert Box.open(str(box)).heads[-1].unix_seconds == 1767323045.0


def test_of_the_file_before_too(box: Path, tmp_path: Path) -> None:
    now = time.monotonic()
    rows = [_row("12345678-0001", now - 3), _row("12345678-0002", now - 1)]
    (tmp_path / "decisions.1.jsonl").write_text(f"{rows[0]}\n")
    assert _missed(box, tmp_path / "decisions.jsonl", rows[1]) == 2
    assert _lines(box) == rows


def test_what_is_told_while_the_file_is_opened_comes_once(box: Path, tmp_path: Path) -> None:
    """The guard writes its journal first; the recorder hears of it before or behind that look."""
    journal, now = tmp_path / "decisions.jsonl", time.monotonic()
    early, late = _row("12345678-0001", now - 3), _row("12345678-0002", now - 1)
    journal.write_text(f"{early}\n")
    payload = compress_body({"line": late})

    def looks(ring: FrameRing) -> list[PendingFrame]:
        with journal.open("a") as file:
            file.write(f"{late}\n")
        writer.put(PendingFrame("line", time.time(), now, 7, payload, is_urgent=True))
        return unrecorded_decisions(ring, str(tmp_path), BOOT_ID)

    writer = FrameWriter(lambda: RingFile.open(str(box), SIZE), BOOT_ID, looks)
    writer.start()
    wait_until(lambda: writer.last_tick == 7)
    assert writer.close(20)
    assert _lines(box) == [early, late]
    assert writer.gaps == 0


def test_what_is_decided_while_the_box_is_read_is_found(
    box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, now = tmp_path / "decisions.jsonl", time.monotonic()
    early, late = _row("12345678-0001", now - 3), _row("12345678-0002", now - 1)
    heads = RingFile.heads

    def slow(ring: RingFile) -> Iterator[FrameHead]:
        yield from heads(ring)
        with journal.open("a") as file:
            file.write(f"{late}\n")

    monkeypatch.setattr(RingFile, "heads", slow)
    assert _missed(box, journal, early) == 2
    assert _lines(box) == [early, late]


def test_a_recorder_that_is_killed_and_the_next_one(box: Path, tmp_path: Path) -> None:
    """The journal was written; the recorder, stopped before that, never heard of it."""
    journal = tmp_path / "decisions.jsonl"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    first = Recorder(box, folder=str(tmp_path))
    first.wait_for("hello")
    first.ticks(15)
    first.until_tick(box, 1)
    os.kill(first.child.pid, signal.SIGSTOP)
    row = _row(f"{boot[:8]}-0004", time.monotonic(), boot)
    journal.write_text(f"{row}\n")
    first.link.line(f"{row}\n".encode())
    first.child.kill()
    first.child.wait(20)
    assert row not in _lines(box)
    second = Recorder(box, folder=str(tmp_path))
    second.wait_for("hello")
    assert second.end() == 0
    assert _lines(box).count(row) == 1
