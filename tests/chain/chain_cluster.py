"""A control plane, real kubelets in QEMU, Seawall as far as a phase has it, and the incident."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chain.chain_watch import HOG, WEB, ChainWatch, ready_of
from tests.chain.kubelet_node import KubeletNode, KubeletPlane, agent_token, files_of, own_disk
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.control_plane import Times
from tests.cluster.installed_seawall import actor_documents, apply
from tests.cluster.rendered_manifests import documents
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import DEPLOYMENTS, namespace
from tests.kernels import vm

TIMES = Times(grace=50, check=5, toleration=60, lease=40, evictions_per_second=0.1)
"""As upstream has them but for the toleration, which is 300 s: minutes of waiting and no more."""
BOOT_SECONDS = 900.0
PODS_SECONDS = 600.0
LEFT_OUT = ("DaemonSet", "Deployment", "PodDisruptionBudget")
"""Of the manifests: guard and agent are units here, observer and actor processes of this host."""
OBSERVING = 'mode = "observe"\nblackbox_size = "8 MiB"\n'
RESCUED = f"{OBSERVING}rescue = true\n"
ENFORCING = 'mode = "enforce"\nblackbox_size = "8 MiB"\n'
KEPT_OUT = f"{ENFORCING}quarantine = true\n"


@dataclass
class ChainCluster:
    """``nodes`` by name, all Ready, innocents serving, no culprit yet."""

    plane: KubeletPlane
    client: ApiClient
    watch: ChainWatch
    folder: Path
    nodes: dict[str, KubeletNode] = field(default_factory=dict)
    guard: str | None = None

    def boot(self, image: vm.Image, names: Sequence[str], *, keeps_disk: bool = False) -> None:
        for name in names:
            files = files_of(self.plane, self.client, name, self.guard)
            there = self.folder / name
            there.mkdir()
            mine = own_disk(image, there) if keeps_disk else image
            self.nodes[name] = KubeletNode(mine, there, name, files, keeps_disk=keeps_disk)
        wait_until(lambda: self.ready() == set(names), BOOT_SECONDS, f"{names} are Ready")

    def use_guard(self, text: str) -> None:
        """Another file for all guards."""
        if text != self.guard:
            for node in self.nodes.values():
                node.use_guard(text)
        self.guard = text

    def cut_power(self, name: str, guard: str, *, with_agent: bool) -> None:
        """Of a node that keeps its disk; it boots again, with these files."""
        node = self.nodes[name]
        node.kill()
        files = files_of(self.plane, self.client, name, None)
        files["guard.toml"] = guard.encode()
        if with_agent:
            files["token"] = agent_token(self.client, name).encode()
        self.nodes[name] = KubeletNode(node.image, self.folder / name, name, files, keeps_disk=True)

    def ready(self) -> set[str]:
        return {one["metadata"]["name"] for one in self.client.items("/api/v1/nodes")
                if ready_of(one) == "True"}  # fmt: skip

    def close(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def deploy_web(self) -> None:
        """An innocent a node, who answers the kubelet's probes."""
        count = len(self.nodes)
        probe = {"httpGet": {"path": "/", "port": 8080}, "timeoutSeconds": 5, "periodSeconds": 10}
        container = {
            "name": "web", "image": "docker.io/test/web:1", "imagePullPolicy": "Never",
            "resources": {"requests": {"memory": "20Mi"}, "limits": {"memory": "100Mi"}},
            "readinessProbe": probe, "livenessProbe": {**probe, "failureThreshold": 6},
        }  # fmt: skip
        spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                  "whenUnsatisfiable": "ScheduleAnyway",
                  "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip
        deploy(self.client, WEB, "web", count, {**POD, "containers": [container],
                                                "topologySpreadConstraints": [spread]})  # fmt: skip
        wait_until(lambda: len(self.serving()) == count, PODS_SECONDS, "the innocents serve")

    def serving(self) -> list[str]:
        """Uids of innocents that are ready."""
        return [pod["metadata"]["uid"] for pod in self.pods(WEB) if is_ready(pod)]

    def pods(self, space: str) -> list[Object]:
        return self.client.items(f"/api/v1/namespaces/{space}/pods")

    def deploy_hog(self, **more: object) -> None:
        """The incident's pod: Guaranteed, 200 MiB, 8 MiB/s that no cgroup counts, NET_RAW; half
        a CPU, for in a tenth of one an emulated machine gets no such pace.  At 20 MiB/s page cache
        is gone so fast that the kernel kills, which the incident's did not.  ``more``: fields
        of its spec.
        """
        amounts = {"cpu": "500m", "memory": "200Mi"}
        container = {
            "name": "hog", "image": "docker.io/test/hog:1", "imagePullPolicy": "Never",
            "args": ["2", "250"], "resources": {"requests": amounts, "limits": amounts},
            "securityContext": {"capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}},
        }  # fmt: skip
        deploy(self.client, HOG, "hog", 1, {**POD, "containers": [container], **more})

    def delete_hog(self) -> None:
        with contextlib.suppress(ApiError):
            self.client.delete(f"{DEPLOYMENTS.format(HOG)}/hog")
        wait_until(lambda: not self.pods(HOG), PODS_SECONDS, "the culprit's pods are gone")

    def hog_node(self) -> str:
        """Where its newest living pod is; empty: nowhere yet."""
        pods = [pod for pod in self.pods(HOG) if "deletionTimestamp" not in pod["metadata"]]
        pods.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        return str(pods[-1]["spec"].get("nodeName") or "") if pods else ""


POD: Object = {"automountServiceAccountToken": False, "dnsPolicy": "Default",
               "terminationGracePeriodSeconds": 5}  # fmt: skip


def deploy(client: ApiClient, space: str, name: str, replicas: int, spec: Object) -> None:
    labels = {"app": name}
    client.create(DEPLOYMENTS.format(space), {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": spec}},
    })  # fmt: skip


def is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    alive = "deletionTimestamp" not in pod["metadata"]
    return alive and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def install_seawall(client: ApiClient, *, with_actor: bool) -> None:
    """Kinds, accounts, rights and fences of the plain manifests."""
    for document in [*documents(), *(actor_documents(client, ()) if with_actor else ())]:
        if document["kind"] not in LEFT_OUT:
            apply(client, document)


@contextlib.contextmanager
def chain_cluster(
    program: Path, image: vm.Image, folder: Path, names: Sequence[str], guard: str | None,
    *, with_actor: bool = False, keeps_disk: bool = False,
    before: Callable[[ChainCluster], None] | None = None,
) -> Iterator[ChainCluster]:  # fmt: skip
    """``guard``: the guard's file on each node; None: nothing of Seawall is there.  ``before``: is
    done before they boot, and nothing is deployed after.
    """
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(KubeletPlane(program, tuple(names), times=TIMES))
        client = stack.enter_context(plane.client())
        if guard is not None:
            install_seawall(client, with_actor=with_actor)
        for space in (HOG, WEB):
            namespace(client, space)
        watch = stack.enter_context(ChainWatch(plane))
        watch.is_seawall = guard is not None
        found = ChainCluster(plane, client, watch, folder, guard=guard)
        stack.callback(found.close)
        if before:
            before(found)
        found.boot(image, names, keeps_disk=keeps_disk)
        if not before:
            found.deploy_web()
            time.sleep(5)
        for node in found.nodes.values():
            node.hold_disk()
        yield found
