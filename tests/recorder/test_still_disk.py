# SPDX-License-Identifier: Apache-2.0
"""A disk that stands still: ticks are heard, the machine is looked at, all is written later."""

import threading
import time
from itertools import pairwise
from pathlib import Path

from tests.recorder.pair import BOOT_ID, Guard

from seawall.actions.mounts import find_mounts
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile
from seawall.recorder.guard_socket import GuardSocket
from seawall.recorder.kernel_lines import KernelLines
from seawall.recorder.recorder_loop import RecorderLoop
from seawall.recorder.recording_policy import RecordingPolicy
from seawall.recorder.samples import Samples
from seawall.recorder.writer import FrameWriter
from seawall.replay.player import Player
from seawall.replay.tick_decoder import TickDecoder

STILL_SECONDS = 4.0


class _Disk(RingFile):
    """Stands still from ``from_`` on."""

    from_ = float("inf")
    stood = 0.0

    def write(self, packed: bytes) -> None:
        if time.monotonic() >= self.from_:
            _Disk.from_ = float("inf")
            began = time.monotonic()
            time.sleep(STILL_SECONDS)
            _Disk.stood = time.monotonic() - began
        super().write(packed)


def test_neither_hearing_nor_looking_waits_for_the_disk(tmp_path: Path) -> None:
    path = str(tmp_path / "ring")
    guard = Guard()
    writer = FrameWriter(lambda: _Disk.open(path, 8 << 20), BOOT_ID)
    story = RecordingPolicy(
        writer.put,
        lambda settings, last: {"settings": settings._asdict(), "last_decision": last},
        lambda settings, last: Player(settings, BOOT_ID, "/own", last),
    )
    mounts = find_mounts(Path("/proc/self/mountinfo").read_text())
    ear = GuardSocket(guard.theirs.detach())
    loop = RecorderLoop(ear, writer, story, Samples(mounts), KernelLines("/dev/null"))
    loop.rehearse()
    thread = threading.Thread(target=loop.run, args=(1,))
    thread.start()
    guard.wait_for("hello")
    guard.tick("short")
    time.sleep(0.5)
    began = time.monotonic()
    _Disk.from_ = began
    while time.monotonic() < began + STILL_SECONDS:
        last = guard.tick("short")
        time.sleep(0.1)
    time.sleep(1.0)
    guard.link.bye()
    thread.join(20)
    ear.close()
    assert _Disk.stood >= STILL_SECONDS
    assert guard.link.lost == 0
    assert writer.gaps == 0 or writer.opened == 1
    box, reader = Box.open(path), TickDecoder()
    frames = [box.frame(head) for head in box.heads if head.kind == "tick"]
    numbers = [tick.number for frame in frames for tick in reader.take(frame.body)]
    assert numbers[-1] == last
    assert set(range(2, last + 1)) <= set(numbers)
    looks = [h.monotonic_seconds for h in box.heads if h.kind == "round"]
    within = sorted(look for look in looks if began <= look <= began + STILL_SECONDS)
    assert len(within) >= 20
    assert max(b - a for a, b in pairwise(within)) < STILL_SECONDS / 3
