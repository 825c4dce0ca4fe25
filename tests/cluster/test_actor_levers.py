"""The owners' own switches, living copies, and what stops a lever: on a real control plane."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.acted_scene import (
    actions,
    deployment,
    event_reasons,
    foreign_writes,
    job,
    quarantine,
    release,
    results,
    state,
    without_bookkeeping,
)
from tests.cluster.actor_process import ActorProcess, convict, set_policy
from tests.cluster.api_client import ApiError, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.foreign_kinds import (
    JOBSETS,
    RAYJOBS,
    WORKFLOWS,
    WORKLOADS,
    install_foreign_kinds,
)
from tests.cluster.node_pool import NodePool
from tests.cluster.refusing_webhook import WORDS, RefusingWebhook
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods, runs

from seawall.cluster.objects.api_group import CHANGES_ANNOTATION

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

TWO_NODES = ("gone-1", "gone-2")
KUEUE_QUEUE = {"labels": {"kueue.x-k8s.io/queue-name": "team"}}


def batch(pool: NodePool, plural: str, name: str) -> str:
    return f"/apis/batch/v1/namespaces/{pool.space}/{plural}/{name}"


def make_job(pool: NodePool) -> tuple[Object, str]:
    return job(pool, "train"), batch(pool, "jobs", "train")


def make_cron_job(pool: NodePool) -> tuple[Object, str]:
    template = {"spec": {**pool.spec("nightly"), "restartPolicy": "Never"}}
    made = pool.client.create(f"/apis/batch/v1/namespaces/{pool.space}/cronjobs", {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template}}},
    })  # fmt: skip
    return made, batch(pool, "cronjobs", "nightly")


def foreign(path: str, kind: str) -> Callable[[NodePool], tuple[Object, str]]:
    """One of another project's kinds, with a template of pods in the form of most of them."""

    def make(pool: NodePool) -> tuple[Object, str]:
        place = path.format(pool.space)
        version = place.split("/namespaces")[0].removeprefix("/apis/")
        made = pool.client.create(place, {
            "apiVersion": version, "kind": kind, "metadata": {"name": "gang"},
            "spec": {"template": {"spec": pool.spec("gang")}},
        })  # fmt: skip
        return made, f"{place}/gang"

    return make


@pytest.mark.parametrize(
    "make", [make_job, make_cron_job, foreign(JOBSETS, "JobSet"), foreign(RAYJOBS, "RayJob"),
             foreign(WORKFLOWS, "Workflow")],
    ids=["Job", "CronJob", "JobSet", "RayJob", "Workflow"],
)  # fmt: skip
def test_an_owner_is_stopped_by_its_own_switch_and_given_back(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path,
    make: Callable[[NodePool], tuple[Object, str]],
) -> None:  # fmt: skip
    client = pool.client
    install_foreign_kinds(client)
    set_policy(client)
    made, path = make(pool)
    before = without_bookkeeping(client.get(path))
    name = convict(client, made, TWO_NODES)
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: client.get(path)["spec"].get("suspend") is True, 40, actor.log())
        assert state(client, name) == ("Active", "suspend")
        if made["kind"] == "Job":
            wait_until(lambda: not pods(client, pool.space, "train"), 20, "its pods are gone")
        wait_until(lambda: ("suspend", "done") in results(client, name), 10, "written down")
        assert "WorkloadSuspended" in event_reasons(client, pool.space)
        release(client, name)
        wait_until(
            lambda: CHANGES_ANNOTATION not in client.get(path)["metadata"].get("annotations", {}),
            20, f"undone\n{actor.log()}",
        )  # fmt: skip
    after = without_bookkeeping(client.get(path))
    for one in (before, after):  # of the core: which Job's controller made which pods
        one["metadata"].get("annotations", {}).pop("batch.kubernetes.io/job-tracking", None)
    assert after == before


def test_what_kueue_manages_is_stopped_at_its_workload(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    install_foreign_kinds(client)
    set_policy(client)
    made = job(pool, "train", **KUEUE_QUEUE)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train",
                 "uid": made["metadata"]["uid"], "controller": True}  # fmt: skip
    path = WORKLOADS.format(pool.space)
    client.create(path, {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": "job-train", "ownerReferences": [reference]},
        "spec": {"active": True, "podSets": []},
    })  # fmt: skip
    before = without_bookkeeping(client.get(f"{path}/job-train"))
    mark = audit.mark()
    name = convict(client, made, TWO_NODES)
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: client.get(f"{path}/job-train")["spec"]["active"] is False, 40,
                   actor.log())  # fmt: skip
        release(client, name)
        wait_until(lambda: client.get(f"{path}/job-train")["spec"]["active"] is True, 20, "back")
        touched = {one.resource for one in foreign_writes(audit, mark, actor.user, pool.space)}
    assert without_bookkeeping(client.get(f"{path}/job-train")) == before
    assert touched == {"workloads.kueue.x-k8s.io"}, "Kueue would start the Job again"


def test_a_lever_that_somebody_puts_back_rests(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """As Argo does with what differs from its repository."""
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client)
    made, path = make_job(pool)
    mark = audit.mark()
    ended = threading.Event()

    def sync() -> None:
        with slow_plane.client() as other:
            while not ended.wait(0.5):
                with contextlib.suppress(ApiError):
                    if other.get(path)["spec"].get("suspend"):
                        other.patch(path, {"spec": {"suspend": False}})

    thread = threading.Thread(target=sync, daemon=True)
    thread.start()
    try:
        name = convict(client, made, TWO_NODES)
        with ActorProcess(slow_plane, tmp_path) as actor:
            wait_until(lambda: ("suspend", "reverted") in results(client, name), 40, actor.log())
            time.sleep(15)
            writes = [one for one in foreign_writes(audit, mark, actor.user, pool.space)
                      if one.resource == "jobs.batch"]  # fmt: skip
            assert len(writes) == 1, "it does not fight"
            assert "LeverReverted" in event_reasons(client, pool.space)
            series = 'seawall_actions_total{dry_run="false",lever="suspend",result="reverted"}'
            assert actor.metrics()[series] == 1
            assert [one for one in actions(client, name) if one["lever"] == "stopCopies"
                    and one["result"] == "done"] == []  # fmt: skip
    finally:
        ended.set()
        thread.join()


