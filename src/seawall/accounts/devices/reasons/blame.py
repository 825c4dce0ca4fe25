# SPDX-License-Identifier: Apache-2.0
"""F1 and F2: a node that was never given, because the host or the device plugin has it not."""

import errno as errnos
from collections.abc import Sequence
from typing import Final

from seawall.accounts.devices.classes import class_of_path
from seawall.accounts.devices.device_inputs import ContainerSide, HostSide
from seawall.accounts.devices.layers import DeviceRow, Diagnosis, Plugin
from seawall.accounts.devices.promised.promises import Promise
from seawall.accounts.devices.reasons import cdi_files
from seawall.accounts.devices.reasons.since import CUT_SECONDS, elapsed
from seawall.accounts.devices.reasons.versions import always_reloads
from seawall.readings.device_specs import DeviceSpec

RESTART: Final = (
    "A process whose CUDA or driver context failed has to be restarted as well: it does not"
    " recover by itself."
)


def numbers(row: DeviceRow) -> str:
    """``" (c 237:0)"``, or nothing."""
    return "" if row.major is None else f" ({row.kind} {row.major}:{row.minor})"


def hook_words(hook: str | None) -> str:
    """A sentence that says who gave the device: the OCI hook; None: the container's config."""
    if hook is None:
        return "The container's config has it."
    return f"{hook} gave it at start, behind the runtime's back."


def reload_words(host: HostSide) -> str:
    """Where runc itself asks for a daemon-reload (F5), or nothing."""
    reloads = always_reloads(host.versions)
    if reloads.says == "unknown":
        return " (runc before 1.2.5 makes units that systemd always wants to reload.)"
    if reloads.says == "no":
        return ""
    return f" {reloads.who}, before 1.2.5, makes units that systemd always wants to reload."


def stale_cdi(side: ContainerSide, path: str, old: Sequence[int], host: HostSide) -> str:
    """How the CDI file that the old number comes from is written anew, as far as that is told."""
    nodes = side.promise.nodes.values()
    if not any(node.number is not None and node.number[0] in old for node in nodes):
        return ""
    spec = cdi_files.with_number(host.cdi, path, frozenset(old))
    return cdi_files.anew(spec.kind, spec.source) if spec else "write the CDI spec anew"


# --- F2 ---------------------------------------------------------------------------------


def missing_on_host(row: DeviceRow, side: ContainerSide, host: HostSide) -> Diagnosis | None:
    """The host itself lacks the node: nobody could hand it out."""
    one = side.promise.device_class
    if one is not None and row.path == one.unit_name:
        return None
    wanted = side.promise.nodes.get(row.path)
    path = wanted.host_path if wanted else row.path
    is_known = class_of_path(path) is not None or (wanted and side.promise.source == "kubelet")
    if not host.lacks(path) or not is_known or _works_inside(row):
        return None
    load = one.load if one else "the driver's own tool"
    unloaded = host.is_unloaded(path)
    cause = (
        f"The driver is not loaded ({one.module if one else 'see lsmod'}), so no node can work."
        if unloaded
        else "The driver is loaded and does not make this node itself: a program has to, after"
        " every boot and every load of the module."
    )
    return Diagnosis(
        "F2",
        f"{path} is missing on the host{': its driver is not loaded' if unloaded else ''}",
        cause,
        f"Run {load} on the host and order it before the container runtime and the device plugin"
        " at boot. Then restart the plugin's pod, write CDI specs anew, and recreate the pods:"
        f" what is running does not get the node by itself. {RESTART}",
    )


def _works_inside(row: DeviceRow) -> bool:
    return row.layers["access"].says == "yes"


# --- F1 ---------------------------------------------------------------------------------


def left_out(row: DeviceRow, side: ContainerSide, host: HostSide) -> Diagnosis | None:
    """The host has the node; whoever wrote the container's list of devices left it out."""
    promise, one = side.promise, side.promise.device_class
    controls = {control.path for control in one.controls} if one else set()
    if row.path not in controls or host.node(row.path) is None:
        return None
    if row.layers["configured"].says == "none" and row.errno == errnos.ENOENT:
        return _left_out_by_hook(row)
    if row.broken_at not in ("promised", "configured"):
        return None
    is_given = bool(promise.nodes) or promise.source == "cdi"
    is_hooks = promise.workload.pod_uid is not None and not is_given
    if is_hooks and any(one.names_nodes == "no" for one in host.plugins):
        return _by_no_hook(row)
    asks = promise.source == "environment" or _is_given_in_part(side)
    if row.layers["promised"].says == "yes" and not asks:
        return None
    if promise.source == "cdi":
        return _left_out_of_cdi(row, promise, host)
    plugin = next((one for one in host.plugins if row.path in one.lacks), None)
    if plugin is not None:
        return _by_plugin(row, plugin, host)
    if promise.source == "kubelet" or promise.workload.pod_uid is not None:
        return _by_some_plugin(row, host, promise)
    return _by_hand(row)


