"""Scenarios 1 and 2 with the actor, and the same seeds with nothing of ours: how many nodes one
workload takes in the same time, who was held, and what is left after an undo.
"""

import contextlib
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.api_client import ApiClient
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.observed_scene import ObservedScene, is_of
from tests.cluster.slow_killer import APART_SECONDS, SlowKiller
from tests.cluster.undone_objects import Objects, differences, marks, standing, undo_all
from tests.cluster.verdict_clock import VerdictClock
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import running_nodes

WINDOW_SECONDS = 280.0
"""Of each run, from the moment when the workload may kill: nine deaths where nobody stops it."""
DEATHS_MOST = 16
Row = dict[str, Any]


@dataclass
class ActedChase:
    """A hog in a pool of its own; nobody tells the killer to stop."""

    pool: NodePool
    killer: SlowKiller
    kind: str
    replicas: int
    begins: float = 0.0
    """By the monotonic clock."""
    before: Objects = field(default_factory=dict)

    def look(self) -> None:
        if time.monotonic() >= self.begins and not self.killer.most:
            self.killer.kill(DEATHS_MOST)
        if time.monotonic() >= self.begins + WINDOW_SECONDS:
            self.killer.ended.set()

    @property
    def is_over(self) -> bool:
        return self.killer.ended.is_set()

    def row(self) -> Row:
        return {
            "kind": self.kind, "replicas": self.replicas,
            "apart_seconds": round(self.killer.apart_seconds, 1),
            "reports": len(self.killer.reported_at), "families": len(self.pool.workloads) - 1,
            "nodes_lost": len(self.killer.killed), "window_seconds": WINDOW_SECONDS,
        }  # fmt: skip


def acted_chases(
    scene: ObservedScene, chance: random.Random, pools: int, delivered: float
) -> Iterator[Row]:
    """With observer and actor; a row for each."""
    found = hogs(scene.plane, scene.client, scene.nodes, chance, pools, delivered)
    scene.pools += [one.pool for one in found]
    scene.right |= {(one.pool.space, "hog") for one in found}
    run(found, chance)
    rows = [{**one.row(), **as_seen(scene, one), **by_themselves(scene.clock, found)}
            for one in found]  # fmt: skip
    way_back = undone(scene)
    for one, row in zip(found, rows, strict=True):
        yield {**row, **way_back, **after_undo(scene, one)}


def free_chases(
    plane: ControlPlane, client: ApiClient, chance: random.Random, pools: int
) -> list[Row]:
    """The same workloads by the same seeds, with nothing of ours in the cluster."""
    with KwokNodes(plane) as nodes, VerdictClock(plane) as clock:
        found = hogs(plane, client, nodes, chance, pools, 0.0)
        run(found, chance)
        rows = [{**one.row(), **by_themselves(clock, found)} for one in found]
    for one in found:
        client.delete(f"/api/v1/namespaces/{one.pool.space}")
    return rows


def by_themselves(clock: VerdictClock, found: list[ActedChase]) -> Row:
    """Nodes that were silent though nobody killed them: a machine without a processor to spare."""
    killed = {node for one in found for node in one.killer.killed}
    return {"silent_by_themselves": len(clock.ever_silent - killed)}


def hogs(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, chance: random.Random, pools: int,
    delivered: float,
) -> list[ActedChase]:  # fmt: skip
    """Running beside their innocents; each draws the same whether we are there or not."""
    found = []
    for number in range(pools):
        pool = NodePool(client, nodes, f"pool-{number}")
        pool.fill(chance)
        kind, replicas = chance.choice(("Deployment", "Job")), chance.randint(1, 3)
        if kind == "Job":
            job(pool, "hog", replicas)
        else:
            pool.deploy("hog", replicas)
        killer = SlowKiller(
            plane, nodes, pool.space, "hog", delivered, chance.uniform(APART_SECONDS, 36.0),
            random.Random(chance.random()),
        )  # fmt: skip
        found.append(ActedChase(pool, killer, kind, replicas))
    for one in found:
        one.pool.wait_until_running()
        one.before = standing(client, one.pool.space)
    return found


