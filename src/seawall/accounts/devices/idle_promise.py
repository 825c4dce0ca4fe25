# SPDX-License-Identifier: Apache-2.0
"""Containers that were promised a device for computing, and none of whose processes holds it.

Only processes that are old enough count: who loads data or compiles before it goes to the device
is innocent.  A program that was refused may well keep control nodes open (/dev/nvidiactl): those
are no proof that it computes there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices
from seawall.accounts.scene import TopicWindow
from seawall.accounts.workloads import Workloads
from seawall.readings.driver_files import DriverFiles
from seawall.readings.kernel import Kernel
from seawall.readings.process import Process, Processes

_COMPUTES: Final = ("gpu", "npu", "tpu", "xpu", "gaudi", "neuron")
"""Words in the resource of other makers that are for computing; a network card is not."""
_KFD: Final = "/dev/kfd"


@dataclass(frozen=True, slots=True, kw_only=True)
class OldProcesses:
    """Of one container: those that had the time to open the device."""

    devices: ContainerDevices
    processes: int
    age_seconds: float
    """Of the eldest."""
    busy_cpus: float
    """Over the window, in user and kernel mode."""
    cpu_seconds: float
    """Since they began."""
    busiest: Process


def without_device(
    table: DeviceTable, workloads: Workloads, files: DriverFiles, window: TopicWindow[Processes],
    old: "Old",
) -> Iterator[OldProcesses]:  # fmt: skip
    """Of every container that could compute on its device and has not opened it."""
    members: dict[str, list[int]] = {}
    for pid, workload in workloads.by_pid.items():
        members.setdefault(workload.cgroup, []).append(pid)
    for one in table.containers:
        pids = members.get(one.workload.cgroup, [])
        if not _computes(one) or any(_holds(one, files, pid) for pid in pids):
            continue
        found = [pair for pid in pids if (pair := _seen_twice(pid, window, old))]
        if found:
            yield _sum(one, found, window.seconds, old)


def _computes(one: ContainerDevices) -> bool:
    if any(kind.name == one.device_class for kind in CLASSES):
        return True
    return any(word in one.device_class.lower() for word in _COMPUTES)


def _holds(one: ContainerDevices, files: DriverFiles, pid: int) -> bool:
    """Whether the process has a device open that is more than a control node."""
    holder = files.by_pid.get(pid)
    if holder is None:
        return False
    kind = next((kind for kind in CLASSES if kind.name == one.device_class), None)
    controls = kind.controls if kind else ()
    idle = [c for c in controls if not c.is_for_compute and c.path != _KFD]
    passive = {(name, c.minor) for c in idle for name in c.drivers}
    told = {row.path for row in one.devices} - {c.path for c in idle}
    numbers = {(row.major, row.minor) for row in one.devices if row.path in told}
    drivers = {*(kind.unit_drivers if kind else ()),
               *(name for c in controls if c not in idle for name in c.drivers)}  # fmt: skip
    return any(
        (file.major, file.minor) in numbers
        or (file.driver in drivers and (file.driver, file.minor) not in passive)
        for file in holder.devices
    )


@dataclass(frozen=True, slots=True)
class Old:
    """Which processes are old enough."""

    kernel: Kernel
    least_seconds: float

    def age(self, task: Process) -> float:
        """Seconds; 0 where the clock is not known."""
        uptime = self.kernel.uptime_seconds or 0.0
        return max(0.0, uptime - task.starttime_ticks / self.kernel.clock_ticks)


def _seen_twice(
    pid: int, window: TopicWindow[Processes], old: Old
) -> tuple[Process, Process] | None:
    was, now = window.earlier.by_pid.get(pid), window.later.by_pid.get(pid)
    if was is None or now is None or was.starttime_ticks != now.starttime_ticks:
        return None
    return (was, now) if old.age(now) >= old.least_seconds else None


def _sum(
    one: ContainerDevices, pairs: list[tuple[Process, Process]], seconds: float, old: Old
) -> OldProcesses:
    ticks = old.kernel.clock_ticks
    rises = [max(0, _ticks(now) - _ticks(was)) for was, now in pairs]
    return OldProcesses(
        devices=one,
        processes=len(pairs),
        age_seconds=max(old.age(now) for _, now in pairs),
        busy_cpus=sum(rises) / ticks / seconds,
        cpu_seconds=sum(_ticks(now) for _, now in pairs) / ticks,
        busiest=max(pairs, key=lambda pair: _ticks(pair[1]) - _ticks(pair[0]))[1],
    )


def _ticks(task: Process) -> int:
    return task.utime_ticks + task.stime_ticks
