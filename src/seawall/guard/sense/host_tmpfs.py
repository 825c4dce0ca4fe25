# SPDX-License-Identifier: Apache-2.0
"""The host's tmpfs mounts: shared memory in them outlives a container.

An emptyDir of medium Memory and a pod's /dev/shm belong to the pod; a restart of the container
finds their files again, so its end gives none of that back.  A tmpfs is known by its device
number in both mountinfo files (proc(5)).  statvfs goes to the host's mount point; nothing is
opened inside the container, and of its mounts nothing is believed but these numbers: it may have
a mount namespace of its own, with paths as deep and mounts as many as it likes.

Only a tmpfs that this very path leads to is asked, and only on a way that asks no other machine
and no other program: a mount over it may be a FUSE whose server never answers, and then the guard
would wait for ever.
"""

import os
from collections.abc import Iterable
from typing import Final, TypeAlias

_MOST_BYTES: Final = 16 << 20
_MOST_MOUNTS: Final = 16384
_TENANTS_BYTES: Final = 1 << 20
"""Of a container's mounts.  An ordinary one has about 10 KiB, a node in a container (kind) with a
hundred pods less than half of this; what is beyond only costs the guard's own time, which all
others need.
"""
_PART_BYTES: Final = 64 << 10
_ESCAPES: Final = ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\"))
_ASKING: Final = (b"fuse", b"nfs", b"cifs", b"smb3", b"ceph", b"9p", b"afs", b"autofs", b"lustre")
"""A look-up in these may wait for somebody; prefixes."""
_CUT: Final = b""
"""No device's number: there are more mounts than were read."""
_ALL: Final = 1 << 62
"""More than any group has: as far as is known, all its shared memory stays."""
_DEEPEST: Final = 64
_LONGEST: Final = 1024
"""Components and bytes of a point on the host: the kubelet's and containerd's have about ten in
200.  One beyond is not followed, so that the work for each mount is bounded.
"""


# By mount id: the mount it is on, its point as it stands there, its kind.
_Mounts: TypeAlias = dict[bytes, tuple[bytes, bytes, bytes]]
# By the mount they are on: which mount is on each point.
_Tops: TypeAlias = dict[bytes, dict[bytes, bytes]]


class HostTmpfs:
    """The host's tmpfs mounts of one moment, read when they are first needed."""

    __slots__ = ("_everywhere", "_hosts", "_proc")

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._hosts: dict[bytes, bytes] | None = None
        self._everywhere: int | None = None
        """What is in all of them."""

    def forget(self) -> None:
        """Forget the mounts of this moment: they are read anew when they are needed again."""
        self._hosts = self._everywhere = None

    def bytes_of(self, pids: Iterable[int]) -> int:
        """Bytes in tmpfs mounts of a group that stay when all its processes are gone, for the
        host has them too.  Of ``pids`` the first tells whose mounts can be read.

        What other workloads have in the same tmpfs is in it: too much rather than too little.
        All that is in the host's where nobody tells which of them it has; more than there is
        where one cannot be asked, or the host's were not all read.
        """
        if self._hosts is None:
            self._hosts = mounts_of(self._proc, 1)
        if _CUT in self._hosts:
            return _ALL
        for pid in pids:
            theirs = devices_of(self._proc, pid)
            if theirs is not None and _CUT not in theirs:
                return self._in(theirs & self._hosts.keys())
            if theirs is not None:
                break
        if self._everywhere is None:
            self._everywhere = self._in(self._hosts)
        return self._everywhere

    def _in(self, devices: Iterable[bytes]) -> int:
        hosts, total = self._hosts or {}, 0
        for device in devices:
            if not hosts[device]:
                return _ALL
            try:
                found = os.statvfs(os.fsencode(f"{self._proc}/1/root") + hosts[device])
            except OSError:
                continue
            total += (found.f_blocks - found.f_bfree) * found.f_frsize
        return total


