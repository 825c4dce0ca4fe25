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
CUSTOM_KINDS: Final = (NODE_DEATH, WORKLOAD_QUARANTINE, CLUSTER_POLICY, NODE_REPORT)

POLICY_NAME: Final = "default"
"""The one SeawallPolicy that counts."""

OBSERVER_MANAGER: Final = "seawall-observer"
AGENT_MANAGER: Final = "seawall-agent"
"""Field managers (``fieldManager`` of a write)."""
AGENT_ACCOUNT: Final = "seawall-agent"
"""Service account of the agents' pods, in the namespace that the observer runs in as well."""

CONTROLLER_NAME: Final = f"{GROUP}/observer"
"""``reportingController`` of the observer's Events."""


def path_of(kind: CustomKind, name: str = "", *, status: bool = False) -> str:
    """Of all objects of a kind, of one, or of one's status subresource."""
    path = f"/apis/{API_VERSION}/{kind.plural}"
    if name:
        path += f"/{name}"
    return f"{path}/status" if status else path
