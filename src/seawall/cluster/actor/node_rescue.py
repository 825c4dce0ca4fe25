# SPDX-License-Identifier: Apache-2.0
"""Which silent nodes are asked to end the culprit that their own guard has proved.  Pure.

The order is no evidence: the guard judges by itself whether whom it names goes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from seawall.cluster.kube.node_row import NodeRow
from seawall.cluster.objects.action_levers import ActionApproval, ActionLever
from seawall.cluster.objects.match_objects import meets_pod
from seawall.cluster.objects.node_report_object import NodeReportObject
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.rescue_order_object import (
    ORDER_SECONDS,
    PODS_MOST,
    RescueOrderObject,
)
from seawall.cluster.objects.workload_quarantine_object import WorkloadMatch

SILENT_SECONDS: Final = 5.0
"""A node that speaks again at once needs nothing."""
REPORT_SECONDS: Final = 120.0
"""An agent that has said nothing for so long hears no order."""
REQUESTED_BY: Final = "seawall-actor"


def in_name_of(
    order: RescueOrderObject, pods: Iterable[Mapping[str, Any]],
    standing: Iterable[tuple[str, WorkloadMatch]],
) -> RescueOrderObject | None:  # fmt: skip
    """The order in the name of the first quarantine that means any of its pods, for those alone;
    None: there is none.

    pods:      of the API, as many of those that it names as there are
    standing:  quarantines by name that are neither released nor over
    """
    known = [pod for pod in pods if _uid(pod) in order.pods]
    for name, match in standing:
        named = tuple(_uid(pod) for pod in known if meets_pod(match, pod))
        if named:
            return replace(order, pods=named, quarantine=name)
    return None


def rescue_orders(
    rows: Mapping[str, NodeRow], reports: Iterable[tuple[NodeReportObject, float]],
    actions: PolicyActions, now_seconds: float, is_protected: Callable[[str], bool],
) -> list[RescueOrderObject]:  # fmt: skip
    """For each such node one order.

    reports:       with the time when the API server took each
    is_protected:  of a namespace
    """
    orders = []
    for report, received in reports:
        row, distress = rows.get(report.node), report.distress
        if row is None or row.ready != "Unknown" or row.boot_id != report.boot_id:
            continue
        is_old = now_seconds - received > REPORT_SECONDS
        is_deaf = not (report.guard.can_kill and report.guard.takes_rescue)
        if distress is None or is_old or is_deaf or report.guard.is_braked:
            continue
        if now_seconds - row.ready_seconds < SILENT_SECONDS:
            continue
        named = [
            one.pod_uid for one in distress.culprits
            if one.is_proved and one.namespace and not is_protected(one.namespace)
            and ActionLever.RESCUE in actions.levers_in(one.namespace)
            and actions.approval_in(one.namespace) is ActionApproval.AUTO
        ]  # fmt: skip
        if named:
            orders.append(RescueOrderObject(
                node=report.node, boot_id=report.boot_id,
                pods=tuple(dict.fromkeys(named))[:PODS_MOST], requested_by=REQUESTED_BY,
                expires_seconds=now_seconds + ORDER_SECONDS,
                reason="the node is silent, and its guard has proved who took its memory",
            ))  # fmt: skip
    return orders


def _uid(pod: Mapping[str, Any]) -> str:
    metadata = pod.get("metadata")
    return str(metadata.get("uid") or "") if isinstance(metadata, Mapping) else ""