def test_a_webhook_that_refuses_is_told_and_tried_again(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client)
    made, path = make_job(pool)
    with ActorProcess(slow_plane, tmp_path) as actor:
        with RefusingWebhook(client, slow_plane.folder, pool.space, "jobs", "batch") as webhook:
            name = convict(client, made, TWO_NODES)
            wait_until(lambda: ("suspend", "refused") in results(client, name), 60, actor.log())
            (line,) = [one for one in actions(client, name)
                       if (one["lever"], one["result"]) == ("suspend", "refused")]  # fmt: skip
            assert WORDS in line["problem"]
            assert client.get(path)["spec"]["suspend"] is False
            time.sleep(10)
            assert len(webhook.seen) <= 6, "it waits longer each time"
            assert actor.leads()
        wait_until(lambda: client.get(path)["spec"]["suspend"] is True, 60, actor.log())


def test_living_copies_are_not_stopped_where_new_ones_start(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """The gate of this quarantine holds nobody: its admission policies are not installed."""
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, levers={"suspend": False})
    pool.deploy("hog", 3)
    pool.wait_until_running()
    mark = audit.mark()
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: state(client, name) == ("Active", "gate"), 30, actor.log())
        wait_until(lambda: ("stopCopies", "refused") in results(client, name), 60, actor.log())
        time.sleep(25)
        deleted = foreign_writes(audit, mark, actor.user, pool.space)
    assert {one.verb for one in deleted} == {"delete"}
    assert len(deleted) == 1


def test_a_deployment_is_scaled_by_opt_in_and_a_wide_one_by_a_person_only(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, levers={"scaleToZero": True}, brakes={"approvalAboveNodes": 2})
    for workload, replicas in (("small", 2), ("wide", 3)):
        pool.deploy(workload, replicas)
    pool.wait_until_running()
    path = f"/apis/apps/v1/namespaces/{pool.space}/deployments"
    before = without_bookkeeping(client.get(f"{path}/small"))
    small, wide = (convict(client, deployment(pool, one), TWO_NODES) for one in ("small", "wide"))
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: client.get(f"{path}/small")["spec"]["replicas"] == 0, 40, actor.log())
        wait_until(lambda: state(client, wide) == ("Active", "gate"), 40, actor.log())
        wait_until(lambda: ("suspend", "refused") in results(client, wide), 20, actor.log())
        time.sleep(13)
        assert client.get(f"{path}/wide")["spec"]["replicas"] == 3
        assert all(runs(pod) for pod in pods(client, pool.space, "wide")), "nor is one deleted"
        release(client, small)
        wait_until(lambda: client.get(f"{path}/small")["spec"]["replicas"] == 2, 20, "back")
        wait_until(
            lambda: CHANGES_ANNOTATION not in
            client.get(f"{path}/small")["metadata"].get("annotations", {}), 20, "and unmarked",
        )  # fmt: skip
    assert without_bookkeeping(client.get(f"{path}/small")) == before


def test_two_actors_and_a_killed_one_do_nothing_twice(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client)
    jobs = [job(pool, f"train-{letter}", 1) for letter in "abc"]
    mark = audit.mark()
    names = [convict(client, one, TWO_NODES) for one in jobs]
    first, second = ActorProcess(slow_plane, tmp_path), ActorProcess(slow_plane, tmp_path)
    with first, second:
        wait_until(lambda: first.leads() or second.leads(), 30, "one leads")
        leader = first if " leads: " in first.log() else second
        wait_until(lambda: any(("suspend", "done") in results(client, one) for one in names), 30,
                   leader.log())  # fmt: skip
        assert leader.process is not None
        leader.process.kill()
        leader.process.wait()
        other = second if leader is first else first
        wait_until(lambda: all(state(client, one) == ("Active", "suspend") for one in names), 60,
                   other.log())  # fmt: skip
        wait_until(
            lambda: all(client.get(batch(pool, "jobs", one["metadata"]["name"]))["spec"]["suspend"]
                        for one in jobs), 60, other.log(),
        )  # fmt: skip
        writes = [one.name for one in foreign_writes(audit, mark, first.user, pool.space)]
    assert sorted(writes) == ["train-a", "train-b", "train-c"], "each once"


def test_nothing_happens_without_approval_and_all_of_it_with(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, approval="approve")
    made, path = make_job(pool)
    name = convict(client, made, TWO_NODES)
    mark = audit.mark()
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(lambda: ("activate", "refused") in results(client, name), 30, actor.log())
        time.sleep(5)
        assert foreign_writes(audit, mark, actor.user, pool.space) == []
        place = f"/apis/seawall.internal/v1alpha1/workloadquarantines/{name}"
        client.patch(f"{place}/status", {"status": {"approvedBy": "someone"}})
        client.patch(place, {"spec": {"state": "Active", "mode": "suspend"}})
        wait_until(lambda: client.get(path)["spec"]["suspend"] is True, 20, actor.log())
    assert quarantine(client, name)["status"]["approvedBy"] == "someone"
