# SPDX-License-Identifier: Apache-2.0
"""What /proc tells of a thread while it lives: process, name, start, cgroups.  proc(5)."""

import os
from contextlib import suppress
from typing import Final, NamedTuple

_KTHREAD: Final = 0x00200000  # include/linux/sched.h PF_KTHREAD
_SMALL_BYTES: Final = 64 << 10
_LINES_MOST: Final = 64
_FLAGS_AT, _START_AT = 6, 19  # fields after the name


class ProcTask(NamedTuple):
    """One thread, as it was when it was looked at."""

    tgid: int
    comm: str
    start_ticks: int
    """Of the process."""
    is_kernel_thread: bool
    cgroups: tuple[str, ...]


def look_at(tid: int) -> ProcTask | None:
    """None when it is gone, or was replaced while it was looked at."""
    try:
        fields, comm = _stat(f"/proc/{tid}/stat")
        cgroups = cgroup_lines(tid)
        tgid = _tgid(tid)
        start = fields[_START_AT] if tgid == tid else _stat(f"/proc/{tgid}/stat")[0][_START_AT]
    except (OSError, ValueError, IndexError):
        return None
    return ProcTask(tgid, comm, int(start), bool(int(fields[_FLAGS_AT]) & _KTHREAD), cgroups)


def start_of(tgid: int) -> int | None:
    """When the process with this number was started, in ticks since boot; None: there is none."""
    try:
        return int(_stat(f"/proc/{tgid}/stat")[0][_START_AT])
    except (OSError, ValueError, IndexError):
        return None


def cgroup_lines(tid: int) -> tuple[str, ...]:
    """As in /proc/PID/cgroup; OSError when it is gone."""
    text = _read(f"/proc/{tid}/cgroup").decode("utf-8", "surrogateescape")
    # Only there: a container names cgroups, and what splitlines() cuts at may be in a name.
    return tuple([line for line in text.split("\n") if line][:_LINES_MOST])


def all_pids() -> list[int]:
    """Ids of all processes in /proc, in no order."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def threads(tgid: int) -> list[int]:
    """Those of one process; only itself when it is gone."""
    with suppress(OSError):
        return [int(name) for name in os.listdir(f"/proc/{tgid}/task")]
    return [tgid]


def _stat(path: str) -> tuple[list[bytes], str]:
    """Fields after the name, which may hold spaces and brackets, and the name."""
    data = _read(path)
    head, _, rest = data.rpartition(b")")
    name = head.partition(b"(")[2].decode("utf-8", "surrogateescape")
    return rest.split(), name


def _tgid(tid: int) -> int:
    for line in _read(f"/proc/{tid}/status").split(b"\n"):  # its name may hold a \r
        if line.startswith(b"Tgid:"):
            return int(line.split()[1])
    raise ValueError("no Tgid")


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _SMALL_BYTES)
    finally:
        os.close(fd)
