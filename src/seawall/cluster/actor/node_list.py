# SPDX-License-Identifier: Apache-2.0
"""Which pods a quarantine's status names to the nodes that they are on.  Pure.

A node that reboots in place starts its pods before it has heard of anything; its guard knows those
that may not run from the disk, where its file allows that (docs/guard.md).
"""

from typing import Final

from seawall.cluster.actor.family_view import ActorQuarantine, WorkloadFamily
from seawall.cluster.objects.action_levers import ActionLever
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.quarantine_actions import PODS_MOST, QuarantinedPod
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState

_STOPPING: Final = (QuarantineMode.GATE, QuarantineMode.SUSPEND)
"""On probation pods run on, where a guard enforces; held ones stay as they are."""


def pods_for_nodes(
    one: ActorQuarantine, family: WorkloadFamily, actions: PolicyActions
) -> tuple[QuarantinedPod, ...]:
    """Empty where copies may run on, and of a job on many nodes that no person approved.  One that
    is being deleted counts: on a silent node that does not end before the node is back.
    """
    is_stopping = one.object.state is QuarantineState.ACTIVE and one.object.mode in _STOPPING
    may_stop = ActionLever.STOP_COPIES in actions.levers_in(one.namespace)
    if actions.dry_run or not is_stopping or not may_stop:
        return ()
    pods = sorted(
        (pod.uid, pod.node)
        for pod in family.pods
        if pod.node and not pod.is_untouchable and pod.phase not in ("Succeeded", "Failed")
    )
    is_wide = len({node for _, node in pods}) > actions.brakes.approval_above_nodes
    if is_wide and not one.actor.approved_by:
        return ()
    return tuple(QuarantinedPod(uid, node) for uid, node in pods[:PODS_MOST])
