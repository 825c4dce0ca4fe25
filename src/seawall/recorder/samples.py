# SPDX-License-Identifier: Apache-2.0
"""What is read of the machine beside the guard's ticks, and how much of it at a time.

========  =======================================================================
series    asks
========  =======================================================================
quick     the node's memory, counters and pressure
light     the same, and what moves in the workloads that lead
full      everything that ``seawall why`` needs and that no lock or disk can hold up
========  =======================================================================

Names of containers lie on the disk, and which NUMA nodes are a GPU's memory its driver tells: they
are asked for by a child, in peace only, and repeated after that.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import Any, Final

from seawall.actions.orders import Mounts
from seawall.guard.tick_facts import Group
from seawall.host.blocking import deadline_seconds
from seawall.host.host import JSON, Host, Unread
from seawall.host.live import LiveHost
from seawall.host.recording import Recording, Round, overlay_passes
from seawall.readings import kernel, mountinfo
from seawall.readings.arcstats import Arcstats
from seawall.readings.base import Base
from seawall.readings.container_files import ContainerFiles
from seawall.readings.diskstats import Diskstats
from seawall.readings.gpu_memory_nodes import GpuMemoryNodes
from seawall.readings.guard_status import GuardStatus
from seawall.readings.host_limits import HostLimits
from seawall.readings.kernel_charge import KernelCharge
from seawall.readings.meminfo import Meminfo
from seawall.readings.mountinfo import Mountinfo
from seawall.readings.numa import NumaNodes
from seawall.readings.pressure import HostPressure
from seawall.readings.proc_cgroups import ProcCgroups
from seawall.readings.snapshot import Snapshot
from seawall.readings.sockstat import Sockstat
from seawall.readings.swaps import Swaps
from seawall.readings.sysctl_vm import VmSysctls
from seawall.readings.vmstat import Vmstat
from seawall.readings.zoneinfo import Zoneinfo
from seawall.readings.zram import Zram
from seawall.recorder import group_files

LEADING: Final = 8
CHOSEN_SECONDS: Final = 5.0
_UPTIME: Final = "/proc/uptime"
NODE_FILES: Final = (
    "/proc/meminfo", "/proc/vmstat", "/proc/pressure/memory", "/proc/pressure/io",
    "/proc/pressure/cpu",
)  # fmt: skip
NODE_TOPICS: Final[tuple[type[Any], ...]] = (
    Meminfo, Vmstat, Zoneinfo, HostPressure, Diskstats, Swaps, Zram, Arcstats, NumaNodes,
    Sockstat, VmSysctls, HostLimits, ProcCgroups, Mountinfo, KernelCharge, GuardStatus, Base,
)  # fmt: skip


class Samples:
    """``quick`` and ``light`` at once, ``full`` in steps."""

    def __init__(self, mounts: Mounts) -> None:
        self._mounts = mounts
        self._host = CheapHost(LiveHost("/"))
        self._lasting = self._what_lasts(self._host)
        self._named = Round()
        self._chosen: list[str] = []
        self._chosen_until = 0.0

    def quick(self) -> Round:
        """Some 6 KB of text."""
        recording = self._begun()
        for path in NODE_FILES:
            recording.read(path)
        return recording.rounds[0]

    def light(self, groups: Iterable[Group]) -> Round:
        """With the workloads that lead."""
        round_ = self.quick()
        group_files.quick(self._host, self._mounts, self._leading(groups), round_)
        return round_

    def full(self, groups: Iterable[Group]) -> Iterator[Round | None]:
        """None after each step; the round is the last thing that comes."""
        recording = self._begun()
        snapshot = Snapshot(recording)
        for topic in NODE_TOPICS:
            snapshot.get(topic)
            yield None
        for path in mountinfo.PATHS:
            recording.read(path)
        if self._mounts.unified:
            recording.read(f"{self._mounts.unified}/cgroup.controllers")
        round_ = recording.rounds[0]
        chosen = set(leading(groups))
        for _ in group_files.walk(self._host, self._mounts, chosen, round_):
            yield None
        yield overlay_passes((self._named, round_))

    def _leading(self, groups: Iterable[Group]) -> list[str]:
        """Chosen anew now and then: to look through hundreds takes as long as to read eight."""
        now = time.monotonic()
        if now >= self._chosen_until or not self._chosen:
            self._chosen, self._chosen_until = leading(groups), now + CHOSEN_SECONDS
        return self._chosen

    def ask_names(self) -> None:
        """By an expendable child: only in peace."""
        live = LiveHost("/")
        recording = Recording(live)
        try:
            snapshot = Snapshot(recording)
            snapshot.get(ContainerFiles)
            snapshot.get(GpuMemoryNodes)
        finally:
            live.close()
        self._named = recording.rounds[0]

    def _begun(self) -> Recording:
        """A new pass; its clock first, for that is when it is of."""
        recording = Recording(self._host)
        round_ = recording.rounds[0]
        round_.files.update(self._lasting.files)
        round_.probes.update(self._lasting.probes)
        recording.ask("now")
        recording.read(_UPTIME)
        return recording

    @staticmethod
    def _what_lasts(host: Host) -> Round:
        """Which kernel and which machine: it is the same until the next boot."""
        recording = Recording(host)
        kernel.read(recording)
        round_ = recording.rounds[0]
        del round_.probes["now", ""], round_.files[_UPTIME]
        return round_


def leading(groups: Iterable[Group]) -> list[str]:
    """The paths of the workloads that hold most, uncounted memory included; largest first."""
    return [group.path for group in nlargest(LEADING, groups, key=_holds)]


def _holds(group: Group) -> int:
    return group.charge_bytes + group.outside.likely_bytes


# A machine that is asked only what never waits: for no disk, no lock of a process, no driver.
#
# What is not asked is "not captured", so nobody takes it for absent.

PROBES: Final = frozenset({"now", "reader", "page_size", "clock_ticks", "machine", "node_name"})
FILE_MOST_BYTES: Final = 1 << 20
_MOUNTS: Final = frozenset({"/proc/1/mountinfo", "/proc/self/mountinfo"})
_MOUNTS_KEPT: Final = (b" - cgroup ", b" - cgroup2 ", b" - tmpfs ", b" - ramfs ", b" - hugetlbfs ")
_OF_PODS: Final = b"/kubelet/pods/"
_WHY: Final = "the black box asks nothing that may have to wait"


class CheapHost:
    """A ``Host`` in front of another one."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self, path: str, limit_bytes: int = FILE_MOST_BYTES) -> bytes | Unread:
        if deadline_seconds(path) is not None:
            return Unread(path, "not_captured", _WHY)
        data = self._host.read(path, min(limit_bytes, FILE_MOST_BYTES))
        if path in _MOUNTS and isinstance(data, bytes):
            return _few_mounts(data)
        return data

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        if any(deadline_seconds(path) is not None or path in _MOUNTS for path in paths):
            yield from map(self.read, paths)
        else:
            yield from self._host.read_each(paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        if deadline_seconds(path) is not None:
            return Unread(path, "not_captured", _WHY)
        return self._host.names(path)

    def link(self, path: str) -> str | Unread:
        if deadline_seconds(path) is not None:
            return Unread(path, "not_captured", _WHY)
        return self._host.link(path)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        if probe not in PROBES:
            return Unread(probe, "not_captured", _WHY)
        return self._host.ask(probe, argument)


def _few_mounts(mountinfo: bytes) -> bytes:
    """Without what a few hundred pods mount: no rule looks at it, and it is the longest file."""
    kept = [
        line
        for line in mountinfo.split(b"\n")
        if not line or (any(kind in line for kind in _MOUNTS_KEPT) and _OF_PODS not in line)
    ]
    return b"\n".join(kept)
