# SPDX-License-Identifier: Apache-2.0
"""A folder and what is below it, slice by slice: which of its files are in the page cache.

A slice ends after a moment and says which folders are left, so that a walk of hours can be
stopped, shown and, when one folder hangs, gone on with.  Mount points below are not entered
but listed.  Files with several names count once; so do those in ``seen``.

Nothing but regular files may be opened.  Names can be swapped between two calls, so as root
the walk runs in a mount namespace of its own in which every mount is ``nodev``; where that is
not to be had, each file is held with O_PATH first, which takes half as long again.
"""

import ctypes
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from seawall.host.overlay_layers import OVERLAYFS
from seawall.host.page_counts import PageCounter
from seawall.host.residency import HELD, OPENED, Meter, Row

_CLONE_NEWNS: Final = 0x20000
_MS_REC_SLAVE: Final = 0x4000 | 1 << 19
_MOUNT_SETATTR: Final = 442  # 5.12
_AT_RECURSIVE: Final = 0x8000
_AT_FDCWD: Final = -100
_NODEV: Final = 0x4
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_TMPFS: Final = (0x01021994, 0x858458F6)
# Kernel interfaces and what is no page cache: proc, sysfs, cgroup, cgroup2, debugfs, tracefs,
# bpf, devpts, configfs, autofs, hugetlbfs, pstore, securityfs, mqueue.
_NO_FILES: Final = frozenset(
    {0x9FA0, 0x62656572, 0x27E0EB, 0x63677270, 0x64626720, 0x74726163, 0xCAFE4A11, 0x1CD1,
     0x62656570, 0x0187, 0x958458F6, 0x6165676C, 0x73636673, 0x19800202}
)  # fmt: skip
_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")
_SUMS: Final = (
    "files", "size", "cached", "dirty", "writeback", "evicted", "recently_evicted", "unknown",
    "shmem", "folders", "refused", "by_mincore",
)  # fmt: skip

_CLOCK_MASK: Final = 63  # files between two looks at the clock, less one

_File: TypeAlias = "tuple[str, int, int, int, Sequence[int] | None, str]"
"""Name, device, inode, size, the five counts of cachestat (None: not known) and the method."""


