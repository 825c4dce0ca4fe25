# SPDX-License-Identifier: Apache-2.0
"""Standstill of those on whom a node depends: kubelet, container runtime, sshd, ourselves.

Found by the names of their cgroups, and by ``comm`` among processes, but nothing of a container's
or a user's: there anybody may call itself kubelet, and each login has a process ``sshd`` in its
session, which stands still at the user's own limit.

With cgroup v2, or on a hybrid host, the standstill is PSI ``full`` of their cgroup.  Without it,
it is estimated from their own major faults: each is a wait for the disk.
"""

import os
import time
from collections.abc import Iterable, Iterator
from typing import Final

from seawall import kubelet_names
from seawall.cgroup_paths import place_of
from seawall.guard.sense.cadence import Cadence
from seawall.guard.sense.canary import number, stat_fields
from seawall.guard.sense.files import KernelFile, first_bytes
from seawall.guard.sense.group_pressure import GroupPressure
from seawall.guard.sense.member import Names
from seawall.guard.sense.tick_vmstat import Rate

NAMES: Final = kubelet_names.PROGRAMS | {
    "containerd", "dockerd", "crio", "cri-dockerd", "podman", "sshd", "kube-proxy",
    "systemd-logind", "dbus-daemon",
}  # fmt: skip
_UNITS: Final = frozenset({
    *kubelet_names.UNITS, *kubelet_names.RUNTIME_UNITS, "ssh.service", "sshd.service",
})  # fmt: skip
_VERIFY_SECONDS: Final = 60.0
_WALK_SECONDS: Final = 600.0
"""Between walks over all processes when all that were found are still there."""
_BUDGET_SECONDS: Final = 0.001
_MOST: Final = 32
_STARTTIME: Final = 19
_MAJFLT: Final = 9
_FAULT_SECONDS: Final = 0.005
"""What a major fault is taken to cost: a slow disk's time for one read."""
_MINE: Final = "ourselves"
_USERS: Final = "/user.slice/"


class StalledGroup:
    """One of them: a cgroup with pressure, or a process."""

    __slots__ = ("name", "pid", "pressure", "rate", "starttime", "stat")

    def __init__(self, name: str) -> None:
        self.name = name
        self.pressure: GroupPressure | None = None
        self.pid = 0
        self.starttime = 0
        self.stat: KernelFile | None = None
        self.rate = Rate()

    def share(self, now: float) -> float | None:
        """0 to 1: how much of the last interval it stood still; None: it is gone."""
        if self.pressure is not None:
            return self.pressure.full_share(now)
        if self.stat is None or not self.stat.read():
            return None
        fields = stat_fields(self.stat.buffer, self.stat.size)
        if number(fields, _STARTTIME) != self.starttime:
            return None
        return min(self.rate.per_second(number(fields, _MAJFLT), now) * _FAULT_SECONDS, 1.0)

    def close(self) -> None:
        """Give its descriptor back."""
        if self.pressure is not None:
            self.pressure.close()
        if self.stat is not None:
            self.stat.close()


