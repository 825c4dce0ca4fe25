# SPDX-License-Identifier: Apache-2.0
"""Opening the black box: one that is there is gone on with, one that is missing, or of another
size, is made.

One of another size is never thrown away: it becomes ``PATH.old`` if both have room, and nothing is
called so yet.  Else it is gone on with as it is, and the owner is told: a black box of the wrong
size is better than none.
"""

import os
import time
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.blackbox import box_creation, first_page
from seawall.blackbox.first_page import FORMAT, PAGE_BYTES, FirstPage
from seawall.blackbox.frame import aligned
from seawall.blackbox.place import open_file
from seawall.blackbox.scan import Scan, read_at
from seawall.problems import BlackboxProblem

_PART: Final = ".part"
_OLD: Final = ".old"


class BoxSettings(NamedTuple):
    """The box that its owner asks for."""

    path: str
    size_bytes: int
    share_most: float


class BoxPosition(NamedTuple):
    """Where a box is written on."""

    at: int
    """Behind its newest frame."""
    next_sequence: int
    last_tick: int


class OpenBox(NamedTuple):
    """A box that is ready to be written to."""

    fd: int
    size_bytes: int
    """Of the file."""
    standing: BoxPosition
    remark: str


def take_up(folder: int, wanted: BoxSettings) -> OpenBox:
    """The box, locked; BlackboxProblem: there is none and cannot be one.  OSError."""
    fd = open_file(folder, wanted.path)
    if fd is None or not os.fstat(fd).st_size:
        if fd is not None:
            os.close(fd)
        _make(folder, wanted, BoxPosition(PAGE_BYTES, 1, 0))
        return _reopened(folder, wanted, "")
    try:
        found = _examined(fd, wanted.path)
        if found.size_bytes == wanted.size_bytes:
            return found
        why = _why_not_replaced(folder, wanted, found)
    except BaseException:
        os.close(fd)
        raise
    if not why:
        os.close(fd)
        words = f"a new one; the one before it is {wanted.path}{_OLD} now"
        return _reopened(folder, wanted, words)
    if found.size_bytes:
        words = f"goes on with its {found.size_bytes >> 20:,} MiB: {why}"
        return found._replace(remark=words)
    os.close(fd)
    raise BlackboxProblem(f"{wanted.path}: it was cut, and no new one was made: {why}")


def _examined(fd: int, path: str) -> OpenBox:
    """What is there; size 0 when it was cut: it cannot be gone on with.  BlackboxProblem."""
    first = first_page.parse(read_at(fd, 0, PAGE_BYTES))
    if first is None:
        raise BlackboxProblem(f"{path}: is no black box of format {FORMAT}: move it away")
    there = os.fstat(fd).st_size
    standing = BoxPosition(PAGE_BYTES, first.next_sequence, first.last_tick)
    for head in Scan(fd, min(first.size_bytes, there)):
        tick = max(standing.last_tick, head.tick)
        standing = standing._replace(last_tick=tick)
        if head.sequence >= standing.next_sequence:
            standing = BoxPosition(head.offset + aligned(head.size), head.sequence + 1, tick)
    # 64 MiB that nobody will read again soon.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    return OpenBox(fd, first.size_bytes if there >= first.size_bytes else 0, standing, "")


def _reopened(folder: int, wanted: BoxSettings, remark: str) -> OpenBox:
    fd = open_file(folder, wanted.path)
    if fd is None:
        raise BlackboxProblem(f"{wanted.path}: somebody removed it just now")
    try:
        return _examined(fd, wanted.path)._replace(remark=remark)
    except BaseException:
        os.close(fd)
        raise


def _why_not_replaced(folder: int, wanted: BoxSettings, found: OpenBox) -> str:
    """Why the old one stays; empty: it is ``PATH.old`` now, and a new one has its name."""
    name = os.path.basename(wanted.path)
    old = name + _OLD
    try:
        if _is_same(folder, name, old):  # killed between link and rename
            os.unlink(old, dir_fd=folder)
        # A link and then a rename: at no moment is there no box of that name.
        os.link(name, old, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return f"{wanted.path}{_OLD} is there already: move it away for another size"
    except OSError as error:
        return f"it cannot be kept as {wanted.path}{_OLD}: {error.strerror}"
    try:
        _make(folder, wanted, found.standing)
    except (BlackboxProblem, OSError) as error:
        os.unlink(old, dir_fd=folder)
        return str(error)
    return ""


def _is_same(folder: int, name: str, other: str) -> bool:
    try:
        return os.path.samestat(
            os.stat(name, dir_fd=folder, follow_symlinks=False),
            os.stat(other, dir_fd=folder, follow_symlinks=False),
        )
    except FileNotFoundError:
        return False


def _make(folder: int, wanted: BoxSettings, behind: BoxPosition) -> None:
    """The whole file under another name first; BlackboxProblem: no room.  OSError."""
    part = os.path.basename(wanted.path) + _PART
    with suppress(FileNotFoundError):  # of one that was killed over it
        os.unlink(part, dir_fd=folder)
    why = box_creation.no_room(folder, wanted.size_bytes, wanted.share_most)
    if why:
        raise BlackboxProblem(f"{wanted.path}: {why}")
    numbers = behind.next_sequence, behind.last_tick
    box_creation.make(folder, part, FirstPage(wanted.size_bytes, int(time.time()), *numbers))
    os.rename(part, os.path.basename(wanted.path), src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)
