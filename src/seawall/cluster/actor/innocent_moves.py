# SPDX-License-Identifier: Apache-2.0
"""Which pods leave a dead node before the core's 300 s are over, so that they serve again sooner.

By opt-in: a node that is only cut off runs its pods on, and then two copies run.  Never what keeps
its name or its volume (StatefulSets, claims), what nobody makes anew, or who may be a culprit.
Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from seawall.cluster.actor.family_pods import FamilyPod, family_pod
from seawall.cluster.objects.action_levers import ActionApproval, ActionLever
from seawall.cluster.objects.match_objects import meets_pod
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.workload_quarantine_object import WorkloadMatch

SILENT_SECONDS: Final = 60.0
"""Of silence, before anybody moves."""
MOVES_PER_MINUTE: Final = 30
REMADE_KINDS: Final = ("ReplicaSet", "Job", "ReplicationController")


def innocents(
    documents: Iterable[Mapping[str, Any]], suspects: Iterable[WorkloadMatch],
    actions: PolicyActions, protected: frozenset[str],
) -> list[FamilyPod]:  # fmt: skip
    """Of the pods of one dead node, as the API gives them, those that may go now."""
    matches = list(suspects)
    found = []
    for document in documents:
        pod = family_pod(document)
        if pod.namespace in protected or not pod.lives or pod.is_untouchable or pod.records:
            continue
        if pod.is_ready or pod.has_claims or pod.owner is None:
            continue
        if pod.owner.kind not in REMADE_KINDS or pod.record_problem:
            continue
        if ActionLever.MOVE_INNOCENTS not in actions.levers_in(pod.namespace):
            continue
        if actions.approval_in(pod.namespace) is not ActionApproval.AUTO:
            continue
        if not any(meets_pod(match, document) for match in matches):
            found.append(pod)
    return found
