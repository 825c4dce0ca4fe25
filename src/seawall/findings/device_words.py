# SPDX-License-Identifier: Apache-2.0
"""What findings about devices have in common: who is worst, evidence, shell lines."""

import errno
from collections.abc import Sequence
from typing import Final, get_args

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices, DeviceRow, HostNode
from seawall.accounts.devices.reasons.since import moment
from seawall.findings.finding import Evidence
from seawall.findings.shell import quote
from seawall.host.host import Unread, Why
from seawall.words import first

SHOWN: Final = 20
"""Rows of evidence, and names of what was not seen."""
_NAMED: Final = 3


def broken_rows(one: ContainerDevices) -> list[DeviceRow]:
    """Those that it cannot do without come first."""
    rows = [row for row in one.devices if row.broken_at is not None]
    return sorted(rows, key=lambda row: not row.is_needed)


def lacks_needed(one: ContainerDevices) -> bool:
    """Whether its class of device does not work at all for it."""
    return any(row.is_needed for row in broken_rows(one))


def is_untried(one: ContainerDevices) -> bool:
    """Whether it is not known if some needed device of it works."""
    return any(row.is_needed and row.layers["access"].says == "unread" for row in one.devices)


def unread(what: str, told: Sequence[str]) -> list[Unread]:
    """``the host's /dev, PATH: WHY DETAIL``, as accounts of devices tell what they lack."""
    found = []
    for words in told[:SHOWN]:
        head, _, tail = words.partition(": ")
        why, _, detail = tail.partition(" ")
        known = next((one for one in get_args(Why) if one == why), None)
        if known is None:
            found.append(Unread(what, "refused", words))
        else:
            found.append(Unread(head.rpartition(", ")[2], known, detail))
    return found


def missing_nodes(table: DeviceTable) -> list[HostNode]:
    """Control nodes of loaded drivers that are not there, or are something else."""
    return [node for node in table.host_nodes if not node.is_there or node.found]


def needed_paths(table: DeviceTable) -> set[str]:
    """The devices without which a container of this node would be broken."""
    return {row.path for one in table.containers for row in one.devices if row.is_needed}


def row_evidence(one: ContainerDevices, row: DeviceRow) -> Evidence:
    """The first layer that is wrong about a device, in that layer's own words."""
    layer = row.broken_at or "access"
    told = row.layers.get(layer)
    what = f"wrong at: {layer}"
    if row.errno:
        what += f"; tried: {errno.errorcode.get(row.errno, f'errno {row.errno}')}"
    if one.diagnosis is not None:
        what = f"{one.diagnosis.mode}, {what}"
    words = told.why if told is not None else "seawall gpu"
    return Evidence(f"{row.path} in {one.workload.name}", what, "text", words)


def cause_evidence(one: ContainerDevices) -> list[Evidence]:
    """Why, in the diagnosis' own words."""
    if one.diagnosis is None:
        return []
    return [Evidence(f"cause for {one.workload.name}", one.diagnosis.cause, "text", "seawall gpu")]


def since_evidence(one: ContainerDevices) -> list[Evidence]:
    """Since when, where that is known."""
    if one.since is None:
        return []
    what = f"{one.workload.name} refused since"
    return [Evidence(what, moment(one.since.at), "text", one.since.how)]


def names(some: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    return first(some, _NAMED)


def repair_line(workload: str) -> str:
    """The shell line that shows the steps that mend one workload; it does nothing yet."""
    return f"seawall gpu repair {quote(workload)}"


def gpu_line(workload: str) -> str:
    """The shell line that shows all five layers of one workload."""
    return f"seawall gpu {quote(workload)}"
