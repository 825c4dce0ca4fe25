"""The hold: a copy of a culprit stays on its silent node for a while, and is given back."""

import json
import signal
import time
from pathlib import Path

import pytest
from tests.cluster.acted_scene import (
    TOLERATION_SECONDS,
    actions,
    deployment,
    event_reasons,
    foreign_writes,
    is_marked,
    release,
    results,
    state,
    until,
)
from tests.cluster.actor_process import ActorProcess, convict, set_policy
from tests.cluster.api_client import Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_pool import NodePool
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods

from seawall.cluster.objects.api_group import (
    CHANGES_ANNOTATION,
    CLUSTER_POLICY,
    WORKLOAD_QUARANTINE,
    path_of,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

HOLD_ALONE = {"levers": {"gate": False, "stopCopies": False}}
TWO_NODES = ("gone-1", "gone-2")


def tolerations(pod: Object) -> set[object]:
    return {one.get("tolerationSeconds") for one in pod["spec"]["tolerations"]
            if one["key"] == "node.kubernetes.io/unreachable"}  # fmt: skip


def pod_path(pool: NodePool, pod: Object) -> str:
    return f"/api/v1/namespaces/{pool.space}/pods/{pod['metadata']['name']}"


def hog_and_web(pool: NodePool) -> tuple[list[Object], list[Object]]:
    for name in ("hog", "web"):
        pool.deploy(name, 3)
    pool.wait_until_running()
    return pods(pool.client, pool.space, "hog"), pods(pool.client, pool.space, "web")


def test_a_pod_on_a_silent_node_is_held_and_given_back(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, **HOLD_ALONE)
    hog, web = hog_and_web(pool)
    node = hog[0]["spec"]["nodeName"]
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: state(client, name) == ("Active", "hold"), 30, "it is active")
        pool.nodes.die(node)
        path = pod_path(pool, hog[0])
        until(actor, lambda: tolerations(client.get(path)) == {1800}, 60)
        assert actor.metrics()["seawall_death_to_hold_seconds_sum"] < 10
        time.sleep(TOLERATION_SECONDS + 5)
        assert "deletionTimestamp" not in client.get(path)["metadata"], actor.log()
        assert pool.running("hog") == 3, "no copy of it elsewhere"
        for one in web:
            if one["spec"]["nodeName"] == node:
                gone = client.get(pod_path(pool, one))["metadata"]
                assert "deletionTimestamp" in gone, "an innocent one goes as ever"
        assert actor.metrics()["seawall_held_pods"] == 1
        assert {"EvictionHeld"} <= event_reasons(client, pool.space)
        release(client, name)
        until(actor, lambda: not is_marked(client, path), 20)
        assert tolerations(client.get(path)) == {TOLERATION_SECONDS}
        wait_until(lambda: ("hold", "undone") in results(client, name), 10, "it is written down")
        assert all("undoneAt" in one for one in actions(client, name) if one["lever"] == "hold")


def test_killed_between_the_two_steps_the_next_one_makes_the_second(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """Else the pod would stay for ever: what was begun is finished, whatever brake is set."""
    client = pool.client
    set_policy(client, **HOLD_ALONE)
    hog, _ = hog_and_web(pool)
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    path = pod_path(pool, hog[0])
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: state(client, name) == ("Active", "hold"), 30, "it is active")
        pool.nodes.die(hog[0]["spec"]["nodeName"])
        wait_until(lambda: tolerations(client.get(path)) == {None}, 60, "the first step")
        actor.signal(signal.SIGKILL)
    client.patch(path_of(CLUSTER_POLICY, "default"), {"spec": {"brake": True}})
    assert tolerations(client.get(path)) == {None}
    with ActorProcess(slow_plane, tmp_path):
        wait_until(lambda: tolerations(client.get(path)) == {1800}, 60, "the second step")
    records = json.loads(client.get(path)["metadata"]["annotations"][CHANGES_ANNOTATION])
    (record,) = records
    assert {one["tolerationSeconds"] for one in record["before"]} == {TOLERATION_SECONDS}


def test_a_dry_run_tells_each_step_and_writes_nothing_foreign(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, dryRun=True)
    hog, _ = hog_and_web(pool)
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    mark = audit.mark()
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: ("activate", "dry-run") in results(client, name), 30)
        pool.nodes.die(hog[0]["spec"]["nodeName"])
        until(actor, lambda: ("hold", "dry-run") in results(client, name), 60)
        until(actor, lambda: ("stopCopies", "dry-run") in results(client, name), 20)
        user = actor.user
    assert state(client, name) == ("Proposed", "tell")
    assert foreign_writes(audit, mark, user, pool.space) == []
    spec = [one for one in audit.since(mark) if one.user == user and one.is_write
            and one.resource == "workloadquarantines.seawall.internal"]  # fmt: skip
    assert spec == [], "not even the quarantine's spec"


