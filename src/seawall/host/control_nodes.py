# SPDX-License-Identifier: Apache-2.0
"""Control nodes in a host's /dev: looking whether they are there, and making them.

mknod(2) takes the umask away from the mode, and never replaces what is there.  A node with the
number of a driver that is gone is replaced by rename(2), so that nobody finds none, and by one of
the same mode and owner; anything that is no device node is somebody else's and stays.
"""

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from seawall.host.node_owner import Permissions, permissions_of


class PathNode(NamedTuple):
    """What lies at a path, links not followed."""

    kind: str
    """``c``, ``b``, or ``other``."""
    major: int
    minor: int
    mode: int
    uid: int
    gid: int


def look(root: str, paths: Iterable[str]) -> dict[str, PathNode]:
    """What there is of ``paths`` below ``root``; OSError where that cannot be told."""
    found = {}
    for path in paths:
        try:
            status = os.lstat(_place(root, path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        found[path] = _seen(status)
    return found


def make(root: str, path: str, major: int, minor: int) -> str:
    """What was done, in words; OSError where it could not be.  Wants root."""
    place = _place(root, path)
    allowed = permissions_of(root, path)
    os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
    try:
        _mknod(place, allowed, os.makedev(major, minor))
    except FileExistsError:
        return _replace(path, place, os.makedev(major, minor))
    return f"{path} made: c {major}:{minor}, {allowed.words}"


def _mknod(place: str, allowed: Permissions, number: int) -> None:
    """Its owner's alone until the owner is who he should be."""
    mask = os.umask(0o077)
    try:
        os.mknod(place, stat.S_IFCHR | 0o600, number)
    finally:
        os.umask(mask)
    try:
        if (allowed.uid, allowed.gid) != (0, 0):
            os.chown(place, allowed.uid, allowed.gid, follow_symlinks=False)
        os.chmod(place, allowed.mode)
    except OSError:
        os.unlink(place)
        raise


def _replace(path: str, place: str, number: int) -> str:
    before = os.lstat(place)
    if before.st_rdev == number and stat.S_ISCHR(before.st_mode):
        return f"{path} is there: somebody else made it"
    if not (stat.S_ISCHR(before.st_mode) or stat.S_ISBLK(before.st_mode)):
        raise FileExistsError(0, "is there and is no device node: left as it is", path)
    folder, _, name = place.rpartition("/")
    aside = f"{folder}/.{name}.seawall-{os.getpid()}"
    kept = Permissions(stat.S_IMODE(before.st_mode) & 0o777, before.st_uid, before.st_gid)
    _mknod(aside, kept, number)
    try:
        os.rename(aside, place)
    except OSError:
        os.unlink(aside)
        raise
    kind = "c" if stat.S_ISCHR(before.st_mode) else "b"
    old = f"{kind} {os.major(before.st_rdev)}:{os.minor(before.st_rdev)}"
    return f"{path} replaced: it was {old}, now c {os.major(number)}:{os.minor(number)}"


def _place(root: str, path: str) -> str:
    return root.rstrip("/") + path


def _seen(status: os.stat_result) -> PathNode:
    mode = status.st_mode
    kind = "c" if stat.S_ISCHR(mode) else "b" if stat.S_ISBLK(mode) else "other"
    number = status.st_rdev
    return PathNode(
        kind, os.major(number), os.minor(number), stat.S_IMODE(mode), status.st_uid, status.st_gid
    )
