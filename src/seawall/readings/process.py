# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/stat of every process: one pass, one file each, no other process's lock.

Kernel source: fs/proc/array.c do_task_stat (takes no mmap_lock).  ``comm`` may hold any
bytes, spaces, parentheses and newlines included.  A process that vanishes during the pass
is simply not there; one that is refused is counted in ``unread``.

>>> parse(b"7 (a) Z 1 (b) S 1 7 7 0 -1 64 9 0 2 0 5 6 0 0 20 0 3 0 77 8192 12 18446").comm
'a) Z 1 (b'
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import DIGITS_MOST, read_as, read_each_as

PF_KTHREAD: Final = 0x00200000
UNREAD_KEPT: Final = 20
_BYTES_MOST: Final = 4096  # 52 numbers and a name
_NUMERALS: Final = b"0123456789 -\n"
_new: Final = tuple.__new__
_SHAPE: Final = "'PID (COMM) STATE PPID ...' with 22 fields or more"


class Process(NamedTuple):
    """Counters since the process began.

    A tuple, because ten thousand of them are made in one pass: half the time of a frozen
    dataclass.
    """

    pid: int
    comm: str
    state: str
    """One letter as in proc(5): R S D Z T t X I."""
    ppid: int
    flags: int
    """task_struct.flags; 0x00200000 (PF_KTHREAD) marks a kernel thread."""
    minflt: int
    majflt: int
    utime_ticks: int
    stime_ticks: int
    num_threads: int
    starttime_ticks: int
    """Since boot; with the pid it identifies the process, for a pid comes again."""
    vsize_bytes: int
    rss_pages: int
    """File, anonymous and shared pages together; pages of the asked kernel.  Lags behind
    VmRSS of ``status``: since 6.2 by up to 32 pages (or two a CPU) for each CPU and kind."""
    cutime_ticks: int = 0
    """In user mode, of its children that ended and were waited for, theirs included."""

    @property
    def is_kernel_thread(self) -> bool:
        return bool(self.flags & PF_KTHREAD)


@dataclass(frozen=True, slots=True)
class Processes:
    """The topic: /proc/PID/stat of every process, by pid."""

    by_pid: Mapping[int, Process]
    unread: tuple[Unread, ...]
    """The first refusals, and how many more there were."""


def parse(data: bytes) -> Process:
    """One process; ParseProblem unless all the fields used here are there."""
    # comm holds anything, what follows it holds no parenthesis: so the last one ends it.
    head, _, tail = data.rpartition(b") ")
    pid, _, comm = head.partition(b" (")
    words = tail.split(b" ", 22)
    state = words[0]
    # int() alone would take "1_0" and "+1".
    if tail.translate(None, _NUMERALS) != state or len(data) > _BYTES_MOST or len(state) != 1:
        raise ParseProblem(1, _SHAPE, data)
    try:
        values = (
            int(pid), comm.decode("utf-8", "surrogateescape"), state.decode("ascii"),
            int(words[1]), int(words[6]), int(words[7]), int(words[9]), int(words[11]),
            int(words[12]), int(words[17]), int(words[19]), int(words[20]), int(words[21]),
            int(words[13]),
        )  # fmt: skip
    except (ValueError, IndexError):
        raise ParseProblem(1, _SHAPE, data) from None
    if max(map(len, words[:22])) > DIGITS_MOST:
        raise ParseProblem(1, _SHAPE, data)
    return _new(Process, values)


def read(host: Host) -> Processes | Unread:
    """Every process of the host's pid namespace, in one pass."""
    pids = list_pids(host)
    if isinstance(pids, Unread):
        return pids
    by_pid: dict[int, Process] = {}
    missed: list[Unread] = hidden_processes(pids)
    paths = [f"/proc/{pid}/stat" for pid in pids]
    for process in read_each_as(host, paths, parse):
        if isinstance(process, Unread):
            missed.append(process)
        elif process.num_threads:  # none: it is being released, and half of its fields are 0
            by_pid[process.pid] = process
    return Processes(by_pid, sum_unread(missed))


def read_one(host: Host, pid: int) -> Process | Unread:
    """One process; ``absent`` or ``vanished`` when it has ended."""
    path = f"/proc/{pid}/stat"
    found = read_as(host, path, parse)
    if isinstance(found, Process) and not found.num_threads:
        return Unread(path, "vanished", "it is being released")
    return found


def list_pids(host: Host) -> list[str] | Unread:
    """The process ids in /proc, as they are written there."""
    names = host.names("/proc")
    if isinstance(names, Unread):
        return names
    # One that ended while it was listed is no folder any more, and its name has no slash.
    return [name[:-1] for name in names if name[-1:] == "/" and name[:-1].isdecimal()]


def hidden_processes(pids: list[str]) -> list[Unread]:
    """One Unread when /proc lists no pid 1, which every pid namespace has; else none."""
    if "1" in pids:
        return []
    words = "no pid 1 in it: processes of other users are hidden (hidepid)"
    return [Unread("/proc", "refused", words)]


def sum_unread(missed: Iterable[Unread]) -> tuple[Unread, ...]:
    """The first of those that were there and could not be read, and a count of the others."""
    kept: list[Unread] = []
    others: Counter[str] = Counter()
    last: dict[str, Unread] = {}
    for unread in missed:
        if unread.why in ("absent", "vanished"):
            continue
        if len(kept) < UNREAD_KEPT:
            kept.append(unread)
        else:
            others[unread.why] += 1
            last[unread.why] = unread
    for why, count in others.items():
        unread = last[why]
        words = f"and {count - 1} more before it; {unread.detail}" if count > 1 else unread.detail
        kept.append(Unread(unread.path, unread.why, words))
    return tuple(kept)
