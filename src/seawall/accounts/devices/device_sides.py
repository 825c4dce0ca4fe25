# SPDX-License-Identifier: Apache-2.0
"""The sides from which the table of devices is made, and its parts.

Two questions reach the machine from here, for what they ask about is only known now: the /dev of
these containers and of plugins, and a try of each device as one process of the container would.
Where nobody was promised anything, nothing more is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from seawall.accounts.devices import plugins
from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.container_processes import ContainerProcesses
from seawall.accounts.devices.device_inputs import Clock, ContainerSide, HostSide
from seawall.accounts.devices.device_questions import device_requests
from seawall.accounts.devices.device_rows import rows
from seawall.accounts.devices.host_nodes import host_nodes
from seawall.accounts.devices.layers import ContainerDevices, HostNode, UpcomingLoss
from seawall.accounts.devices.promised.promise_sources import worth_asking
from seawall.accounts.devices.promised.promises import Promise, Sources, promises
from seawall.accounts.devices.reasons import upcoming_loss
from seawall.accounts.devices.reasons.diagnosis import diagnose
from seawall.accounts.devices.reasons.since import since_when
from seawall.accounts.workloads import Workloads
from seawall.host.host import Host, Unread
from seawall.readings import cri_containers, device_access, device_nodes
from seawall.readings.boot_time import BootTime
from seawall.readings.cdi_specs import CdiSpecs
from seawall.readings.cgroup import Cgroups
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import AccessTarget
from seawall.readings.device_cgroups import DeviceCgroups
from seawall.readings.device_nodes import DeviceNode, DeviceNodes
from seawall.readings.device_specs import DeviceSpecs
from seawall.readings.kernel import Kernel
from seawall.readings.kubelet_devices import KubeletDevices
from seawall.readings.pod_resources import PodResources
from seawall.readings.process import Processes
from seawall.readings.runtime_versions import RuntimeVersions
from seawall.readings.scope_devices import ScopeDevices
from seawall.readings.snapshot import Snapshot

_QUIET = ("absent", "vanished")
"""Reasons that are no gap: this machine does not have it."""


class DeviceSides(NamedTuple):
    """Everything that was read, asked and tried."""

    containers: Sequence[ContainerSide]
    host: HostSide
    sources: Sources
    unseen: Sequence[str] = ()
    """Of the plugins' /dev."""


def sides_of(snapshot: Snapshot, *, opens: bool) -> DeviceSides | Unread:
    """``opens``: devices are opened too, which their drivers notice."""
    workloads = snapshot.get(Workloads)
    if isinstance(workloads, Unread):
        return workloads
    found = list(workloads.by_cgroup.values())
    sources = Sources(
        snapshot.get(DeviceSpecs), snapshot.get(KubeletDevices), snapshot.get(CdiSpecs),
        snapshot.get(PodResources),
    )  # fmt: skip
    members = ContainerProcesses.of(workloads, snapshot.get(Processes), snapshot.get(Cgroups))
    own = {
        pid: workload
        for workload in plugins.find(found)
        if (pid := members.pid_of(workload)) is not None
    }
    servers = {workload.cgroup for workload in own.values()}
    promised = [one for one in promises(found, sources) if one.workload.cgroup not in servers]
    if ids := worth_asking(found, promised, sources):
        sources = replace(sources, cri=cri_containers.ask(snapshot.host, ids))
        promised = [one for one in promises(found, sources) if one.workload.cgroup not in servers]
    host = _host_side(snapshot, is_wanted=bool(promised or own))
    if promised or own:
        times = (snapshot.get(Kernel), snapshot.get(BootTime))
        host = replace(host, clock=Clock.of(*times, members.start_ticks))
    pids = {pid for one in promised if (pid := members.pid_of(one.workload)) is not None}
    nodes = device_nodes.ask(snapshot.host, tuple(sorted(pids | own.keys())))
    found_plugins = plugins.without_needless_lacks(
        plugins.plugins_of(own, nodes, host), promised, sources
    )
    host = replace(host, plugins=tuple(found_plugins))
    sides = [_side(one, sources, members, nodes) for one in promised]
    sides = _tried(sides, members, host, snapshot.host, opens=opens)
    return DeviceSides(sides, host, sources, _unread_plugins(nodes, host))


def _unread_plugins(
    nodes: Mapping[int, Mapping[str, DeviceNode] | Unread], host: HostSide
) -> list[str]:  # fmt: skip
    return [
        f"/dev of the device plugin {plugin.workload.name}: {answer.why} {answer.detail}".rstrip()
        for plugin in host.plugins
        if isinstance(answer := nodes.get(plugin.pid), Unread) and answer.why not in _QUIET
    ]


