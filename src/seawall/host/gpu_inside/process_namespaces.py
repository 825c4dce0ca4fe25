# SPDX-License-Identifier: Apache-2.0
"""Going where a process is: its namespaces (namespaces(7)), its root, its security label.

Everything is opened first, through its folder of procfs, and entered afterwards: what lies behind
the mount namespace is the container's, and nothing is looked up there any more.
"""

import os
from errno import EACCES
from typing import Final

from seawall.host.gpu_inside.standing import enter

_NAMESPACES: Final = ("cgroup", "ipc", "uts", "net", "time", "pid", "mnt")
"""In the order in which they are entered; the process itself never is in ``pid``, only whom it
forks then.  The user namespace comes last of all, with the ids."""
_OWN_LABEL: Final = "/proc/thread-self/attr/current"
_LABEL_BYTES_MOST: Final = 4096


class ProcessNamespaces:
    """Of one process, whose folder of procfs is open at ``folder``; OSError."""

    def __init__(self, folder: int) -> None:
        self._fds = [fd for name in _NAMESPACES if (fd := _namespace(folder, name)) is not None]
        self.user_namespace = _namespace(folder, "user")
        """None: it is in ours."""
        self._root = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        self._label = label(folder)

    def enter(self) -> None:
        """All but the user namespace, which is left open; OSError."""
        take_label(self._label)
        for fd in self._fds:
            enter(fd)
            os.close(fd)
        os.fchdir(self._root)
        os.chroot(".")
        os.close(self._root)


def _namespace(folder: int, name: str) -> int | None:
    """Open; None where it is our own, or where this kernel has none of the kind."""
    try:
        own = os.stat(f"/proc/self/ns/{name}")
    except FileNotFoundError:
        return None
    fd = os.open(f"ns/{name}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    there = os.fstat(fd)
    if (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino):
        os.close(fd)
        return None
    return fd


def label(folder: int) -> bytes:
    """Of AppArmor or SELinux; empty without one."""
    try:
        fd = os.open("attr/current", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return b""
    return _read_label(fd)


def _read_label(fd: int) -> bytes:
    try:
        return os.read(fd, _LABEL_BYTES_MOST).strip(b"\0\n ")
    except OSError:  # EINVAL: no module that labels
        return b""
    finally:
        os.close(fd)


def take_label(wanted: bytes) -> None:
    """Be confined as it is; OSError (EACCES) where that may not be.

    AppArmor takes ``changeprofile NAME``, SELinux the label itself.
    """
    if wanted == _read_label(os.open(_OWN_LABEL, os.O_RDONLY | os.O_CLOEXEC)):
        return
    name, is_profile, _ = wanted.partition(b" (")
    fd = os.open(_OWN_LABEL, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"changeprofile " + name if is_profile else wanted)
    except OSError:
        pass  # it shows at once
    finally:
        os.close(fd)
    if wanted != _read_label(os.open(_OWN_LABEL, os.O_RDONLY | os.O_CLOEXEC)):
        text = wanted.decode("ascii", "backslashreplace")
        raise OSError(EACCES, f"the security label {text} cannot be taken on")