def test_on_suspicion_alone_no_single_replica_is_held(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, **HOLD_ALONE)
    for workload, replicas in (("one", 1), ("three", 3)):
        pool.deploy(workload, replicas)
    pool.wait_until_running()
    nodes = {one: pods(client, pool.space, one)[0]["spec"]["nodeName"] for one in ("one", "three")}
    names = {
        workload: convict(client, deployment(pool, workload), (node,), verdict="suspected",
                          state="Suspected", proved=1)
        for workload, node in nodes.items()
    }  # fmt: skip
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(actor.leads, 30, "it leads")
        pool.nodes.die(*nodes.values())
        until(actor, lambda: ("hold", "done") in results(client, names["three"]), 60)
        until(actor, lambda: ("hold", "refused") in results(client, names["one"]), 10)
        for name in names.values():
            assert state(client, name) == ("Suspected", "tell"), "it is held, and no more"
        refusals = {one: value for one, value in actor.metrics().items()
                    if one.startswith("seawall_action_refusals_total")}  # fmt: skip
        assert refusals['seawall_action_refusals_total{reason="single replica"}'] == 1
        held = sum(tolerations(pod) != {TOLERATION_SECONDS}
                   for pod in pods(client, pool.space, "one"))  # fmt: skip
        assert held == 0


def test_a_convicted_one_is_held_while_a_person_is_asked_for_more(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """The core would make a new copy before anybody wakes up; a hold ends by itself."""
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, approval="approve")
    hog, _ = hog_and_web(pool)
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    path, mark = pod_path(pool, hog[0]), audit.mark()
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: ("activate", "refused") in results(client, name), 30)
        pool.nodes.die(hog[0]["spec"]["nodeName"])
        until(actor, lambda: tolerations(client.get(path)) == {1800}, 60)
        assert state(client, name) == ("Proposed", "tell")
        written = {one.name for one in foreign_writes(audit, mark, actor.user, pool.space)}
        assert written == {hog[0]["metadata"]["name"]}, "and nothing more"


def test_a_brake_stops_what_is_new_and_no_undo(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, **HOLD_ALONE)
    hog, _ = hog_and_web(pool)
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    path = pod_path(pool, hog[0])
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: state(client, name) == ("Active", "hold"), 30, "it is active")
        pool.nodes.die(hog[0]["spec"]["nodeName"])
        wait_until(lambda: tolerations(client.get(path)) == {1800}, 60, "held")
        client.patch(path_of(CLUSTER_POLICY, "default"), {"spec": {"brake": True}})
        other = convict(client, deployment(pool, "web"), TWO_NODES)
        until(actor, lambda: ("activate", "refused") in results(client, other), 20)
        assert state(client, other) == ("Proposed", "tell")
        assert actor.metrics()['seawall_brake_tripped{brake="disarmed"}'] == 1
        brakes = client.get(path_of(CLUSTER_POLICY, "default"))["status"]["brakes"]
        assert [one["name"] for one in brakes] == ["disarmed"]
        client.delete(path_of(WORKLOAD_QUARANTINE, name))
        until(actor, lambda: not is_marked(client, path), 20)
        assert tolerations(client.get(path)) == {TOLERATION_SECONDS}


def test_the_api_server_goes_away_between_the_two_steps(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """What was begun is finished when it is back; and nothing new for a minute."""
    client = pool.client
    set_policy(client, **HOLD_ALONE)
    hog, _ = hog_and_web(pool)
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    path = pod_path(pool, hog[0])
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: state(client, name) == ("Active", "hold"), 30, "it is active")
        pool.nodes.die(hog[0]["spec"]["nodeName"])
        until(actor, lambda: tolerations(client.get(path)) == {None}, 60)
        with slow_plane.without_apiserver(client):
            time.sleep(20)
        until(actor, lambda: tolerations(client.get(path)) == {1800}, 60)
        assert actor.leads(), "it has not ended"
        other = convict(client, deployment(pool, "web"), TWO_NODES)
        until(actor, lambda: ("activate", "refused") in results(client, other), 40)
        until(actor, lambda: state(client, other) == ("Active", "hold"), 120)


def test_a_leader_that_was_stopped_writes_nothing_when_it_goes_on(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, **HOLD_ALONE)
    hog, _ = hog_and_web(pool)
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    path = pod_path(pool, hog[0])
    first, second = ActorProcess(slow_plane, tmp_path), ActorProcess(slow_plane, tmp_path)
    with first:
        wait_until(lambda: state(client, name) == ("Active", "hold"), 30, "it is active")
        with second:
            pool.nodes.die(hog[0]["spec"]["nodeName"])
            until(first, lambda: tolerations(client.get(path)) == {None}, 60)
            first.signal(signal.SIGSTOP)
            until(second, lambda: tolerations(client.get(path)) == {1800}, 60)
            mark = audit.mark()
            first.signal(signal.SIGCONT)
            time.sleep(8)
            assert foreign_writes(audit, mark, first.user, pool.space) == []
