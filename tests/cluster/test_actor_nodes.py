"""What the actor does about nodes: labels of guarded ones, orders to silent ones, innocents that
leave dead ones early.
"""

import time
from pathlib import Path

import pytest
from tests.cluster.acted_scene import deployment, until
from tests.cluster.actor_process import ActorProcess, convict, opted_in, set_policy
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_pool import NodePool
from tests.cluster.observer_process import ObserverProcess, watched_for_a_month
from tests.cluster.slow_killer import node_report
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, pods

from seawall.cluster.objects.api_group import GUARD_LABEL, NODE_REPORT, RESCUE_ORDER, path_of
from seawall.cluster.objects.rescue_order_object import rescue_order_object

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def report(client: ApiClient, node: str, accused: list[Object], **guard: object) -> None:
    body = node_report(client, node, accused)
    body["report"]["guard"] |= {"mode": "enforce", "canKill": True, **guard}
    client.create(path_of(NODE_REPORT), body)


def labelled(client: ApiClient) -> set[str]:
    found = client.items("/api/v1/nodes", labelSelector=GUARD_LABEL)
    return {one["metadata"]["name"] for one in found}


def is_going(client: ApiClient, path: str) -> bool:
    """It is deleted, or gone already."""
    try:
        return "deletionTimestamp" in client.get(path)["metadata"]
    except ApiError as problem:
        if problem.status != 404:
            raise
        return True


def test_nodes_are_labelled_by_their_reports_alone(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client)
    first, second, third = pool.names[:3]
    report(client, first, [])
    report(client, second, [], mode="observe")
    client.patch(f"/api/v1/nodes/{third}", {"metadata": {"labels": {GUARD_LABEL: "enforcing"}}})
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: labelled(client) == {first}, 40)
        guard = {"mode": "enforce", "canKill": False}
        client.patch(path_of(NODE_REPORT, first), {"report": {"guard": guard}})
        until(actor, lambda: labelled(client) == set(), 20)


def test_a_silent_node_is_ordered_to_end_whom_its_guard_proved(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, levers={"rescue": True})
    pool.deploy("hog", 2)
    pool.wait_until_running()
    accused, other = pods(client, pool.space, "hog")
    node, deaf = accused["spec"]["nodeName"], other["spec"]["nodeName"]
    report(client, node, [accused], takesRescue=True)
    report(client, deaf, [other], takesRescue=False)
    with (
        opted_in(client, "actor.levers.rescue=true"),
        ActorProcess(slow_plane, tmp_path) as actor,
    ):
        wait_until(actor.leads, 30, "it leads")
        pool.nodes.die(node, deaf)
        wait_until(lambda: pool.nodes_silent(node, deaf), 60, "they are silent")
        time.sleep(10)
        assert client.items(path_of(RESCUE_ORDER)) == [], "in nobody's name"
        name = convict(client, deployment(pool, "hog"), (node,), state="Suspected", proved=1,
                       verdict="suspected")  # fmt: skip
        until(actor, lambda: client.items(path_of(RESCUE_ORDER)), 20)
        orders = [rescue_order_object(one) for one in client.items(path_of(RESCUE_ORDER))]
        assert [(one.node, one.pods) for one in orders] == [(node, (accused["metadata"]["uid"],))]
        assert (orders[0].requested_by, orders[0].quarantine) == ("seawall-actor", name)
    client.delete(path_of(RESCUE_ORDER, node))


def test_the_first_silent_node_is_ordered_as_soon_as_the_observer_suspects(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """Nobody is convicted by one node, and the node is not given up until then."""
    client = pool.client
    watched_for_a_month(client)
    set_policy(client, levers={"rescue": True})
    pool.deploy("hog", 2)
    pool.wait_until_running()
    accused = pods(client, pool.space, "hog")[0]
    node = accused["spec"]["nodeName"]
    with (
        opted_in(client, "actor.levers.rescue=true"),
        ObserverProcess(slow_plane, tmp_path) as observer,
        ActorProcess(slow_plane, tmp_path) as actor,
    ):
        wait_until(lambda: observer.leads() and actor.leads(), 30, "both lead")
        report(client, node, [accused], takesRescue=True)
        pool.nodes.die(node)
        wait_until(lambda: pool.nodes_silent(node), 60, "it is silent")
        seconds = wait_until(lambda: client.items(path_of(RESCUE_ORDER)), 40, actor.log())
    print(f"ordered {seconds:.1f} s after its silence was seen")
    client.delete(path_of(RESCUE_ORDER, node))
    client.delete(path_of(NODE_REPORT, node))


def test_innocents_leave_a_dead_node_early_and_others_stay(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """The core would let them go after half an hour here."""
    client = pool.client
    set_policy(client, levers={"moveInnocents": True, "gate": False, "stopCopies": False})
    late = [{"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 1200} for word in ("unreachable", "not-ready")]  # fmt: skip
    node = pool.names[0]
    for name in ("hog", "web"):
        spec = {**pool.spec(name), "tolerations": late, "nodeName": node}
        deploy(client, pool.space, name, 1, spec)
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"},
            "spec": {**pool.spec("bare"), "tolerations": late, "nodeName": node}}  # fmt: skip
    client.create(f"/api/v1/namespaces/{pool.space}/pods", bare)
    wait_until(lambda: pool.running("hog") == pool.running("web") == 1, 40, "they run")
    convict(client, deployment(pool, "hog"), ("gone-1", node))
    (web,) = pods(client, pool.space, "web")
    with (
        opted_in(client, "actor.levers.moveInnocents=true"),
        ActorProcess(slow_plane, tmp_path) as actor,
    ):
        wait_until(actor.leads, 30, "it leads")
        pool.nodes.die(node)
        path = f"/api/v1/namespaces/{pool.space}/pods"
        until(actor, lambda: is_going(client, f"{path}/{web['metadata']['name']}"), 120)
        assert "deletionTimestamp" not in client.get(f"{path}/bare")["metadata"]
        for pod in pods(client, pool.space, "hog"):
            assert "deletionTimestamp" not in pod["metadata"], "the culprit is held"