class ResidencyWalk:
    """One child's walks.  ``seen``: identities that were counted already."""

    def __init__(self, meter: Meter, *, is_rooted: bool) -> None:
        self._meter = meter
        self.seen: set[tuple[int, int]] = set()
        self._is_fast = not is_rooted and _shield(meter.counter) and meter.counter.has_cachestat
        self._mount_points = _mount_points(meter, is_rooted=is_rooted)
        self._open: _Folder | None = None
        self._begin({})

    def _begin(self, request: Row) -> None:
        self._keep = int(request.get("keep", 0))
        self._above = int(request.get("above", 0))
        self._rows: list[Row] = []
        self._links: list[tuple[int, int]] = []
        self._sums = dict.fromkeys(_SUMS, 0)
        self._refused: list[str] = []

    def slice(self, request: Row) -> Row:
        """One slice of ``{"folder", "seconds", "keep", "above"}``: sums over its files in pages,
        the ``keep`` largest that hold more than ``above`` pages, and the folders left.

        ``goes_on``: it ended inside a folder, and the next one, without ``folder``, goes on.
        """
        self._begin(request)
        mounts: list[str] = []
        rest = [request["folder"]] if request.get("folder") else []
        until = time.monotonic() + float(request["seconds"])
        while self._open or rest:
            if self._open is None:
                self._open = self._enter(rest.pop())
            elif self._add(self._open, until):
                for inner in self._open.inner:
                    (mounts if inner in self._mount_points else rest).append(inner)
                os.close(self._open.fd)
                self._open = None
            if time.monotonic() > until:
                break
        self._prune()
        return {
            **self._sums, "rows": self._rows, "links": self._links, "mounts": mounts,
            "first_refused": self._refused, "rest": rest, "goes_on": self._open is not None,
            "at": self._open.path if self._open else "",
        }  # fmt: skip

    def _enter(self, path: str) -> "_Folder | None":
        """Open a folder; None for one that is refused or holds no files worth a look."""
        fd = -1
        try:
            fd = self._meter.open_path(path, _FOLDER)
            where = self._meter.filesystem(fd)
        except OSError:
            self._refuse(path)
            if fd >= 0:
                os.close(fd)
            return None
        if where in _NO_FILES:
            os.close(fd)
            return None
        self._sums["folders"] += 1
        plain = self._is_fast and where not in (OVERLAYFS, *_TMPFS)
        inner: list[str] = []
        files = (self._plain if plain else self._careful)(path, fd, inner)
        return _Folder(path, fd, inner, files, "shmem" if where in _TMPFS else "file")

    def _plain(self, path: str, folder: int, inner: list[str]) -> Iterator[_File]:
        """The fast road; every call here is made a million times."""
        counter, seen, flags = self._meter.counter, self.seen, OPENED | os.O_NOFOLLOW
        cachestat, answer, fstat = counter.cachestat, counter.answer, os.fstat
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False):
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(f"{path.rstrip('/')}/{entry.name}")
                    continue
                try:
                    fd = os.open(entry.name, flags, dir_fd=folder)
                except OSError:
                    self._refuse(f"{path}/{entry.name}")
                    continue
                status = fstat(fd)
                is_known = cachestat(fd)
                os.close(fd)
                if not stat.S_ISREG(status.st_mode):
                    continue
                if (seen or status.st_nlink > 1) and not self._is_new(status):
                    continue
                counts = answer if is_known else None
                yield entry.name, status.st_dev, status.st_ino, status.st_size, counts, "cachestat"

    def _careful(self, path: str, folder: int, inner: list[str]) -> Iterator[_File]:
        """The same, each file held first: on overlayfs, on tmpfs, and where devices open."""
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inner.append(f"{path.rstrip('/')}/{entry.name}")
                elif entry.is_file(follow_symlinks=False):
                    try:
                        held = os.open(entry.name, HELD | os.O_NOFOLLOW, dir_fd=folder)
                    except OSError:
                        self._refuse(f"{path}/{entry.name}")
                        continue
                    try:
                        yield from self._measured(entry.name, held)
                    except OSError:
                        self._refuse(f"{path}/{entry.name}")
                    finally:
                        os.close(held)

    def _measured(self, name: str, held: int) -> Iterator[_File]:
        row = self._meter.measure_held(held, None)
        if row["kind"] not in ("file", "shmem"):
            return
        if not self._is_new_key((row["device"], row["inode"]), os.fstat(held).st_nlink):
            return
        counts = None
        if "cached" in row:
            counts = [row.get(key, 0) for key in _SUMS[2:7]]
            if row["kind"] == "shmem":
                self._sums["shmem"] += counts[0]
        self._sums["by_mincore"] += row["method"] == "mincore"
        yield name, row["device"], row["inode"], row["size"], counts, row["method"]

    def _add(self, folder: "_Folder", until: float) -> bool:
        """Sum up its files; False when the time was over before the last."""
        number = total = cached = dirty = writeback = evicted = recently = unknown = 0
        is_done = True
        try:
            for name, device, inode, size, counts, method in folder.files:
                number += 1
                total += size
                if counts is None:
                    unknown += 1
                else:
                    pages, unwritten, writing, gone, gone_lately = counts
                    cached += pages
                    dirty += unwritten
                    writeback += writing
                    evicted += gone
                    recently += gone_lately
                    if pages > self._above:
                        path = f"{folder.path.rstrip('/')}/{name}"
                        self._keep_row(path, (device, inode, size), counts, (folder.kind, method))
                if not number & _CLOCK_MASK and time.monotonic() > until:
                    is_done = False
                    break
        except OSError:
            self._refuse(folder.path)
        sums = (number, total, cached, dirty, writeback, evicted, recently, unknown)
        for key, value in zip(_SUMS, sums, strict=False):
            self._sums[key] += value
        return is_done

    def _keep_row(
        self, path: str, identity: tuple[int, int, int], counts: Sequence[int], how: tuple[str, str]
    ) -> None:
        row = dict(zip(("device", "inode", "size"), identity, strict=True))
        told = counts if how[1] == "cachestat" else counts[:1]
        row |= dict(zip(_SUMS[2:7], told, strict=False))
        self._rows.append({"path": path, "kind": how[0], "method": how[1], **row})
        if len(self._rows) >= 4 * self._keep + 1000:
            self._prune()
            self._above = max(self._above, self._rows[-1]["cached"])

    def _prune(self) -> None:
        self._rows.sort(key=lambda row: -row["cached"])
        del self._rows[self._keep :]

    def _is_new(self, status: os.stat_result) -> bool:
        return self._is_new_key((status.st_dev, status.st_ino), status.st_nlink)

    def _is_new_key(self, key: tuple[int, int], links: int) -> bool:
        """Whether this file was not counted yet; one with several names is remembered."""
        if key in self.seen:
            return False
        if links > 1:
            self.seen.add(key)
            self._links.append(key)
        return True

    def _refuse(self, path: str) -> None:
        self._sums["refused"] += 1
        if len(self._refused) < 3:
            self._refused.append(path)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that is being counted; ``inner`` fills while ``files`` is read."""

    path: str
    fd: int
    inner: list[str]
    files: Iterator[_File]
    kind: str


def _shield(counter: PageCounter) -> bool:
    """Make every mount nodev, for this process alone; False where that is not allowed.

    The namespace stays a slave of the host's: what is unmounted there goes away here too.
    """
    call = ctypes.CDLL(None).syscall
    libc = counter.libc
    if libc.unshare(_CLONE_NEWNS):
        return False
    if libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC_SLAVE), None):
        return False
    attributes = (ctypes.c_uint64 * 4)(_NODEV, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    return not call(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, ctypes.byref(attributes), size)


def _mount_points(meter: Meter, *, is_rooted: bool) -> frozenset[str]:
    """Where something is mounted, as the host sees it."""
    pid = "1" if is_rooted else "self"
    try:
        fd = meter.open_path(f"/proc/{pid}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return frozenset()
    with open(fd, "rb") as lines:
        points = [line.split(b" ", 5)[4] for line in lines]
    raw = (_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), point) for point in points)
    return frozenset(map(os.fsdecode, raw))
