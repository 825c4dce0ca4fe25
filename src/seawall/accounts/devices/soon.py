# SPDX-License-Identifier: Apache-2.0
"""What works now and is about to stop: layers that disagree behind an access that works."""

from collections.abc import Iterator

from seawall.accounts.devices.classes import CLASSES, DeviceClass, class_of_resource
from seawall.accounts.devices.layers import ContainerDevices, DeviceRow, Plugin, Soon
from seawall.accounts.devices.rules import Device
from seawall.accounts.devices.sight import HostSide
from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiNode, CdiSpec, CdiSpecs

RELOAD = "the next daemon-reload"
UPDATE = "the next update of the container"
NEXT_POD = "the next pod that it serves"
NEXT_START = "the next container that is started from it"
_NOT_BY_HAND = (
    "Changing the rules of the running container by hand does not last: the runtime and systemd"
    " both put back what they know."
)


def of_container(one: ContainerDevices, host: HostSide) -> Iterator[Soon]:
    """Of each device that works: which layer does not know of it."""
    for row in one.devices:
        says = {layer: answer.says for layer, answer in row.layers.items()}
        works = says["access"] == "yes" or (says["access"] != "no" and says["kernel"] == "yes")
        if not works:
            continue
        if says["systemd"] == "no":
            yield _reload(one, row, host)
        elif says["configured"] == "no" and says["kernel"] == "yes":
            yield _update(one, row)


def _reload(one: ContainerDevices, row: DeviceRow, host: HostSide) -> Soon:
    why = "the kernel allows it and systemd's list for the unit lacks it"
    remedy = f"Recreate the pod with devices that the runtime knows of (CDI). {_NOT_BY_HAND}"
    link = _missing_link(row, host)
    if link and row.layers["configured"].says == "yes":
        why += f"; {link} is missing, and runc 1.1.3 to 1.1.6 leaves out such rules"
        remedy = (
            "Make the links in /dev/char (nvidia-ctk system create-dev-char-symlinks --create-all)"
            " or upgrade runc to 1.1.7 or later, then recreate the pod."
        )
    elif row.layers["configured"].says == "no":
        why += ", and the container's config too: it was given by hand or by a hook"
    return Soon(one.workload, row.path, why, RELOAD, remedy)


def _missing_link(row: DeviceRow, host: HostSide) -> str:
    if row.major is None or row.minor is None:
        return ""
    is_missing = host.lacks_link(Device(row.kind, row.major, row.minor))
    return f"/dev/char/{row.major}:{row.minor}" if is_missing else ""


def _update(one: ContainerDevices, row: DeviceRow) -> Soon:
    return Soon(
        one.workload,
        row.path,
        "the kernel allows it and the container's config lacks it: it was given by hand or by a"
        " hook, and whoever applies the config again takes it away",
        UPDATE,
        "Recreate the pod; if its device plugin lacks the node, restart that first."
        f" {_NOT_BY_HAND}",
    )


def of_plugin(plugin: Plugin) -> Iterator[Soon]:
    """A plugin hands out only what its own /dev has."""
    needed = {control.path for one in CLASSES for control in one.controls if control.is_needed}
    for path in plugin.lacks:
        if path not in needed:
            continue
        yield Soon(
            plugin.workload,
            path,
            "the device plugin's own /dev lacks it and the host has it: the plugin leaves it out"
            " of its answers",
            NEXT_POD,
            "Restart the plugin pod, then recreate the pods that it served meanwhile.",
        )


# --- CDI --------------------------------------------------------------------------------


def of_cdi(specs: CdiSpecs | Unread, host: HostSide) -> Iterator[Soon]:
    """Files that are older than the devices."""
    for spec in () if isinstance(specs, Unread) else specs.specs:
        one = class_of_resource(spec.kind)
        if one in CLASSES and one is not None:
            yield from _lacking(spec, one, host)
            yield from _renumbered(spec, host)


def _nodes(spec: CdiSpec) -> Iterator[CdiNode]:
    yield from spec.common
    for nodes in spec.devices.values():
        yield from nodes


def _lacking(spec: CdiSpec, one: DeviceClass, host: HostSide) -> Iterator[Soon]:
    paths = {node.host_path or node.path for node in _nodes(spec)}
    if not any(one.member.match(path) for path in paths):
        return  # it injects something else: hooks, libraries, nothing
    for control in one.controls:
        if control.is_needed and control.path not in paths and host.node(control.path):
            words = f"{spec.source} lacks it and the host has it: the file is older than the node"
            yield Soon(None, control.path, words, NEXT_START, _ANEW)


def _renumbered(spec: CdiSpec, host: HostSide) -> Iterator[Soon]:
    told: set[str] = set()
    for node in _nodes(spec):
        majors = host.majors(node.path)
        if node.major is None or not majors or node.major in majors or node.path in told:
            continue
        told.add(node.path)
        words = f"{spec.source} has major {node.major} for it and the driver has {majors[0]} now"
        yield Soon(None, node.path, words, NEXT_START, _ANEW)


_ANEW = "Write the CDI spec anew (nvidia-ctk cdi generate)."
