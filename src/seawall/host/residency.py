# SPDX-License-Identifier: Apache-2.0
"""How much of a file is in the page cache, whoever sees it and wherever it lies.

Runs in an expendable child only: a path may lie in a container, in FUSE or on a stuck disk.
A file is held with O_PATH first and must be a regular one before it is opened, for opening a
device asks its driver.  On overlayfs the layer's file is asked: cachestat looks at the
overlay's own mapping, which is empty (6.18 still).  hugetlbfs has no page cache and tmpfs
cannot be dropped: told apart by ``kind``.  Counts are pages.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Sequence
from typing import Any, Final

from seawall.host.overlay_layers import OVERLAYFS, Layers, Opener
from seawall.host.page_counts import Counts, PageCounter

_MEMORY_FILESYSTEMS: Final = {0x01021994: "shmem", 0x858458F6: "shmem", 0x958458F6: "hugetlb"}
HELD: Final = os.O_PATH | os.O_CLOEXEC
OPENED: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_OPENAT2: Final = 437
_RESOLVE_IN_ROOT: Final = 0x10 | 0x02  # and no magic links

Row = dict[str, Any]
"""Counts and identity of one file, as :func:`Meter.measure` says."""


class Meter:
    """Measures files one by one.  ``open_path(path, flags)`` opens paths as on the host, whose
    root we see at ``root`` (empty when it is our own).
    """

    def __init__(self, open_path: Opener, root: str = "") -> None:
        self._root = root
        self.open_path = open_path
        self.counter = PageCounter()
        self._layers = Layers(open_path)
        self._statfs = (ctypes.c_long * 32)()  # struct statfs begins with f_type

    def measure(self, item: Row) -> Row:
        """The row of ``{"open": [path, ...], "pid", "name", "inode"}``; OSError with the reason.

        ``open`` are ways to the same file, tried in turn; the last resort is ``name`` below
        the root of ``pid``, which counts only when its inode is the one that is meant.
        """
        held = self.hold(item)
        try:
            return self.measure_held(held, item.get("pid"))
        finally:
            os.close(held)

    def measure_held(self, held: int, pid: int | None, depth: int = 0) -> Row:
        """The row of a file held with O_PATH.

        ``kind``: file, shmem (cannot be dropped), hugetlb (not in the page cache), folder or
        special (neither is asked).  ``device`` and ``inode`` are those of the file whose pages
        these are; on overlayfs the layer's, ``overlay`` then tells whether it was found.
        """
        status = os.fstat(held)
        if not stat.S_ISREG(status.st_mode):
            is_folder = stat.S_ISDIR(status.st_mode)
            return {"kind": "folder" if is_folder else "special", "path": self.path_of(held)}
        where = self.filesystem(held)
        if where == OVERLAYFS and depth < 3:
            real = self._layers.real(held, status, pid)
            if real is None:
                return {**self._row(held, status, "mincore", where), "overlay": False}
            try:
                row = {**self.measure_held(real, None, depth + 1), "overlay": True}
                return {**row, "layer": self.path_of(real)}
            finally:
                os.close(real)
        method = "cachestat" if self.counter.has_cachestat else "mincore"
        return self._row(held, status, method, where)

    def _row(self, held: int, status: os.stat_result, method: str, where: int) -> Row:
        kind = _MEMORY_FILESYSTEMS.get(where, "file")
        row = {
            "kind": kind, "device": status.st_dev, "inode": status.st_ino, "size": status.st_size,
            "deleted": not status.st_nlink,
        }  # fmt: skip
        if kind == "hugetlb":
            return {**row, "held": status.st_blocks * 512}
        # The number is short and the folder known: no path to resolve again.
        fd = os.open(f"/proc/self/fd/{held}", OPENED)
        try:
            counts = self.counts(fd, status.st_size, method)
        except PermissionError:
            return {**row, "method": method}  # not known: neither 0 nor all of it
        finally:
            os.close(fd)
        return {**row, "method": method, **counts_row(counts)}

    def counts(self, fd: int, size: int, method: str) -> Counts:
        """Pages of an open file; OSError (EPERM: the kernel tells only its owner)."""
        if method == "cachestat":
            return self.counter.by_cachestat(fd)
        return self.counter.by_mincore(fd, size)

    def filesystem(self, fd: int) -> int:
        """The filesystem's magic number, as in statfs(2)."""
        if self.counter.libc.fstatfs(fd, ctypes.byref(self._statfs)):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return int(self._statfs[0]) & 0xFFFFFFFF

    def hold(self, item: Row) -> int:
        """An O_PATH descriptor of what ``item`` names; OSError with the reason."""
        failure: OSError | None = None
        for path in _words(item.get("open")):
            try:
                return self.open_path(path, HELD)
            except OSError as error:
                # Refused tells more than gone: a mapping ends, a right does not come.
                if failure is None or error.errno in (errno.EACCES, errno.EPERM):
                    failure = error
        held = self._in_root(item) if isinstance(failure, PermissionError) else None
        if held is None:
            raise failure or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return held

    def path_of(self, held: int) -> str:
        """Where a held file lies, as on the host."""
        path = os.readlink(f"/proc/self/fd/{held}")
        inside = path.removeprefix(self._root)
        return inside if inside.startswith("/") else path

    def _in_root(self, item: Row) -> int | None:
        """By its name below the root of its process, never outside of it."""
        name, pid, inode = item.get("name"), item.get("pid"), item.get("inode")
        if not name or not pid or inode is None:
            return None
        try:
            root = self.open_path(f"/proc/{pid}/root", HELD | os.O_DIRECTORY)
        except OSError:
            return None
        how = (ctypes.c_uint64 * 3)(HELD, 0, _RESOLVE_IN_ROOT)
        raw = os.fsencode(str(name))
        fd: int = ctypes.CDLL(None).syscall(
            _OPENAT2, root, raw, ctypes.byref(how), ctypes.sizeof(how)
        )
        os.close(root)
        # On overlayfs maps may tell the layer's inode, and stat the overlay's.
        if fd >= 0 and os.fstat(fd).st_ino != inode and self.filesystem(fd) != OVERLAYFS:
            os.close(fd)
            return None
        return fd if fd >= 0 else None


def counts_row(counts: Counts) -> Row:
    """Those counts that are known."""
    return {name: value for name, value in counts._asdict().items() if value is not None}


def _words(value: object) -> Sequence[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else ()
