# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu --json``: the document ``seawall.gpu/1``."""

from typing import Any

from seawall.accounts.devices.device_changes import Differs
from seawall.accounts.devices.layers import (
    LAYERS,
    ContainerDevices,
    DeviceRow,
    Diagnosis,
    HostNode,
    Plugin,
    Since,
    UpcomingLoss,
)
from seawall.host.host import Unread
from seawall.views.document import not_seen_rows, taken_at
from seawall.views.gpu_faults import fault_rows
from seawall.views.gpu_page import GpuPage, errno_name, state_of


def document(head: dict[str, Any], page: GpuPage) -> dict[str, Any]:
    """The whole answer, nothing left out."""
    table = None if isinstance(page.table, Unread) else page.table
    plugins = table.plugins if table else ()
    nodes = table.host_nodes if table else ()
    diagnoses = table.host_diagnosis if table else ()
    return {
        **head,
        "workload": page.wanted and page.wanted.name,
        "opened": page.opens,
        "plugin": [_plugin(one) for one in plugins],
        "containers": [_container(one) for one in page.containers],
        "about_to_break": [_soon(one) for one in page.soon],
        "host_nodes": [_node(one) for one in nodes],
        "host_diagnosis": [_diagnosis(one) for one in diagnoses],
        **fault_rows(table),
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
        "moments": page.moments,
        "at_last_moment": [_differs(one) for one in page.at_last],
    }


def _differs(one: Differs) -> dict[str, Any]:
    return {
        "workload": one.workload.name,
        "cgroup": one.workload.cgroup,
        "device_class": one.device_class,
        "mode": one.mode,
        "words": one.words,
    }


def _plugin(one: Plugin) -> dict[str, Any]:
    return {
        "workload": one.workload.name,
        "cgroup": one.workload.cgroup,
        "pid": one.pid,
        "lacks": list(one.lacks),
        "names_nodes": one.names_nodes,
    }


def _container(one: ContainerDevices) -> dict[str, Any]:
    return {
        "workload": one.workload.name,
        "cgroup": one.workload.cgroup,
        "device_class": one.device_class,
        "promised_by": one.promised_by,
        "state": state_of(one),
        "devices": [_device(row) for row in one.devices],
        "diagnosis": None if one.diagnosis is None else _diagnosis(one.diagnosis, one.since),
        "unseen": list(one.unseen),
    }


def _device(row: DeviceRow) -> dict[str, Any]:
    told = {name: row.layers[name] for name in LAYERS if name in row.layers}
    return {
        "path": row.path,
        "kind": row.kind,
        "major": row.major,
        "minor": row.minor,
        "is_needed": row.is_needed,
        "layers": {name: {"says": answer.says, "why": answer.why} for name, answer in told.items()},
        "errno": row.errno,
        "errno_name": errno_name(row.errno) or None,
        "broken_at": row.broken_at,
    }


def _diagnosis(one: Diagnosis, since: Since | None = None) -> dict[str, Any]:
    return {
        "mode": one.mode,
        "headline": one.headline,
        "cause": one.cause,
        "remedy": one.remedy,
        "since": _since(since),
    }


def _since(since: Since | None) -> dict[str, Any] | None:
    """None where the clock is absurd, too."""
    at = None if since is None else taken_at(since.at)
    return None if since is None or at is None else {"at": at, "how": since.how}


def _soon(one: UpcomingLoss) -> dict[str, Any]:
    return {
        "workload": one.workload and one.workload.name,
        "cgroup": one.workload and one.workload.cgroup,
        "device": one.device,
        "why": one.why,
        "when": one.when,
        "remedy": one.remedy,
    }


def _node(one: HostNode) -> dict[str, Any]:
    return {
        "path": one.path,
        "driver": one.driver,
        "major": one.major,
        "minor": one.minor,
        "is_there": one.is_there,
        "found": one.found or None,
    }
