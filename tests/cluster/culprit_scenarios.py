"""Scenarios 1 and 2: one workload kills node after node, without agents and with them."""

import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.cluster.node_pool import NodePool
from tests.cluster.observed_scene import ObservedScene
from tests.cluster.slow_killer import APART_SECONDS, SlowKiller

DEATHS_MOST = 6
"""Who is not convicted by then is not convicted in this run."""
DELIVERED = 0.95
"""Of the deaths with agents, in so many the report came out in time."""


@dataclass
class Chase:
    """A hog in a pool of its own."""

    pool: NodePool
    killer: SlowKiller
    replicas: int
    starts_at: float
    lost: int = 0
    """Nodes that had died when it was convicted, visible or not."""

    @property
    def hog(self) -> tuple[str, str]:
        return self.pool.space, "hog"

    def row(self, scene: ObservedScene) -> dict[str, object]:
        """One run, as the journal has it."""
        silent = sorted(scene.clock.silent[node] for node in self.killer.killed
                        if node in scene.clock.silent)  # fmt: skip
        said = scene.clock.verdicts.get(self.hog, {})

        def deaths(verdict: str) -> int | None:
            at = said.get(verdict)
            return None if at is None else sum(1 for one in silent if one <= at)

        convicted = said.get("convicted")
        last = max((one for one in silent if convicted and one <= convicted), default=None)
        named = None if convicted is None or last is None else round(convicted - last, 2)
        return {
            "replicas": self.replicas, "apart_seconds": round(self.killer.apart_seconds, 1),
            "reports": len(self.killer.reported_at), "families": len(self.pool.workloads) - 1,
            "suspected_after": deaths("suspected"), "convicted_after": deaths("convicted"),
            "nodes_lost": self.lost, "named_seconds": named,
            "verdict": scene.clock.standing.get(self.hog, ""),
            "false_convictions": [one for one in scene.false_convictions()
                                  if one.startswith(f"{self.pool.space}/")],
        }  # fmt: skip


def chases(
    scene: ObservedScene, chance: random.Random, pools: int, delivered: float,
    apart: tuple[float, float] = (APART_SECONDS, 36.0),
) -> Iterator[dict[str, object]]:  # fmt: skip
    """So many at a time, each in a stratum and zone of its own; a row for each.  ``apart``: least
    and most seconds from a death to the next.
    """
    found = []
    with contextlib.ExitStack() as stack:
        for number in range(pools):
            pool = scene.pool(f"pool-{number}")
            pool.fill(chance)
            replicas = chance.randint(1, 3)
            pool.deploy("hog", replicas)
            scene.right.add((pool.space, "hog"))
            killer = SlowKiller(
                scene.plane, scene.nodes, pool.space, "hog", delivered,
                chance.uniform(*apart), random.Random(chance.random()),
            )  # fmt: skip
            found.append(Chase(pool, killer, replicas, 0.0))
        for one in found:
            one.pool.wait_until_running()
        for one in found:
            one.starts_at = time.monotonic() + chance.uniform(0.0, 12.0)
            stack.enter_context(one.killer)
        hunt(scene, found)
    time.sleep(2.0)  # whom it might accuse besides
    for one in found:
        yield one.row(scene)


def hunt(scene: ObservedScene, found: list[Chase]) -> None:
    """Until each hog is convicted, or has had its deaths."""
    slowest = max(one.killer.apart_seconds for one in found)
    deadline = time.monotonic() + (slowest + 4) * DEATHS_MOST + 60
    left = list(found)
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        for one in list(left):
            if not one.killer.most and time.monotonic() >= one.starts_at:
                one.killer.kill(DEATHS_MOST)
            is_convicted = scene.clock.standing.get(one.hog) == "convicted"
            is_over = len(one.killer.killed) == DEATHS_MOST and all(
                time.monotonic() - scene.clock.silent.get(node, time.monotonic()) > 10
                for node in one.killer.killed
            )
            if is_convicted or is_over:
                one.killer.ended.set()
                one.lost = len(one.killer.killed)
                left.remove(one)
