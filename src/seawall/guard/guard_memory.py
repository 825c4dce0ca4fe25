# SPDX-License-Identifier: Apache-2.0
"""The guard in memory: locked, first in line for a processor, last for the OOM killer.

``mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)`` (mlockall(2), ONFAULT since 4.4): every page
that was touched once stays, and what was never touched costs nothing; so everything is done once
(rehearsed) before the guard says that it is ready.
"""

import gc
import os
import sys

from seawall import own_process

FIFO_PRIORITY = 1
_LARGE_RESERVE_BYTES, _LARGE_BYTES = 256 << 10, 2000
_SMALL_RESERVE_BYTES, _SMALL_BYTES = 8 << 10, range(48, 513, 16)
"""Of each size class (Objects/obmalloc.c): a pool of one is 16 KiB, touched as it fills."""
_BYTES_HEAD = sys.getsizeof(b"")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def lock() -> str:
    """Lock this process; why not, in words, or empty."""
    why = own_process.lock()
    told = f"its memory is not locked ({why}): needs CAP_IPC_LOCK or LimitMEMLOCK=infinity"
    return told if why else ""


def hurry() -> str:
    """SCHED_FIFO 1, else nice -20: at normal priority the dying held their own killer's write
    for half a second.  Why not, in words, or empty.
    """
    try:
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(FIFO_PRIORITY))
    except OSError as refused:
        if own_process.go_first():
            why = refused.strerror
            return f"it runs at normal priority ({why}): needs CAP_SYS_NICE, or an RT budget"
    return ""


def be_spared() -> str:
    """Its own oom_score_adj; why not, in words, or empty."""
    why = own_process.be_spared()
    told = f"the kernel may kill it ({why}): needs CAP_SYS_RESOURCE or OOMScoreAdjust=-999"
    return told if why else ""


def forget_docs() -> None:
    """What modules and classes say of themselves: some dozen pages that nobody reads here."""
    for module in list(sys.modules.values()):
        for thing in (module, *vars(module).values()):
            if isinstance(thing, type) and "__doc__" not in vars(thing):
                continue
            if thing is module or isinstance(thing, type):
                try:
                    thing.__doc__ = None
                except (AttributeError, TypeError):
                    continue  # the interpreter's own


def shrink() -> None:
    """After the rehearsal, before the lock: what it took for a moment is given back, all but a
    reserve.  The first pods and the first decision must not wait for a page on a full node.
    """
    gc.collect()
    own_process.trim()
    own_process.keep_heap()
    # Freed at once: the allocators keep the pages for what comes (obmalloc up to 512 bytes, the
    # C library more: holes first, and in one piece at the heap's end, where what is read from a
    # folder or a socket finds its 32 or 64 KiB).
    small = [
        [b" " * (size - _BYTES_HEAD) for _ in range(_SMALL_RESERVE_BYTES // size)]
        for size in _SMALL_BYTES
    ]
    large = [b" " * _LARGE_BYTES for _ in range(_LARGE_RESERVE_BYTES // _LARGE_BYTES)]
    del small, large


def settle() -> None:
    """At last: nothing is collected, and nothing that lives is looked at again."""
    gc.collect()
    gc.freeze()
    gc.disable()
    # A traceback would open source files on a node that cannot read them.
    sys.excepthook = _last_words


def _last_words(kind: type[BaseException], problem: BaseException, _: object) -> None:
    os.write(2, f"seawall guard: {kind.__name__}: {problem}\n".encode("utf-8", "replace"))


class Footprint:
    """Its own size, read from a file that is open already."""

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def resident_bytes(self) -> int:
        """The guard's resident memory now, in bytes, from /proc/self/statm."""
        return int(os.pread(self._statm, 200, 0).split()[1]) * _PAGE_BYTES

    def close(self) -> None:
        """Of a guard that ends."""
        os.close(self._statm)
