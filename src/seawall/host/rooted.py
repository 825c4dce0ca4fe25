# SPDX-License-Identifier: Apache-2.0
"""Opening files below a root that is not ``/``, without ever leaving it.

``openat2(2)`` with ``RESOLVE_IN_ROOT`` (Linux 5.6) treats the root as ``/`` for absolute
links and ``..``; where the kernel or a seccomp filter refuses it, the path is walked one
component at a time to the same effect.  Magic links (``/proc/PID/root``) are refused by both.
"""

import ctypes
import errno
import os
import stat
from itertools import pairwise
from typing import Final

_SYS_OPENAT2: Final = 437  # the same number on every architecture
_RESOLVE_IN_ROOT: Final = 0x10
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_LINKS_MOST: Final = 40
_RETRIES: Final = 16  # EAGAIN when a rename races with a walk over ".."


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


class Rooted:
    """Opens paths, written as on the host, below ``root``."""

    def __init__(self, root: str) -> None:
        self.fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.walks = False
        """True once openat2 was refused and components are walked instead."""

    def open(self, path: str, flags: int) -> int:
        """An open descriptor for ``path``; OSError as ``open(2)`` would give it."""
        if not self.walks:
            try:
                return self._openat2(path, flags)
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.EPERM, errno.E2BIG):
                    raise
                if error.errno == errno.EPERM and not self._openat2_is_refused():
                    raise
                self.walks = True
        return self._walk(path, flags)

    def _openat2_is_refused(self) -> bool:
        """Whether EPERM came from a filter on the call rather than from the file."""
        try:
            os.close(self._openat2("/", os.O_PATH))
        except PermissionError:
            return True
        return False

    def _openat2(self, path: str, flags: int) -> int:
        how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
        name = os.fsencode(path)
        if b"\0" in name:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        for _ in range(_RETRIES):
            fd: int = self._libc.syscall(
                _SYS_OPENAT2, self.fd, name, ctypes.byref(how), ctypes.sizeof(how)
            )
            if fd >= 0:
                return fd
            code = ctypes.get_errno()
            if code not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code), path)

    def _walk(self, path: str, flags: int) -> int:
        """Resolve every component by hand, links included, with the root as ``/``."""
        todo = [part for part in path.split("/") if part not in ("", ".")][::-1]
        held = [os.dup(self.fd)]
        links = 0
        try:
            while todo:
                part = todo.pop()
                if part == "..":
                    if len(held) > 1:
                        os.close(held.pop())
                    continue
                last = not todo
                fd = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held[-1])
                held.append(fd)
                if stat.S_ISLNK(os.fstat(fd).st_mode) and not (last and flags & os.O_NOFOLLOW):
                    links += 1
                    if links > _LINKS_MOST:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                    target = self._link_text(held)
                    if target.startswith("/"):
                        self._close_to(held, 1)
                    todo += [p for p in target.split("/") if p not in ("", ".")][::-1]
            return self._reopen(held[-1], flags)
        finally:
            self._close_to(held, 0)

    @staticmethod
    def _link_text(held: list[int]) -> str:
        """The text of the link on top of ``held``, which is taken off; magic ones are refused."""
        link = held.pop()
        try:
            target = os.readlink("", dir_fd=link)
            # A magic link's text ("pipe:[7]", "/ (deleted)") is no path to follow.
            if _is_proc(link):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), target)
            return target
        finally:
            os.close(link)

    @staticmethod
    def _reopen(fd: int, flags: int) -> int:
        if flags & os.O_PATH:
            return os.dup(fd)
        return os.open(f"/proc/self/fd/{fd}", (flags & ~os.O_NOFOLLOW) | os.O_CLOEXEC)

    @staticmethod
    def _close_to(held: list[int], count: int) -> None:
        while len(held) > count:
            os.close(held.pop())


def _is_proc(link: int) -> bool:
    """Whether a link lies in a process's folder of procfs, where links are magic."""
    where = os.readlink(f"/proc/self/fd/{link}")
    parts = where.split("/")
    return any(p == "proc" and q.isdecimal() for p, q in pairwise(parts))
