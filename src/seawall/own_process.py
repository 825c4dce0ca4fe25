# SPDX-License-Identifier: Apache-2.0
"""A process of ours where memory runs out: locked, and spared by the kernel's OOM killer.

``mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)`` (mlockall(2), ONFAULT since 4.4): every page
that was touched once stays, and what was never touched costs nothing.  The guard's process holds
this module, so it imports next to nothing.
"""

import ctypes
import os

MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
_MADV_DONTNEED, _MADV_DONTDUMP = 4, 16
_STRIPE_BYTES = 16 << 10
"""Of pages of 64 KiB none begins where a stripe does: they are left as they are."""
_PR_SET_THP_DISABLE = 41
_M_TRIM_THRESHOLD, _NEVER_BYTES = -1, 1 << 30
_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 256 << 10
_M_ARENA_MAX = -8
_READ_ONLY = (b"r--p", b"r-xp")
_OWN_PAGES = (b"Anonymous:", b"Swap:")
"""In memory, and in swap: of what was relocated, the file has only what it was before."""
NICE = -20
OOM_SCORE_ADJ = -999
"""As the kubelet's own: -1000 would let a leak of ours take the node."""


def lock(*, is_future: bool = True) -> str:
    """Why its memory could not be locked; empty: it is.  ``is_future``: also what it maps later."""
    library = ctypes.CDLL(None, use_errno=True)
    later = MCL_FUTURE if is_future else 0
    if library.mlockall(MCL_CURRENT | later | MCL_ONFAULT) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def let_go_of_files(smaps: str = "/proc/self/smaps") -> int:
    """Bytes of files that are unmapped again, before they are locked: a start touches more of
    the interpreter than a loop.  Not taken out of the page cache; what is used comes back with
    the next touch.  Mappings with pages of our own in them (relocated ones) are left alone.

    Constants are cut into stripes first (every other one is left out of core dumps, since Linux
    3.4): a touch maps 64 KiB around it, never beyond its mapping, and of Debian's python3.11 that
    was 1.1 MB which nothing reads (6.18).  Not so with code: what runs first on a node that
    thrashes lies beside what ran before.
    """
    library = ctypes.CDLL(None)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    gone, place, is_constant = 0, b"", False
    try:
        with open(smaps, "rb") as file:
            for line in file:
                words = line.split(None, 5)
                if b"-" in words[0]:
                    is_file = len(words) == 6 and words[5].startswith(b"/")
                    place = words[0] if is_file and words[1] in _READ_ONLY else b""
                    is_constant = words[1] == b"r--p"
                elif words[0] in _OWN_PAGES and words[1] != b"0":
                    place = b""
                elif place and words[0] == b"Swap:":
                    start, end = (int(edge, 16) for edge in place.split(b"-"))
                    gone += _let_go(library, start, end, is_striped=is_constant)
    except OSError:  # a kernel without CONFIG_PROC_PAGE_MONITOR
        pass
    return gone


def _let_go(library: ctypes.CDLL, start: int, end: int, *, is_striped: bool) -> int:
    # Not the first one: a core dump keeps the page with the name of the build.
    first = start + _STRIPE_BYTES if is_striped else end
    for at in range(first, end, 2 * _STRIPE_BYTES):
        library.madvise(at, min(_STRIPE_BYTES, end - at), _MADV_DONTDUMP)
    return end - start if library.madvise(start, end - start, _MADV_DONTNEED) == 0 else 0


def trim() -> None:
    """Pages that the C library keeps for itself go back; before they are locked."""
    _ask_glibc("malloc_trim", 0)


def keep_heap() -> None:
    """From here on the C library gives nothing of its heap back (mallopt(3), M_TRIM_THRESHOLD).
    By itself it keeps 128 KiB at the end: whoever needs more for a moment, again and again,
    would fault for it each time.
    """
    _ask_glibc("mallopt", _M_TRIM_THRESHOLD, _NEVER_BYTES)


def use_one_heap() -> None:
    """Before the first thread starts: threads have no heaps of their own, and what is large is
    mapped by itself, so that it is given back whenever it is freed (mallopt(3), M_ARENA_MAX and
    M_MMAP_THRESHOLD, which the C library else raises with each large block that is freed).  Heaps
    kept what once was read of a file: 2 MB of the recorder.
    """
    _ask_glibc("mallopt", _M_ARENA_MAX, 1)
    _ask_glibc("mallopt", _M_MMAP_THRESHOLD, _LARGE_BYTES)


def _ask_glibc(name: str, *numbers: int) -> None:
    """Another C library has no such function, and keeps its own ways."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*numbers)


def no_huge_pages() -> None:
    """The kernel makes no huge page out of ours (prctl(2), since Linux 3.15): what was never
    touched in it would be resident all at once.  Whoever is started from here inherits it.
    """
    ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)


def go_first() -> str:
    """Nice -20; why that is refused, or empty."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError as refused:
        return str(refused.strerror)
    return ""


def be_ordinary() -> None:
    """Nice 0 where the guard's own was inherited.  Its cgroup has a hundred times the weight of
    others, and each CPU gets its share of that by what runs there: at nice -20 all of it.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def be_spared() -> str:
    """oom_score_adj -999, or lower where it was; why that is refused, or empty."""
    try:
        with open("/proc/self/oom_score_adj", "rb+", buffering=0) as file:
            if int(file.read()) > OOM_SCORE_ADJ:
                file.write(b"%d" % OOM_SCORE_ADJ)
    except OSError as refused:
        return str(refused.strerror)
    return ""
