# SPDX-License-Identifier: Apache-2.0
"""What the expendable child does: it reads mappings, opens files, and looks what is in memory.

/proc/PID/maps and map_files take that process's mmap_lock, a path may lie in FUSE or on a stuck
disk: any of it may hang for ever, so ``looker.py`` gives it a deadline.  A file counts only when
a mapping of it here says the same device and inode as the process's own mapping does: so
overlayfs and replaced files cannot lead astray.
"""

import errno
import os
import stat
from collections.abc import Iterable
from typing import Any, Final

from seawall.pinner import areas, elf, same_pages
from seawall.pinner.intervals import Range, union
from seawall.pinner.mappings import own_identity, parse

Answer = dict[str, Any]
MAPS_MOST: Final = 16 << 20
_HELD: Final = os.O_PATH | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def answer(question: dict[str, Any]) -> tuple[Answer, int]:
    """What was found, and an open file or -1; OSError."""
    match question["do"]:
        case "maps":
            return {"segments": _segments(question["pid"])}, -1
        case "file":
            return _mapped(question)
        case "program":
            return _program(question["ways"]), -1
    raise ValueError(question["do"])


def _segments(pid: int) -> list[Any]:
    with open(f"/proc/{pid}/maps", "rb") as file:
        return [list(segment) for segment in parse(file.read(MAPS_MOST))]


def _mapped(question: dict[str, Any]) -> tuple[Answer, int]:
    """A file that a process has mapped: ``ways`` lead to it, the first that is right counts."""
    wanted = question["device"], question["inode"]
    parts = [(start, end) for start, end in question["ranges"]]
    why: OSError | None = None
    found: tuple[str, int] | None = None
    for way in question["ways"]:
        try:
            fd = _open(way)
        except OSError as error:
            why = why or error
            continue
        try:
            told, found = _look(fd, parts)
            is_it = found == wanted and same_pages.are(fd, question["probes"]) is not False
        except OSError as error:
            os.close(fd)
            why = why or error
            continue
        if is_it:
            return told, fd
        os.close(fd)
        if found == wanted:
            return {"why": "another file is there: its pages are not those that run"}, -1
    if found:
        words = f"another file is there: {found[0]} {found[1]}, not {wanted[0]} {wanted[1]}"
        return {"why": words}, -1
    raise why or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _program(ways: Iterable[str]) -> Answer:
    """A program that nobody runs, by its path on the host."""
    why: OSError | None = None
    for way in ways:
        try:
            fd = _open(way)
        except OSError as error:
            why = why or error
            continue
        try:
            return _opened_program(fd)
        finally:
            os.close(fd)
    raise why or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _opened_program(fd: int) -> Answer:
    if not _look(fd, [(0, elf.HEAD_BYTES)])[0]["resident"]:  # to look must read nothing in
        return {"why": "nobody runs it, and it is not in memory"}
    code, data = elf.text_of(os.pread(fd, elf.HEAD_BYTES, 0))
    told, found = _look(fd, union([*code, *data]))
    if found is None:
        return {"why": "it is no program of this machine"}
    return {**told, "code": code, "data": data, "device": found[0], "inode": found[1]}


def _open(way: str) -> int:
    """A regular file; held with O_PATH first, for to open a device asks its driver."""
    held = os.open(way, _HELD)
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return os.open(f"/proc/self/fd/{held}", _READ)
    finally:
        os.close(held)


def _look(fd: int, parts: list[Range]) -> tuple[Answer, tuple[str, int] | None]:
    """What of ``parts`` is in memory, and who the file is by a mapping of ours."""
    status = os.fstat(fd)
    most = -(-status.st_size // areas.PAGE) * areas.PAGE
    identity, there = None, []
    for start, end in parts:
        end = min(end, most)
        if start >= end:
            continue
        address = areas.put(fd, start, end)
        try:
            identity = identity or _identity(address)
            there += areas.resident(address, start, end)
        finally:
            areas.remove(address, end - start)
    is_roots = status.st_uid == 0 and not status.st_mode & 0o002
    told = {"resident": there, "size": most, "is_roots": is_roots}
    return told, identity


def _identity(address: int) -> tuple[str, int] | None:
    with open("/proc/self/maps", "rb") as file:
        return own_identity(file.read(), address)
