# SPDX-License-Identifier: Apache-2.0
"""A black box for those who read it: also while it is written, cut, overwritten or forged.

Only frames with a right checksum are shown, in the order in which they were written, which no
clock can turn round.  A page with a bad sector, a torn frame, half a file: the rest is read.
"""

import os
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

from seawall.blackbox import first_page
from seawall.blackbox.first_page import FORMAT, PAGE_BYTES, SIZE_MOST_BYTES, FirstPage
from seawall.blackbox.frame import ALIGN_BYTES, MAGIC, VERSION, Frame, FrameHead, body_of, head_at
from seawall.blackbox.scan import Scan, read_at
from seawall.problems import BundleProblem

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_GLANCE_BYTES: Final = 64 << 10


class Boot(NamedTuple):
    """What one boot of the machine left."""

    boot_id: str
    heads: tuple[FrameHead, ...]
    """By sequence; never empty."""


class Box:
    """The frames that could be read; what they hold is unpacked one by one (``frame``)."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.size_bytes = 0
        self.heads: Sequence[FrameHead] = ()
        """By sequence."""
        self.torn = 0
        """Frames whose checksum is wrong: a power cut, or a disk that forgets."""
        self._fd = fd
        self._first: FirstPage | None = None

    @classmethod
    def open(cls, path: str) -> "Box":
        """The box at ``path``; BundleProblem when it is none, or nothing of it is left."""
        box = cls(path, _opened(path))
        try:
            box._read()
        except OSError as error:
            raise BundleProblem(f"{path}: cannot be read: {error.strerror}") from error
        return box

    @property
    def missing_bytes(self) -> int:
        """How much shorter the file is than its first page says: a copy that was cut."""
        told = self._first.size_bytes if self._first else 0
        return max(0, told - self.size_bytes)

    def frame(self, head: FrameHead) -> Frame:
        """What it holds; BundleProblem: not ours, or it was overwritten since ``open``."""
        data = read_at(self._fd, head.offset, head.size)
        if head_at(data, 0, head.offset) != head:
            raise BundleProblem(f"{self.path}: frame {head.sequence} was overwritten meanwhile")
        try:
            body = body_of(data, head, head.offset)
        except ValueError as error:
            raise BundleProblem(f"{self.path}: at byte {head.offset}: {error}") from error
        return Frame(*head[2:], body)

    def boots(self) -> list[Boot]:
        """Oldest first.  The order is that of writing: a clock may have been wrong."""
        found: dict[str, list[FrameHead]] = {}
        for head in self.heads:
            found.setdefault(head.boot_id, []).append(head)
        return [Boot(boot_id, tuple(heads)) for boot_id, heads in found.items()]

    def close(self) -> None:
        """Let go of the file; ``frame`` cannot be asked any more."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close

    def _read(self) -> None:
        self.size_bytes = os.fstat(self._fd).st_size
        page = read_at(self._fd, 0, PAGE_BYTES)
        version = first_page.format_of(page)
        if version is not None and version > FORMAT:
            raise BundleProblem(f"{self.path}: a black box of format {version}: newer than this")
        self._first = first_page.parse(page)
        scan = Scan(self._fd, self.size_bytes)
        found: dict[int, FrameHead] = {}
        for head in scan:
            found.setdefault(head.sequence, head)
        self.heads, self.torn = [found[number] for number in sorted(found)], scan.torn
        if not self.heads and self._first is None:
            words = "neither its first line nor any frame is Seawall's"
            raise BundleProblem(f"{self.path}: not a black box, or nothing is left of it: {words}")


def is_box(path: str) -> bool:
    """Whether this is a black box, perhaps a damaged one: a glance at its first 64 KiB."""
    try:
        fd = _opened(path)
    except BundleProblem:
        return False
    try:
        data = read_at(fd, 0, _GLANCE_BYTES)
    finally:
        os.close(fd)
    begin = MAGIC + bytes([VERSION])
    return first_page.format_of(data) is not None or any(
        data.startswith(begin, at) for at in range(PAGE_BYTES, len(data), ALIGN_BYTES)
    )


def _opened(path: str) -> int:
    """A descriptor of a regular file of a bearable size; BundleProblem."""
    try:
        fd = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise BundleProblem(f"{path}: cannot be read as a black box: {words}") from error
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_size <= SIZE_MOST_BYTES:
        return fd
    os.close(fd)
    if stat.S_ISREG(found.st_mode):
        most = SIZE_MOST_BYTES >> 20
        raise BundleProblem(
            f"{path}: no black box has {found.st_size >> 20:,} MiB; {most:,} at most"
        )
    raise BundleProblem(f"{path}: expected a black box, found no regular file")
