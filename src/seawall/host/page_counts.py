# SPDX-License-Identifier: Apache-2.0
"""cachestat(2) and mincore(2) by ctypes: pages of one open file that are in memory.

cachestat: kernel 6.5, mm/filemap.c; counts whole folios at once, so a file of gigabytes costs
microseconds.  It answers EPERM where mincore would lie (since 6.12 or so).
mincore: for files that the caller neither owns nor may write it answers "all resident" (since
5.2, mm/mincore.c can_do_mincore); such an answer is refused here, with EPERM.
"""

import ctypes
import errno
import os
from typing import Final, NamedTuple

_CACHESTAT: Final = 451  # the same on all architectures that run containers
_CAP_FOWNER: Final = 3
_MAP_SHARED: Final = 1
_WINDOW_BYTES: Final = 1 << 30
_WHOLE_IDS: Final = 0xFFFFFFFF  # length of the identity map of the first user namespace


class Counts(NamedTuple):
    """Pages.  Those that mincore cannot tell are None."""

    cached: int
    dirty: int | None = None
    writeback: int | None = None
    evicted: int | None = None
    recently_evicted: int | None = None


class PageCounter:
    """Both calls, with their arguments made once: there may be a million files."""

    def __init__(self) -> None:
        libc = ctypes.PyDLL(None, use_errno=True)  # the calls are too short to let go of the GIL
        self.libc = libc
        self._range = (ctypes.c_uint64 * 2)()
        self._answer = (ctypes.c_uint64 * 5)()
        self.answer = memoryview(self._answer).cast("B").cast("Q")
        """nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted of the last call."""
        syscall = libc.syscall
        syscall.argtypes = (
            ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint,
        )  # fmt: skip
        self._syscall = syscall
        self._range_at = ctypes.addressof(self._range)
        self._answer_at = ctypes.addressof(self._answer)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
            ctypes.c_int64,
        )  # fmt: skip
        libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        self.page_bytes = os.sysconf("SC_PAGE_SIZE")
        self.has_cachestat = not self._is_missing()

    def _is_missing(self) -> bool:
        """ENOSYS before 6.5; EBADF, for there is no file -1, where the call is there.

        A seccomp filter that does not know the call refuses it with EPERM, as Docker's did.
        """
        self.cachestat(-1)
        return ctypes.get_errno() in (errno.ENOSYS, errno.EPERM)

    def cachestat(self, fd: int) -> bool:
        """Whether ``answer`` now holds the counts of ``fd``; errno is kept otherwise."""
        failed = self._syscall(_CACHESTAT, fd, self._range_at, self._answer_at, 0)
        return not failed

    def by_cachestat(self, fd: int) -> Counts:
        """The counts of an open file; OSError: EPERM where the kernel will not tell."""
        if not self.cachestat(fd):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return Counts(*self.answer)

    def by_mincore(self, fd: int, size: int) -> Counts:
        """Only ``cached``; OSError with EPERM where the answer would be "all" and no truth."""
        if not may_ask_mincore(fd):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        cached = sum(self.resident(fd, at, length).count(1) for at, length in _windows(size))
        return Counts(cached)

    def resident(self, fd: int, at: int, length: int) -> bytearray:
        """One byte for each page of that part of the file: 1 where it is in memory."""
        pages = bytearray(-(-length // self.page_bytes))
        where = self.libc.mmap(None, length, 0, _MAP_SHARED, fd, at)  # PROT_NONE
        if where in (None, ctypes.c_void_p(-1).value):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        try:
            vector = (ctypes.c_ubyte * len(pages)).from_buffer(pages)
            if self.libc.mincore(where, length, ctypes.addressof(vector)):
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
            del vector
        finally:
            self.libc.munmap(where, length)
        return pages


def _windows(size: int) -> list[tuple[int, int]]:
    """Parts of a file of ``size`` bytes that are asked about one after the other."""
    return [(at, min(_WINDOW_BYTES, size - at)) for at in range(0, size, _WINDOW_BYTES)]


def may_ask_mincore(fd: int) -> bool:
    """Whether mincore tells the truth about this file to us: its owner, or may write it."""
    if os.fstat(fd).st_uid == os.geteuid() or _is_owner_of_all():
        return True
    return os.access(f"/proc/self/fd/{fd}", os.W_OK, effective_ids=True)


def _is_owner_of_all() -> bool:
    """CAP_FOWNER over every file: in the first user namespace, not in a container's own."""
    with open("/proc/self/status", "rb") as status:
        masks = [int(line.split()[1], 16) for line in status if line.startswith(b"CapEff:")]
    with open("/proc/self/uid_map", "rb") as map_:
        ids = map_.read().split()
    is_first = ids[:1] == [b"0"] and ids[1:] == [b"0", b"%d" % _WHOLE_IDS]
    return is_first and bool(masks and masks[0] >> _CAP_FOWNER & 1)
