# SPDX-License-Identifier: Apache-2.0
"""A small file of fixed size that is rewritten without ever being half of anything.

Two pages are made and filled at the start.  The one that nobody sees is written with one
pwrite(2), then the two change names (renameat2(2) with RENAME_EXCHANGE, Linux 3.15): no file is
made, no block is taken.  Writing the visible page in place was tried: on tmpfs a busy reader
saw a mixture in 19 of 100 reads, for reads take no lock there.  Where somebody has removed one of
them, both are made anew by the next write.
"""

import ctypes
import errno
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from seawall.guard.same_file import is_at
from seawall.guard.tell.paths import SPARE_SUFFIX

MODE: Final = 0o640
FOLDER_MODE: Final = 0o750
REMOVED: Final = "was removed under it: it is made anew"
_RENAME_EXCHANGE: Final = 2
_SYS_RENAMEAT2: Final = {"x86_64": 316, "aarch64": 276, "ppc64le": 357, "s390x": 347}
_PROT_READ: Final = 1
_MAP_SHARED: Final = 1
_NO_EXCHANGE: Final = (errno.EINVAL, errno.ENOSYS, errno.EPERM)


class Page:
    """``write`` never raises: what went wrong stands in ``problem``."""

    __slots__ = (
        "_fds", "_hold", "_is_open", "_names", "_swap", "_was_there", "news", "path", "problem",
        "size",
    )  # fmt: skip

    def __init__(self, folder: str, name: str, size: int) -> None:
        self.path = f"{folder}/{name}"
        self.size = size
        self.problem = ""
        """Why nobody can read it, or not surely whole; empty: all is well."""
        self.news = ""
        """That it was removed; for whoever says it, and empties it."""
        self._names = (os.fsencode(self.path), os.fsencode(f"{folder}/.{name}{SPARE_SUFFIX}"))
        self._fds: list[int] = []
        """First the page that is seen."""
        self._is_open = self._was_there = False
        self._hold = PageHold(size)
        self._swap = Exchange()

    def open(self) -> None:
        """Make both, take their blocks, keep them in memory; nothing is taken after this.  On a
        full disk there are none: it is written as soon as there is room.
        """
        self._is_open = True
        try:
            self._make()
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"

    def write(self, text: bytes) -> bool:
        """Show ``text``, which is cut or filled up with spaces to the page's size."""
        if not self._is_open:
            return False
        try:
            if not are_there(self._names, self._fds):
                self._make_anew()
            seen, spare = self._fds
            if self._swap.is_possible:
                self._put(spare, text)
                if self._swap.exchange(*self._names):
                    self._fds.reverse()
                    self.problem = ""
                    return True
            self._put(seen, text)
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"
            return False
        self.problem = f"{self.path}: a reader may see half a page: {self._swap.problem}"
        return True

    def close(self) -> None:
        """The files stay: they tell how it ended."""
        self._is_open = False
        self._let_go()

    def _make(self) -> None:
        try:
            for name in self._names:
                self._fds.append(_opened(name))
        except OSError:
            self._let_go()
            raise
        self._was_there = True
        for fd in self._fds:
            self._fill(fd)
            self._hold.keep(fd)

    def _make_anew(self) -> None:
        if self._fds:  # else it was said
            self.news = f"{self.path} {REMOVED}"
        self._let_go()
        if self._was_there:
            os.makedirs(os.path.dirname(self.path), FOLDER_MODE, exist_ok=True)
        self._make()

    def _let_go(self) -> None:
        self._hold.let_go()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def _put(self, fd: int, text: bytes) -> None:
        if len(text) >= self.size:
            text = text[: self.size - 1] + b"\n"
        elif len(text) < self.size:
            text = text.ljust(self.size - 1) + b"\n"
        if os.pwrite(fd, text, 0) != self.size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _fill(self, fd: int) -> None:
        if os.fstat(fd).st_size != self.size:
            os.ftruncate(fd, 0)
        os.posix_fallocate(fd, 0, self.size)
        if not os.pread(fd, 1, 0).strip(b"\0"):
            self._put(fd, b"")


class Newsy(Protocol):
    """A page, the decisions, the lock."""

    news: str


def news_of(*parts: Newsy) -> Iterator[str]:
    """The news of each part, told once: it is empty afterwards."""
    for part in parts:
        words, part.news = part.news, ""
        if words:
            yield words


class Exchange:
    """Two files of one filesystem change names."""

    __slots__ = ("_call", "_number", "is_possible", "problem")

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._number = 0
        self._call: Any = getattr(library, "renameat2", None)
        if self._call is None:  # musl
            self._number = _SYS_RENAMEAT2.get(os.uname().machine, 0)
            self._call = library.syscall
        self.is_possible = True
        """Until the filesystem or the kernel refused it."""
        self.problem = ""

    def exchange(self, one: bytes, other: bytes) -> bool:
        """False: not possible here, ``problem`` says why.  OSError: this time it did not work."""
        here = -100  # AT_FDCWD
        ends = (here, one, here, other, _RENAME_EXCHANGE)
        done = self._call(self._number, *ends) if self._number else self._call(*ends)
        if done == 0:
            return True
        code = ctypes.get_errno()
        if code not in _NO_EXCHANGE:
            raise OSError(code, os.strerror(code))
        self.is_possible = False
        self.problem = f"renameat2: {os.strerror(code)}"
        return False


class PageHold:
    """Locks the pages of a tmpfs, which would be swapped out; refused: they are merely young."""

    __slots__ = ("_library", "_places", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._places: list[int] = []
        self._library = library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
            ctypes.c_long,
        )  # fmt: skip
        library.mlock.argtypes = library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

    def keep(self, fd: int) -> None:
        """As long as nobody lets go of it."""
        place = self._library.mmap(None, self._size, _PROT_READ, _MAP_SHARED, fd, 0)
        if place is not None and place != ctypes.c_void_p(-1).value:
            self._library.mlock(place, self._size)
            self._places.append(place)

    def let_go(self) -> None:
        """All of it: who was removed would stay in memory for ever."""
        for place in self._places:
            self._library.munmap(place, self._size)
        self._places.clear()


def are_there(names: Sequence[bytes], fds: Sequence[int]) -> bool:
    """Whether each name leads to its open file: nobody has removed it, or put another in its
    place.  OSError: that cannot be seen.
    """
    return len(fds) == len(names) and all(map(is_at, names, fds))


def _opened(name: bytes) -> int:
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    try:
        os.fchmod(fd, MODE)
    except OSError:
        os.close(fd)
        raise
    return fd
