"""What ran on a dead node, asked of a real API server: owners, keys, spread, and what it costs."""

import uuid
from collections.abc import Iterator

import pytest
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.observer_process import create
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, namespace, pod_spec, pods, runs

from seawall.cluster.kube.kube_client import ClusterAccess, KubeClient, steady_seconds
from seawall.cluster.objects.node_death_object import DeathWorkload
from seawall.cluster.observer.dead_node_workloads import REQUESTS_MOST, DeadNodeWorkloads

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]

GROUP = "test.seawall.internal"


@pytest.fixture
def kube(plane: ControlPlane) -> Iterator[KubeClient]:
    access = ClusterAccess(
        f"https://127.0.0.1:{plane.port}", ca_file=str(plane.folder / "tls.crt"),
        token=plane.tokens["admin"],
    )  # fmt: skip
    client = KubeClient(access, per_second=1000.0)
    yield client
    client.close()


def bound_pod(client: ApiClient, space: str, name: str, node: str,
              owner: Object | None = None, **more: object) -> None:  # fmt: skip
    metadata: Object = {"name": name, **more}
    if owner is not None:
        metadata["ownerReferences"] = [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        }]  # fmt: skip
    spec = {**pod_spec("registry.test/x:1"), "nodeName": node}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    client.create(f"/api/v1/namespaces/{space}/pods", pod)


def by_pod(workloads: tuple[DeathWorkload, ...]) -> dict[str, DeathWorkload]:
    return {one.pod_name: one for one in workloads}


def train_kind(client: ApiClient, space: str) -> Object:
    """An owner of a kind that nobody knows beforehand."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    create(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"traininggangs.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced",
                 "names": {"kind": "TrainingGang", "plural": "traininggangs"},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": anything}}]},
    })  # fmt: skip
    path = f"/apis/{GROUP}/v1/namespaces/{space}/traininggangs"
    wait_until(lambda: served(client, path), 30, "the kind is served")
    return client.create(path, {"apiVersion": f"{GROUP}/v1", "kind": "TrainingGang",
                                "metadata": {"name": "gang"}})  # fmt: skip


def served(client: ApiClient, path: str) -> bool:
    try:
        client.get(path)
    except Exception:  # noqa: BLE001 - not yet
        return False
    return True


def test_owners_keys_and_spread(
    client: ApiClient, kube: KubeClient, nodes: KwokNodes, space: str
) -> None:
    names = nodes.add(4)
    deploy(client, space, "web", 3, pod_spec("registry.test/web:1"))
    wait_until(lambda: sum(runs(pod) for pod in pods(client, space, "web")) == 3, 60, "web runs")
    web_nodes = {pod["spec"]["nodeName"] for pod in pods(client, space, "web")}
    dead = min(web_nodes)
    gang = train_kind(client, space)
    path = f"/apis/{GROUP}/v1/namespaces/{space}/traininggangs"
    owner = {"apiVersion": gang["apiVersion"], "kind": gang["kind"], "controller": True,
             "name": "gang", "uid": gang["metadata"]["uid"]}  # fmt: skip
    part = client.create(path, {
        "apiVersion": f"{GROUP}/v1", "kind": "TrainingGang",
        "metadata": {"name": "gang-part-7", "ownerReferences": [owner]},
    })  # fmt: skip
    for number, node in enumerate(names):
        bound_pod(client, space, f"gang-worker-7-{number}", node, part)
    bound_pod(client, space, "alone", dead)
    bound_pod(client, space, "proxy", dead, annotations={"kubernetes.io/config.mirror": "x"})
    look = DeadNodeWorkloads(kube, steady_seconds).look(dead, {dead})
    found = by_pod(look.workloads)
    web = next(one for name, one in found.items() if name.startswith("web-"))
    assert (web.owner_kind, web.owner_name) == ("Deployment", "web")
    assert web.bound.keys[1].value == f"{space}/web"
    assert web.bound.nodes[:2] == (len(web_nodes),) * 2
    worker = found[f"gang-worker-7-{names.index(dead)}"]
    assert (worker.owner_kind, worker.owner_name) == ("TrainingGang", "gang")
    assert worker.bound.keys[0].value == gang["metadata"]["uid"]
    assert worker.bound.nodes[:2] == (4, 4)
    assert (found["alone"].owner_kind, found["alone"].bound.nodes[:2]) == ("Pod", (1, 1))
    assert found["proxy"].bound.is_static
    assert found["proxy"].bound.keys == ()
    assert look.unseen == ()
    # Another node that is dead runs nothing any more.
    other = next(name for name in names if name != dead)
    again = DeadNodeWorkloads(kube, steady_seconds).look(dead, {dead, other})
    assert by_pod(again.workloads)[worker.pod_name].bound.nodes[:2] == (3, 3)
    print(f"{look.requests} requests for {len(look.workloads)} pods")


def test_a_crowded_node_costs_no_more_than_45_requests(
    client: ApiClient, kube: KubeClient, nodes: KwokNodes
) -> None:
    """Pods of 25 namespaces, each of another owner: what was not asked is said, and counts not."""
    (name,) = nodes.add(1)
    spaces = [namespace(client, f"many-{uuid.uuid4().hex[:8]}") for _ in range(25)]
    try:
        for space in spaces:
            deploy(client, space, "app", 1, {**pod_spec("registry.test/app:1"), "nodeName": name})
        wait_until(
            lambda: len(client.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")) == 25,
            60, "all are bound",
        )  # fmt: skip
        looks = DeadNodeWorkloads(kube, steady_seconds)
        look = looks.look(name, {name})
        assert look.requests <= REQUESTS_MOST
        assert len(look.workloads) == 25
        counted = [one for one in look.workloads if one.bound.keys]
        # One for its pods, two for each of 15 owners; 14 are left, each for a namespace.
        assert len(counted) == 14
        assert any("namespaces" in words for words in look.unseen)
        # The next one of the same storm asks for the pods alone: all else is known.
        assert looks.look(name, {name}).requests <= 15
        print(f"{look.requests} requests; unseen: {look.unseen}")
    finally:
        for space in spaces:
            client.delete(f"/api/v1/namespaces/{space}")
