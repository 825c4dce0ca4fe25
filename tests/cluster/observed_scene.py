"""A cluster with an observer in it, in which a scenario plays, for tests and the campaign.

``with observed_scene(plane, folder) as scene``: no nodes yet, a month without a death behind it.
With SEAWALL_ACTOR=1 an actor plays along in every scene: what it may do it does without being
asked, and at the end nobody but a culprit may have been touched.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cluster.acted_scene import foreign_writes
from tests.cluster.actor_process import ActorProcess, ready_for_actors, set_policy
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog, Request
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

WITH_ACTOR = bool(os.environ.get("SEAWALL_ACTOR"))
TEN_CLUSTERS = {"quarantinesPerHour": 30, "quarantinesPerDay": 100, "heldPodsShare": 0.2}
"""Brakes where ten pools stand for ten clusters."""
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
    actor: ActorProcess | None = None
    audit_mark: int = 0

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

    def actor_writes(self) -> list[Request]:
        """On objects of others in its pools."""
        if self.actor is None:
            return []
        audit, user = AuditLog(self.plane.audit_path), self.actor.user
        spaces = {pool.space for pool in self.pools}
        found = foreign_writes(audit, self.audit_mark, user, *spaces)
        return [one for one in found if one.namespace in spaces]

    def touched_wrongly(self) -> list[str]:
        """What the actor wrote to and was no culprit's."""
        return sorted({
            f"{one.verb} {one.resource} {one.namespace}/{one.name}" for one in self.actor_writes()
            if not any(one.namespace == space and is_of(one.name, name)
                       for space, name in self.right)
        })  # fmt: skip

    def requests_per_death(self) -> float | None:
        numbers = self.observer.metrics()
        deaths = numbers.get("seawall_death_requests_count", 0.0)
        return numbers["seawall_death_requests_sum"] / deaths if deaths else None


def is_of(name: str, workload: str) -> bool:
    """Whether that object is this workload, or one of its pods."""
    return name == workload or name.startswith(f"{workload}-")


@contextlib.contextmanager
def observed_scene(
    plane: ControlPlane, folder: Path, environment: Mapping[str, str] | None = None,
    actor: ActorProcess | None = None,
) -> Iterator[ObservedScene]:  # fmt: skip
    """At its end the audit log is asked whether the observer wrote anything but own objects."""
    audit = AuditLog(plane.audit_path)
    is_checked = WITH_ACTOR and actor is None
    if is_checked:
        actor = ActorProcess(plane, folder)
    with plane.client() as client:
        (ready_for_observers if actor is None else ready_for_actors)(client)
        watched_for_a_month(client)
        if actor is not None:
            set_policy(client, brakes=TEN_CLUSTERS)
        mark = audit.mark()
        with (
            KwokNodes(plane) as nodes,
            VerdictClock(plane) as clock,
            ObserverProcess(plane, folder, environment=environment) as observer,
            contextlib.nullcontext() if actor is None else actor,
        ):
            scene = ObservedScene(
                plane, client, nodes, observer, clock, actor=actor, audit_mark=mark
            )
            wait_until(observer.leads, 30, f"it leads\n{observer.log()}")
            if actor is not None:
                wait_until(actor.leads, 30, f"it leads\n{actor.log()}")
            yield scene
            if is_checked:
                print(f"the actor wrote {len(scene.actor_writes())} times")
                assert scene.touched_wrongly() == []
            assert_only_own_objects(audit, mark, observer.user, has_actor=actor is not None)
        for pool in scene.pools:
            client.delete(f"/api/v1/namespaces/{pool.space}")
