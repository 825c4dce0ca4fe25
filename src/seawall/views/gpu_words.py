# SPDX-License-Identifier: Apache-2.0
"""The sentences of ``seawall gpu``: what is worst, and what a control node lacks."""

from collections.abc import Iterable, Sequence

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.host_nodes import by_hand
from seawall.accounts.devices.layers import ContainerDevices, HostNode, Since
from seawall.accounts.devices.reasons.since import elapsed, moment
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.views.gpu_page import GpuPage, by_state, missing_nodes
from seawall.words import first


def summary(page: GpuPage) -> str:
    """The first line: the worst of all, in one or two sentences."""
    table = page.table
    if isinstance(table, Unread):
        return f"Nothing can be told of devices: {table.path}: {table.detail or table.why}."
    found = by_state(page.containers)
    total = len(page.containers)
    if not total:
        return _nobody(page, table)
    if broken := len(found["broken"]):
        who = "The container" if total == 1 else f"{broken} of {containers(total)}"
        words = f"{who} cannot use what {_given(found['broken'], is_one=total == 1)}."
    elif untried := len(found["untried"]):
        words = _untried(untried, total)
    elif total == 1:
        words = f"The container can use what {_given(page.containers, is_one=True)}."
    else:
        words = f"All {containers(total)} can use what {_given(page.containers, is_one=False)}."
    return words + _more(page, table)


def _given(found: Sequence[ContainerDevices], *, is_one: bool) -> str:
    if not is_promised(found):
        return "its config names" if is_one else "their configs name"
    return f"{'it was' if is_one else 'they were'} promised"


def is_promised(found: Iterable[ContainerDevices]) -> bool:
    """Not where all that tells of the devices is the container's own config."""
    says = [row.layers["promised"].says for one in found for row in one.devices]
    return not says or any(one != "none" for one in says)


def _untried(untried: int, total: int) -> str:
    if untried < total:
        return f"{untried} of {containers(total)} could not be tried; none of the others is broken."
    if total == 1:
        return "The container could not be tried: whether its devices can be used is not known."
    return (
        f"None of {containers(total)} could be tried: whether their devices can be used is not "
        "known."
    )


def _more(page: GpuPage, table: DeviceTable) -> str:
    """What is wrong beside the containers, and who does not see it all."""
    words = ""
    if page.wanted is None:
        missing = missing_nodes(table.host_nodes)
        if missing:
            names = first([node.path for node in missing], 2)
            words += f" On the host {names} is not as its driver has it."
        words += _plugins(table)
        if pods := len(table.refused_pods):
            words += f" {pods} {'pod was' if pods == 1 else 'pods were'} refused for want of one."
        if lost := len(table.unhealthy):
            words += f" {lost} {'is' if lost == 1 else 'are'} not handed out to new pods."
    if page.soon:
        words += f" {len(page.soon)} about to break."
    return words + _not_seen(page)


def _plugins(table: DeviceTable) -> str:
    lacking = [plugin for plugin in table.plugins if plugin.lacks]
    if any(plugin.names_nodes == "yes" for plugin in lacking):
        return " The device plugin cannot hand out all that the host has."
    return " The device plugin does not see all that the host has." if lacking else ""


def _not_seen(page: GpuPage) -> str:
    """Who is not root must not take this for all; what it is stands at the end."""
    if not page.unseen:
        return ""
    count = "1 thing was" if len(page.unseen) == 1 else f"{len(page.unseen)} things were"
    return f" {'' if page.is_root else 'You are not root: '}{count} not seen: see the end."


def _nobody(page: GpuPage, table: DeviceTable) -> str:
    """No container has a device."""
    if page.wanted is not None:
        return f"{_of_nobody(page, page.wanted, table)}{_not_seen(page)}"
    seen = " that could be seen" if page.unseen else ""
    words = f"No container here{seen} was promised a device"
    if page.drivers is None:
        return f"{words}." + _more(page, table)
    if not page.drivers:
        return f"{words}; /proc/devices knows no GPU driver." + _more(page, table)
    words += f"; loaded: {first(page.drivers, 6)}"
    if not table.host_nodes:
        words += "; whether their control nodes are there was not seen"
    elif not missing_nodes(table.host_nodes):
        words += f", and all {len(table.host_nodes)} of their control nodes are there"
    return f"{words}." + _more(page, table)


def _of_nobody(page: GpuPage, wanted: Workload, table: DeviceTable) -> str:
    """No promise was found: that is no answer where the witnesses were not seen."""
    plugins = [plugin for plugin in table.plugins if page.is_wanted(plugin.workload)]
    if plugins:
        words = f"{wanted.name} is a device plugin: it hands out devices and is promised none."
        return f"{words} It does not see all that the host has." if plugins[0].lacks else words
    if table.unseen:
        return f"No promise of a device to {wanted.name} was found in what could be seen."
    return f"{wanted.name} was promised no device."


def containers(count: int) -> str:
    """A number of containers in words: ``1 container``, ``14 containers``."""
    return "1 container" if count == 1 else f"{count} containers"


def since_words(since: Since, taken_at: float | None) -> str:
    """``2026-11-22 03:14:07 UTC, 2 h 5 min: the container was started``."""
    ago = "" if taken_at is None else f", {elapsed(taken_at - since.at)}"
    return f"{moment(since.at)}{ago}: {since.how}"


def node_words(node: HostNode) -> str:
    """What is wrong with one control node, and what would make it."""
    number = f"c {node.major}:{node.minor}"
    what = (
        f"{node.path} is {node.found}, but {node.driver} is {number} now"
        if node.found
        else f"{node.path} is missing, though {node.driver} is loaded ({number})"
    )
    maker = next((one.load for one in CLASSES if one.member.match(node.path)), "")
    return f"{what}; made by: {f'{maker}, or ' if maker else ''}{by_hand(node)}"
