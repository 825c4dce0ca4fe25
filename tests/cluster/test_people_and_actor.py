"""A person says the word, the actor carries it out, and the person takes it back."""

import time
from pathlib import Path

import pytest
from tests.cluster.acted_scene import (
    foreign_writes,
    job,
    quarantine,
    results,
    state,
    without_bookkeeping,
)
from tests.cluster.actor_process import ActorProcess, convict, set_policy
from tests.cluster.api_client import Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_pool import NodePool
from tests.cluster.test_action_verbs import Desk
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods

from seawall.cluster.objects.api_group import CHANGES_ANNOTATION, CLUSTER_POLICY, path_of
from seawall.cluster.objects.api_time import time_seconds

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

JOB_TRACKING = "batch.kubernetes.io/job-tracking"


def owner_path(pool: NodePool, plural: str, name: str) -> str:
    return f"/apis/batch/v1/namespaces/{pool.space}/{plural}/{name}"


def lasting_part(document: Object) -> Object:
    whole = without_bookkeeping(document)
    whole["metadata"].get("annotations", {}).pop(JOB_TRACKING, None)
    return whole


def train(pool: NodePool) -> str:
    """A Job of two pods that run; its path."""
    job(pool, "train")
    wait_until(lambda: pool.running("train") == 2, 60, "two pods run")
    return owner_path(pool, "jobs", "train")


def tripped(pool: NodePool) -> list[str]:
    """Brakes that the actor says hold it back."""
    status = pool.client.get(path_of(CLUSTER_POLICY, "default")).get("status") or {}
    return [one["name"] for one in status.get("brakes", [])]


def leads(pool: NodePool, actor: ActorProcess) -> None:
    """Wait until it holds its lease."""
    leases = "/apis/coordination.k8s.io/v1/leases"

    def is_held() -> bool:
        found = pool.client.items(leases, fieldSelector="metadata.name=seawall-actor")
        renewed = [time_seconds(one["spec"].get("renewTime") or "1970-01-01T00:00:00Z")
                   for one in found]  # fmt: skip
        return max(renewed, default=0.0) > time.time() - 5.0

    wait_until(is_held, 20, f"it leads\n{actor.log()}")


def is_suspended(pool: NodePool, path: str) -> bool:
    return pool.client.get(path)["spec"].get("suspend") is True


def test_a_persons_quarantine_is_carried_out_and_taken_back(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, desk = pool.client, Desk(slow_plane)
    set_policy(client, "approve")
    path = train(pool)
    before = lasting_part(client.get(path))
    with ActorProcess(slow_plane, tmp_path) as actor:
        leads(pool, actor)
        made = desk("quarantine", f"{pool.space}/job/train", "--yes", "--reason", "it eats nodes",
                    "--json").document  # fmt: skip
        name = made["subject"]
        assert not any("NOBODY" in one for one in made["effects"]), made["effects"]
        wait_until(lambda: is_suspended(pool, path), 40, actor.log())
        wait_until(lambda: not pods(client, pool.space, "train"), 20, "its pods are gone")
        wait_until(lambda: ("suspend", "done") in results(client, name), 10, "written down")
        why = desk("why", f"{pool.space}/train")
        assert "approved by admin" in why.words
        assert f"Job {pool.space}/train suspended" in why.words
        ended = desk("release", f"{pool.space}/train")
        assert ended.status == 0, ended.out
        assert "stay" in ended.words or "new ones begin anew" in ended.words
        wait_until(lambda: not is_suspended(pool, path), 10, "it goes on")
        wait_until(
            lambda: CHANGES_ANNOTATION not in client.get(path)["metadata"].get("annotations", {}),
            10, "its record is gone",
        )  # fmt: skip
    assert lasting_part(client.get(path)) == before


def test_what_is_approved_is_carried_out_and_undone_without_the_actor(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, desk = pool.client, Desk(slow_plane)
    set_policy(client, "approve")
    path = train(pool)
    before = lasting_part(client.get(path))
    name = convict(client, client.get(path) | {"kind": "Job"}, ("gone-1", "gone-2"))
    with ActorProcess(slow_plane, tmp_path) as actor:
        leads(pool, actor)
        waits = desk("why", f"{pool.space}/train")
        assert "the actor waits for somebody's word" in waits.words
        assert state(client, name)[0] == "Proposed"
        assert desk("approve", f"{pool.space}/train", "--yes").status == 0
        assert quarantine(client, name)["status"]["approvedBy"] == "admin"
        wait_until(lambda: is_suspended(pool, path), 40, actor.log())
    undone = desk("undo", "--all")  # the actor is gone
    assert undone.status == 0, undone.out
    assert not is_suspended(pool, path)
    assert state(client, name)[0] == "Released"
    assert lasting_part(client.get(path)) == before


def test_the_brake_stops_what_is_new_and_no_undo(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, desk = pool.client, Desk(slow_plane)
    audit = AuditLog(slow_plane.audit_path)
    set_policy(client, "auto")
    path = train(pool)
    job(pool, "other")
    wait_until(lambda: pool.running("other") == 2, 60, "two pods run")
    other = owner_path(pool, "jobs", "other")
    with ActorProcess(slow_plane, tmp_path) as actor:
        leads(pool, actor)
        assert desk("quarantine", f"{pool.space}/job/train", "--yes").status == 0
        wait_until(lambda: is_suspended(pool, path), 40, actor.log())
        braked = desk("brake", "--wait", "0", "--reason", "drill")
        assert braked.status == 1, "no guard of these nodes says anything"
        assert client.get(path_of(CLUSTER_POLICY, "default"))["spec"]["brake"] is True
        wait_until(lambda: "disarmed" in tripped(pool), 20, "the actor has heard of it")
        mark = audit.mark()
        added = desk("quarantine", f"{pool.space}/job/other", "--yes")
        assert "NOTHING until the brake is off" in added.words
        released = desk("release", f"{pool.space}/train")
        assert released.status == 0, released.out
        wait_until(lambda: not is_suspended(pool, path), 10, "undone under the brake")
        told = foreign_writes(audit, mark, actor.user, pool.space)
        assert not [one for one in told if one.name == "other"]
        assert not is_suspended(pool, other)
        assert desk("brake", "--off").status == 0
        wait_until(lambda: is_suspended(pool, other), 40, f"it goes on from now\n{actor.log()}")
        assert desk("undo", "--all").status == 0
        wait_until(lambda: not is_suspended(pool, other), 10, "undone")
