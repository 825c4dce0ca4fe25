# SPDX-License-Identifier: Apache-2.0
"""The files that a process runs from, kept in memory whole by another one.

``mlockall`` with MCL_ONFAULT keeps what was touched.  Of the interpreter and its libraries that
is a part; the first touch of another page would be a read from the disk (a major fault), in the
middle of a thrash as well.  So the guard's companions, whose size nobody counts, map these files
once more and lock all of it (mmap(2), MAP_LOCKED): the guard finds the page in memory.  Pages of
files are shared, so it costs what none of the three processes had touched.
"""

import mmap
import os
from typing import Final

MOST_BYTES: Final = 48 << 20
_MAP_LOCKED: Final = 0x2000
"""As on all architectures but alpha, mips, powerpc and sparc."""
_NO_FILES: Final = (b"/memfd:", b"/dev/", b"/SYSV")
"""Memory with a name: libffi keeps its closures in such."""
_DELETED: Final = " (deleted)"
_held: list[mmap.mmap] = []


def hold(pid: int | str = "self") -> str:
    """What ``pid`` executes; before ``mlockall``, whose ONFAULT would hold for these too.  Why
    not all of it is held, in words, or empty.
    """
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            files = executed(file.read())
    except OSError as refused:
        return f"/proc/{pid}/maps: {refused.strerror}"
    left, problems = MOST_BYTES, []
    for path, (start, end) in files.items():
        if end - start > left:
            problems.append(f"{path}: over {MOST_BYTES >> 20} MiB together")
            continue
        left -= end - start
        if problem := hold_file(path, start, end):
            problems.append(f"{path}: {problem}")
    return "; ".join(problems)


def executed(maps: bytes) -> dict[str, tuple[int, int]]:
    """Of each file with a mapping that is executed, where what is mapped of it begins and ends;
    in the order of ``maps``, the interpreter first.
    """
    files: dict[str, tuple[int, int]] = {}
    wanted = set()
    for line in maps.split(b"\n"):  # a name may hold a \r
        words = line.split(None, 5)
        if len(words) < 6 or not words[5].startswith(b"/") or words[5].startswith(_NO_FILES):
            continue
        path, first = os.fsdecode(words[5]), int(words[2], 16)
        start, _, end = words[0].partition(b"-")
        last = first + int(end, 16) - int(start, 16)
        least, most = files.get(path, (first, last))
        files[path] = min(least, first), max(most, last)
        if b"x" in words[1]:
            wanted.add(path)
    return {path: place for path, place in files.items() if path in wanted}


def hold_file(path: str, start: int, end: int) -> str:
    """Why not, or empty.  No inode is compared: of overlayfs, maps and stat name two."""
    if path.endswith(_DELETED):
        return "it was replaced since it was started"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as refused:
        return str(refused.strerror)
    try:
        size = min(end, os.fstat(fd).st_size) - start
        flags = mmap.MAP_SHARED | _MAP_LOCKED
        _held.append(mmap.mmap(fd, size, flags=flags, prot=mmap.PROT_READ, offset=start))
    except (OSError, ValueError) as refused:
        return getattr(refused, "strerror", None) or str(refused)
    finally:
        os.close(fd)
    return ""
