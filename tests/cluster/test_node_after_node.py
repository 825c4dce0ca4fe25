"""The incident itself, with nothing of ours: the same workload kills one node after another."""

import pytest
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes, condition
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import NodeKiller, deploy, pod_spec, pods, running_nodes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

ACCOUNT = "system:serviceaccount:kube-system:"
NODE_CONTROLLER = f"{ACCOUNT}node-controller"
"""It says that a node is silent, taints it, and deletes its pods: taint eviction is part of it."""
SECONDS_TO_KILL = 2
DEATHS = 3


def test_a_workload_kills_one_node_after_another(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, audit: AuditLog
) -> None:
    mark = audit.mark()
    names = nodes.add(10)
    deploy(client, space, "web", 8, pod_spec("registry.test/web:1"))
    wait_until(lambda: len(running_nodes(client, space, "web")) == 8, 60, "8 of web run")
    deploy(client, space, "hog", 1, pod_spec("registry.test/hog:1"))
    with NodeKiller(plane, nodes, space, "hog", SECONDS_TO_KILL) as killer:
        wait_until(lambda: len(silent(client)) >= DEATHS, 120, f"{DEATHS} nodes are NotReady")
    killed = [death.node for death in killer.deaths]
    wait_until(lambda: set(killed) == set(silent(client)), 60, "each killed node is NotReady")
    # Nobody else died, and each time another pod on another node did it.
    assert len(set(killed)) == len(killed) >= DEATHS
    assert len({death.pod for death in killer.deaths}) == len(killed)
    # It goes on: the pod has moved to a node that lives, and so have the innocents.
    wait_until(lambda: moved(client, space, killed), 60, "hog and 8 of web run on living nodes")
    assert set(running_nodes(client, space, "hog")) <= set(names) - set(killed)
    # The old pods hang on their nodes, which nobody can ask.
    old = [pod for pod in pods(client, space, "hog") if "deletionTimestamp" in pod["metadata"]]
    assert {pod["spec"]["nodeName"] for pod in old} == set(killed)
    gaps = [b.at - a.at for a, b in zip(killer.deaths, killer.deaths[1:], strict=False)]
    print("seconds from death to death:", *(f"{gap:.1f}" for gap in gaps))
    who_wrote_what(audit, mark, killed, space)


def silent(client: ApiClient) -> list[str]:
    nodes = client.items("/api/v1/nodes")
    return [node["metadata"]["name"] for node in nodes if condition(node) == "Unknown"]


def moved(client: ApiClient, space: str, killed: list[str]) -> bool:
    hog, web = (running_nodes(client, space, name) for name in ("hog", "web"))
    return len(hog) == 1 and len(web) == 8 and not set(hog + web) & set(killed)


def who_wrote_what(audit: AuditLog, mark: int, killed: list[str], space: str) -> None:
    """All of it stands in the audit log: who said that a node is silent, deleted, made and bound
    its pods; and nobody but the core and the tests wrote anything.
    """
    writers = audit.writers(mark)
    for user, what in sorted(writers.items()):
        print(user, *sorted(f"{verb} {resource}" for verb, resource in what), sep=", ")
    written = [one for one in audit.since(mark) if one.is_write and one.status < 300]
    silenced = {
        one.name
        for one in written
        if (one.user, one.resource) == (NODE_CONTROLLER, "nodes/status")
        and "NodeStatusUnknown" in str(one.body)
    }
    assert silenced == set(killed)
    of_pods = {(one.user, one.verb, one.resource) for one in written if one.namespace == space
               and one.resource in {"pods", "pods/binding"}}  # fmt: skip
    assert of_pods == {
        (f"{ACCOUNT}replicaset-controller", "create", "pods"),
        ("system:kube-scheduler", "create", "pods/binding"),
        (NODE_CONTROLLER, "delete", "pods"),
    }
    others = {user for user in writers if not user.startswith("system:")}
    assert others == {"admin", "kubelets", "kwok"}
    assert writers["admin"] == {("create", "deployments.apps")}
