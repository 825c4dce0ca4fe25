# SPDX-License-Identifier: Apache-2.0
"""The sentences of ``seawall gpu``: what is worst, and what a control node lacks."""

from collections.abc import Sequence

from seawall.accounts.devices.classes import CLASSES
from seawall.accounts.devices.layers import DeviceTable, HostNode
from seawall.host.host import Unread
from seawall.views.gpu_page import GpuPage, by_state, missing_nodes


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
        words = f"{who} cannot use what {'it was' if total == 1 else 'they were'} promised."
    elif untried := len(found["untried"]):
        words = _untried(untried, total)
    elif total == 1:
        words = "The container can use what it was promised."
    else:
        words = f"All {containers(total)} can use what they were promised."
    return words + _more(page, table)


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
            names = short_names([node.path for node in missing], 2)
            words += f" On the host {names} is not as its driver has it."
        if any(plugin.lacks for plugin in table.plugins):
            words += " The device plugin cannot hand out all that the host has."
    if page.soon:
        words += f" {len(page.soon)} about to break."
    return words + _not_seen(page)


def _not_seen(page: GpuPage) -> str:
    """The first of what is told at the end: who is not root must not take this for all."""
    if not page.unseen:
        return ""
    first = page.unseen[0]
    words = f"{first.what}: {first.why}".rstrip(".")
    if first.provide:
        words += f" (needs: {first.provide})"
    if len(page.unseen) > 1:
        words += f", and {len(page.unseen) - 1} more at the end"
    return f" {'Not' if page.is_root else 'You are not root: not'} seen: {words}."


def _nobody(page: GpuPage, table: DeviceTable) -> str:
    """No container has a device."""
    if page.wanted is not None:
        words = f"{page.wanted.name} was promised no device."
        return words + _not_seen(page)
    seen = " that could be seen" if page.unseen else ""
    words = f"No container here{seen} was promised a device"
    if page.drivers is None:
        return f"{words}." + _more(page, table)
    if not page.drivers:
        return f"{words}; /proc/devices knows no GPU driver." + _more(page, table)
    words += f"; loaded: {short_names(page.drivers, 6)}"
    if not table.host_nodes:
        words += "; whether their control nodes are there was not seen"
    elif not missing_nodes(table.host_nodes):
        words += f", and all {len(table.host_nodes)} of their control nodes are there"
    return f"{words}." + _more(page, table)


def containers(count: int) -> str:
    """``1 container``, ``14 containers``."""
    return "1 container" if count == 1 else f"{count} containers"


def short_names(names: Sequence[str], most: int) -> str:
    """The first ones, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def node_words(node: HostNode) -> str:
    """What is wrong with one control node, and what would make it."""
    number = f"c {node.major}:{node.minor}"
    what = (
        f"{node.path} is {node.found}, but {node.driver} is {number} now"
        if node.found
        else f"{node.path} is missing, though {node.driver} is loaded ({number})"
    )
    maker = next((one.load for one in CLASSES if one.member.match(node.path)), "")
    by_hand = f"mknod -m 666 {node.path} c {node.major} {node.minor}"
    return f"{what}; made by: {f'{maker}, or ' if maker else ''}{by_hand}"
