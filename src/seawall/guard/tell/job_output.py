# SPDX-License-Identifier: Apache-2.0
"""One line in a killed Slurm job's own error output, which its user reads first.

Written as the user, by a child of the aide with a deadline: root may not write where the homes
are (root squash of NFS, Lustre's nodemap), must not write where the user may not, and whatever
the file system does hangs there.  The file was slurmstepd's when the guard looked; since then its
user may have put anything in its place.  So it is looked at before it is opened (to open a device
or a pipe does something already), no link is followed at its end, and only a plain file of that
user's is written, behind what is in it.
"""

import errno
import os
import stat
from typing import Any, Final

from seawall.guard.tell.plain import plain

ROOTS: Final = ("/proc/1/root", "/")
"""The host's own mounts first: the unit's are read only, a container's are others."""
_WORDS_MOST: Final = 1024
_GROUPS_MOST: Final = 65_536


def write(request: dict[str, Any], roots: tuple[str, ...] = ROOTS) -> dict[str, Any]:
    """In the aide's child, which is the user from here on: ``path``, or ``problem``."""
    path, uid, gid = request.get("path"), request.get("uid"), request.get("gid")
    groups = request.get("groups")
    if not (isinstance(path, str) and path.startswith("/") and _are_ids((uid, gid))):
        return {"problem": "whose its output is was not found"}
    if not isinstance(groups, list) or len(groups) > _GROUPS_MOST or not _are_ids(groups):
        return {"problem": "the groups of its user were not found"}
    words = plain(str(request.get("words", "")), _WORDS_MOST)
    try:
        root = _opened_root(roots)
        become(int(str(uid)), int(str(gid)), groups)
        append(root, path, int(str(uid)), f"seawall: {words}\n".encode("ascii", "replace"))
    except (OSError, ValueError) as error:
        return {"problem": f"{plain(path, 200)}: {getattr(error, 'strerror', '') or error}"}
    return {"path": path, "problem": ""}


def _are_ids(found: Any) -> bool:
    return all(type(one) is int and 0 <= one < 1 << 32 for one in found)


def _opened_root(roots: tuple[str, ...]) -> int:
    for root in roots[:-1]:
        try:
            return os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
    return os.open(roots[-1], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def become(uid: int, gid: int, groups: list[int]) -> None:
    """The user, with no way back; OSError where that is not allowed."""
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def append(root: int, path: str, uid: int, line: bytes) -> None:
    """One write at the end of it; OSError says why not."""
    seen = os.open(path.lstrip("/"), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
    try:
        status = os.fstat(seen)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is no plain file any more")
        if status.st_uid != uid:
            raise OSError(errno.EPERM, "is another user's")
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        fd = os.open(f"/proc/self/fd/{seen}", flags)
    finally:
        os.close(seen)
    try:
        if os.write(fd, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)
