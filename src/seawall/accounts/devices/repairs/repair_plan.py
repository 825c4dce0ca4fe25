# SPDX-License-Identifier: Apache-2.0
"""The plan of a repair: from what the table says to steps in their order.  Pure.

The order is the repair: nodes, then the plugin, then pods, then processes.  A pod that is made
anew before its plugin was restarted is given the same wrong list again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices, Plugin
from seawall.accounts.devices.reasons.upcoming_loss import NEXT_POD, NEXT_START, NEXT_WITH_IT
from seawall.accounts.devices.repairs import host_steps, lasting_settings, plugin_steps, pod_steps
from seawall.accounts.devices.repairs.plugin_proof import FOLDER, proof
from seawall.accounts.devices.repairs.step import (
    RepairFacts,
    RepairPlan,
    RepairScope,
    Step,
    diagnosed,
    is_asked,
    is_below,
    of_scope,
    taken_away,
)
from seawall.host.host import Unread
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.snapshot import Snapshot

_STRANGER: Final = (
    f"is called a device plugin and does not mount {FOLDER}, as every plugin does: it is taken for"
    " none, and its own devices were not looked at"
)

_MODES: Final = {"host": ("F2", "F10"), "plugin": ("F8", "F9")}
"""What is told of the host as a whole, and who is asked for it."""

_HOSTS: Final = ("/proc/devices", "the host's /dev")
_CONCERNED: Final = {"host": _HOSTS, "plugin": (*_HOSTS, "/dev of the device plugin")}
"""How the words begin that tell of a gap there; of a workload any may be one."""


def plan_of(snapshot: Snapshot, scope: RepairScope) -> RepairPlan | Unread:
    """Of one moment of a machine; Unread: nothing can be told of devices."""
    table = snapshot.get(DeviceTable)
    if isinstance(table, Unread):
        return table
    only_called = frozenset(
        plugin.workload.cgroup
        for plugin in table.plugins
        if plugin.workload.pod_uid is not None and proof(snapshot, plugin.pid) == "disproven"
    )
    drivers, nodes = snapshot.get(CharDevices), snapshot.get(DeviceNodes)
    return plan(RepairFacts(table, drivers, nodes, only_called), scope)


def plan(facts: RepairFacts, scope: RepairScope) -> RepairPlan:
    """Whatever can be told; ``untried`` and ``unseen`` say what could not."""
    facts, strangers = _without_strangers(facts)
    scope = _as_plugin(facts.table, scope)
    asked = [one for one in strangers if is_asked(one, scope)] if scope.what != "host" else []
    words = tuple(f"{one.workload.name} {_STRANGER}" for one in asked)
    containers = of_scope(facts, scope)
    return RepairPlan(
        scope=scope,
        steps=tuple(_steps(facts, scope, containers)),
        headlines=tuple(dict.fromkeys(_headlines(facts.table, scope, containers))),
        untried=tuple(_untried(scope, containers)),
        unseen=(*(words if scope.workload else ()), *_unseen(facts, scope, containers)),
        notes=() if scope.workload else words,
        asked=len(facts.table.plugins if scope.what == "plugin" else containers),
        plugins=facts.table.plugins,
    )


def _without_strangers(facts: RepairFacts) -> tuple[RepairFacts, list[Plugin]]:
    """Nobody waits for a plugin that is none."""
    table, names = facts.table, facts.only_called
    kept = tuple(one for one in table.plugins if one.workload.cgroup not in names)
    strangers = [one for one in table.plugins if one.workload.cgroup in names]
    soon = tuple(
        one for one in table.about_to_break
        if one.workload is None or one.workload.cgroup not in names
    )  # fmt: skip
    return replace(facts, table=replace(table, plugins=kept, about_to_break=soon)), strangers


def _as_plugin(table: DeviceTable, scope: RepairScope) -> RepairScope:
    """A plugin that is named as a workload was promised nothing itself."""
    is_plugin = any(is_below(plugin.workload, scope) for plugin in table.plugins)
    return RepairScope("plugin", scope.workload) if is_plugin else scope


def in_the_way(plan_now: RepairPlan, step: Step) -> Step | None:
    """A step that has to be done before this one, or this one is for nothing."""
    if step.kind not in ("plugin", "recreate"):
        return None
    earlier = [one for one in plan_now.steps if one.number < step.number and one.comes_first]
    if step.kind == "plugin":  # links and CDI files are read by the runtime, not by a plugin
        earlier = [one for one in earlier if one.kind in ("modules", "nodes")]
    return earlier[0] if earlier else None


def _steps(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    yield from host_steps.steps(facts, scope, containers)
    if scope.what == "workload":
        yield from lasting_settings.steps(facts.table, containers)
    yield from plugin_steps.steps(facts, scope, containers)
    yield from pod_steps.steps(facts, scope, containers)
    if scope.what == "workload":
        yield from _rule_steps(containers, facts.table, scope)
        yield from _process_steps(containers)


def _headlines(
    table: DeviceTable, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[str]:
    own = _MODES.get(scope.what, ())
    yield from (f"{one.mode}: {one.headline}" for one in table.host_diagnosis if one.mode in own)
    for one in containers if scope.what == "workload" else ():
        if one.diagnosis is not None:
            yield f"{one.diagnosis.mode}: {one.workload.name}: {one.diagnosis.headline}"
    for soon in table.about_to_break:
        is_wanted = (
            (scope.what == "workload" and is_below(soon.workload, scope))
            or (scope.what == "plugin" and soon.when == NEXT_POD)
            or (scope.what == "host" and soon.when in (NEXT_START, NEXT_WITH_IT))
        )
        if is_wanted:
            who = f"{soon.workload.name}: " if soon.workload else ""
            yield f"{who}{soon.device}: {soon.why} (breaks at {soon.when})"


def _untried(scope: RepairScope, containers: list[ContainerDevices]) -> Iterator[str]:
    for one in containers if scope.what == "workload" else ():
        if one.diagnosis is None and not one.works:
            yield one.workload.name


def _unseen(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[str]:
    table, starts = facts.table, _CONCERNED.get(scope.what, ("",))
    if isinstance(facts.drivers, Unread) and facts.drivers.why == "absent":
        yield f"{facts.drivers.path}: it is not there, as it is on every machine that runs"
    yield from (words for words in table.unseen if words.startswith(starts))
    for one in containers if scope.what == "workload" else ():
        yield from (f"{one.workload.name}: {words}" for words in one.unseen)


# What is only explained: the rules of a container that runs, and its process.
#
# A rule that is written under the runtime changes a running tenant and not the cause.  Measured
# with systemd 252: what ``set-property --runtime DeviceAllow=`` wrote outlives a daemon-reload.

_UNTIL: Final = (
    "at most until the container's next start. runc before 1.0 puts its own list back at each"
    " update: a resize in place, or the kubelet's CPU manager with the static policy (every 10 s;"
    " kubelets that remember the last cpuset only when it changed)"
)
_BY_SYSTEMD: Final = (
    ". The next daemon-reload (any package upgrade) takes back what was written into the cgroup,"
    " and not what systemctl set-property --runtime wrote, which is gone with the scope"
)


def _rule_steps(
    containers: list[ContainerDevices], table: DeviceTable, scope: RepairScope
) -> Iterator[Step]:
    """Where somebody would be tempted to write into the cgroup, or has."""
    refused = [
        one
        for one in diagnosed(containers, "F1", "F3", "F4", "F6")
        if any(row.broken_at and row.layers["access"].says == "no" for row in one.devices)
    ]
    if not refused and not taken_away(table, scope):
        return
    is_systemd = any(
        row.layers["systemd"].says in ("yes", "no") for one in containers for row in one.devices
    )
    yield Step(
        kind="rules",
        what="Not done: changing the device rules of the running container (devices.allow,"
        " a device program, systemctl set-property)",
        command="",
        mends="the access of this one container, for a while",
        does_not_mend="the cause, and the list that the runtime keeps: it changes a tenant's rules"
        " behind the runtime's back, nobody is told, and a program that opens the device late finds"
        " it gone again",
        lasts=f"{_UNTIL}{_BY_SYSTEMD if is_systemd else ''}",
        by="nobody",
    )


def _process_steps(containers: list[ContainerDevices]) -> Iterator[Step]:
    """What only the container's user can do."""
    if diagnosed(containers):
        yield Step(
            kind="process",
            what="Restart the process in the container, when it is not made anew anyway",
            command="",
            mends="the program: a CUDA or driver context that failed does not recover, even when"
            " the device can be opened again",
            does_not_mend="the access itself",
            lasts="as long as the access does; with seawall gpu check at its start it ends with a"
            " sentence instead of computing on the CPU",
            by="user",
        )
