# SPDX-License-Identifier: Apache-2.0
"""Links from /dev/char/M:m to a node, as udev and nvidia-ctk make them: relative, one a number.

A link that leads elsewhere belongs to a number that another driver had, and is replaced by
rename(2); what is no link is somebody else's and stays.
"""

import errno
import os
import stat


def make_link(root: str, path: str, major: int, minor: int) -> str:
    """What was done, in words; OSError where it could not be.  Wants root."""
    folder = f"{root.rstrip('/')}/dev/char"
    place, target = f"{folder}/{major}:{minor}", f"../{path.removeprefix('/dev/')}"
    _must_be(root, path, os.makedev(major, minor))
    os.makedirs(folder, mode=0o755, exist_ok=True)
    try:
        os.symlink(target, place)
    except FileExistsError:
        return _replace(place, target, os.makedev(major, minor))
    return f"/dev/char/{major}:{minor} made, to {target}"


def leads_to(root: str, major: int, minor: int) -> bool:
    """Whether the link is there and leads to a character device of that number."""
    try:
        found = os.stat(f"{root.rstrip('/')}/dev/char/{major}:{minor}")
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(major, minor)


def _must_be(root: str, path: str, number: int) -> None:
    """A link to another device would make systemd allow that one."""
    found = os.stat(root.rstrip("/") + path)
    if not stat.S_ISCHR(found.st_mode) or found.st_rdev != number:
        words = f"is not c {os.major(number)}:{os.minor(number)}: no link to it is made"
        raise OSError(errno.ENXIO, words, path)


def _replace(place: str, target: str, number: int) -> str:
    name = f"/dev/char/{os.major(number)}:{os.minor(number)}"
    if not stat.S_ISLNK(os.lstat(place).st_mode):
        raise FileExistsError(0, "is there and is no link: left as it is", name)
    before = os.readlink(place)
    if before == target:
        return f"{name} is there: somebody else made it"
    aside = f"{place}.seawall-{os.getpid()}"
    os.symlink(target, aside)
    try:
        os.rename(aside, place)
    except OSError:
        os.unlink(aside)
        raise
    return f"{name} replaced: it led to {before}, now to {target}"