def devices_of(proc: str, pid: int) -> set[bytes] | None:
    """Device numbers of the tmpfs mounts that ``pid`` has; None: they cannot be read.

    One pass over what is read, whatever it says.
    """
    found: set[bytes] = set()
    left = _TENANTS_BYTES
    try:
        with open(f"{proc}/{pid}/mountinfo", "rb", buffering=_PART_BYTES) as lines:
            while line := lines.readline(left):
                left -= len(line)
                if b" - tmpfs " in line:
                    found.add(line.split(b" ", 3)[2])
    except OSError:
        return None
    if left <= 0:
        found.add(_CUT)
    return found


def mounts_of(proc: str, pid: int) -> dict[bytes, bytes]:
    """Its tmpfs mounts, as ``tmpfs_mounts`` tells them."""
    try:
        with open(f"{proc}/{pid}/mountinfo", "rb", buffering=_PART_BYTES) as lines:
            return tmpfs_mounts(lines)
    except OSError:
        return {_CUT: b""}


def tmpfs_mounts(lines: Iterable[bytes]) -> dict[bytes, bytes]:
    """Mount points of tmpfs by device number; a cut last line does not count.

    Empty where its path leads to another mount, or through one that may not answer.
    """
    mounts: _Mounts = {}
    tops: _Tops = {}
    found: dict[bytes, bytes] = {}
    devices: list[tuple[bytes, bytes]] = []
    size = 0
    for line in lines:
        size += len(line)
        if size > _MOST_BYTES or len(mounts) >= _MOST_MOUNTS:
            found[_CUT] = b""
            break
        words = line.split(b" ", 5)
        if len(words) < 6 or not line.endswith(b"\n"):
            continue
        own, above, device, _, point, rest = words
        kind = rest.partition(b" - ")[2].partition(b" ")[0]
        mounts[own] = above, point, kind
        if own != above:
            if above not in tops:
                tops[above] = {}
            tops[above][point] = own
        if kind == b"tmpfs":
            devices.append((device, own))
    reached: dict[bytes, bool] = {}
    for device, own in devices:
        point = mounts[own][1]
        # None on top of it either.
        if _leads_to(own, mounts, tops, reached) and point not in tops.get(own, ()):
            found[device] = _plain(point)
        else:
            found.setdefault(device, b"")
    return found


def _leads_to(own: bytes, mounts: _Mounts, tops: _Tops, reached: dict[bytes, bool]) -> bool:
    """Whether looking its point up comes to it.  ``reached``: of whom that is known; each mount
    is looked at once, however many are on it.

    By who is on whom: the order of the lines says nothing (the root often comes after /run,
    which was moved to it, and a mount that is moved keeps its place).
    """
    way: list[bytes] = []
    at, is_reached = own, True
    while at in mounts:
        if at in reached:
            is_reached = reached[at]
            break
        reached[at] = False  # whoever comes back to it goes round in a circle
        way.append(at)
        above = mounts[at][0]
        if above == at:
            break
        at = above
    while way:
        at = way.pop()
        reached[at] = is_reached = is_reached and _is_open(at, mounts[at], tops)
    return is_reached


def _is_open(own: bytes, mount: tuple[bytes, bytes, bytes], tops: _Tops) -> bool:
    """Whether the way to it from the mount that it is on asks nobody and meets no other mount."""
    above, here, kind = mount
    if kind.startswith(_ASKING) and here != b"/":  # on the root's the guard itself lives
        return False
    if len(here) > _LONGEST or here.count(b"/") > _DEEPEST:
        return False
    beside = tops.get(above, {})
    while True:
        if beside.get(here or b"/", own) != own:
            return False  # another one is on the way
        if len(here) <= 1:
            return True
        here = here.rpartition(b"/")[0]


def _plain(point: bytes) -> bytes:
    for escape, plain in _ESCAPES:
        point = point.replace(escape, plain)
    return point
