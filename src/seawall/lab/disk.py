# SPDX-License-Identifier: Apache-2.0
"""The file that fill and thrash write, the disk below it, and how that is held slow.

Kernel documents: admin-guide/cgroup-v1/blkio-controller.rst (blkio.throttle.*),
admin-guide/cgroup-v2.rst "IO Interface Files" (io.max).  Both want the whole disk, not a
partition, and count operations of the processes in the cgroup.
"""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from seawall.lab.group import LabGroup
from seawall.lab.small_files import read_text, write_text
from seawall.problems import ParseProblem, UsageProblem
from seawall.readings.mountinfo import Mount, parse

FOLDERS: Final = ("/var/tmp", "/tmp")  # noqa: S108 - the file in it has no name
_OVERLAYS_MOST: Final = 4
"""The kernel stacks two; more is an upper folder below itself."""
_BLOCK: Final = "/sys/dev/block"


@dataclass(frozen=True, slots=True)
class DiskLimit:
    """Whether the disk is held slow."""

    device: str | None
    """``major:minor`` of the whole disk; None when there is none to hold."""
    iops: int | None
    """Reads a second that it is held to; None: it runs as fast as it is."""
    why_not: str = ""


def default_folder() -> str:
    """A folder for large temporary files, on a disk if one of the usual ones is."""
    found = [folder for folder in FOLDERS if os.path.isdir(folder) and os.access(folder, os.W_OK)]
    for folder in found:
        if filesystem_of(folder) not in ("tmpfs", "ramfs", None):
            return folder
    return found[0] if found else "."


def filesystem_of(folder: str) -> str | None:
    """Where its files really are, by this process's mounts: below an overlay that of the upper
    folder, ``overlay`` when that is not seen from here; None when it cannot be told.
    """
    mount = _mount_of(below_overlays(folder))
    return mount.fs_type if mount else None


def below_overlays(folder: str) -> str:
    """The folder into which the filesystem of ``folder`` writes, as far as it is seen here."""
    for _ in range(_OVERLAYS_MOST):
        mount = _mount_of(folder)
        if mount is None or mount.fs_type != "overlay":
            break
        upper = [o.partition("=")[2] for o in mount.super_options if o.startswith("upperdir=")]
        if not upper or not os.path.isabs(upper[0]) or not os.path.isdir(upper[0]):
            break
        folder = upper[0]
    return folder


def _mount_of(path: str) -> Mount | None:
    try:
        mounts = parse(read_text("/proc/self/mountinfo").encode("utf-8", "surrogateescape")).mounts
        device = os.stat(path).st_dev
    except (OSError, ParseProblem):
        return None
    real = os.path.realpath(path)
    above = [m for m in mounts if f"{real}/".startswith(m.mount_point.rstrip("/") + "/")]
    name = f"{os.major(device)}:{os.minor(device)}"
    exact = [m for m in above if m.device == name]
    # btrfs shows other numbers in stat than in mountinfo: the nearest mount then.
    return max(exact or above, key=lambda m: len(m.mount_point), default=None)


def folder_problem(folder: str) -> str | None:
    """Why no file can be written there."""
    if not os.path.isdir(folder):
        return f"--folder {folder}: not a folder"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"--folder {folder}: mounted read-only"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"--folder {folder}: not writable for this user"
    return None


def open_nameless(folder: str, name: str) -> int:
    """A file without a name in ``folder``: it is gone when the last process that has it is.

    ``name`` is used for a moment where the filesystem wants one.
    """
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except IsADirectoryError:  # a kernel before 3.11
        pass
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # this filesystem cannot
            raise UsageProblem(f"--folder {folder}: {error.strerror}") from error
    path = f"{folder}/{name}"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with suppress(FileNotFoundError):  # lab clean was faster
            os.unlink(path)
    except OSError as error:
        raise UsageProblem(f"--folder {folder}: {error.strerror}") from error
    return fd


def disk_of(folder: str) -> tuple[str | None, str]:
    """``major:minor`` of the whole disk below the folder, or None and why."""
    number = _device_number(below_overlays(folder))
    if number is None:
        kind = filesystem_of(folder)
        return None, f"{folder} is {kind or 'of an unknown kind'}, not on a block device"
    home = os.path.realpath(f"{_BLOCK}/{number}")
    if os.path.exists(f"{home}/partition"):
        home = os.path.dirname(home)
    try:
        return read_text(f"{home}/dev").strip(), ""
    except OSError as error:
        return None, f"{home}/dev: {error.strerror}"


def _device_number(folder: str) -> str | None:
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    if os.path.exists(f"{_BLOCK}/{number}"):
        return number
    mount = _mount_of(folder)
    if mount is None or mount.fs_type == "overlay":
        return None
    try:
        found = os.stat(mount.source)
    except OSError:
        return None
    if not stat.S_ISBLK(found.st_mode):
        return None
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return number if os.path.exists(f"{_BLOCK}/{number}") else None


def hold_slow(group: LabGroup, folder: str, iops: int) -> DiskLimit:
    """Limit the reads of the lab's cgroup from that disk, and read the limit back."""
    controller = "blkio" if group.version == 1 else "io"
    if controller not in group.by_controller:
        return DiskLimit(
            None, None, group.home.unusable.get(controller, f"no {controller} controller")
        )
    device, why_not = disk_of(folder)
    if device is None:
        return DiskLimit(None, None, why_not)
    home = group.by_controller[controller]
    if group.version == 1:
        path, words, row = "blkio.throttle.read_iops_device", f"{device} {iops}", f"{device} {iops}"
    else:
        path, words, row = "io.max", f"{device} riops={iops}", f"riops={iops}"
    try:
        write_text(f"{home}/{path}", words)
        lines = [line for line in read_text(f"{home}/{path}").splitlines() if device in line]
    except OSError as error:
        return DiskLimit(
            device, None, f"{home}/{path}: {error.strerror} (no CONFIG_BLK_DEV_THROTTLING?)"
        )
    if not any(row in line for line in lines):
        return DiskLimit(device, None, f"{home}/{path}: {words} was written and is not there")
    return DiskLimit(device, iops)
