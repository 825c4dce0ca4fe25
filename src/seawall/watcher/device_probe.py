# SPDX-License-Identifier: Apache-2.0
"""What ``gpu --watch`` asks the machine: the whole table once in a while, and cheap looks.

A look reads the kernel's rules of those cgroups, tries the devices (one question for all
containers), and the host's control nodes by lstat(2).  A container that holds up whoever asks costs
its own deadline twice, and is asked again a while later.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeVar

from seawall.accounts.devices import host_nodes
from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.container_processes import ContainerProcesses
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.watch import watched_table
from seawall.accounts.devices.watch.device_watch_events import (
    DeviceKey,
    DeviceLook,
    DeviceMoment,
    Stand,
    WatchedRule,
    WatchedTable,
)
from seawall.accounts.devices.watch.watched_table import WatchedDevices
from seawall.accounts.workloads import Workload, Workloads
from seawall.host import control_nodes
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.proc.forked_child import bury
from seawall.readings import char_devices, device_access, device_cgroups
from seawall.readings.cgroup import Cgroups
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Access
from seawall.readings.device_nodes import DeviceNode, DeviceNodes
from seawall.readings.device_writers import Write
from seawall.readings.process import Processes
from seawall.readings.snapshot import Snapshot

T = TypeVar("T")

SILENT_SECONDS: Final = 10.0
"""After a container did not answer in time twice."""
TRY_V2_SECONDS: Final = 5.0
"""Whoever joins a cgroup of v2 stops the node's forks and exits for a moment (kernel/cgroup,
cgroup_threadgroup_rwsem), so that there a try follows a change of the programs, or comes after
this long; the programs are looked at each time."""
_V2: Final = 2
_CONTROLS: Final = tuple(control.path for one in CLASSES for control in one.controls)


class DeviceProbe:
    """Sees; what it means is told elsewhere."""

    def __init__(self, wanted: Workload | None, table_seconds: float) -> None:
        self._wanted = wanted
        self._table_seconds = table_seconds
        self._host = LiveHost("/")
        self._silent: dict[str, float] = {}
        self._is_v2 = False
        self._tried: dict[str, tuple[tuple[str, ...], float]] = {}
        self._workloads: Workloads | None = None
        self._cgroups: Cgroups | None = None
        self.containers: tuple[WatchedDevices, ...] = ()
        self.unseen: tuple[str, ...] = ()
        """What the table could not see, and what would provide it."""
        self.has_gone = False
        """A process that was tried as has ended: it is time for a table."""

    def close(self) -> None:
        """Let go of the child that asks."""
        self._host.close()

    def tabulate(self) -> WatchedTable | Unread:
        """Everything anew, slowly; what could not be seen leaves what was known."""
        host = LiveHost("/", until=time.monotonic() + self._table_seconds)
        try:
            snapshot = Snapshot(host)
            table = snapshot.get(DeviceTable)
            if isinstance(table, Unread):
                return table
            workloads = _known(snapshot.get(Workloads))
            cgroups = snapshot.get(Cgroups)
            if workloads is None:
                return Unread("workloads", "failed", "no workload could be seen")
            members = ContainerProcesses.of(workloads, snapshot.get(Processes), cgroups)
        finally:
            host.close()
        self._workloads, self._cgroups = workloads, _known(cgroups)
        is_wanted = watched_table.is_wanted_by(self._wanted)
        self.containers = watched_table.watched(table, members, is_wanted)
        own = {one.workload.cgroup for one in self.containers}
        of_containers = (
            f"{one.workload.name}: {words}" for one in table.containers
            if one.workload.cgroup in own for words in one.unseen
        )  # fmt: skip
        self.unseen = tuple(dict.fromkeys((*table.unseen, *of_containers)))
        self.has_gone = False
        self._renew()
        return watched_table.watched_table_of(
            table, self.containers, now(), with_plugins=self._wanted is None
        )

    def _renew(self) -> None:
        """A child that was lost too often is not asked any more: this one begins anew."""
        self._host.close()
        self._host = LiveHost("/")
        bury()  # a watch of weeks must not collect them
        own = {one.workload.cgroup for one in self.containers}
        self._silent = {path: at for path, at in self._silent.items() if path in own}
        self._tried = {path: told for path, told in self._tried.items() if path in own}

    # --- cheap --------------------------------------------------------------------------

    def look(self, only: Collection[str] | None = None) -> DeviceLook:
        """All containers and the host's nodes, or ``only`` containers with these cgroups."""
        began = time.monotonic()
        found = [one for one in self.containers if only is None or one.workload.cgroup in only]
        rules = self._rules(found)
        stands = self._stands([one for one in found if self._is_due(one, rules, began)])
        if not self._is_v2:
            # A process that is ending is in the root already, whose list is another.
            alive = {key.cgroup for key in stands}
            rules = {cgroup: rule for cgroup, rule in rules.items() if cgroup in alive}
        nodes = self._nodes() if only is None else None
        return DeviceLook(began=began, at=now(), stands=stands, rules=rules, nodes=nodes)

    def _is_due(self, one: WatchedDevices, rules: Mapping[str, WatchedRule], began: float) -> bool:
        """Whether it is tried now: always with v1, where that is cheap."""
        if not self._is_v2:
            return True
        cgroup = one.workload.cgroup
        parts = rules[cgroup].parts if cgroup in rules else ()
        before, at = self._tried.get(cgroup, (None, 0.0))
        if parts == before and began - at < TRY_V2_SECONDS:
            return False
        self._tried[cgroup] = parts, began
        return True

    def _stands(self, found: Iterable[WatchedDevices]) -> dict[DeviceKey, Stand]:
        due = time.monotonic()
        asked = [
            one for one in found
            if one.target is not None and self._silent.get(one.workload.cgroup, 0.0) <= due
        ]  # fmt: skip
        targets = [one.target for one in asked if one.target is not None]
        answers = device_access.ask(self._host, targets) if targets else {}
        stands: dict[DeviceKey, Stand] = {}
        for one in asked:
            access = answers.get(one.target.pid) if one.target else None
            if access is None:
                continue
            self.has_gone |= watched_table.is_gone(access)
            if self._is_believed(one, access):
                stands |= watched_table.stands(one, access)
        return stands

    def _is_believed(self, one: WatchedDevices, access: Access) -> bool:
        """On a busy machine anybody is late once: only a second silence is told."""
        cgroup = one.workload.cgroup
        if not watched_table.is_silent(access):
            self._silent.pop(cgroup, None)
            return True
        is_second = cgroup in self._silent
        self._silent[cgroup] = time.monotonic() + (SILENT_SECONDS if is_second else 0.0)
        return is_second

    def _rules(self, found: Iterable[WatchedDevices]) -> dict[str, WatchedRule]:
        if self._cgroups is None:
            return {}
        pids = {one.place: (one.target.pid,) for one in found if one.target is not None}
        if not pids:
            return {}
        groups = device_cgroups.read(self._host, _with_pids(self._cgroups, pids))
        self._is_v2 = isinstance(groups, Unread) or groups.version == _V2
        boot = _boot()
        rules = (
            (one, watched_table.rule_of(groups, one.place, boot))
            for one in found
            if one.place in pids
        )
        return {one.workload.cgroup: rule for one, rule in rules if rule is not None}

    def _nodes(self) -> Mapping[str, str] | None:
        """None: /proc/devices could not be read."""
        drivers = char_devices.read(self._host)
        if isinstance(drivers, Unread):
            return None
        try:
            seen = control_nodes.look("/", _CONTROLS)
        except OSError:
            return None
        return _nodes_of(drivers, seen)

    def with_workload(self, write: Write) -> Write:
        """With the name of what the writer's cgroup is, as the last table knew it."""
        cgroup = write.writer.cgroup
        owner = self._workloads.of_cgroup(cgroup) if self._workloads and cgroup else None
        if owner is None or owner.cgroup == "/":
            return write
        return write._replace(writer=write.writer._replace(workload=owner.name))


def now() -> DeviceMoment:
    """The present moment on both clocks: Unix seconds and monotonic seconds."""
    return DeviceMoment(time.time(), time.monotonic())


def _boot() -> DeviceMoment:
    """When CLOCK_BOOTTIME was 0, on both clocks of now."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME)
    return DeviceMoment(time.time() - age, time.monotonic() - age)


def _known(value: T | Unread) -> T | None:
    return None if isinstance(value, Unread) else value


def _with_pids(cgroups: Cgroups, pids: Mapping[str, tuple[int, ...]]) -> Cgroups:
    """As if nobody else were there: only these and what is above them is asked about."""
    return Cgroups(
        layout=cgroups.layout, paths=cgroups.paths, mount_point=cgroups.mount_point, pids=pids,
        unread=(),
    )  # fmt: skip


def _nodes_of(
    drivers: CharDevices, seen: Mapping[str, control_nodes.PathNode]
) -> Mapping[str, str]:  # fmt: skip
    nodes = {
        path: DeviceNode(path, "c" if one.kind == "c" else "b", *one[1:])
        for path, one in seen.items()
        if one.kind in ("c", "b")
    }
    return watched_table.node_words(host_nodes.host_nodes(drivers, DeviceNodes(nodes, {}, 0)))
