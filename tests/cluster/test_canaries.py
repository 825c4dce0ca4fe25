"""Probation on a real control plane: one new pod is tried under a guard, the others wait."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.acted_scene import (
    deployment,
    quarantine,
    release,
    results,
    state,
    until,
)
from tests.cluster.actor_process import ActorProcess, convict, set_policy
from tests.cluster.api_client import STRATEGIC, ApiClient, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_pool import NodePool
from tests.cluster.plane_build import version_wanted
from tests.cluster.test_action_verbs import Desk
from tests.cluster.test_actor_nodes import report
from tests.cluster.workloads import pods, runs

from seawall.cluster.objects.api_group import GUARD_LABEL, NODE_REPORT, QUARANTINE_GATE, path_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

MUTATES = tuple(map(int, version_wanted().split("."))) >= (1, 36)
needs_mutating = pytest.mark.skipif(not MUTATES, reason="before 1.36 probation is a denial")
CANARY_SECONDS = 12
TWO_NODES = ("gone-1", "gone-2")


@pytest.fixture
def guarded(pool: NodePool) -> Iterator[list[str]]:
    """Three nodes on which nothing runs yet; what their agents say goes with the test."""
    set_policy(pool.client, canarySeconds=CANARY_SECONDS)
    pool.deploy("hog", 3)
    pool.wait_until_running()
    free = sorted(set(pool.names) - pool.nodes_of("hog"))[:3]
    for node in free:
        report(pool.client, node, [])
    yield free
    for node in free:
        pool.client.delete(path_of(NODE_REPORT, node))


def put_on_probation(pool: NodePool) -> str:
    return convict(pool.client, deployment(pool, "hog"), TWO_NODES, state="Active",
                   mode="probation", approvedBy="someone")  # fmt: skip


def canary(client: ApiClient, name: str) -> Object:
    return (quarantine(client, name).get("status") or {}).get("canary") or {}


def let_through(pool: NodePool) -> set[str]:
    """New pods that may run, whether they do or not: each is bound to guarded nodes."""
    return {one["metadata"]["name"] for one in pods(pool.client, pool.space, "hog")
            if one["spec"].get("nodeSelector", {}).get(GUARD_LABEL) == "enforcing"}  # fmt: skip


def wait_at_gate(pool: NodePool) -> int:
    return sum({"name": QUARANTINE_GATE} in one["spec"].get("schedulingGates", [])
               for one in pods(pool.client, pool.space, "hog"))  # fmt: skip


@needs_mutating
def test_one_is_tried_and_then_all_run_under_a_guard(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path, guarded: list[str]
) -> None:
    client = pool.client
    name = put_on_probation(pool)
    most = 0
    with ActorProcess(slow_plane, tmp_path) as first:
        until(first, lambda: canary(client, name).get("node"), 60)
        tried = canary(client, name)
        assert tried["node"] in guarded
        assert state(client, name) == ("Canary", "probation")
        assert first.process is not None
        first.process.kill()
        first.process.wait()
    with ActorProcess(slow_plane, tmp_path) as actor:
        while canary(client, name).get("verdict") is None:
            most = max(most, len(let_through(pool)))
            assert sum(map(runs, pods(client, pool.space, "hog"))) > 0, "it serves all the time"
            time.sleep(0.2)
        assert most == 1, "exactly one"
        assert canary(client, name) == {**tried, "verdict": "passed"}
        until(actor, lambda: pool.nodes_of("hog") <= set(guarded) and pool.running("hog") == 3, 90)
        assert state(client, name) == ("Active", "probation")
        assert wait_at_gate(pool) == 0
        release(client, name)


@needs_mutating
def test_the_node_that_dies_with_the_canary_is_the_last(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path, guarded: list[str]
) -> None:
    client, desk = pool.client, Desk(slow_plane)
    name = put_on_probation(pool)
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: canary(client, name).get("node"), 60)
        tried = canary(client, name)
        pool.nodes.die(tried["node"])
        until(actor, lambda: canary(client, name).get("verdict") == "node died", 60)
        until(actor, lambda: state(client, name) == ("Active", "gate"), 20)
        until(actor, lambda: wait_at_gate(pool) >= 1, 40)
        client.patch(f"/apis/seawall.internal/v1alpha1/workloadquarantines/{name}",
                     {"spec": {"mode": "probation"}})  # fmt: skip
        until(actor, lambda: state(client, name) == ("Active", "gate"), 20)
        assert let_through(pool) <= {tried["pod"]}, "a field is not a person's word"
        assert desk("approve", name, "--mode", "probation", "--yes").status == 0
        until(actor, lambda: canary(client, name).get("node"), 60)
        assert canary(client, name)["uid"] != tried["uid"]
        release(client, name)


@needs_mutating
def test_a_canary_that_had_to_be_ended_is_the_last(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path, guarded: list[str]
) -> None:
    """As the kubelet tells it after a guard's signal."""
    client = pool.client
    name = put_on_probation(pool)
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: canary(client, name).get("node"), 60)
        pod = f"/api/v1/namespaces/{pool.space}/pods/{canary(client, name)['pod']}"
        ended = {"exitCode": 137, "reason": "Error"}
        main = {"name": "main", "image": "x", "imageID": "x", "ready": True, "restartCount": 1,
                "state": {"running": {}}, "lastState": {"terminated": ended}}  # fmt: skip
        client.patch(f"{pod}/status", {"status": {"containerStatuses": [main]}}, STRATEGIC)
        until(actor, lambda: canary(client, name).get("verdict") == "killed", 30)
        until(actor, lambda: state(client, name) == ("Active", "gate"), 20)
        until(actor, lambda: pool.running("hog") == 0, 90)
        assert wait_at_gate(pool) == 3
        release(client, name)
        until(actor, lambda: pool.running("hog") == 3, 60)
        assert let_through(pool) == set(), "who waited bears no mark of it"


def test_where_no_node_is_guarded_nobody_is_tried(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, desk = pool.client, Desk(slow_plane)
    set_policy(client, canarySeconds=CANARY_SECONDS)
    pool.deploy("hog", 2)
    pool.wait_until_running()
    name = put_on_probation(pool)
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: ("canary", "refused") in results(client, name), 30)
        until(actor, lambda: pool.running("hog") == 0, 60)
        assert let_through(pool) == set()
        assert canary(client, name) == {}
        words = desk("why", f"{pool.space}/hog").words
        said = "no node it is known that its guard enforces" if MUTATES else "REFUSED unless"
        assert said in words, words
        release(client, name)
