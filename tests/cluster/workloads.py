"""Workloads for the nodes of kwok, and the one that kills each node it runs on."""

import time
from dataclasses import dataclass

from tests.cluster.api_client import ApiClient, Object
from tests.cluster.background_loop import BackgroundLoop
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes

DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
LOOK_SECONDS = 0.25


def namespace(client: ApiClient, name: str) -> str:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    client.create("/api/v1/namespaces", body)
    return name


def pod_spec(image: str, cpu: str = "1") -> Object:
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "main", "image": image, "resources": resources}
    return {"containers": [container], "automountServiceAccountToken": False}


def deploy(client: ApiClient, space: str, name: str, replicas: int, spec: Object) -> None:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    client.create(DEPLOYMENTS.format(space), {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    })  # fmt: skip


def pods(client: ApiClient, space: str, name: str) -> list[Object]:
    return client.items(f"/api/v1/namespaces/{space}/pods", labelSelector=f"app={name}")


def running_nodes(client: ApiClient, space: str, name: str) -> list[str]:
    """Of each pod that runs and is not being deleted, the node."""
    return [pod["spec"]["nodeName"] for pod in pods(client, space, name) if runs(pod)]


def runs(pod: Object) -> bool:
    alive = "deletionTimestamp" not in pod["metadata"]
    return alive and pod["status"].get("phase") == "Running"


@dataclass(frozen=True, slots=True)
class Death:
    """A node that was killed, by which pod, when (monotonic)."""

    node: str
    pod: str
    at: float


class NodeKiller(BackgroundLoop):
    """A workload's fault: so many seconds after a pod of it began to run, its node says no more."""

    def __init__(self, plane: ControlPlane, nodes: KwokNodes, space: str, name: str,
                 seconds: float) -> None:  # fmt: skip
        self.plane = plane
        self.nodes, self.space, self.name, self.seconds = nodes, space, name, seconds
        self.deaths: list[Death] = []
        self.since: dict[str, float] = {}
        super().__init__()

    def run(self) -> None:
        with self.plane.client("kubelets") as client:
            while not self.ended.wait(LOOK_SECONDS):
                for pod in pods(client, self.space, self.name):
                    self.look(pod)

    def look(self, pod: Object) -> None:
        if not runs(pod):
            return
        now = time.monotonic()
        age = now - self.since.setdefault(pod["metadata"]["uid"], now)
        node = pod["spec"]["nodeName"]
        if age > self.seconds and node in self.nodes.alive:
            self.nodes.die(node)
            self.deaths.append(Death(node, pod["metadata"]["name"], now))
