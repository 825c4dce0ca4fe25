# SPDX-License-Identifier: Apache-2.0
"""Who wrote to a device cgroup's ``devices.allow`` or ``devices.deny``, as fanotify(7) told.

Lines of JSON, one a write, from the process of ``host/device_access/writers.py``.  Only on
cgroup v1: with v2 nobody writes to a file.  What was written is not told.

>>> parse(b'{"path": "/c/devices.deny", "unix": 9.5, "monotonic": 1.5, "pid": 7, "comm": "runc"}')
Write(folder='/c', file='devices.deny', unix=9.5, monotonic=1.5, writer=pid 7 (runc))
"""

import json
from typing import Final, NamedTuple

from seawall.host.host import JSON
from seawall.problems import ParseProblem
from seawall.readings.probe_answer import number, seconds

LINE_BYTES_MOST: Final = 64 << 10
_TEXT_MOST: Final = 4096
_SHAPE: Final = "a line of the process that listens for writers"


class DeviceWriter(NamedTuple):
    """A process, as it was when it wrote."""

    pid: int
    """0: of another pid namespace, so that it has no number here."""
    comm: str | None = None
    """None: it was gone before it could be looked at."""
    exe: str | None = None
    """The last part of its program's path; None: not told (a zombie, a kernel thread)."""
    start_ticks: int | None = None
    """Since boot; with the pid it identifies the process."""
    cgroup: str | None = None
    """Of name=systemd, memory or v2, whichever is told."""
    parent_pid: int | None = None
    parent_comm: str | None = None
    workload: str | None = None
    """What has that cgroup: ``unit:containerd.service``; None: nothing is known of it."""

    def __repr__(self) -> str:
        return f"pid {self.pid} ({self.comm})"

    def is_same(self, other: "DeviceWriter") -> bool:
        """Whether both are the same process, as far as anything tells."""
        starts = {self.start_ticks, other.start_ticks} - {None}
        return self.pid == other.pid and len(starts) < 2


class Write(NamedTuple):
    """One write, or several that the kernel told as one."""

    folder: str
    """The cgroup's, as mounted here."""
    file: str
    unix: float
    """Seconds, when it was told: some milliseconds after it was done."""
    monotonic: float
    writer: DeviceWriter


class LostWrites(NamedTuple):
    """Writes came faster than they were listened to: some were not told."""

    monotonic: float


def parse(line: bytes) -> Write | LostWrites:
    """One line; ParseProblem for anything else."""
    if len(line) > LINE_BYTES_MOST:
        raise ParseProblem(1, f"at most {LINE_BYTES_MOST} bytes", line)
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        raise ParseProblem(1, _SHAPE, line) from None
    values = told if isinstance(told, dict) else {}
    monotonic, unix = seconds(values.get("monotonic")), seconds(values.get("unix"))
    if monotonic is not None and values.get("is_lost") is True:
        return LostWrites(monotonic)
    path, pid = _text(values.get("path")), number(values.get("pid"))
    if path is None or pid is None or monotonic is None or unix is None or path[:1] != "/":
        raise ParseProblem(1, _SHAPE, line)
    folder, _, file = path.rpartition("/")
    return Write(folder, file, unix, monotonic, _writer(pid, values))


def _writer(pid: int, values: dict[str, JSON]) -> DeviceWriter:
    return DeviceWriter(
        pid=pid,
        comm=_text(values.get("comm")),
        exe=_text(values.get("exe")),
        start_ticks=number(values.get("start_ticks")),
        cgroup=_text(values.get("cgroup")),
        parent_pid=number(values.get("parent_pid")),
        parent_comm=_text(values.get("parent_comm")),
    )


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) and len(value) <= _TEXT_MOST else None
