# SPDX-License-Identifier: Apache-2.0
"""The step for the device plugin: restarted before any pod is made anew.

It hands out what its own /dev has, and that was made when its container was.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from seawall.accounts.devices.classes import CLASSES, class_name, class_of_resource
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices, Plugin, UnhealthyDevice
from seawall.accounts.devices.plugins import is_named
from seawall.accounts.devices.repairs.removal_commands import delete_pod, docker
from seawall.accounts.devices.repairs.step import (
    RepairFacts,
    RepairScope,
    Step,
    diagnosed,
    is_asked,
    taken_away,
)
from seawall.xid_names import HARDWARE_XIDS


def steps(
    facts: RepairFacts, scope: RepairScope, containers: list[ContainerDevices]
) -> Iterator[Step]:
    """Those that cannot hand out what the host has, or will not be able to."""
    table = facts.table
    served = [one for one in diagnosed(containers, "F1", "F2") if one.workload.pod_uid is not None]
    wounded = {class_name(one.device) for one in taken_away(table, scope)} - {None}
    wounded.update(one.device_class for one in served)
    for plugin in table.plugins if scope.what != "host" else ():
        if scope.what == "plugin" and not is_asked(plugin, scope):
            continue
        names = _classes(plugin, table)
        why = _why(plugin, table, names, names if scope.what == "plugin" else wounded)
        ill = [one for one in _ill(table) if scope.what == "plugin" and _of(one) in names]
        if why or ill:
            yield _restart(plugin, why, ill)
    if scope.what == "workload":
        yield from _unseen_plugin(table, containers)


def is_there(plugin: Plugin, found: Iterable[Plugin]) -> bool:
    """Whether it runs still, or another one of its class does: who crashes is in no table."""
    one, names = plugin.workload, _named(plugin)
    return any(
        (other.workload.pod_uid, other.workload.container) == (one.pod_uid, one.container)
        or names & _named(other)
        for other in found
    )


def _why(
    plugin: Plugin, table: DeviceTable, names: set[str | None], asked: set[str | None]
) -> str:  # fmt: skip
    """It has not what it should hand out, or will not have it; empty otherwise."""
    if any(class_name(path) in asked for path in plugin.lacks):
        sure = "" if plugin.names_nodes == "yes" else " (it matters if its answers name nodes)"
        return f"its own /dev lacks {', '.join(plugin.lacks)}, which the host has{sure}"
    missing = [node for node in table.host_nodes if not node.is_there and not node.found]
    if any(class_name(node.path) in asked & names for node in missing):
        return "it was started before the host's nodes were made, so that its own /dev lacks them"
    return ""


def _ill(table: DeviceTable) -> list[UnhealthyDevice]:
    return [one for one in table.unhealthy if one.mode == "F9"]


def _of(one: UnhealthyDevice) -> str | None:
    found = class_of_resource(one.resource)
    return found.name if found else None


def _classes(plugin: Plugin, table: DeviceTable) -> set[str | None]:
    """Of what it lacks, and by its name; a name that says nothing may be of any."""
    used = {class_name(node.path) for node in table.host_nodes}
    return (_by_name(plugin) or used) | _named(plugin)


def _named(plugin: Plugin) -> set[str | None]:
    """Of which it is for certain: one of network cards says nothing of GPUs."""
    return _by_name(plugin) | {class_name(path) for path in plugin.lacks}


def _by_name(plugin: Plugin) -> set[str | None]:
    return {one.name for one in CLASSES if is_named(plugin.workload, one.plugins)}


def _restart(plugin: Plugin, why: str, ill: Sequence[UnhealthyDevice]) -> Step:
    one = plugin.workload
    xids = sorted({ill_one.xid for ill_one in ill if ill_one.xid in HARDWARE_XIDS} - {None})
    first = "" if not xids else (
        f" See to the device first (drain, reset, reboot): Xid {', '.join(map(str, xids))} can mean"
        " hardware, and a restarted plugin hands it out again"
    )  # fmt: skip
    is_in_pod = one.pod_uid is not None
    devices = ", ".join(ill_one.device for ill_one in ill[:2])
    why = why or f"it gave up {devices}, and never calls a device healthy again"
    return Step(
        kind="plugin",
        what=f"Restart the device plugin {one.name}: {why}",
        command=delete_pod(one) if is_in_pod else docker(one, "restart"),
        mends=f"what it hands out: every pod that is allocated from then on.{first}".rstrip(".")
        if is_in_pod else _BY_DOCKER,
        does_not_mend="pods that it served already: the kubelet keeps its old answer for as long"
        " as a pod lives",
        lasts="for the life of the new container; after a boot it is back unless the nodes are"
        " made before the plugin is started (seawall gpu wait as its init container)",
        by="seawall" if is_in_pod and not xids else "you",
        on=plugin,
    )  # fmt: skip


_BY_DOCKER: Final = (
    "what it hands out from then on: dockerd fills the /dev of a --privileged container at each"
    " start; a list of --device stays as it was, and takes a new container"
)


def _unseen_plugin(table: DeviceTable, containers: list[ContainerDevices]) -> Iterator[Step]:
    """By class: a plugin of another one, which runs, gives these no devices."""
    served = [one for one in diagnosed(containers, "F1", "F2", "F10") if _is_served(one)]
    unseen = {one.device_class for one in served if not _has_plugin(one.device_class, table)}
    if unseen:
        yield Step(
            kind="plugin",
            what=f"Restart the device plugin's pod ({', '.join(sorted(unseen))}); no plugin that is"
            " called so was found running on this node",
            command="kubectl get pods -A -o wide | grep device-plugin",
            mends="what it hands out: every pod that is allocated from then on",
            does_not_mend="pods that it served already",
            lasts="for the life of the new container",
            by="you",
        )


def _is_served(one: ContainerDevices) -> bool:
    """By a plugin, when it is made anew."""
    is_asked = one.diagnosis is not None and one.diagnosis.mode == "F1"
    return one.workload.pod_uid is not None and (is_asked or one.promised_by.startswith("kubelet"))


def _has_plugin(name: str, table: DeviceTable) -> bool:
    """A class without a name here may be served by any plugin that is of no other."""
    named = [_named(plugin) for plugin in table.plugins]
    is_known = any(one.name == name for one in CLASSES)
    return any(name in some if is_known else not some for some in named)
