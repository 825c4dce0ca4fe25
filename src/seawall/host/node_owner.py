# SPDX-License-Identifier: Apache-2.0
"""Whose a new control node is, and what others may do with it: as the site has set it.

NVIDIA's: /proc/driver/nvidia/params has the options NVreg_DeviceFileUID, GID and Mode (decimal)
and ModifyDeviceFiles, as nvidia-modprobe reads them (modprobe-utils/nvidia-modprobe-utils.c);
without the file it makes nodes 0666 root:root.  /dev/kfd: 0660 root:render, which is what systemd's
50-udev-default.rules make of it, where a host has that group.
"""

import errno
import os
import re
from typing import Final, NamedTuple

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
