# SPDX-License-Identifier: Apache-2.0
"""Refused pods and devices that are not handed out, for ``seawall gpu --json``."""

from typing import Any

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import RefusedPod, UnhealthyDevice
from seawall.views.document import taken_at


def fault_rows(table: DeviceTable | None) -> dict[str, Any]:
    """The two lists, by the names that they have in the document."""
    return {
        "refused_pods": [_refused(one) for one in (table.refused_pods if table else ())],
        "unhealthy_devices": [_unhealthy(one) for one in (table.unhealthy if table else ())],
    }


def _refused(one: RefusedPod) -> dict[str, Any]:
    return {
        "namespace": one.namespace,
        "pod": one.pod,
        "pod_uid": one.uid or None,
        "resource": one.resource,
        "refused_at": taken_at(one.at),
        "mode": one.mode,
        "why": one.why,
        "registered_at": taken_at(one.registered_at),
    }


def _unhealthy(one: UnhealthyDevice) -> dict[str, Any]:
    return {
        "resource": one.resource,
        "device": one.device,
        "since": taken_at(one.since),
        "xid": one.xid,
        "mode": one.mode,
        "why": one.why,
    }
