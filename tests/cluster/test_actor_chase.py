"""Scenarios 1 and 2 with observer and actor: node after node dies, and then no more."""

import contextlib
import random
import signal
import time
from pathlib import Path

import pytest
from tests.cluster.acted_scene import event_reasons, foreign_writes, until
from tests.cluster.actor_process import ActorProcess, ready_for_actors, set_policy
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.levers_midway import late_tolerations
from tests.cluster.node_pool import NodePool
from tests.cluster.observer_process import ObserverProcess, objects, watched_for_a_month
from tests.cluster.plane_build import version_wanted
from tests.cluster.slow_killer import SlowKiller
from tests.cluster.test_in_force_map import MAP
from tests.cluster.undone_objects import differences, marks, standing, undo_all
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods, runs

from seawall.cluster.actor.pod_hold import HoldStage, hold_stage
from seawall.cluster.objects.api_group import NODE_DEATH, WORKLOAD_QUARANTINE

pytestmark = [
    pytest.mark.cluster, pytest.mark.timeout(580),
    pytest.mark.skipif(tuple(map(int, version_wanted().split("."))) < (1, 36),
                       reason="denied, not gated: another test"),
]  # fmt: skip

APART = 40.0
"""Between two deaths; in life some minutes at the least."""
DEATHS_WITHOUT = 8
HELD_SECONDS = 10.0


@pytest.mark.parametrize(("delivered", "most"), [(1.0, 3), (0.0, 4)], ids=["agents", "no agents"])
def test_the_culprit_stops_and_nobody_else_is_touched(
    slow_plane: ControlPlane, tmp_path: Path, delivered: float, most: int
) -> None:
    chance, audit = random.Random(36), AuditLog(slow_plane.audit_path)
    with slow_plane.client() as client, KwokNodes(slow_plane) as nodes:
        ready_for_actors(client)
        watched_for_a_month(client)
        set_policy(client)
        pool = NodePool(client, nodes, f"chase-{'ab'[most == 3]}", 20)
        pool.fill(chance)
        pool.deploy("hog", 3)
        mark = audit.mark()
        killer = SlowKiller(slow_plane, nodes, pool.space, "hog", delivered, APART, chance)
        with (
            ObserverProcess(slow_plane, tmp_path) as observer,
            ActorProcess(slow_plane, tmp_path) as actor,
        ):
            pool.wait_until_running()
            wait_until(lambda: observer.leads() and actor.leads(), 40, "both lead")
            with killer:
                killer.kill(DEATHS_WITHOUT)
                wait_until(lambda: stopped(client, pool, killer), 300,
                           "no copy of it runs")  # fmt: skip
                time.sleep(APART + 5)
                lost = len(killer.killed)
            held = {name: value for name, value in actor.metrics().items()
                    if name.startswith("seawall_death_to_hold_seconds_")}  # fmt: skip
            writes = foreign_writes(audit, mark, actor.user, pool.space)
            print(f"\n{lost} nodes lost; held: {held}\n{actor.log()}")
        assert 2 <= lost <= most
        count = held["seawall_death_to_hold_seconds_count"]
        assert count >= 1
        assert held["seawall_death_to_hold_seconds_sum"] / count <= HELD_SECONDS
        touched = {one.name for one in writes if one.resource == "pods"}
        assert touched
        assert all(name.startswith("hog-") for name in touched), "nobody else is touched"
        assert active(client) == ["hog"]
        assert "EvictionHeld" in event_reasons(client, pool.space)
        client.delete(f"/api/v1/namespaces/{pool.space}")


def stopped(client: ApiClient, pool: NodePool, killer: SlowKiller) -> bool:
    """Convicted, and none of its pods runs on a node that lives."""
    living = [pod for pod in pods(client, pool.space, "hog")
              if runs(pod) and pod["spec"].get("nodeName") in killer.nodes.alive]  # fmt: skip
    return len(killer.killed) >= 2 and not living


