# SPDX-License-Identifier: Apache-2.0
"""The writer's thread: what waits is bounded, and a disk that stands still holds nobody up."""

import threading
import time
from pathlib import Path

import pytest
from tests.recorder.pair import BOOT_ID

from seawall.blackbox.frame import compress_body
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile
from seawall.problems import BlackboxProblem
from seawall.recorder.pretrigger_buffer import PendingFrame
from seawall.recorder.writer import FrameRing, FrameWriter

SIZE = 4 << 20


class _StillRing(RingFile):
    """A disk that stands still until it is let go."""

    go_on: threading.Event
    writes = 0

    def write(self, packed: bytes) -> None:
        self.writes += 1
        assert self.go_on.wait(60)
        super().write(packed)


def _waiting(number: int, size: int = 100, *, is_peace: bool = False) -> PendingFrame:
    payload = compress_body({"n": number, "pad": "x" * size}, 0)
    return PendingFrame("tick", 1.7e9 + number, float(number), number, payload, is_peace)


def _until(true: object, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:  # type: ignore[operator]
        time.sleep(0.005)
    assert true()  # type: ignore[operator]


def test_what_was_put_is_in_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "box" / "ring")
    for first in (1, 101):
        writer = FrameWriter(lambda: RingFile.open(path, SIZE), BOOT_ID)
        writer.start()
        _until(lambda made=writer: made.opened)
        assert writer.last_tick == first - 1
        for number in range(first, first + 100):
            writer.put(_waiting(number))
        assert writer.close(20)
        assert writer.gaps == 0
    box = Box.open(path)
    assert [head.tick for head in box.heads] == list(range(1, 201))
    assert [head.sequence for head in box.heads] == list(range(1, 201))
    assert box.frame(box.heads[150]).body["n"] == 151


def test_many_go_in_one_write(tmp_path: Path) -> None:
    ring = _StillRing.open(str(tmp_path / "ring"), SIZE)
    ring.go_on = threading.Event()
    writer = FrameWriter(lambda: ring, BOOT_ID)
    writer.start()
    _until(lambda: writer.opened)
    for number in range(500):
        writer.put(_waiting(number))
    ring.go_on.set()
    assert writer.close(20)
    assert ring.writes <= 3


def test_a_line_of_the_journal_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seawall.recorder.writer.EVERY_SECONDS", 60.0)
    writer = FrameWriter(lambda: RingFile.open(str(tmp_path / "ring"), SIZE), BOOT_ID)
    writer.start()
    _until(lambda: writer.opened)
    writer.put(_waiting(1))
    _until(lambda: writer.last_tick == 1)
    writer.put(_waiting(2))
    time.sleep(0.1)
    assert writer.last_tick == 1
    writer.put(_waiting(3)._replace(kind="line", is_urgent=True))
    _until(lambda: writer.last_tick == 3)
    writer.put(_waiting(4))
    time.sleep(0.1)
    assert writer.last_tick == 3
    assert writer.close(20)
    kinds = [head.kind for head in Box.open(str(tmp_path / "ring")).heads]
    assert kinds == ["tick", "tick", "line", "tick"]


def test_a_disk_that_stands_still_holds_nobody_up_and_peace_goes_first(tmp_path: Path) -> None:
    ring = _StillRing.open(str(tmp_path / "ring"), SIZE)
    ring.go_on = threading.Event()
    writer = FrameWriter(lambda: ring, BOOT_ID, most_bytes=100_000)
    writer.start()
    _until(lambda: writer.opened)
    writer.put(_waiting(1))
    _until(lambda: ring.writes)
    worst = 0.0
    for number in range(2, 402):
        began = time.thread_time()
        writer.put(_waiting(number, 1000, is_peace=number % 2 == 0))
        worst = max(worst, time.thread_time() - began)
    assert worst < 0.05
    assert writer.gaps > 200
    ring.go_on.set()
    assert writer.close(20)
    ticks = [head.tick for head in Box.open(str(tmp_path / "ring")).heads]
    assert ticks[-1] == 401
    assert len(ticks) + writer.gaps == 401
    assert all(tick % 2 for tick in ticks)  # those of peace went first


def test_the_end_does_not_wait_for_a_dead_disk(tmp_path: Path) -> None:
    ring = _StillRing.open(str(tmp_path / "ring"), SIZE)
    ring.go_on = threading.Event()
    writer = FrameWriter(lambda: ring, BOOT_ID)
    writer.start()
    _until(lambda: writer.opened)
    writer.put(_waiting(1))
    _until(lambda: ring.writes)
    began = time.monotonic()
    assert not writer.close(0.2)
    assert time.monotonic() - began < 5
    ring.go_on.set()


def test_no_box_is_said_and_tried_again(tmp_path: Path) -> None:
    tries: list[float] = []

    def open_ring() -> FrameRing:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise BlackboxProblem("the disk would be 91 % full")
        return RingFile.open(str(tmp_path / "ring"), SIZE)

    writer = FrameWriter(open_ring, BOOT_ID, again_seconds=0.2)
    writer.start()
    _until(lambda: writer.is_settled)
    assert writer.problem == "the disk would be 91 % full"
    writer.put(_waiting(1))
    assert writer.gaps == 1
    _until(lambda: writer.opened)
    assert not writer.problem
    writer.put(_waiting(2))
    assert writer.close(20)
    assert len(tries) == 3
    assert [head.tick for head in Box.open(str(tmp_path / "ring")).heads] == [2]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    writer = FrameWriter(lambda: RingFile.open(str(tmp_path / "file" / "ring"), SIZE), BOOT_ID)
    writer.start()
    _until(lambda: writer.is_settled)
    assert "file" in writer.problem
    assert writer.close(20)


def test_a_write_that_fails_is_said_and_the_file_opened_again(tmp_path: Path) -> None:
    class Failing(RingFile):
        left = 1

        def write(self, packed: bytes) -> None:
            if not self.left:
                raise OSError(5, "Input/output error")
            Failing.left -= 1
            super().write(packed)

    writer = FrameWriter(
        lambda: Failing.open(str(tmp_path / "ring"), SIZE), BOOT_ID, again_seconds=0.2
    )
    writer.start()
    _until(lambda: writer.opened)
    writer.put(_waiting(1))
    _until(lambda: writer.written_unix)
    writer.put(_waiting(2))
    _until(lambda: writer.gaps)
    assert "Input/output error" in writer.problem
    Failing.left = 9
    _until(lambda: writer.opened == 2)
    writer.put(_waiting(3))
    assert writer.close(20)
    assert [head.tick for head in Box.open(str(tmp_path / "ring")).heads] == [1, 3]


@pytest.mark.parametrize("size", [100, 60_000])
def test_more_than_one_write_takes_goes_in_several(tmp_path: Path, size: int) -> None:
    writer = FrameWriter(lambda: RingFile.open(str(tmp_path / "ring"), SIZE), BOOT_ID)
    writer.start()
    _until(lambda: writer.opened)
    for number in range(1, 41):
        writer.put(_waiting(number, size))
    assert writer.close(30)
    assert [head.tick for head in Box.open(str(tmp_path / "ring")).heads] == list(range(1, 41))
