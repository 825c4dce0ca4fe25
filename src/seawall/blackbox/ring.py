# SPDX-License-Identifier: Apache-2.0
"""The writer's end of the black box: frames into blocks that were written once already.

A write is durable when it returns (``O_DSYNC``), allocates nothing and reads nothing: it covers
whole pages, for a page that is written in part would first be read from the very disk that is
stuck.  What it covers before its first frame is what stands there anyway.  Behind its last one
it is filler, at the cost of the oldest frame.  A frame is never split at the ring's end.
"""

import errno
import os
from collections.abc import Iterator

from seawall.blackbox.box_creation import DISK_SHARE_MOST, FILLER, write_all
from seawall.blackbox.box_opening import BoxSettings, OpenBox, take_up
from seawall.blackbox.first_page import PAGE_BYTES, SIZE_LEAST_BYTES, SIZE_MOST_BYTES
from seawall.blackbox.frame import ALIGN_BYTES, HEADER, FrameHead, aligned, body_of, size_at
from seawall.blackbox.place import locked_folder
from seawall.blackbox.scan import Scan, read_at
from seawall.host.host import JSON
from seawall.problems import BlackboxProblem, BundleProblem


class RingFile:
    """One process writes, as long as it holds the lock (flock) that ``open`` took."""

    def __init__(self, path: str, taken: OpenBox) -> None:
        self.path = path
        self.size_bytes = taken.size_bytes
        """Of the whole file; what was asked for, or what ``remark`` explains."""
        self.remark = taken.remark
        """What its owner should hear of ``open``, in one line; empty: nothing."""
        self._at, self.next_sequence, self.last_tick = taken.standing
        self._fd = taken.fd
        self._lead = read_at(self._fd, self._at - self._at % PAGE_BYTES, self._at % PAGE_BYTES)
        """What the page that ``_at`` lies in holds before it."""

    @classmethod
    def open(cls, path: str, size_bytes: int, share_most: float = DISK_SHARE_MOST) -> "RingFile":
        """Make the box, or go on behind its newest frame; this may take minutes on a slow disk.

        ``size_bytes``: of the file, whole pages of it.  ``share_most``: of the disk that may be
        taken once it is made.  BlackboxProblem: no room, another one writes, not ours alone.
        """
        size_bytes -= size_bytes % PAGE_BYTES
        if not SIZE_LEAST_BYTES <= size_bytes <= SIZE_MOST_BYTES:
            least, most = SIZE_LEAST_BYTES >> 20, SIZE_MOST_BYTES >> 20
            raise BlackboxProblem(f"{path}: a black box has {least} to {most:,} MiB")
        wanted = BoxSettings(os.path.abspath(path), size_bytes, share_most)
        try:
            with locked_folder(wanted.path) as folder:
                return cls(path, take_up(folder, wanted))
        except OSError as error:
            raise BlackboxProblem(f"{path}: cannot be written: {error.strerror}") from error

    def write(self, packed: bytes) -> None:
        """One or more packed frames, durable when it returns; it may block.

        OSError: they are not all there, what was there before them is, and the next write goes
        to the same place (``EFBIG``: one frame is larger than the ring; ``ESTALE``: somebody
        removed the file).  ValueError: they are no packed frames.
        """
        if not os.fstat(self._fd).st_nlink:
            raise OSError(errno.ESTALE, "somebody removed the black box", self.path)
        frames = list(_frames(packed))
        at, lead = self._at, self._lead
        for begin, run in list(self._runs(packed, frames)):
            data = lead + run
            spare = -len(data) % PAGE_BYTES
            write_all(self._fd, data + FILLER * (spare // ALIGN_BYTES), begin - len(lead))
            at, lead = begin + len(run), data[len(data) - len(data) % PAGE_BYTES :]
        self._at, self._lead = at, lead
        for offset, _ in frames:
            fields = HEADER.unpack_from(packed, offset)
            self.next_sequence = fields[6] + 1
            self.last_tick = max(self.last_tick, fields[10])

    def heads(self) -> Iterator[FrameHead]:
        """Of every frame that is whole, by its place: reads the whole file."""
        yield from Scan(self._fd, self.size_bytes)
        os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def body(self, head: FrameHead) -> dict[str, JSON]:
        """What it holds; BundleProblem: not ours."""
        try:
            return body_of(read_at(self._fd, head.offset, head.size), head, head.offset)
        except ValueError as error:
            raise BundleProblem(f"{self.path}: at byte {head.offset}: {error}") from error

    def close(self) -> None:
        """Let go of the file and its lock."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _runs(self, packed: bytes, frames: list[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """Places and bytes: all at once, or up to the ring's end and then from its begin."""
        at, begin = self._at, 0
        for offset, size in frames:
            if size > self.size_bytes - PAGE_BYTES:
                raise OSError(errno.EFBIG, f"a frame of {size:,} bytes is larger than the ring")
            if at + (offset - begin) + size > self.size_bytes:
                # Filler, or a frame that no lap reaches would stay for ever.
                run = packed[begin:offset]
                rest = self.size_bytes - at - len(run)
                yield at, run + FILLER * (rest // ALIGN_BYTES)
                at, begin = PAGE_BYTES, offset
        yield at, packed[begin:]


def _frames(packed: bytes) -> Iterator[tuple[int, int]]:
    """Offset and aligned size of each frame in it; ValueError."""
    offset = 0
    while offset < len(packed):
        size = size_at(packed, offset)
        if size is None or offset + aligned(size) > len(packed):
            raise ValueError(f"byte {offset} of {len(packed)}: expected a packed frame")
        yield offset, aligned(size)
        offset += aligned(size)
