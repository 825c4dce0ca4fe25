# SPDX-License-Identifier: Apache-2.0
"""The process that listens for writers: one line of JSON for each write.

struct fanotify_event_metadata and fanotify_event_info_pidfd: include/uapi/linux/fanotify.h.
A line has path, unix, monotonic and pid; comm, exe, start_ticks, cgroup, parent_pid and
parent_comm where the process was still there.  Never a command line.

A pidfd says that the process had its number still when the event was read; numbers are handed
out in a cycle (kernel/pid.c, idr_alloc_cyclic), so that it is nobody else's a moment later.
"""

import gc
import json
import os
import select
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.device_access.process_handle import process_handle
from seawall.host.host import JSON

FAN_OPEN: Final = 0x20
FAN_MODIFY: Final = 0x02
_HEAD: Final = struct.Struct("=IBBHQii")  # event_len, vers, -, metadata_len, mask, fd, pid
_INFO: Final = struct.Struct("=BBHi")  # info_type, -, len, pidfd
_INFO_PIDFD: Final = 4
_NO_PIDFD: Final = -1  # it is reaped
_OVERFLOW: Final = 0x4000
_BYTES: Final = 4 << 10  # each event opens two files: fewer than RLIMIT_NOFILE at once
_REMEMBERED_SECONDS: Final = 1.0
_REMEMBERED_MOST: Final = 256
_TREES: Final = (b"name=systemd", b"memory", b"")
_DELETED: Final = " (deleted)"
_UNTOLD: Final = -2  # before 5.15

Told = dict[str, JSON]


class DeviceEvent(NamedTuple):
    """One of fanotify's; its descriptors are the reader's to close."""

    mask: int
    fd: int
    pid: int
    pidfd: int
    """``_NO_PIDFD``: it had ended; ``_UNTOLD``: the kernel does not say."""


def events_in(data: bytes) -> Iterator[DeviceEvent]:
    """As the kernel packed them."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, _, _, head, mask, fd, pid = _HEAD.unpack_from(data, at)
        if length < _HEAD.size:
            return
        pidfd, info, end = _UNTOLD, at + head, min(at + length, len(data))
        while info + _INFO.size <= end:
            kind, _, size, number = _INFO.unpack_from(data, info)
            if kind == _INFO_PIDFD:
                pidfd = number
            info += max(size, _INFO.size)
        yield DeviceEvent(mask, fd, pid, pidfd)
        at = end


def listen(group: int, to: int) -> None:
    """Until whoever reads ``to`` is gone."""
    gc.disable()
    with suppress(OSError):
        # Of 100 shells that wrote one line and ended, 31 were still there without it, 98 with it
        # (two busy CPUs); it sleeps but for writes.
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    seen = _Seen()
    _line(seen.look(DeviceEvent(0, -1, os.getpid(), _UNTOLD)))  # touches now what is touched then
    poll = select.poll()
    poll.register(group, select.POLLIN)
    poll.register(to, 0)  # POLLERR: nobody reads any more
    while True:
        if any(fd == to for fd, _ in poll.poll()):
            return
        with suppress(BlockingIOError):
            lines = list(_lines(list(events_in(os.read(group, _BYTES))), seen))
            data = memoryview(b"".join(lines))
            while data:
                data = data[os.write(to, data) :]


def _lines(events: list[DeviceEvent], seen: "_Seen") -> Iterator[bytes]:
    """All processes are looked at before anything else is done: they may be gone soon."""
    now: Told = {"unix": time.time(), "monotonic": time.monotonic()}
    found = [seen.look(event) for event in events]
    for event, told in zip(events, found, strict=True):
        if event.mask & _OVERFLOW:
            yield _line({**now, "is_lost": True})
        elif event.mask & FAN_MODIFY and event.fd >= 0:
            yield _line({**now, "path": _path(event.fd), "pid": event.pid, **told})
        for fd in (event.fd, event.pidfd):
            if fd >= 0:
                os.close(fd)


def _line(told: Told) -> bytes:
    return json.dumps(told).encode() + b"\n"


def _path(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}").removesuffix(_DELETED)


class _Seen:
    """Processes that were looked at, for the moment between their opening and their writing."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, Told]] = {}

    def look(self, event: DeviceEvent) -> Told:
        """What is known of the process of one event; empty when it is gone."""
        if event.pid <= 0:
            return {}
        now = time.monotonic()
        told = {} if event.pidfd == _NO_PIDFD else _look(event.pid)
        if told:
            if len(self._known) >= _REMEMBERED_MOST:
                self._known.clear()
            self._known[event.pid] = now, told
            return told
        then, before = self._known.get(event.pid, (0.0, {}))
        return before if now - then < _REMEMBERED_SECONDS else {}


def _look(pid: int) -> Told:
    """Of a living process, or a zombie: that still has a name and a parent."""
    try:
        with process_handle(pid) as process:
            head, _, tail = process.read("stat").rpartition(b") ")
            words = tail.split(None, 20)
            parent = int(words[1])
            told: Told = {
                "comm": os.fsdecode(head.partition(b" (")[2]),
                "start_ticks": int(words[19]),
                "parent_pid": parent,
            }
            with suppress(OSError):
                told["exe"] = _program(os.readlink("exe", dir_fd=process.fd))
            with suppress(OSError):
                told["cgroup"] = _cgroup(process.read("cgroup"))
            told["parent_comm"] = _comm(parent)
            return told
    except (OSError, ValueError, IndexError):
        return {}


def _program(link: str) -> str | None:
    """The last part of its path; None for a program without one (memfd_create)."""
    link = link.removesuffix(_DELETED)
    return None if link.startswith("/memfd:") else link.rpartition("/")[2]


def _comm(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid:d}/comm", "rb") as file:
            return os.fsdecode(file.read().rstrip(b"\n"))
    except OSError:
        return None


def _cgroup(data: bytes) -> str | None:
    """The first of the trees in which it is below the root."""
    paths: dict[bytes, bytes] = {}
    for line in data.split(b"\n"):
        _, _, rest = line.partition(b":")
        names, _, path = rest.partition(b":")
        for name in names.split(b","):
            paths[name] = path
    found = [paths[tree] for tree in _TREES if tree in paths]
    below = next((path for path in found if path != b"/"), found[0] if found else None)
    return None if below is None else os.fsdecode(below)