class StandstillWatch:
    """All of them; ``worst`` is asked each tick."""

    __slots__ = ("_names", "_own", "_pids", "_proc", "_verify", "_walk", "_wanted", "by_key",
                 "new_pressure_files", "worst_name")  # fmt: skip

    def __init__(self, names: Names, proc: str, own_cgroup: str, wanted: tuple[str, ...]) -> None:
        self._names = names
        self._proc = proc
        self._own = own_cgroup
        self._wanted = wanted
        self._verify = Cadence(_VERIFY_SECONDS)
        self._walk = Cadence(_WALK_SECONDS)
        self._pids: Iterator[int] | None = None
        self.by_key: dict[str, StalledGroup] = {}
        """By the pressure file's path, or ``pid N``."""
        self.new_pressure_files: list[str] = []
        """Pressure files that were found since somebody cleared it: for triggers."""
        self.worst_name = ""

    def use(self, wanted: tuple[str, ...]) -> None:
        """Other cgroups are asked for: all are looked up anew with the next tick."""
        for path in set(self._wanted) - set(wanted):
            if (watched := self.by_key.pop(self._names.pressure(path), None)) is not None:
                watched.close()
        self._wanted = wanted
        self._verify.hurry()
        self._walk.hurry()

    def look(self, now: float, paths: Iterable[str]) -> float:
        """The worst share of this tick; ``paths``: of all groups, asked once a minute."""
        if self._verify.is_due(now, is_near=False):
            self._find_cgroups(paths)
            if self._walk.is_due(now, is_near=False):
                self._pids = pids_of(self._proc)
        if self._pids is not None:
            self._go_on(self._pids)
        worst, lost = 0.0, None
        for key, watched in self.by_key.items():
            share = watched.share(now)
            if share is None:
                lost = key
            elif share > worst:
                worst, self.worst_name = share, watched.name
        if lost is not None:
            # One a tick is enough, and the walk looks for who came in its place.
            self.by_key.pop(lost).close()
            self._walk.hurry()
        return worst

    # --- finding ----------------------------------------------------------------------------

    def _find_cgroups(self, paths: Iterable[str]) -> None:
        if not self._names.unified:
            return
        self._add_cgroup(self._own, _MINE)
        for path in self._wanted:
            self._add_cgroup(path, path)
        for path in paths:
            unit = path.rpartition("/")[2]
            if unit in _UNITS and place_of(path).kind == "unit" and not is_anybodys(path):
                self._add_cgroup(path, unit.removesuffix(".service"))

    def _add_cgroup(self, path: str, name: str) -> bool:
        """False: there is no pressure of it, and the process is looked at instead."""
        file = self._names.pressure(path)
        if not file or path in ("", "/"):
            return False
        if file in self.by_key:
            return True
        pressure = GroupPressure(file)
        if len(self.by_key) >= _MOST or not pressure.open():
            return False
        watched = StalledGroup(name)
        watched.pressure = pressure
        self.by_key[file] = watched
        self.new_pressure_files.append(file)
        return True

    def _go_on(self, pids: Iterator[int]) -> None:
        """Some more processes, as many as the budget of a tick allows."""
        until = time.monotonic() + _BUDGET_SECONDS
        for pid in pids:
            comm = first_bytes(f"{self._proc}/{pid}/comm", 32)
            if comm is not None and comm.rstrip(b"\n").decode("latin-1") in NAMES:
                self._add_process(pid, comm.rstrip(b"\n").decode("latin-1"))
            if time.monotonic() > until:
                return
        self._pids = None

    def _add_process(self, pid: int, name: str) -> None:
        key = f"pid {pid}"
        cgroups = first_bytes(f"{self._proc}/{pid}/cgroup", 16 << 10) or b""
        if key in self.by_key or len(self.by_key) >= _MOST or is_anybodys(*paths_of(cgroups)):
            return
        if (unified := unified_of(cgroups)) and self._add_cgroup(unified, name):
            return
        file = KernelFile(f"{self._proc}/{pid}/stat", 2048)
        if not file.read():
            return
        watched = StalledGroup(name)
        watched.pid, watched.stat = pid, file
        started = number(stat_fields(file.buffer, file.size), _STARTTIME)
        watched.starttime = started or 0
        self.by_key[key] = watched

    def close(self) -> None:
        """Give all descriptors back."""
        for watched in self.by_key.values():
            watched.close()


def pids_of(proc: str) -> Iterator[int]:
    """All processes of one moment; none where there is no /proc."""
    try:
        names = os.listdir(proc)
    except OSError:
        names = []
    return iter([int(name) for name in names if name.isdecimal()])


def unified_of(text: bytes) -> str:
    """The path of v2 in /proc/PID/cgroup; empty: there is none."""
    for line in text.split(b"\n"):
        if line.startswith(b"0::"):
            return os.fsdecode(line[3:])
    return ""


def paths_of(text: bytes) -> set[str]:
    """All paths of /proc/PID/cgroup: on v1 perhaps only systemd's own tree has the sessions."""
    return {os.fsdecode(line.split(b":", 2)[-1]) for line in text.split(b"\n") if line}


def is_anybodys(*paths: str) -> bool:
    """Whether one of them belongs to a container, a pod or a user, whose names prove nothing."""
    for path in paths:
        place = place_of(path)
        if place.is_delegated or place.kind in ("container", "pod"):
            return True
        if f"{path}/".startswith(_USERS):
            return True
    return False
