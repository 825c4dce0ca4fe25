"""Pools of nodes with workloads of their own: each a stratum and a zone, so that deaths in one pool
are neither background nor storm of another, and several scenarios can share one cluster.
"""

import random
import uuid
from dataclasses import dataclass, field

from tests.cluster.api_client import ApiClient, Object
from tests.cluster.kwok_nodes import Hardware, KwokNodes, condition
from tests.cluster.observed_cluster import add_nodes
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, namespace, pod_spec, running_nodes

POOL_LABEL = "node.kubernetes.io/instance-type"
CPU = "8"
"""Of each pod: small ones of 96 are all the same to the scheduler, which does not spread them."""
FAMILY_SIZES = (1, 1, 2, 2, 3, 3, 5, 7)


@dataclass
class NodePool:
    """``pool.fill(chance)`` gives it innocents."""

    client: ApiClient
    nodes: KwokNodes
    name: str
    size: int = 24
    zone: str = ""
    space: str = ""
    """Its namespace."""
    names: list[str] = field(default_factory=list)
    workloads: dict[str, int] = field(default_factory=dict)
    """Replicas of each."""

    def __post_init__(self) -> None:
        self.zone = self.zone or f"zone-{self.name}"
        self.names = self.more(self.size)
        self.space = namespace(self.client, f"test-{self.name}-{uuid.uuid4().hex[:6]}")

    def more(self, count: int, clock_seconds: float = 0.0) -> list[str]:
        hardware = Hardware(zone=self.zone, pool=self.name, clock_seconds=clock_seconds)
        return add_nodes(self.client, self.nodes, count, hardware, self.name)

    def spec(self, name: str, cpu: str = CPU) -> Object:
        """Of a pod that stays in this pool."""
        return {**pod_spec(f"registry.test/{name}:1", cpu), "nodeSelector": {POOL_LABEL: self.name}}

    def deploy(self, name: str, replicas: int, spec: Object | None = None) -> None:
        deploy(self.client, self.space, name, replicas, spec or self.spec(name))
        self.workloads[name] = replicas

    def fill(self, chance: random.Random, families: int = 6) -> None:
        """With innocents of one to seven replicas."""
        for number in range(families):
            self.deploy(f"app-{number}", chance.choice(FAMILY_SIZES))

    def wait_until_running(self) -> None:
        for name, count in self.workloads.items():
            wait_until(
                lambda name=name, count=count: self.running(name) == count, 60,
                f"{count} of {name} run in {self.name}",
            )  # fmt: skip

    def running(self, name: str) -> int:
        return len(running_nodes(self.client, self.space, name))

    def nodes_silent(self, *names: str) -> bool:
        """Whether the core has said of each of them that it is."""
        return all(
            condition(self.client.get(f"/api/v1/nodes/{name}")) == "Unknown" for name in names
        )

    def nodes_of(self, name: str) -> set[str]:
        return set(running_nodes(self.client, self.space, name))
