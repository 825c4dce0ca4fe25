"""What stands in a cluster that an observer watches, and what the observer wrote to it."""

from dataclasses import replace

from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.kwok_nodes import Hardware, KwokNodes, condition
from tests.cluster.observer_process import NAMESPACE, objects
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, pod_spec, running_nodes

from seawall.cluster.judge.cluster_judge import ClusterJudge
from seawall.cluster.objects.api_group import (
    CLUSTER_POLICY,
    NODE_DEATH,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.cluster.objects.node_death_object import NodeDeathObject, node_death_object
from seawall.cluster.objects.seawall_policy_object import seawall_policy_object
from seawall.cluster.objects.workload_quarantine_object import workload_quarantine_object

RACK = "topology.kubernetes.io/rack"
NODES = 24
WORKLOADS = {"web": 8, "batch": 7, "api": 3, "hog": 3}
"""Replicas.  In a pool that is half idle hog would be on most of the busy nodes, and three deaths
among these a coincidence.
"""


def add_nodes(client: ApiClient, nodes: KwokNodes, count: int = NODES,
              hardware: Hardware | None = None, prefix: str = "node") -> list[str]:  # fmt: skip
    """Each in a rack of its own: deaths in one rack within half an hour count once.

    All may be scheduled to by the time this returns: while only the first few may, all workloads
    run on these, and nobody can tell who of them killed.
    """
    kind = hardware or Hardware()
    names: list[str] = []
    for _ in range(count):
        labels = {**kind.labels, RACK: f"rack-{prefix}-{len(nodes.names)}"}
        names += nodes.add(1, replace(kind, labels=labels), prefix)
    wait_until(lambda: untainted(client) >= set(names), 60, f"{count} nodes have no taint")
    return names


def untainted(client: ApiClient) -> set[str]:
    return {
        one["metadata"]["name"]
        for one in client.items("/api/v1/nodes")
        if not one["spec"].get("taints")
    }


def start_workloads(client: ApiClient, space: str) -> None:
    """Of pods so large that the scheduler spreads them: of small ones it puts all workloads
    on the same nodes, where nobody can tell who of them kills.
    """
    for name, count in WORKLOADS.items():
        deploy(client, space, name, count, pod_spec(f"registry.test/{name}:1", cpu="8"))
    for name, count in WORKLOADS.items():
        wait_until(
            lambda name=name, count=count: len(running_nodes(client, space, name)) == count,
            60, f"{count} of {name} run",
        )  # fmt: skip


def silent(client: ApiClient) -> set[str]:
    """Nodes that the core says are silent."""
    nodes = client.items("/api/v1/nodes")
    return {one["metadata"]["name"] for one in nodes if condition(one) == "Unknown"}


def counting(client: ApiClient) -> list[NodeDeathObject]:
    deaths = [node_death_object(one) for one in objects(client, NODE_DEATH)]
    return sorted(
        (one for one in deaths if one.counts), key=lambda one: (one.heartbeat_seconds, one.name)
    )


def verdicts(client: ApiClient) -> dict[str, str]:
    """By name of the workload."""
    found = {}
    for document in objects(client, WORKLOAD_QUARANTINE):
        one = workload_quarantine_object(document)
        found[one.workload.name] = one.status.verdict.value if one.status else ""
    return found


def replayed(client: ApiClient, deaths: list[NodeDeathObject]) -> ClusterJudge:
    """A judge that reads what stands in the cluster."""
    policy = seawall_policy_object(client.get(path_of(CLUSTER_POLICY, "default")))
    judge = ClusterJudge(policy.judge_policy())
    assert policy.status.watched_since_seconds is not None
    judge.watch_from(policy.status.watched_since_seconds)
    for one in deaths:
        judge.add(one.to_judge())
    return judge


def assert_only_own_objects(
    audit: AuditLog, mark: int, user: str, *, has_actor: bool = False
) -> None:
    """And all that it wrote was taken: nothing was refused, nothing was tried in vain."""
    own = [one for one in audit.since(mark) if one.user == user and one.is_write]
    written = {(one.verb, one.resource) for one in own if one.status < 300}
    print("written:", *sorted(f"{verb} {resource}" for verb, resource in written), sep=", ")
    group = "seawall.internal"
    of_actor = {("patch", "configmaps")} if has_actor else set()
    assert written <= {
        *of_actor, ("create", f"nodedeaths.{group}"), ("patch", f"nodedeaths.{group}"),
        ("create", f"workloadquarantines.{group}"), ("patch", f"workloadquarantines.{group}"),
        ("delete", f"workloadquarantines.{group}"),
        ("patch", f"workloadquarantines/status.{group}"),
        ("patch", f"seawallpolicies/status.{group}"),
        ("create", "events.events.k8s.io"),
        ("create", "leases.coordination.k8s.io"), ("update", "leases.coordination.k8s.io"),
    }  # fmt: skip
    leases = {(one.namespace, one.name) for one in own if one.resource.startswith("leases.")}
    assert leases <= {(NAMESPACE, "seawall-observer"), (NAMESPACE, "")}, "a create has no name"
    assert {one.status for one in own} <= {200, 201, 409}, [one for one in own if one.status > 201]
