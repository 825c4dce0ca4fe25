# SPDX-License-Identifier: Apache-2.0
"""Names of our API group: what agent, observer, chart and people have to spell alike."""

from typing import Final, NamedTuple

GROUP: Final = "seawall.internal"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"


class CustomKind(NamedTuple):
    """A kind of object; all of ours belong to the whole cluster."""

    kind: str
    plural: str
    short_name: str
    has_status_subresource: bool


NODE_DEATH: Final = CustomKind("NodeDeath", "nodedeaths", "nd", False)
WORKLOAD_QUARANTINE: Final = CustomKind("WorkloadQuarantine", "workloadquarantines", "wq", True)
CLUSTER_POLICY: Final = CustomKind("SeawallPolicy", "seawallpolicies", "swp", True)
NODE_REPORT: Final = CustomKind("NodeReport", "nodereports", "nrep", False)
RESCUE_ORDER: Final = CustomKind("RescueOrder", "rescueorders", "rord", True)
CUSTOM_KINDS: Final = (NODE_DEATH, WORKLOAD_QUARANTINE, CLUSTER_POLICY, NODE_REPORT, RESCUE_ORDER)

POLICY_NAME: Final = "default"
"""The one SeawallPolicy that counts."""

OBSERVER_MANAGER: Final = "seawall-observer"
AGENT_MANAGER: Final = "seawall-agent"
ACTOR_MANAGER: Final = "seawall-actor"
"""Field managers (``fieldManager`` of a write)."""
AGENT_ACCOUNT: Final = "seawall-agent"
"""Service account of the agents' pods, in the namespace that the observer runs in as well."""

CONTROLLER_NAME: Final = f"{GROUP}/observer"
"""``reportingController`` of the observer's Events."""
ACTOR_NAME: Final = f"{GROUP}/actor"
"""``reportingController`` of the actor's Events."""

CHANGES_ANNOTATION: Final = f"{GROUP}/changes"
"""On an object of somebody else: which of its fields Seawall changed, and what they were."""
CHANGED_BY_LABEL: Final = f"{GROUP}/changed-by"
"""On the same object: name of the quarantine, to find it by."""
IN_FORCE_MAP: Final = "seawall-in-force"
"""ConfigMap beside the lease, by the observer alone: names of quarantines, ``State mode`` each.
The fences of the actor go by it; where there is no actor there is none.
"""
IN_FORCE_FENCE: Final = "seawall-actor-in-force"
"""Admission policy that looks it up; the API server's refusal names it."""
QUARANTINE_GATE: Final = f"{GROUP}/quarantine"
"""Scheduling gate of a pod that waits for the end of a quarantine."""
GUARD_LABEL: Final = f"{GROUP}/guard"
"""On a node, by the actor alone; its value is ``GUARD_ENFORCING`` where the guard enforces."""
GUARD_ENFORCING: Final = "enforcing"


def path_of(kind: CustomKind, name: str = "", *, status: bool = False) -> str:
    """Of all objects of a kind, of one, or of one's status subresource."""
    path = f"/apis/{API_VERSION}/{kind.plural}"
    if name:
        path += f"/{name}"
    return f"{path}/status" if status else path