def _host_side(snapshot: Snapshot, *, is_wanted: bool) -> HostSide:
    """What is not needed is not read: on most machines nobody is promised a device."""
    drivers = snapshot.get(CharDevices)
    not_needed = Unread("devices", "absent", "nobody was promised a device")
    is_loaded = not isinstance(drivers, Unread) and any(
        drivers.majors_of(name) for one in CLASSES for control in one.controls
        for name in control.drivers
    )  # fmt: skip
    return HostSide(
        drivers,
        snapshot.get(DeviceNodes) if is_wanted or is_loaded else not_needed,
        snapshot.get(DeviceCgroups) if is_wanted else not_needed,
        snapshot.get(ScopeDevices) if is_wanted else not_needed,
        versions=snapshot.get(RuntimeVersions) if is_wanted else not_needed,
        cdi=snapshot.get(CdiSpecs),
    )


def _side(
    promise: Promise,
    sources: Sources,
    members: ContainerProcesses,
    nodes: Mapping[int, Mapping[str, DeviceNode] | Unread],
) -> ContainerSide:
    pid = members.pid_of(promise.workload)
    return ContainerSide(
        promise=promise,
        spec=sources.spec_of(promise.workload),
        record_and_start=sources.record_and_start(promise.workload),
        cgroup=members.cgroup_of(promise.workload),
        own_nodes=None if pid is None else nodes.get(pid),
        access=None,
        pid=pid,
    )


def _tried(
    sides: Sequence[ContainerSide],
    members: ContainerProcesses,
    host: HostSide,
    machine: Host,
    *,
    opens: bool,
) -> list[ContainerSide]:
    """One question for all containers: each path once, as one process of each."""
    wanted: dict[int, dict[str, None]] = {}
    for side in sides:
        if side.pid is not None:
            wanted.setdefault(side.pid, {}).update(
                (one.path, None) for one in device_requests(side, host) if not one.stands_for_any
            )
    targets = [
        AccessTarget(pid, members.start_ticks[pid], tuple(paths)) for pid, paths in wanted.items()
    ]
    answers = device_access.ask(machine, targets, opens=opens) if targets else {}
    return [
        side if side.pid is None else replace(side, access=answers.get(side.pid)) for side in sides
    ]


# --- pure from here ---------------------------------------------------------------------


def containers_of(sides: DeviceSides) -> tuple[ContainerDevices, ...]:
    """Each with its devices through the five layers, and what breaks there."""
    return tuple(_container(side, sides.host) for side in sides.containers)


def _container(side: ContainerSide, host: HostSide) -> ContainerDevices:
    found = rows(side, host)
    promise = side.promise
    diagnosis = diagnose(found, side, host)
    return ContainerDevices(
        workload=promise.workload,
        device_class=promise.name,
        promised_by=promise.promised_by,
        devices=found,
        diagnosis=diagnosis,
        unseen=tuple(_unseen_of_container(side)),
        since=since_when(diagnosis, found, side, host),
    )


def nodes_of(host: HostSide) -> tuple[HostNode, ...]:
    """Control nodes that the host must have; empty where that was not seen."""
    if isinstance(host.drivers, Unread) or isinstance(host.nodes, Unread):
        return ()
    return host_nodes(host.drivers, host.nodes)


def about_to_break(
    containers: Sequence[ContainerDevices], host: HostSide
) -> Iterator[UpcomingLoss]:
    """What works now and is about to stop."""
    for plugin in host.plugins:
        yield from upcoming_loss.of_plugin(plugin)
    for one in containers:
        yield from upcoming_loss.of_container(one, host)
    yield from upcoming_loss.of_links(containers, host)
    yield from upcoming_loss.of_cdi(host)


def _unseen_of_container(side: ContainerSide) -> Iterator[str]:
    """What of one container could not be seen, and what would provide it."""
    yield from side.promise.unseen
    if side.spec is None:
        yield "its config: no file of a runtime tells of it"
    elif isinstance(side.spec, Unread):
        yield f"its config, {side.spec.path}: {side.spec.why} {side.spec.detail}".rstrip()
    if side.access is None:
        yield "a try of its devices: no process of it could be read"
    elif side.access.problem is not None:
        problem = side.access.problem
        yield f"a try of its devices: {problem.why} {problem.detail}".rstrip()


def _is_quiet(answer: Unread) -> bool:
    return answer.why in _QUIET


def unseen_of(sides: DeviceSides) -> Iterator[str]:
    """What of the whole host could not be seen."""
    host, sources = sides.host, sides.sources
    answers = (
        ("containers' configs", sources.specs),
        ("the kubelet's checkpoint", sources.kubelet),
        ("CDI specs", sources.cdi),
        ("/proc/devices", host.drivers),
        ("the host's /dev", host.nodes),
        ("the kernel's device rules", host.groups),
        ("systemd's units", host.scopes),
    )
    for what, answer in answers:
        if isinstance(answer, Unread) and answer.path == device_nodes.PROBE and _is_quiet(answer):
            yield f"{what}: none that has device nodes was there to be looked at"
        elif isinstance(answer, Unread) and not _is_quiet(answer):
            yield f"{what}, {answer.path}: {answer.why} {answer.detail}".rstrip()
    yield from sources.unheard()
    unread = () if isinstance(sources.cdi, Unread) else sources.cdi.unread
    for one in unread:
        yield f"a CDI spec, {one.path}: {one.why} {one.detail}".rstrip()
    yield from sides.unseen
