# SPDX-License-Identifier: Apache-2.0
"""Shared memory that outlives a container: tmpfs that the host has mounted too.

An emptyDir of medium Memory and a pod's /dev/shm belong to the pod; a restart of the container
finds their files again, so its end gives none of that back.  A tmpfs is known by its device
number in both mountinfo files (proc(5)).  statvfs goes to the host's mount point, whose folders
the mount keeps in memory; nothing is opened inside the container.
"""

import os
from typing import Final

from seawall.guard.sense.files import all_bytes

_MOST_BYTES: Final = 1 << 20
_ESCAPES: Final = ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\"))


def mounts_of(proc: str, pid: int) -> dict[bytes, bytes]:
    """Its tmpfs mounts."""
    return tmpfs_mounts(all_bytes(f"{proc}/{pid}/mountinfo", _MOST_BYTES) or b"")


def lasting_shared_bytes(proc: str, pid: int, hosts: dict[bytes, bytes]) -> int:
    """Bytes in tmpfs mounts of ``pid`` that stay when all its processes are gone, for ``hosts``
    has them too.

    What other workloads have in the same tmpfs is in it: too much rather than too little.
    """
    theirs = mounts_of(proc, pid)
    total = 0
    for device in theirs.keys() & hosts.keys():
        try:
            found = os.statvfs(os.fsencode(f"{proc}/1/root") + hosts[device])
        except OSError:
            continue
        total += (found.f_blocks - found.f_bfree) * found.f_frsize
    return total


def tmpfs_mounts(mountinfo: bytes) -> dict[bytes, bytes]:
    """Mount points of tmpfs by device number; a cut last line does not count."""
    found = {}
    for line in mountinfo.split(b"\n")[:-1]:
        words = line.split(b" ")
        if b"-" in words and words[words.index(b"-") + 1 :][:1] == [b"tmpfs"] and len(words) > 4:
            point = words[4]
            for escape, plain in _ESCAPES:
                point = point.replace(escape, plain)
            found[words[2]] = point
    return found
