# SPDX-License-Identifier: Apache-2.0
"""What every process has open, as numbers: files, terminals (ptmx), inotify and its watches.

Names of files are looked at and not told.  ``fdinfo`` of an inotify descriptor lists its
watches (fs/notify/fdinfo.c, since 3.8).  An instance that several processes hold, as after a
fork, counts once where kcmp(2) can tell.  None of it takes an mmap_lock; a process with
a hundred thousand files is slow to ask all the same, so an expendable child does it.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.descriptor_walk import has_ended
from seawall.host.host import JSON

_BUDGET_SECONDS: Final = 0.3
_CLOCK_EVERY: Final = 256  # descriptors between two looks at the clock
_KCMP: Final = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
_KCMP_FILE: Final = 0
_ALIKE_MOST: Final = 64  # compared with one another; else time would grow with the square


class _OverTimeError(Exception):
    pass


class _Instance(NamedTuple):
    """One inotify descriptor: whose it is, and how many watches it has."""

    pid: int
    fd: int
    uid: int
    watches: int


class _Row:
    """What one process has open: how many files and terminals, and its inotify descriptors."""

    def __init__(self) -> None:
        self.files = self.terminals = 0
        self.instances: list[int] = []


def open_descriptors() -> JSON:
    """{"processes": [[pid, files, terminals], ...], "inotify": [[pid, uid, instances, watches],
    ...], "left_out"}; ``left_out``: processes not asked, for lack of time or permission.
    """
    until = time.monotonic() + _BUDGET_SECONDS
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())
    processes: list[JSON] = []
    instances: list[_Instance] = []
    left_out = 0
    for done, pid in enumerate(pids):
        try:
            row = _look_at(pid, until)
            if row.files:
                processes.append([pid, row.files, row.terminals])
            if row.instances:
                instances += _watched(pid, row.instances)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:
            left_out += not has_ended(pid)
        except _OverTimeError:
            left_out += len(pids) - done
            break
    return {"processes": processes, "inotify": _sums(instances), "left_out": left_out}


def _look_at(pid: int, until: float) -> _Row:
    row = _Row()
    folder = f"/proc/{pid}/fd"
    for number in os.listdir(folder):
        if row.files % _CLOCK_EVERY == 0 and time.monotonic() > until:
            raise _OverTimeError
        try:
            name = os.readlink(f"{folder}/{number}")
        except FileNotFoundError:
            continue  # closed since it was listed
        row.files += 1
        if name in ("anon_inode:inotify", "inotify"):  # the latter before 2.6.36
            row.instances.append(int(number))
        elif name.startswith("/dev/") and name.endswith("/ptmx"):
            row.terminals += 1
    return row


def _watched(pid: int, numbers: list[int]) -> Iterator[_Instance]:
    uid = _effective_uid(pid)
    for number in numbers:
        with suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{number}", "rb") as info:
            # A buffered count: one instance may have half a million lines.
            watches = sum(line.startswith(b"inotify ") for line in info)
            yield _Instance(pid, number, uid, watches)


def _effective_uid(pid: int) -> int:
    """Of the process now; the kernel counts by who called inotify_init."""
    with open(f"/proc/{pid}/status", "rb") as status:
        for line in status:
            if line.startswith(b"Uid:"):
                return int(line.split()[2])
    raise ProcessLookupError


def _sums(instances: list[_Instance]) -> list[JSON]:
    """One row for each process and user, shared instances with the first that holds them."""
    alike: dict[tuple[int, int], list[_Instance]] = defaultdict(list)
    sums: dict[tuple[int, int], list[int]] = {}
    for one in instances:
        others = alike[one.uid, one.watches]
        if any(_is_same(one, other) for other in others[-_ALIKE_MOST:] if other.pid != one.pid):
            continue
        others.append(one)
        row = sums.setdefault((one.pid, one.uid), [0, 0])
        row[0] += 1
        row[1] += one.watches
    return [[pid, uid, *row] for (pid, uid), row in sums.items()]


def _is_same(one: _Instance, other: _Instance) -> bool:
    """False as well where the kernel does not compare (CONFIG_KCMP, or not our business)."""
    number = _KCMP.get(os.uname().machine)
    if number is None:
        return False
    import ctypes  # noqa: PLC0415 - for the few that are alike: its files come from the disk

    libc = ctypes.CDLL(None, use_errno=True)
    compare: int = libc.syscall(number, one.pid, other.pid, _KCMP_FILE, one.fd, other.fd)
    return compare == 0