def job(pool: NodePool, name: str, parallelism: int) -> None:
    """Which begins each pod that went down with its node anew."""
    template = {"metadata": {"labels": {"app": name}},
                "spec": {**pool.spec(name), "restartPolicy": "Never"}}  # fmt: skip
    pool.client.create(f"/apis/batch/v1/namespaces/{pool.space}/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"parallelism": parallelism, "completions": 500, "backoffLimit": 500,
                 "template": template},
    })  # fmt: skip
    pool.workloads[name] = parallelism


def run(found: list[ActedChase], chance: random.Random) -> None:
    with contextlib.ExitStack() as stack:
        for one in found:
            one.begins = time.monotonic() + chance.uniform(0.0, 12.0)
            stack.enter_context(one.killer)
        while not all(one.is_over for one in found):
            time.sleep(0.2)
            for one in found:
                one.look()


def as_seen(scene: ObservedScene, one: ActedChase) -> Row:
    """When it was convicted and held, and who besides; before anything is taken back."""
    clock, hog = scene.clock, (one.pool.space, "hog")
    visible = {node: clock.silent[node] for node in one.killer.killed if node in clock.silent}
    convicted = clock.verdicts.get(hog, {}).get("convicted")
    held = {
        name: (node, at) for (space, name), (node, at) in clock.held.items()
        if space == one.pool.space
    }  # fmt: skip
    writes = [one_write for one_write in scene.actor_writes()
              if one_write.namespace == one.pool.space]  # fmt: skip
    deaths = None if convicted is None else sum(at <= convicted for at in visible.values())
    return {
        "convicted_after": deaths,
        "visible_seconds": [round(at - one.begins, 1) for at in sorted(visible.values())],
        "held_seconds": [round(at - visible[node], 2) for node, at in held.values()
                         if node in visible],
        "not_held": late(visible, convicted, {node for node, _ in held.values()}),
        "held_wrongly": sorted(name for name in held if not is_of(name, "hog")),
        "touched_wrongly": sorted({f"{each.verb} {each.resource} {each.name}" for each in writes
                                   if not is_of(each.name, "hog")}),
        "writes": len(writes),
        "false_convictions": [each for each in scene.false_convictions()
                              if each.startswith(f"{one.pool.space}/")],
    }  # fmt: skip


def late(visible: dict[str, float], convicted: float | None, held: set[str]) -> int:
    """Nodes that were visibly dead when it was convicted, or later, whose copy was not kept."""
    if convicted is None:
        return 0
    last = max((at for at in visible.values() if at <= convicted), default=0.0)
    return sum(1 for node, at in visible.items() if at >= last and node not in held)


def undone(scene: ObservedScene) -> Row:
    began = time.monotonic()
    done = undo_all(scene.plane)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-2000:], file=sys.stderr)
    return {"undo_status": done.returncode, "undo_seconds": round(time.monotonic() - began, 1)}


def after_undo(scene: ObservedScene, one: ActedChase) -> Row:
    """Whether all that is there still is as it was, and the workload serves again.  A copy that was
    held waits on its dead node for the core's own timer, 30 minutes, whatever its spec says now.
    """
    client, space = scene.client, one.pool.space
    began = time.monotonic()
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not marks(standing(client, space)), 30, "no mark of ours is left")
    left = marks(standing(client, space))
    with contextlib.suppress(AssertionError):
        wait_until(lambda: sum(serving(client, one)) == one.replicas, 60, "it serves again")
    now = standing(client, space)
    alive, waiting = serving(client, one)
    return {
        "compared": len(one.before.keys() & now.keys()),
        "not_as_before": differences(one.before, now), "marks_left": left,
        "copies_alive": alive, "copies_on_dead_nodes": waiting,
        "back_seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def serving(client: ApiClient, one: ActedChase) -> tuple[int, int]:
    """Copies that run on nodes that live, and those that count as running on dead ones."""
    nodes = running_nodes(client, one.pool.space, "hog")
    alive = sum(node in one.killer.nodes.alive for node in nodes)
    return alive, len(nodes) - alive
