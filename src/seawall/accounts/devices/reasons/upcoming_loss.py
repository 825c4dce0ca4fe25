# SPDX-License-Identifier: Apache-2.0
"""What works now and is about to stop: layers that disagree behind an access that works."""

from collections.abc import Iterable, Iterator

from seawall.accounts.devices.classes import NEEDED, DeviceClass, class_of_resource
from seawall.accounts.devices.device_inputs import HostSide
from seawall.accounts.devices.kernel_rules.device_rules import device_of
from seawall.accounts.devices.layers import ContainerDevices, DeviceRow, Plugin, UpcomingLoss
from seawall.accounts.devices.reasons import cdi_files
from seawall.accounts.devices.reasons.versions import (
    always_reloads,
    rewrites_on_update,
    skips_links,
)
from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiSpec

RELOAD = "the next daemon-reload"
UPDATE = "the next update of the container"
START = "the next start of the container"
NEXT_POD = "the next pod that it serves"
IF_NAMED = ", if it names nodes in them (PASS_DEVICE_SPECS)"
NEXT_WITH_IT = "the next container that is started with it"
NEXT_START = "the next container that is started from it"
_NOT_BY_HAND = (
    "Changing the rules of the running container by hand does not last: the runtime and systemd"
    " both put back what they know."
)


def of_container(one: ContainerDevices, host: HostSide) -> Iterator[UpcomingLoss]:
    """Of each device that works: which layer does not know of it."""
    for row in one.devices:
        says = {layer: answer.says for layer, answer in row.layers.items()}
        works = says["access"] == "yes" or (says["access"] != "no" and says["kernel"] == "yes")
        if not works:
            continue
        if says["systemd"] == "no":
            yield _reload(one, row, host)
        elif says["configured"] == "no" and says["kernel"] == "yes":
            yield _update(one, row, host)
        elif says["configured"] == "none" and says["kernel"] == "yes":
            yield from _hook_and_update(one, row, host)


def _reload(one: ContainerDevices, row: DeviceRow, host: HostSide) -> UpcomingLoss:
    why = "the kernel allows it and systemd's list for the unit lacks it"
    remedy = f"Recreate the pod with devices that the runtime knows of (CDI). {_NOT_BY_HAND}"
    link, skips = missing_link(row, host), skips_links(host.versions)
    if link and skips.is_possible and row.layers["configured"].says == "yes":
        who = skips.who or "runc 1.1.3 to 1.1.6"
        why += f"; {link} is missing, and {who} leaves out such rules"
        remedy = (
            "Make the links in /dev/char (nvidia-ctk system create-dev-char-symlinks --create-all)"
            " or upgrade runc to 1.1.7 or later, then recreate the pod."
        )
    elif row.layers["configured"].says == "no":
        why += ", and the container's config too: it was given by hand or by a hook"
    elif row.layers["configured"].says == "none":
        why += f"; {row.layers['configured'].why}"
    reloads = always_reloads(host.versions)
    if reloads.says in ("yes", "maybe"):
        why += f"; {reloads.who}, before 1.2.5, makes units that systemd always wants to reload"
    return UpcomingLoss(one.workload, row.path, why, RELOAD, remedy)


def missing_link(row: DeviceRow, host: HostSide) -> str:
    """``/dev/char/195:255``; empty unless it is certainly not there."""
    device = device_of(row)
    is_missing = device is not None and host.lacks_link(device)
    return f"/dev/char/{row.major}:{row.minor}" if is_missing else ""


def _update(one: ContainerDevices, row: DeviceRow, host: HostSide) -> UpcomingLoss:
    """Runc since 1.0 leaves devices alone when it updates a container."""
    is_kept = rewrites_on_update(host.versions).says == "no"
    return UpcomingLoss(
        one.workload,
        row.path,
        "the kernel allows it and the container's config lacks it: it was given by hand or by a"
        " hook, and whoever applies the config again takes it away",
        START if is_kept else UPDATE,
        "Recreate the pod; if its device plugin lacks the node, restart that first."
        f" {_NOT_BY_HAND}",
    )