def test_observers_that_are_killed_midway_are_followed_by_one_that_goes_on(
    slow_plane: ControlPlane, tmp_path: Path
) -> None:
    """The one that leads, by SIGKILL, as soon as the actor has made the quarantine Active; the next
    one at the actor's next write to a pod.  Copies are 300 s on a silent node, as in life.
    """
    chance, audit = random.Random(38), AuditLog(slow_plane.audit_path)
    with (
        slow_plane.client() as client, KwokNodes(slow_plane) as nodes, contextlib.ExitStack() as on,
    ):  # fmt: skip
        ready_for_actors(client)
        watched_for_a_month(client)
        set_policy(client)
        pool = NodePool(client, nodes, "chase-f", 20)
        pool.fill(chance)
        pool.deploy("hog", 5, {**pool.spec("hog"), "tolerations": late_tolerations(300)})
        pool.wait_until_running()
        before, mark = standing(client, pool.space), audit.mark()
        first, second, third = (ObserverProcess(slow_plane, tmp_path) for _ in range(3))
        actor = ActorProcess(slow_plane, tmp_path)
        for one in (first, second, actor):
            on.enter_context(one)
            wait_until(first.leads, 60, "the first leads")
        until(actor, actor.leads, 60)
        killer = SlowKiller(slow_plane, nodes, pool.space, "hog", 1.0, APART, chance)
        with killer:
            killer.kill(DEATHS_WITHOUT)
            until(actor, lambda: len(killer.killed) == 2, 150)
            began = time.monotonic()
            while not active(client):  # the observer writes its map 0.3 s later
                assert time.monotonic() < began + 90, actor.log()
                time.sleep(0.02)
            first.signal(signal.SIGKILL)
            killed_at, stands = time.monotonic(), client.get(MAP).get("data")
            on.enter_context(third)
            wait_until(second.leads, 60, f"the second leads\n{second.log()}")
            followed, mark_of_second = time.monotonic() - killed_at, audit.mark()

            def touched(mark: int) -> list[str]:
                return [one.name for one in foreign_writes(audit, mark, actor.user, pool.space)
                        if one.resource == "pods"]  # fmt: skip

            until(actor, lambda: touched(mark_of_second) or stopped(client, pool, killer), 90)
            second.signal(signal.SIGKILL)
            wait_until(third.leads, 60, f"the third leads\n{third.log()}")
            until(actor, lambda: stopped(client, pool, killer), 240)
            took = time.monotonic() - killed_at
            time.sleep(APART + 5)
        print(
            f"\n{len(killer.killed)} nodes lost; map when the first was killed: {stands}; "
            f"followed after {followed:.1f} s; no copy ran after {took:.1f} s\n{actor.log()}"
        )
        assert len(killer.killed) <= 4
        deaths = {one["spec"]["nodeName"] for one in objects(client, NODE_DEATH)}
        assert deaths >= {*killer.killed}, "no death is lost"
        assert active(client) == ["hog"]
        assert all(name.startswith("hog-") for name in touched(mark)), "nobody else is touched"
        stages = {one["spec"].get("nodeName"): hold_stage(one["spec"]["tolerations"])
                  for one in pods(client, pool.space, "hog")}  # fmt: skip
        assert {stages[node] for node in killer.killed[:2]} == {HoldStage.HELD}, stages
        done = undo_all(slow_plane)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
        wait_until(lambda: not marks(standing(client, pool.space)), 60, "no mark of ours is left")
        assert differences(before, standing(client, pool.space)) == []
        wait_until(lambda: pool.running("hog") == 5, 60, "all of it run again")
        client.delete(f"/api/v1/namespaces/{pool.space}")


def active(client: ApiClient) -> list[str]:
    return [one["spec"]["workload"]["name"] for one in objects(client, WORKLOAD_QUARANTINE)
            if one["spec"]["state"] == "Active"]  # fmt: skip
