"""What the actor does on a real control plane: each lever, its undo, and what holds it back."""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.actor_process import (
    ActorProcess,
    convict,
    ready_for_actors,
    set_policy,
)
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.control_plane import ControlPlane, Times
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods

from seawall.cluster.changes.object_change import CHANGED_BY_LABEL, CHANGES_ANNOTATION
from seawall.cluster.objects.api_group import WORKLOAD_QUARANTINE, path_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

TOLERATION_SECONDS = 20


@pytest.fixture(scope="module")
def slow_plane(program: Path, kwok: Path) -> Iterator[ControlPlane]:
    """Pods of a silent node are deleted after 20 s, as they are after 300 s in life."""
    with ControlPlane(program, Times(toleration=TOLERATION_SECONDS), kwok=kwok) as plane:
        yield plane


@pytest.fixture
def pool(slow_plane: ControlPlane) -> Iterator[NodePool]:
    with slow_plane.client() as client, KwokNodes(slow_plane) as nodes:
        ready_for_actors(client)
        pool = NodePool(client, nodes, f"pool-{uuid.uuid4().hex[:4]}", 8)
        yield pool
        client.delete(f"/api/v1/namespaces/{pool.space}")


def quarantine(client: ApiClient, name: str) -> Object:
    return client.get(path_of(WORKLOAD_QUARANTINE, name))


def deployment(pool: NodePool, name: str) -> Object:
    """With the uid of its ReplicaSet, which is what its pods name."""
    base = f"/apis/apps/v1/namespaces/{pool.space}"
    sets = [one for one in pool.client.items(f"{base}/replicasets")
            if one["metadata"]["ownerReferences"][0]["name"] == name]  # fmt: skip
    one = pool.client.get(f"{base}/deployments/{name}")
    return {**one, "makers": [each["metadata"] for each in sets]}


def tolerations(pod: Object) -> set[object]:
    return {one.get("tolerationSeconds") for one in pod["spec"]["tolerations"]
            if one["key"] == "node.kubernetes.io/unreachable"}  # fmt: skip


def test_a_pod_on_a_silent_node_is_held_and_given_back(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, levers={"gate": False, "stopCopies": False})
    for name in ("hog", "web"):
        pool.deploy(name, 3)
    pool.wait_until_running()
    hog, web = (pods(client, pool.space, name) for name in ("hog", "web"))
    node = hog[0]["spec"]["nodeName"]
    name = convict(client, deployment(pool, "hog"), ("gone-1", "gone-2"))
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(actor.leads, 30, "it leads")
        wait_until(lambda: quarantine(client, name)["spec"]["state"] == "Active", 15, "active")
        assert quarantine(client, name)["spec"]["mode"] == "hold"
        pool.nodes.die(node)
        path = f"/api/v1/namespaces/{pool.space}/pods/{hog[0]['metadata']['name']}"
        wait_until(lambda: tolerations(client.get(path)) == {1800}, 60, f"held\n{actor.log()}")
        time.sleep(TOLERATION_SECONDS + 5)
        pod = client.get(path)
        assert "deletionTimestamp" not in pod["metadata"], actor.log()
        assert pool.running("hog") == 3, "no copy elsewhere"
        assert json.loads(pod["metadata"]["annotations"][CHANGES_ANNOTATION])
        for one in web:
            if one["spec"]["nodeName"] == node:
                other = f"/api/v1/namespaces/{pool.space}/pods/{one['metadata']['name']}"
                assert "deletionTimestamp" in client.get(other)["metadata"], "innocents go"
        client.patch(path_of(WORKLOAD_QUARANTINE, name), {"spec": {"state": "Released"}})
        wait_until(lambda: CHANGED_BY_LABEL not in client.get(path)["metadata"].get("labels", {}),
                   15, f"undone\n{actor.log()}")  # fmt: skip
        pod = client.get(path)
        assert tolerations(pod) == {TOLERATION_SECONDS}
        assert CHANGES_ANNOTATION not in pod["metadata"].get("annotations", {})
        print(actor.log())
        print(json.dumps(quarantine(client, name)["status"]["actions"], indent=1)[:3000])