def _hook_and_update(
    one: ContainerDevices, row: DeviceRow, host: HostSide
) -> Iterator[UpcomingLoss]:
    rewrites = rewrites_on_update(host.versions)
    if rewrites.says in ("yes", "maybe"):
        yield UpcomingLoss(
            one.workload,
            row.path,
            f"{row.layers['configured'].why}, and {rewrites.who}, before 1.0, writes the rules anew"
            " without it",
            UPDATE,
            "Upgrade runc, or give the devices by CDI or through the device plugin's answer; then"
            " recreate the pod.",
        )


def of_links(containers: Iterable[ContainerDevices], host: HostSide) -> Iterator[UpcomingLoss]:
    """Links that are missing where systemd manages containers with devices and this runc needs
    them: what is started next works until the next daemon-reload.
    """
    skips = skips_links(host.versions)
    if skips.says not in ("yes", "maybe"):
        return
    rows = (row for one in containers for row in one.devices if _is_given_by_unit(row))
    links = {link: row.path for row in rows if (link := missing_link(row, host))}
    for link, path in links.items():
        yield UpcomingLoss(
            None,
            path,
            f"{link} is missing, and {skips.who} leaves out the rule of a device without such a"
            " link: what is started now loses it at the next daemon-reload",
            NEXT_WITH_IT,
            "Make the links in /dev/char (nvidia-ctk system create-dev-char-symlinks --create-all),"
            " or upgrade runc to 1.1.7 or later with systemd 240 or later.",
        )


def _is_given_by_unit(row: DeviceRow) -> bool:
    """By a line of its unit; those that lack it are told of by themselves."""
    systemd, configured = row.layers["systemd"], row.layers["configured"]
    return systemd.says == configured.says == "yes" and "DeviceAllow=" in systemd.why


def of_plugin(plugin: Plugin) -> Iterator[UpcomingLoss]:
    """A plugin hands out only what its own /dev has."""
    for path in plugin.lacks:
        if path not in NEEDED:
            continue
        yield UpcomingLoss(
            plugin.workload,
            path,
            "the device plugin's own /dev lacks it and the host has it: the plugin leaves it out"
            f" of its answers{'' if plugin.names_nodes == 'yes' else IF_NAMED}",
            NEXT_POD,
            "Restart the plugin pod, then recreate the pods that it served meanwhile.",
        )


# --- CDI --------------------------------------------------------------------------------


def of_cdi(host: HostSide) -> Iterator[UpcomingLoss]:
    """Files that are older than the devices."""
    for spec in () if isinstance(host.cdi, Unread) else host.cdi.specs:
        one = class_of_resource(spec.kind)
        if one is not None:
            yield from _lacking(spec, one, host)
            yield from _renumbered(spec, host)


def _lacking(spec: CdiSpec, one: DeviceClass, host: HostSide) -> Iterator[UpcomingLoss]:
    paths = {node.host_path or node.path for node in cdi_files.nodes_of(spec)}
    if not any(one.member.match(path) for path in paths):
        return  # it injects something else: hooks, libraries, nothing
    for control in one.controls:
        if control.is_needed and control.path not in paths and host.node(control.path):
            words = f"{spec.source} lacks it and the host has it: the file is older than the node"
            yield _anew(spec, control.path, words)


def _renumbered(spec: CdiSpec, host: HostSide) -> Iterator[UpcomingLoss]:
    told: set[str] = set()
    for node in cdi_files.nodes_of(spec):
        majors = host.majors(node.path)
        if node.major is None or not majors or node.major in majors or node.path in told:
            continue
        told.add(node.path)
        words = f"{spec.source} has major {node.major} for it and the driver has {majors[0]} now"
        yield _anew(spec, node.path, words)


def _anew(spec: CdiSpec, path: str, why: str) -> UpcomingLoss:
    words = cdi_files.anew(spec.kind, spec.source)
    command = cdi_files.command_of(spec.kind, spec.source)
    return UpcomingLoss(None, path, why, NEXT_START, f"{words[:1].upper()}{words[1:]}.", command)
