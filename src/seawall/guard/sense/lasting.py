# SPDX-License-Identifier: Apache-2.0
"""Shared memory that outlives a container: tmpfs that the host has mounted too.

An emptyDir of medium Memory and a pod's /dev/shm belong to the pod; a restart of the container
finds their files again, so its end gives none of that back.  A tmpfs is known by its device
number in both mountinfo files (proc(5)).  statvfs goes to the host's mount point; nothing is
opened inside the container.

Only a tmpfs that this very path leads to is asked, and only on a way that asks no other machine
and no other program: a mount over it may be a FUSE whose server never answers, and then the guard
would wait for ever.
"""

import os
from collections.abc import Iterable
from typing import Final, TypeAlias

_MOST_BYTES: Final = 16 << 20
_MOST_MOUNTS: Final = 16384
_PART_BYTES: Final = 64 << 10
_ESCAPES: Final = ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\"))
_ASKING: Final = (b"fuse", b"nfs", b"cifs", b"smb3", b"ceph", b"9p", b"afs", b"autofs", b"lustre")
"""A look-up in these may wait for somebody; prefixes."""
_CUT: Final = b""
"""No device's number: there are more mounts than were read."""
_ALL: Final = 1 << 62
"""More than any group has: as far as is known, all its shared memory stays."""
_DEEPEST: Final = 64


# By mount id: the mount it is on, its point as it stands there, its kind.
_Mounts: TypeAlias = dict[bytes, tuple[bytes, bytes, bytes]]
# By the mount they are on: which mount is on each point.
_Tops: TypeAlias = dict[bytes, dict[bytes, bytes]]


def mounts_of(proc: str, pid: int) -> dict[bytes, bytes]:
    """Its tmpfs mounts, as ``tmpfs_mounts`` tells them."""
    try:
        with open(f"{proc}/{pid}/mountinfo", "rb", buffering=_PART_BYTES) as lines:
            return tmpfs_mounts(lines)
    except OSError:
        return {_CUT: b""}


def lasting_shared_bytes(proc: str, pid: int, hosts: dict[bytes, bytes]) -> int:
    """Bytes in tmpfs mounts of ``pid`` that stay when all its processes are gone, for ``hosts``
    has them too.

    What other workloads have in the same tmpfs is in it: too much rather than too little.  More
    than there is where one of them cannot be asked, or the host's were not all read.
    """
    if _CUT in hosts:
        return _ALL
    theirs = mounts_of(proc, pid)
    total = 0
    for device in theirs.keys() & hosts.keys():
        if not hosts[device]:
            return _ALL
        try:
            found = os.statvfs(os.fsencode(f"{proc}/1/root") + hosts[device])
        except OSError:
            continue
        total += (found.f_blocks - found.f_bfree) * found.f_frsize
    return total


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
    for device, own in devices:
        if _leads_to(own, mounts, tops):
            found[device] = _plain(mounts[own][1])
        else:
            found.setdefault(device, b"")
    return found


def _leads_to(own: bytes, mounts: _Mounts, tops: _Tops) -> bool:
    """Whether looking its point up ends in it.

    By who is on whom: the order of the lines says nothing (the root often comes after /run,
    which was moved to it, and a mount that is moved keeps its place).
    """
    if mounts[own][1] in tops.get(own, ()):
        return False  # one on top of it
    at = own
    for _ in range(_DEEPEST):
        above, here, kind = mounts[at]
        if kind.startswith(_ASKING) and here != b"/":  # on the root's the guard itself lives
            return False
        beside = tops.get(above, {})
        while True:
            if beside.get(here or b"/", at) != at:
                return False  # another one is on the way
            if len(here) <= 1:
                break
            here = here.rpartition(b"/")[0]
        if above == at or above not in mounts:
            return True
        at = above
    return False


def _plain(point: bytes) -> bytes:
    for escape, plain in _ESCAPES:
        point = point.replace(escape, plain)
    return point
