# SPDX-License-Identifier: Apache-2.0
"""``SeawallPolicy``: what the cluster's owner sets, and what observer and actor say of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from seawall.cluster.judge.cluster_judge import JudgePolicy
from seawall.cluster.objects.api_group import API_VERSION, CLUSTER_POLICY, POLICY_NAME
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import (
    TEXT_LETTERS,
    ObjectFields,
    ObjectProblem,
    clean,
    object_name,
    without_absent,
)
from seawall.cluster.objects.policy_actions import (
    PolicyActions,
    TrippedBrake,
    policy_actions,
    tripped_brakes,
)

_WORDS_MOST: Final = 256
_FALSE_LEAST: Final = 0.001
_FALSE_MOST: Final = 10.0


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """What the observer says of itself."""

    threshold_log10: float | None = None
    nodes: int = 0
    strata: int = 0
    domains_labelled: bool = False
    """Whether the cluster's nodes have labels of racks: without them the mark is ten times higher
    for whom no record proves."""
    watched_since_seconds: float | None = None
    observed_generation: int | None = None
    message: str = ""

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        since = self.watched_since_seconds
        return without_absent({
            "thresholdLog10": self.threshold_log10, "nodes": self.nodes, "strata": self.strata,
            "domainsLabelled": self.domains_labelled,
            "watchedSince": None if since is None else time_words(since),
            "observedGeneration": self.observed_generation,
            "message": clean(self.message, TEXT_LETTERS),
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeawallPolicyObject:
    """The one policy; its defaults hold where the cluster has none."""

    protected_namespaces: tuple[str, ...] = ("kube-system", "kube-public", "kube-node-lease")
    false_per_thousand_node_years: float = 0.1
    pool_labels: tuple[str, ...] = (
        "karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool", "agentpool", "node.kubernetes.io/instance-type",
    )  # fmt: skip
    """The first that a node has names its pool; without one nodes of the same hardware are one."""
    domain_labels: tuple[str, ...] = (
        "topology.kubernetes.io/rack", "network.topology.nvidia.com/leaf",
        "topology.k8s.aws/network-node-layer-3", "cloud.google.com/gce-topology-subblock",
    )  # fmt: skip
    """Rack, switch or host group."""
    capacity_type_labels: tuple[str, ...] = (
        "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType",
        "cloud.google.com/gke-provisioning", "kubernetes.azure.com/scalesetpriority",
    )  # fmt: skip
    planned_taints: tuple[str, ...] = (
        "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
        "node.kubernetes.io/out-of-service", "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/rebalance-recommendation",
        "aws-node-termination-handler/scheduled-maintenance",
        "cloud.google.com/impending-node-termination",
    )  # fmt: skip
    """A node that has one of them was meant to go."""
    planned_annotations: tuple[str, ...] = ("weave.works/kured-reboot-in-progress",)
    actions: PolicyActions = field(default=PolicyActions())
    brake: bool = False
    """Everything is disarmed: no new action, and guards observe."""
    generation: int | None = None
    status: PolicyStatus = field(default=PolicyStatus())
    tripped: tuple[TrippedBrake, ...] = ()
    """The actor's part of the status."""
    resource_version: str = ""
    """Empty: the cluster has no such object."""
    uid: str = ""

    def judge_policy(self) -> JudgePolicy:
        """As the judge takes it."""
        return JudgePolicy(frozenset(self.protected_namespaces), self.false_per_thousand_node_years)

    def document(self) -> dict[str, Any]:
        """The whole object as JSON; its status is written by a request of its own."""
        return {
            "apiVersion": API_VERSION, "kind": CLUSTER_POLICY.kind,
            "metadata": {"name": POLICY_NAME}, "spec": self.spec_document(),
            "status": {
                **self.status.document(), "brakes": [one.document() for one in self.tripped],
            },
        }  # fmt: skip

    def spec_document(self) -> dict[str, Any]:
        """The spec alone."""
        lists = {name: list(getattr(self, field_name)) for name, field_name in _LISTS.items()}
        return {
            **lists, "falsePerThousandNodeYears": self.false_per_thousand_node_years,
            "actions": self.actions.document(), "brake": self.brake,
        }  # fmt: skip


_LISTS: Final[Mapping[str, str]] = {
    "protectedNamespaces": "protected_namespaces", "poolLabels": "pool_labels",
    "domainLabels": "domain_labels", "capacityTypeLabels": "capacity_type_labels",
    "plannedTaints": "planned_taints", "plannedAnnotations": "planned_annotations",
}  # fmt: skip


def seawall_policy_object(document: object) -> SeawallPolicyObject:
    """From JSON; what is absent has its default.  ObjectProblem: what is wrong with it."""
    name = object_name(document, CLUSTER_POLICY.kind)
    whole = ObjectFields(document, f"{CLUSTER_POLICY.kind} {name}")
    metadata = whole.needed_fields("metadata")
    spec = whole.fields("spec") or ObjectFields({}, f"{whole.where}.spec")
    rate = spec.number("falsePerThousandNodeYears")
    if rate is not None and not _FALSE_LEAST <= rate <= _FALSE_MOST:
        raise ObjectProblem(
            f"{spec.where}.falsePerThousandNodeYears: expected {_FALSE_LEAST} to {_FALSE_MOST}, "
            f"found {rate}"
        )
    lists: dict[str, Any] = {
        field_name: spec.texts(name, _WORDS_MOST)
        for name, field_name in _LISTS.items()
        if spec.has(name)
    }
    if rate is not None:
        lists["false_per_thousand_node_years"] = rate
    status = whole.fields("status")
    return SeawallPolicyObject(
        **lists,
        actions=policy_actions(spec.fields("actions")),
        brake=spec.flag("brake"),
        generation=metadata.whole("generation"),
        resource_version=metadata.text("resourceVersion"),
        uid=metadata.text("uid"),
        status=_policy_status(status),
        tripped=tripped_brakes(status),
    )


def _policy_status(fields: ObjectFields | None) -> PolicyStatus:
    if fields is None:
        return PolicyStatus()
    return PolicyStatus(
        fields.number("thresholdLog10"), fields.whole("nodes") or 0, fields.whole("strata") or 0,
        fields.flag("domainsLabelled"), fields.seconds("watchedSince"),
        fields.whole("observedGeneration"), fields.text("message", TEXT_LETTERS),
    )  # fmt: skip
