"""Scenarios 1 and 2 with observer and actor: node after node dies, and then no more."""

import random
import time
from pathlib import Path

import pytest
from tests.cluster.acted_scene import event_reasons, foreign_writes
from tests.cluster.actor_process import ActorProcess, ready_for_actors, set_policy
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.observer_process import ObserverProcess, objects, watched_for_a_month
from tests.cluster.plane_build import version_wanted
from tests.cluster.slow_killer import SlowKiller
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods, runs

from seawall.cluster.objects.api_group import WORKLOAD_QUARANTINE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(580)]

APART = 40.0
"""Between two deaths; in life some minutes at the least."""
DEATHS_WITHOUT = 8
HELD_SECONDS = 10.0


@pytest.mark.skipif(
    tuple(map(int, version_wanted().split("."))) < (1, 36), reason="denied, not gated: another test"
)
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
        active = [one["spec"]["workload"]["name"] for one in objects(client, WORKLOAD_QUARANTINE)
                  if one["spec"]["state"] == "Active"]  # fmt: skip
        assert active == ["hog"]
        assert "EvictionHeld" in event_reasons(client, pool.space)
        client.delete(f"/api/v1/namespaces/{pool.space}")


def stopped(client: ApiClient, pool: NodePool, killer: SlowKiller) -> bool:
    """Convicted, and none of its pods runs on a node that lives."""
    living = [pod for pod in pods(client, pool.space, "hog")
              if runs(pod) and pod["spec"].get("nodeName") in killer.nodes.alive]  # fmt: skip
    return len(killer.killed) >= 2 and not living
