"""A workload that kills nodes at a pace, with or without a word from the agents on them."""

import random
import time

from tests.cluster.api_client import ApiClient, Object
from tests.cluster.background_loop import BackgroundLoop
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes, now
from tests.cluster.workloads import pods, runs

from seawall.cluster.objects.api_group import API_VERSION, NODE_REPORT, path_of

APART_SECONDS = 26
"""Deaths within 20 s of each other are one incident, and count once."""


class SlowKiller(BackgroundLoop):
    """A workload that kills the node under one of its pods, then the next not before 26 s.

    delivered:  of so many deaths the node's agent says beforehand who it was
    """

    def __init__(self, plane: ControlPlane, nodes: KwokNodes, space: str, name: str,
                 delivered: float = 0.0, apart_seconds: float = APART_SECONDS,
                 chance: random.Random | None = None) -> None:  # fmt: skip
        self.plane, self.nodes, self.space, self.name = plane, nodes, space, name
        self.delivered, self.apart_seconds = delivered, apart_seconds
        self.chance = chance or random.Random(1)
        self.killed: list[str] = []
        self.reported_at: list[float] = []
        self.most = 0
        self.last = 0.0
        super().__init__()

    def kill(self, more: int = 1) -> None:
        self.most += more

    def run(self) -> None:
        with self.plane.client("kubelets") as client:
            while not self.ended.wait(0.25):
                due = time.monotonic() - self.last >= self.apart_seconds
                if due and len(self.killed) < self.most:
                    self.kill_one(client)

    def kill_one(self, client: ApiClient) -> None:
        living = [
            pod
            for pod in pods(client, self.space, self.name)
            if runs(pod) and pod["spec"].get("nodeName") in self.nodes.alive
        ]
        if not living:
            return
        pod = self.chance.choice(living)
        node = pod["spec"]["nodeName"]
        if self.chance.random() < self.delivered:
            tell_as_its_agent(client, node, pod)
            self.reported_at.append(time.monotonic())
        self.nodes.die(node)
        self.killed.append(node)
        self.last = time.monotonic()


def tell_as_its_agent(client: ApiClient, node: str, pod: Object) -> None:
    client.create(path_of(NODE_REPORT), node_report(client, node, [pod]))


def node_report(client: ApiClient, node: str, accused: list[Object], sequence: int = 1) -> Object:
    """Of a node in distress: each of these pods is proved to have taken most of what it lost."""
    boot = client.get(f"/api/v1/nodes/{node}")["status"]["nodeInfo"]["bootID"]
    culprits = [
        {
            "podUID": pod["metadata"]["uid"], "namespace": pod["metadata"]["namespace"],
            "pod": pod["metadata"]["name"], "container": "main", "certainBytes": 80 << 30,
            "mostBytes": 90 << 30, "isProved": True,
        }
        for pod in accused
    ]  # fmt: skip
    at = now(micro=True)
    distress = {
        "at": at, "headroomBytes": 1 << 28, "headroomSeconds": 4.5,
        "uncountedBytes": 100 << 30, "culprits": culprits, "decision": "observe",
    }  # fmt: skip
    guard = {"version": "0.1.0", "mode": "observe", "canKill": False, "state": "short"}
    report = {"at": at, "sequence": sequence, "bootID": boot, "guard": guard, "distress": distress}
    return {
        "apiVersion": API_VERSION, "kind": NODE_REPORT.kind, "metadata": {"name": node},
        "spec": {"nodeName": node}, "report": report,
    }  # fmt: skip
