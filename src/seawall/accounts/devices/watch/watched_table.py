# SPDX-License-Identifier: Apache-2.0
"""What of a table of devices is looked at again and again, and in which form it is compared."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.container_processes import ContainerProcesses
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.kernel_rules.device_rules import rule_text
from seawall.accounts.devices.layers import HostNode
from seawall.accounts.devices.watch.device_watch_events import (
    MISSING,
    THERE,
    TOLD_LAYERS,
    DeviceKey,
    DeviceMoment,
    Stand,
    WatchedRule,
    WatchedTable,
)
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.device_access import Access, AccessTarget
from seawall.readings.device_cgroups import DeviceCgroups

_STANDS_FOR_ANY: Final = frozenset(one.unit_name for one in CLASSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedDevices:
    """What a watch looks at of one container: the devices that are tried, and as which process."""

    workload: Workload
    target: AccessTarget | None
    """None: no process of it could be read, so nothing is tried."""
    place: str
    """The cgroup of the process that is tried as."""


def is_wanted_by(wanted: Workload | None) -> Callable[[Workload], bool]:
    """The container that was named, one of that name that came after it, or any inside."""
    if wanted is None:
        return lambda _: True
    below = wanted.cgroup.rstrip("/") + "/"
    return lambda one: one.name == wanted.name or f"{one.cgroup}/".startswith(below)


def watched(
    table: DeviceTable, members: ContainerProcesses, is_wanted: Callable[[Workload], bool]
) -> tuple[WatchedDevices, ...]:
    """Each container once, with all its paths."""
    paths: dict[str, dict[str, None]] = {}
    owners: dict[str, Workload] = {}
    for one in table.containers:
        if is_wanted(one.workload):
            owners[one.workload.cgroup] = one.workload
            into = paths.setdefault(one.workload.cgroup, {})
            into.update((row.path, None) for row in one.devices if row.path not in _STANDS_FOR_ANY)
    return tuple(
        WatchedDevices(
            workload=workload,
            target=_target(workload, members, tuple(paths[cgroup])),
            place=members.cgroup_of(workload),
        )
        for cgroup, workload in owners.items()
    )


def _target(
    workload: Workload, members: ContainerProcesses, paths: tuple[str, ...]
) -> AccessTarget | None:
    pid = members.pid_of(workload)
    return None if pid is None else AccessTarget(pid, members.start_ticks[pid], paths)


def watched_table_of(
    table: DeviceTable, found: Iterable[WatchedDevices], at: DeviceMoment, *, with_plugins: bool
) -> WatchedTable:  # fmt: skip
    """The table, as far as it is compared with the next one."""
    names = {one.workload.cgroup: one.workload.name for one in found}
    return WatchedTable(
        at=at,
        names=names,
        layers={
            DeviceKey(one.workload.cgroup, row.path): {
                layer: (row.layers[layer].says, row.layers[layer].why) for layer in TOLD_LAYERS
            }
            for one in table.containers
            if one.workload.cgroup in names
            for row in one.devices
        },
        # Of one that names no nodes nothing is told: that this is known now is no change of /dev.
        lacks={
            plugin.workload.name: frozenset(plugin.lacks)
            for plugin in table.plugins
            if with_plugins and plugin.names_nodes != "no"
        },
    )


def stands(one: WatchedDevices, access: Access | None) -> dict[DeviceKey, Stand]:
    """How its devices stand; empty when its process is gone: the next table tells of it."""
    if one.target is None or access is None or is_gone(access):
        return {}
    why = f"{access.problem.why} {access.problem.detail}".rstrip() if access.problem else ""
    found = {}
    for path in one.target.paths:
        tried = access.tried.get(path)
        if tried is None:
            stand = Stand(None, "", why or "it was not tried")
        else:
            number = "" if tried.major is None else f"{tried.kind} {tried.major}:{tried.minor}"
            stand = Stand(tried.errno, number)
        found[DeviceKey(one.workload.cgroup, path)] = stand
    return found


def is_gone(access: Access) -> bool:
    """Whether the process that was tried as has ended."""
    return access.problem is not None and access.problem.why == "vanished"


def is_silent(access: Access) -> bool:
    """Whether it held up whoever asked."""
    return access.problem is not None and access.problem.why in ("no_answer", "not_reached")


def rule_of(groups: DeviceCgroups | Unread, place: str, boot: DeviceMoment) -> WatchedRule | None:
    """What the kernel lets through to a cgroup; None when that was not read.

    v1: its list, which a change above it changes too.  v2: the numbers of its programs and of
    those above: another number is another program.  ``boot``: second 0 of CLOCK_BOOTTIME.
    """
    if isinstance(groups, Unread):
        return None
    if groups.version == 1:
        rules = groups.lists.get(place)
        if rules is None or isinstance(rules, Unread):
            return None
        return WatchedRule("devices.list", tuple(rule_text(rule) for rule in rules))
    parts: dict[str, DeviceMoment | None] = {}
    path = place.rstrip("/") or "/"
    while True:
        ids = groups.attached.get(path)
        if ids is None or isinstance(ids, Unread):
            return None
        for number in ids:
            at = groups.loaded.get(number)
            moment = DeviceMoment(boot.unix + at, boot.monotonic + at) if at is not None else None
            parts[f"program {number} of {path}"] = moment
        if path == "/":
            loaded = {part: at for part, at in parts.items() if at is not None}
            return WatchedRule("device programs:", tuple(parts), loaded)
        path = path.rpartition("/")[0] or "/"


def node_words(nodes: Iterable[HostNode]) -> Mapping[str, str]:
    """Of each control node: there, missing, or what is there instead."""
    return {one.path: THERE if one.is_there else one.found or MISSING for one in nodes}