def _is_given_in_part(side: ContainerSide) -> bool:
    """The kubelet says that it gave devices and not which nodes; some of the class are there."""
    promise, one = side.promise, side.promise.device_class
    if promise.source != "kubelet" or promise.nodes or not isinstance(side.spec, DeviceSpec):
        return False
    return one is not None and any(one.unit.match(node.path) for node in side.spec.devices)


def _headline(row: DeviceRow) -> str:
    return f"{row.path}{numbers(row)} was never given to this container; the host has it"


def _by_plugin(row: DeviceRow, plugin: Plugin, host: HostSide) -> Diagnosis:
    why, is_older = _why_lacking(row.path, plugin, host)
    more = (
        " If the new one lacks the node too, let it see the host's /dev (privileged, or"
        " NVIDIA_DRIVER_CAPABILITIES with compute where a hook gives it its nodes)."
    )
    return Diagnosis(
        "F1",
        _headline(row),
        f"The device plugin {plugin.workload.name} (pid {plugin.pid}) has no {row.path} in its own"
        f" /dev{why}. A plugin that names nodes in its answers hands out only what it sees, and"
        " logs nothing about the rest.",
        f"Restart the plugin pod ({plugin.workload.name}), then recreate the pods that it served."
        f"{more if is_older else ''}"
        " Restarting the container alone does not mend it, and a rule that is written into the"
        f" cgroup by hand is undone by the runtime or by systemd. {RESTART}",
    )


def _why_lacking(path: str, plugin: Plugin, host: HostSide) -> tuple[str, bool]:
    """Why a plugin's /dev lacks a node, by the times of both; and whether the node is older."""
    made, start = host.changed_at(path), host.started_at(plugin.pid)
    if made is None or start is None:
        return ": most likely it was started before the host had the node", False
    if abs(made - start) <= CUT_SECONDS:
        return ": the host's node was made or changed just when it was started", False
    if made > start:
        ago = elapsed(made - start)
        return f": the host's node was made or changed {ago} after it was started", False
    words = (
        f". The host's node is older: it was made or changed {elapsed(start - made)} before the"
        " plugin was started, so something else keeps it out"
    )
    return words, True


def _by_no_hook(row: DeviceRow) -> Diagnosis:
    """The plugin names no nodes: whoever should give them did not."""
    return Diagnosis(
        "unnamed",
        _headline(row),
        "The device plugin's answers name no nodes here, so a hook or the runtime has to give them,"
        f" and did not: {row.layers['configured'].why}.",
        "Look whether the pod's runtime is the one that gives devices (runtimeClassName, or the"
        " runtime's default), then recreate the pod. Restarting the device plugin does not mend"
        f" it. {RESTART}",
    )


def _by_some_plugin(row: DeviceRow, host: HostSide, promise: Promise) -> Diagnosis:
    who, first = "The device plugin's answer did not name it.", "Restart the plugin pod, then r"
    if host.plugins:
        names = ", ".join(plugin.workload.name for plugin in host.plugins[:3])
        who += (
            f" The plugin that runs now ({names}) does have the node in its /dev, so the answer was"
            " given before it had, or it is not told to name control nodes."
        )
        first = "R"
    elif promise.source == "kubelet":
        who += " The plugin's own /dev could not be seen; it usually was started before the node."
    else:
        who = "The list of devices that it was started with lacks it, as a device plugin makes it"
        who += " that was started before the host had the node. The plugin was not found here."
    option = promise.device_class.answer if promise.device_class else ""
    return Diagnosis(
        "F1",
        _headline(row),
        who,
        f"{first}ecreate the pod{f' (with {option} in the plugin)' if option else ''}. Restarting"
        " the container alone does not mend it, and a rule that is written into the cgroup by hand"
        f" is undone. {RESTART}",
    )


def _by_hand(row: DeviceRow) -> Diagnosis:
    return Diagnosis(
        "F1",
        _headline(row),
        "The list of devices that it was started with lacks it, and no device plugin was found"
        " that made the list.",
        f"Start it anew with --device {row.path}, or with --gpus or a CDI device, which bring all"
        f" that is needed. {RESTART}",
    )


def _left_out_of_cdi(row: DeviceRow, promise: Promise, host: HostSide) -> Diagnosis:
    kind = promise.promised_by.removeprefix("CDI ").partition("=")[0]
    spec = cdi_files.of_kind(host.cdi, kind)
    first = cdi_files.anew(kind, spec.source) if spec else "write the CDI spec anew"
    return Diagnosis(
        "F2",
        _headline(row),
        f"The CDI spec behind {promise.promised_by} lacks it: it was written before the host had"
        " the node.",
        f"{first[:1].upper()}{first[1:]}. Order that after the nodes are made at boot, and recreate"
        f" the container. {RESTART}",
    )


def _left_out_by_hook(row: DeviceRow) -> Diagnosis:
    return Diagnosis(
        "F2",
        _headline(row),
        f"{row.layers['configured'].why}. A hook gives what the host has at that moment, and this"
        " node is in the host's /dev and not in the container's: the host got it later.",
        "Recreate the container now; at boot, make the nodes before containers are started."
        f" Making the node inside by hand does not mend it: the cgroup refuses it. {RESTART}",
    )
