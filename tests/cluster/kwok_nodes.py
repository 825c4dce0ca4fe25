"""Nodes without machines: registered as a kubelet registers them, alive as long as their leases are
renewed.  kwok runs their pods.  A node dies as in life: its lease is renewed no more, and all else,
from Ready=Unknown to the deletion of its pods, is the core's own doing.
"""

import contextlib
import datetime as dt
import http.client
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.cluster.api_client import STRATEGIC, ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
WRITERS = 8
LOOK_SECONDS = 10.0
"""Between two looks of a kubelet at what the API says of its node."""
LOOKS_MOST = 1000
"""Of so many nodes at most: a list of 10,000 costs more than it is worth."""


@dataclass(slots=True)
class Hardware:
    """What a test may ask of a node; labels as a cloud sets them."""

    zone: str = "zone-a"
    pool: str = "gpu"
    kernel: str = "6.8.0-1030-gcp"
    cpu: str = "96"
    memory: str = "512Gi"
    pods: str = "110"
    labels: dict[str, str] = field(default_factory=dict)
    images: int = 0
    """How many a kubelet would list, 50 at most."""
    clock_seconds: float = 0.0
    """So far ahead of everybody's is the clock of the node."""


class KwokNodes:
    """``with KwokNodes(plane) as nodes``: what was added lives until it dies."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.alive: set[str] = set()
        self.names: list[str] = []
        self.clocks: dict[str, float] = {}
        self.problem: Exception | None = None
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.renew_all, daemon=True)
        self.looker = threading.Thread(target=self.look_all, daemon=True)

    def __enter__(self) -> "KwokNodes":  # noqa: PYI034 - Self is of 3.11
        self.thread.start()
        self.looker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.looker.join()
        self.each(self.names, remove)
        if self.problem:
            raise self.problem

    def add(self, count: int, hardware: Hardware | None = None, prefix: str = "node") -> list[str]:
        """So many more, Ready by the time this returns."""
        first = len(self.names)
        names = [f"{prefix}-{number}" for number in range(first, first + count)]
        kind = hardware or Hardware()
        lease_seconds = self.plane.times.lease

        def register(client: ApiClient, name: str) -> None:
            self.clocks[name] = kind.clock_seconds
            client.create("/api/v1/nodes", node(name, kind))
            client.create(LEASES, lease(name, lease_seconds, kind.clock_seconds))

        self.each(names, register)
        self.names += names
        with self.lock:
            self.alive |= set(names)
        return names

    def die(self, *names: str) -> None:
        """From now on they say nothing; their pods run on or not, nobody can tell."""
        with self.lock:
            self.alive -= set(names)

    def come_back(self, *names: str, rebooted: bool = True) -> None:
        """As the kubelet does it: Ready, a new boot id if it was a reset, and what was deleted in
        between ends now.
        """

        def back(client: ApiClient, name: str) -> None:
            info = {"bootID": str(uuid.uuid4())} if rebooted else {}
            status = {"conditions": [ready(self.clocks[name])], "nodeInfo": info}
            client.patch(f"/api/v1/nodes/{name}/status", {"status": status}, STRATEGIC)
            self.renew_one(client, name)
            for pod in client.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}"):
                if "deletionTimestamp" in pod["metadata"]:
                    client.delete(path_of(pod), gracePeriodSeconds=0)

        self.each(names, back)
        with self.lock:
            self.alive |= set(names)

    def renew_all(self) -> None:
        """Each living node's lease four times in its length, over one connection."""
        pause = self.plane.times.lease / 4
        due = time.monotonic()
        with self.plane.client("kubelets") as client:
            while not self.ended.wait(max(0, due - time.monotonic())):
                due += pause
                try:
                    self.renew(client)
                except (OSError, http.client.HTTPException):
                    continue  # an API server that is down is a scenario
                except ApiError as problem:
                    if problem.status >= 500:
                        continue  # and so is one that has just been started
                    self.problem = problem
                    return

    def renew(self, client: ApiClient) -> None:
        with self.lock:
            names = sorted(self.alive)
        for name in names:
            if name in self.alive and not self.ended.is_set():
                self.renew_one(client, name)

    def look_all(self) -> None:
        """An API server that is away, or a node that is gone meanwhile, is looked at again."""
        with self.plane.client("kubelets") as client:
            while not self.ended.wait(LOOK_SECONDS):
                with contextlib.suppress(OSError, http.client.HTTPException, ApiError):
                    if len(self.names) <= LOOKS_MOST:
                        self.say_ready(client)

    def say_ready(self, client: ApiClient) -> None:
        """As a kubelet does of whose node the core says that it is silent: a machine that gave
        leases no time for some seconds silences nodes that live.
        """
        for found in client.items("/api/v1/nodes"):
            name = found["metadata"]["name"]
            if self.ended.is_set():
                return
            if name in self.alive and condition(found) != "True":
                status = {"conditions": [ready(self.clocks[name])]}
                client.patch(f"/api/v1/nodes/{name}/status", {"status": status}, STRATEGIC)

    def renew_one(self, client: ApiClient, name: str) -> None:
        time_words = now(micro=True, ahead_seconds=self.clocks[name])
        client.patch(f"{LEASES}/{name}", {"spec": {"renewTime": time_words}})

    def each(self, names: Iterable[str], work: Callable[[ApiClient, str], object]) -> None:
        """For all of them, over several connections."""
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in names:
            waiting.put(name)
        problems: list[Exception] = []

        def run() -> None:
            try:
                with self.plane.client("kubelets") as client:
                    while not problems:
                        work(client, waiting.get_nowait())
            except queue.Empty:
                return
            except Exception as problem:  # noqa: BLE001 - is raised in the thread that waits
                problems.append(problem)

        threads = [threading.Thread(target=run) for _ in range(min(WRITERS, waiting.qsize()))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if problems:
            raise problems[0]


def node(name: str, hardware: Hardware) -> Object:
    labels = {
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": hardware.zone, "topology.kubernetes.io/region": "region",
        "node.kubernetes.io/instance-type": hardware.pool, **hardware.labels,
    }  # fmt: skip
    room = {"cpu": hardware.cpu, "memory": hardware.memory, "pods": hardware.pods}
    info = {
        "architecture": "amd64", "operatingSystem": "linux", "osImage": "Debian GNU/Linux 12",
        "kernelVersion": hardware.kernel, "bootID": str(uuid.uuid4()),
        "machineID": uuid.uuid4().hex, "systemUUID": str(uuid.uuid4()), "kubeProxyVersion": "",
        "containerRuntimeVersion": "containerd://2.4.0", "kubeletVersion": "v1.34.2",
    }  # fmt: skip
    status = {
        "allocatable": room, "capacity": room, "conditions": [ready(hardware.clock_seconds)],
        "nodeInfo": info, "addresses": [{"type": "Hostname", "address": name}],
        "images": [image(number) for number in range(hardware.images)],
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": status,
    }  # fmt: skip


def image(number: int) -> Object:
    place = f"registry.example.com/team/some-service-{number}"
    names = [f"{place}@sha256:{uuid.uuid4().hex}{uuid.uuid4().hex}", f"{place}:v1.{number}"]
    return {"names": names, "sizeBytes": 10**9 + number}


def ready(ahead_seconds: float) -> Object:
    at = now(ahead_seconds=ahead_seconds)
    return {
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready",
        "lastHeartbeatTime": at, "lastTransitionTime": at,
    }  # fmt: skip


def lease(name: str, seconds: int, ahead_seconds: float) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": seconds,
                 "renewTime": now(micro=True, ahead_seconds=ahead_seconds)},
    }  # fmt: skip


def now(*, micro: bool = False, ahead_seconds: float = 0.0) -> str:
    """The API's two kinds of time; a lease has the finer one."""
    moment = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=ahead_seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S" + (".%fZ" if micro else "Z"))


def path_of(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def remove(client: ApiClient, name: str) -> None:
    """With its pods, which nobody would end: with its node the kubelet is gone."""
    for pod in client.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}"):
        client.delete(path_of(pod), gracePeriodSeconds=0)
    client.delete(f"/api/v1/nodes/{name}")
    client.delete(f"{LEASES}/{name}")


def condition(node: Object, kind: str = "Ready") -> str:
    """``True``, ``False``, ``Unknown``."""
    return next(str(one["status"]) for one in node["status"]["conditions"] if one["type"] == kind)
