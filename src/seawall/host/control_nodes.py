# SPDX-License-Identifier: Apache-2.0
"""Control nodes in a host's /dev: looking whether they are there, and making them.

mknod(2) takes the umask away from the mode, and never replaces what is there.  A node with the
number of a driver that is gone is replaced by rename(2), so that nobody finds none, and by one of
the same mode and owner; anything that is no device node is somebody else's and stays.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable
from typing import Final, NamedTuple

# Whose a new control node is, and what others may do with it: as the site has set it.
#
# NVIDIA's: /proc/driver/nvidia/params has the options NVreg_DeviceFileUID, GID and Mode (decimal)
# and ModifyDeviceFiles, as nvidia-modprobe reads them (modprobe-utils/nvidia-modprobe-utils.c);
# without the file it makes nodes 0666 root:root.  /dev/kfd: 0660 root:render, which is what
# systemd's 50-udev-default.rules make of it, where a host has that group.

PARAMS: Final = "/proc/driver/nvidia/params"
_NVIDIA: Final = "/dev/nvidia"
_GROUPS: Final = "/etc/group"
_MOST_BYTES: Final = 1 << 20
_LINE: Final = re.compile(rb"^(\w{1,31}): (\d{1,10})$", re.MULTILINE)
_RENDER: Final = re.compile(rb"^render:[^:\n]{0,200}:(\d{1,9}):", re.MULTILINE)
_NOBODY: Final = (1 << 32) - 1
"""For chown(2): leave it as it is."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Permissions(NamedTuple):
    """Mode and owner that a new device node is to have."""

    mode: int
    uid: int
    gid: int

    @property
    def words(self) -> str:
        """``mode 660, owner 0:109``; the owner only where it is not root."""
        owner = f", owner {self.uid}:{self.gid}" if self.uid or self.gid else ""
        return f"mode {self.mode:o}{owner}"


ROOTS_ALONE: Final = Permissions(0o660, 0, 0)
EVERYBODYS: Final = Permissions(0o666, 0, 0)
"""The device cgroup is what keeps strangers out."""


def permissions_of(root: str, path: str) -> Permissions:
    """Of a node that is to be made at ``path``; PermissionError where the site makes it itself."""
    if not path.startswith(_NVIDIA):
        found = _RENDER.search(_read(root.rstrip("/") + _GROUPS)[0])
        return ROOTS_ALONE._replace(gid=int(found[1]) if found else 0)
    data, is_masked = _params(root.rstrip("/"))
    told = {name: int(value) for name, value in _LINE.findall(data) if int(value) < _NOBODY}
    if told.get(b"ModifyDeviceFiles", 1) != 1 and not is_masked:
        words = f"ModifyDeviceFiles is not 1 in {PARAMS}: who set that makes the nodes"
        raise PermissionError(errno.EPERM, words, path)
    return Permissions(
        told.get(b"DeviceFileMode", EVERYBODYS.mode) & 0o777,
        told.get(b"DeviceFileUID", EVERYBODYS.uid),
        told.get(b"DeviceFileGID", EVERYBODYS.gid),
    )


def _params(root: str) -> tuple[bytes, bool]:
    """Where the host's proc is not mounted, one's own says the same; but NVIDIA's toolkit mounts
    a file over it in a container, with ModifyDeviceFiles: 0.
    """
    data, device = _read(root + PARAMS)
    if not data and root:
        root = ""
        data, device = _read(PARAMS)
    return data, bool(data) and device != _device(f"{root}/proc")


def _device(path: str) -> int:
    try:
        return os.stat(path).st_dev
    except OSError:
        return -1


def _read(path: str) -> tuple[bytes, int]:
    """The file and its filesystem; nothing where it cannot be read."""
    try:
        fd = os.open(path, _FLAGS)
    except OSError:
        return b"", -1
    try:
        return os.read(fd, _MOST_BYTES), os.fstat(fd).st_dev
    except OSError:
        return b"", -1
    finally:
        os.close(fd)


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
