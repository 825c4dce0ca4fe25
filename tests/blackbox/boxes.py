"""Black boxes and frames for the tests."""

import array
import contextlib
import fcntl
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from seawall.blackbox.frame import Frame, Kind, pack
from seawall.blackbox.reader import Box
from seawall.blackbox.ring import RingFile

MIB = 1 << 20
BOOT = "0b0e7c1a-2f3d-4c5b-8a69-7d7e8f901234"
OTHER_BOOT = "f1e2d3c4-b5a6-4798-8190-a1b2c3d4e5f6"
UNIX = 1_764_000_000.0
NO_MERCY = 1.0
"""The share of the disk that tests may fill: theirs may be nearly full already."""
_FIEMAP = 0xC020660B
_FIEMAP_HEAD = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQ2QI3I")


def frame(number: int, size: int = 300, boot: str = BOOT, kind: Kind = "tick") -> Frame:
    """One whose payload has about ``size`` bytes."""
    text = random.Random(number).randbytes(size).hex()
    return Frame(number, kind, UNIX + number, 50.0 + number, boot, number, {"n": number, "x": text})


def packed(number: int, size: int = 300, boot: str = BOOT) -> bytes:
    return pack(frame(number, size, boot))


@contextlib.contextmanager
def ring_at(path: Path, size_bytes: int = MIB) -> Iterator[RingFile]:
    ring = RingFile.open(str(path), size_bytes, NO_MERCY)
    try:
        yield ring
    finally:
        ring.close()


@contextlib.contextmanager
def box_at(path: Path) -> Iterator[Box]:
    box = Box.open(str(path))
    try:
        yield box
    finally:
        box.close()


def sequences(path: Path) -> list[int]:
    with box_at(path) as box:
        return [head.sequence for head in box.heads]


def filled(path: Path, count: int, size: int = 300) -> dict[int, Frame]:
    """A box of a MiB with that many frames, and what they hold, by sequence."""
    frames = [frame(number + 1, size) for number in range(count)]
    with ring_at(path) as ring:
        for begin in range(0, count, 50):
            ring.write(b"".join(pack(each) for each in frames[begin : begin + 50]))
    return {each.sequence: each for each in frames}


def extents(path: Path) -> list[tuple[int, int, int, int]] | None:
    """Place in the file, on the disk, length and flags (FIEMAP); None: it cannot be told."""
    count = 512
    buffer = array.array("B", bytes(_FIEMAP_HEAD.size + count * _EXTENT.size))
    _FIEMAP_HEAD.pack_into(buffer, 0, 0, 2**64 - 1, 1, 0, count, 0)
    with path.open("rb") as file:
        try:
            fcntl.ioctl(file, _FIEMAP, buffer)
        except OSError:
            return None
    mapped = _FIEMAP_HEAD.unpack_from(buffer)[3]
    rows = [
        _EXTENT.unpack_from(buffer, _FIEMAP_HEAD.size + row * _EXTENT.size) for row in range(mapped)
    ]
    return [(row[0], row[1], row[2], row[5]) for row in rows]


def spoil(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), data, offset)
