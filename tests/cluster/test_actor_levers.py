"""The owners' own switches, living copies, and what stops a lever: on a real control plane."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.acted_scene import (
    actions,
    deployment,
    event_reasons,
    foreign_writes,
    is_marked,
    job,
    quarantine,
    release,
    results,
    state,
    until,
    without_bookkeeping,
)
from tests.cluster.actor_process import (
    ADMISSION,
    ActorProcess,
    convict,
    opted_in,
    set_policy,
)
from tests.cluster.api_client import ApiClient, ApiError, Object
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
from tests.cluster.plane_build import version_wanted
from tests.cluster.refusing_webhook import WORDS, RefusingWebhook
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods, runs

from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    QUARANTINE_GATE,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.cluster.objects.api_time import time_seconds

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

TWO_NODES = ("gone-1", "gone-2")
MUTATES = tuple(map(int, version_wanted().split("."))) >= (1, 36)
needs_mutating = pytest.mark.skipif(not MUTATES, reason="no MutatingAdmissionPolicy before 1.36")
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
        until(actor, lambda: client.get(path)["spec"].get("suspend") is True, 40)
        assert state(client, name) == ("Active", "suspend")
        if made["kind"] == "Job":
            wait_until(lambda: not pods(client, pool.space, "train"), 20, "its pods are gone")
        wait_until(lambda: ("suspend", "done") in results(client, name), 10, "written down")
        until(actor, lambda: "WorkloadSuspended" in event_reasons(client, pool.space), 10)
        release(client, name)
        until(actor, lambda: not is_marked(client, path), 20)
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
        until(actor, lambda: client.get(f"{path}/job-train")["spec"]["active"] is False, 40)
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
            until(actor, lambda: ("suspend", "reverted") in results(client, name), 40)
            time.sleep(15)
            writes = [one for one in foreign_writes(audit, mark, actor.user, pool.space)
                      if one.resource == "jobs.batch"]  # fmt: skip
            assert len(writes) == 1, "it does not fight"
            until(actor, lambda: "LeverReverted" in event_reasons(client, pool.space), 10)
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
            until(actor, lambda: ("suspend", "refused") in results(client, name), 60)
            (line,) = [one for one in actions(client, name)
                       if (one["lever"], one["result"]) == ("suspend", "refused")]  # fmt: skip
            assert WORDS in line["problem"]
            assert client.get(path)["spec"]["suspend"] is False
            time.sleep(10)
            assert len(webhook.seen) <= 6, "it waits longer each time"
            assert actor.leads()
        until(actor, lambda: client.get(path)["spec"]["suspend"] is True, 60)


def gated(pod: Object) -> bool:
    return {"name": QUARANTINE_GATE} in pod["spec"].get("schedulingGates", [])


def listed(client: ApiClient, name: str) -> set[tuple[str, str]]:
    """Pods that the quarantine names to the nodes that they are on."""
    status = client.get(path_of(WORKLOAD_QUARANTINE, name)).get("status", {})
    return {(one["uid"], one["node"]) for one in status.get("pods", [])}


@needs_mutating
def test_living_copies_go_one_after_the_other_while_new_ones_wait_at_the_gate(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, levers={"suspend": False})
    pool.deploy("hog", 2)
    pool.deploy("web", 2)
    pool.wait_until_running()
    nodes = {(one["metadata"]["uid"], one["spec"].get("nodeName"))
             for one in pods(client, pool.space, "hog")}  # fmt: skip
    mark = audit.mark()
    name = convict(client, deployment(pool, "hog"), TWO_NODES)
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: state(client, name) == ("Active", "gate"), 30)
        until(actor, lambda: listed(client, name) <= nodes and bool(listed(client, name)), 20)
        until(actor, lambda: pool.running("hog") == 0, 60)
        until(actor, lambda: not listed(client, name), 20)
        writes = foreign_writes(audit, mark, actor.user, pool.space)
        first, second = (time_seconds(one.time) for one in writes if one.verb == "delete")
        assert second - first >= 9
        wait_until(lambda: sum(map(gated, pods(client, pool.space, "hog"))) == 2, 20, "they wait")
        assert pool.running("web") == 2
        release(client, name)
        until(actor, lambda: pool.running("hog") == 2, 30)
        assert not any(map(gated, pods(client, pool.space, "hog")))


def test_living_copies_are_not_stopped_where_new_ones_start(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """The gate of this quarantine holds nobody: its admission policies are not in force."""
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, levers={"suspend": False})
    pool.deploy("hog", 3)
    pool.wait_until_running()
    mark = audit.mark()
    with without_gates(client):
        name = convict(client, deployment(pool, "hog"), TWO_NODES)
        with ActorProcess(slow_plane, tmp_path) as actor:
            until(actor, lambda: state(client, name) == ("Active", "gate"), 30)
            until(actor, lambda: ("stopCopies", "refused") in results(client, name), 60)
            time.sleep(25)
            writes = foreign_writes(audit, mark, actor.user, pool.space)
    assert len([one for one in writes if one.verb == "delete"]) == 1


def test_a_claim_that_came_to_nothing_is_taken_away(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """As an actor leaves it that is killed between the label and the deletion."""
    client = pool.client
    set_policy(client, levers={"stopCopies": False})
    pool.deploy("hog", 2)
    pool.wait_until_running()
    name = convict(client, deployment(pool, "hog"), TWO_NODES, state="Active", mode="gate")
    mine, other = (
        f"/api/v1/namespaces/{pool.space}/pods/{one['metadata']['name']}"
        for one in pods(client, pool.space, "hog")
    )
    for path, label in ((mine, name), (other, "of-one-that-is-gone")):
        client.patch(path, {"metadata": {"labels": {CHANGED_BY_LABEL: label}}})
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: not is_marked(client, other), 40)
        assert is_marked(client, mine), "its quarantine stands"
        release(client, name)
        until(actor, lambda: not is_marked(client, mine), 20)
    assert pool.running("hog") == 2


@contextlib.contextmanager
def without_gates(client: ApiClient) -> Iterator[None]:
    """The policies of new pods are there, and bound to nothing."""
    found = []
    for plural in ("validating", "mutating"):
        path = f"{ADMISSION}/{plural}admissionpolicybindings/seawall-quarantined-pods"
        with contextlib.suppress(ApiError):
            found.append((path, client.get(path)))
            client.delete(path)
    time.sleep(2)
    yield
    for path, binding in found:
        del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
        client.create(path.rpartition("/")[0], binding)


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
    with (
        opted_in(client, "actor.levers.scaleToZero=true"),
        ActorProcess(slow_plane, tmp_path) as actor,
    ):
        until(actor, lambda: client.get(f"{path}/small")["spec"]["replicas"] == 0, 40)
        until(actor, lambda: state(client, wide) == ("Active", "gate"), 40)
        until(actor, lambda: ("suspend", "refused") in results(client, wide), 20)
        time.sleep(13)
        assert client.get(f"{path}/wide")["spec"]["replicas"] == 3
        assert all(runs(pod) for pod in pods(client, pool.space, "wide")), "nor is one deleted"
        release(client, small)
        wait_until(lambda: client.get(f"{path}/small")["spec"]["replicas"] == 2, 20, "back")
        until(actor, lambda: not is_marked(client, f"{path}/small"), 20)
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
        until(leader, lambda: any(("suspend", "done") in results(client, one) for one in names), 30)
        assert leader.process is not None
        leader.process.kill()
        leader.process.wait()
        other = second if leader is first else first
        until(other, lambda: all(state(client, one) == ("Active", "suspend") for one in names), 60)
        until(
            other,
            lambda: all(
                client.get(batch(pool, "jobs", one["metadata"]["name"]))["spec"]["suspend"]
                for one in jobs
            ),
            60,
        )
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
        until(actor, lambda: ("activate", "refused") in results(client, name), 30)
        time.sleep(5)
        assert foreign_writes(audit, mark, actor.user, pool.space) == []
        place = f"/apis/seawall.internal/v1alpha1/workloadquarantines/{name}"
        client.patch(f"{place}/status", {"status": {"approvedBy": "someone"}})
        client.patch(place, {"spec": {"state": "Active", "mode": "suspend"}})
        until(actor, lambda: client.get(path)["spec"]["suspend"] is True, 20)
    assert quarantine(client, name)["status"]["approvedBy"] == "someone"
