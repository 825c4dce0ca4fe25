"""A cluster with an observer in it, in which a scenario plays, for tests and the campaign.

``with observed_scene(plane, folder) as scene``: no nodes yet, a month without a death behind it.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.observed_cluster import assert_only_own_objects
from tests.cluster.observer_process import (
    ObserverProcess,
    ready_for_observers,
    watched_for_a_month,
)
from tests.cluster.verdict_clock import VerdictClock
from tests.cluster.waiting import wait_until

WHOLE_SCENARIO = pytest.mark.skipif(
    not os.environ.get("SEAWALL_SCENARIOS"), reason="some minutes: make cluster-scenarios"
)


@dataclass
class ObservedScene:
    """``right``: who is to be convicted, by namespace and name; all others are innocent.

    One of several that play in the same cluster has a ``prefix``, and sees its own pools alone.
    """

    plane: ControlPlane
    client: ApiClient
    nodes: KwokNodes
    observer: ObserverProcess
    clock: VerdictClock
    pools: list[NodePool] = field(default_factory=list)
    right: set[tuple[str, str]] = field(default_factory=set)
    prefix: str = ""

    def pool(self, name: str, size: int = 24, zone: str = "") -> NodePool:
        pool = NodePool(self.client, self.nodes, f"{self.prefix}{name}", size, zone)
        self.pools.append(pool)
        return pool

    def said(self) -> dict[tuple[str, str], dict[str, float]]:
        """Verdicts at any time, even if they were taken back."""
        spaces = {pool.space for pool in self.pools}
        return {who: said for who, said in list(self.clock.verdicts.items())
                if not self.prefix or who[0] in spaces}  # fmt: skip

    def convicted(self) -> set[tuple[str, str]]:
        return {who for who, said in self.said().items() if "convicted" in said}

    def false_convictions(self) -> list[str]:
        return sorted(f"{space}/{name}" for space, name in self.convicted() - self.right)

    def wait_until(self, done: Callable[[], object], seconds: float, what: str) -> float:
        try:
            return wait_until(done, seconds, what)
        except AssertionError as problem:
            log = self.observer.log()[-3000:]
            raise AssertionError(f"{problem}\n{self.clock.standing}\n{log}") from None

    def requests_per_death(self) -> float | None:
        numbers = self.observer.metrics()
        deaths = numbers.get("seawall_death_requests_count", 0.0)
        return numbers["seawall_death_requests_sum"] / deaths if deaths else None


@contextlib.contextmanager
def observed_scene(
    plane: ControlPlane, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[ObservedScene]:
    """At its end the audit log is asked whether anything but own objects was written."""
    audit = AuditLog(plane.audit_path)
    with plane.client() as client:
        ready_for_observers(client)
        watched_for_a_month(client)
        mark = audit.mark()
        with (
            KwokNodes(plane) as nodes,
            VerdictClock(plane) as clock,
            ObserverProcess(plane, folder, environment=environment) as observer,
        ):
            scene = ObservedScene(plane, client, nodes, observer, clock)
            wait_until(observer.leads, 30, f"it leads\n{observer.log()}")
            yield scene
            assert_only_own_objects(audit, mark, observer.user)
        for pool in scene.pools:
            client.delete(f"/api/v1/namespaces/{pool.space}")
