"""A person says the word, the actor carries it out, and the person takes it back."""

import json
import threading
import time
from argparse import Namespace
from pathlib import Path

import pytest
from tests.cluster import custom_resources
from tests.cluster.acted_scene import (
    foreign_writes,
    job,
    quarantine,
    results,
    state,
    without_bookkeeping,
)
from tests.cluster.actor_process import ActorProcess, convict, set_policy
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.observer_process import create
from tests.cluster.rendered_manifests import documents
from tests.cluster.slow_killer import node_report
from tests.cluster.test_action_verbs import Desk
from tests.cluster.test_agent import Agents
from tests.cluster.test_kube_plane import access
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods

from seawall.cli.cluster_act import ClusterActVerb
from seawall.cluster.acts.act_desk import ActDesk
from seawall.cluster.acts.release_act import undo
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.changeable_kinds import SUSPEND
from seawall.cluster.changes.object_change import ObjectChange, object_address
from seawall.cluster.kube.kube_client import KubeClient
from seawall.cluster.objects.api_group import (
    CHANGES_ANNOTATION,
    CLUSTER_POLICY,
    NODE_REPORT,
    RESCUE_ORDER,
    path_of,
)
from seawall.cluster.objects.api_time import time_seconds
from seawall.cluster.pages.cluster_act_page import ClusterActPage

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
        renewed = [time_seconds(one["spec"]["renewTime"]) for one in found
                   if one["spec"].get("holderIdentity")]  # fmt: skip
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


def operator(plane: ControlPlane, pool: NodePool, folder: Path) -> Desk:
    """Somebody with the ClusterRole of the manifests, and no other right."""
    client = pool.client
    role = next(one for one in documents() if one["metadata"]["name"] == "seawall-operator")
    group = "/apis/rbac.authorization.k8s.io/v1"
    create(client, f"{group}/clusterroles", role)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sre"}}
    accounts = f"/api/v1/namespaces/{pool.space}/serviceaccounts"
    client.create(accounts, account)
    subject = {"kind": "ServiceAccount", "name": "sre", "namespace": pool.space}
    client.create(f"{group}/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": f"sre-{pool.space}"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "seawall-operator"},
    })  # fmt: skip
    answer = client.create(f"{accounts}/sre/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {},
    })  # fmt: skip
    path = folder / "sre.kubeconfig"
    path.write_text(json.dumps(plane.kubeconfig_of(answer["status"]["token"])))
    desk = Desk(plane)
    desk.config = str(path)
    return desk


def test_an_operators_rights_are_enough_for_every_verb(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, "approve")
    path = train(pool)
    desk = operator(slow_plane, pool, tmp_path)
    made = desk("quarantine", f"{pool.space}/job/train", "--mode", "hold", "--json")
    assert made.status == 0, made.out + made.problems
    assert made.document["could_not_see"] == []
    name = made.document["subject"]
    assert quarantine(client, name)["status"]["approvedBy"].endswith(":sre")
    approved = desk("approve", name, "--mode", "suspend", "--yes", "--json")
    assert approved.status == 0, approved.out
    target = object_address(client.get(path) | {"kind": "Job", "apiVersion": "batch/v1"})
    kube = KubeClient(access(slow_plane))
    ChangeWriter(kube, "seawall-actor").apply(ObjectChange(target, name, SUSPEND, False, True))
    kube.close()
    released = desk("release", name, "--json")
    assert released.status == 0, released.out
    assert not is_suspended(pool, path)
    for words in (("undo", "--all"), ("brake", "--wait", "0"), ("brake", "--off")):
        ended = desk(*words, "--json").document
        assert ended["could_not_see"] == [], words
        assert not [one for one in ended["steps"] if one["result"] == "refused"], words
    assert desk("why").status == 0


def test_an_operators_rights_are_enough_for_a_rescue(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """The node's agent is played by the test: what a real one does is tried elsewhere."""
    client = pool.client
    train(pool)
    accused = pods(client, pool.space, "train")[0]
    node = accused["spec"]["nodeName"]
    client.create(path_of(NODE_REPORT), node_report(client, node, [accused]))
    desk = operator(slow_plane, pool, tmp_path)
    planned = desk("rescue", node, "--dry-run", "--json")
    assert planned.status == 0, planned.problems
    assert planned.document["could_not_see"] == []

    def answer() -> None:
        with slow_plane.client() as agent:
            path = path_of(RESCUE_ORDER, node, status=True)
            wait_until(lambda: agent.items(path_of(RESCUE_ORDER)), 60, "it is ordered")
            agent.patch(path, {"status": {"state": "Done", "message": "ended",
                                          "returnedBytes": 1 << 30}})  # fmt: skip

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    done = desk("rescue", node, "--wait", "60", "--reason", "drill", "--json")
    thread.join()
    assert done.status == 0, done.out + done.problems
    assert done.document["could_not_see"] == []
    order = client.get(path_of(RESCUE_ORDER, node))["spec"]
    assert order["requestedBy"].endswith(":sre")
    assert order["podUIDs"] == [accused["metadata"]["uid"]]
    again = desk("rescue", node, "--wait", "0", "--json")
    assert again.status == 1, "an answered order makes room for the next"
    for kind in (RESCUE_ORDER, NODE_REPORT):
        client.delete(path_of(kind, node))


class BrokenUndo(ClusterActVerb):
    """Nothing is sent any more after its first step, as when the API server goes away."""

    def act(self, desk: ActDesk) -> ClusterActPage:
        desk.client.fence = lambda: not desk.steps
        return undo(desk, "q-1", "")


def test_an_undo_that_breaks_off_says_what_was_written(
    slow_plane: ControlPlane, pool: NodePool
) -> None:
    client = pool.client
    kube = KubeClient(access(slow_plane))
    writer = ChangeWriter(kube, "seawall-actor")
    paths = [owner_path(pool, "jobs", name) for name in ("a", "b")]
    for path in paths:
        job(pool, path.rpartition("/")[2])
        target = object_address(client.get(path) | {"kind": "Job", "apiVersion": "batch/v1"})
        writer.apply(ObjectChange(target, "q-1", SUSPEND, False, True))
    kube.close()
    config = str(slow_plane.kubeconfig("admin"))
    page = BrokenUndo(Namespace(
        kubeconfig=config, context=None, dump=None, seconds=20.0, dry_run=False,
        cluster_verb="undo",
    )).page()  # fmt: skip
    assert page.outcome == "partly"
    assert page.headline.startswith("undo BROKE OFF")
    assert [step.result for step in page.steps] == ["done"]
    assert "whether the last write was carried out is not known" in page.unseen[0].why
    assert sum(is_suspended(pool, path) for path in paths) == 1
    assert Desk(slow_plane)("undo", "q-1").status == 0
    assert not any(is_suspended(pool, path) for path in paths)


# --- the brake, and an agent that brings it ---------------------------------------------------


def test_the_brake_is_confirmed_by_a_real_agent(
    plane: ControlPlane, client: ApiClient, nodes: KwokNodes, space: str, tmp_path: Path
) -> None:
    custom_resources.install(client)
    agents = Agents(plane, client, space, tmp_path)
    desk = Desk(plane)
    with agents.stack:
        (node,) = nodes.add(1, prefix="braked")
        pages, _ = agents.start(node)
        ended = threading.Event()

        def guard() -> None:  # what a guard does when the file is there
            while not ended.wait(0.2):
                if (pages.folder / "orders/brake").exists():
                    pages.peace(mode="observe", brake_since=time.time())
                    return

        thread = threading.Thread(target=guard, daemon=True)
        thread.start()
        began = time.monotonic()
        try:
            braked = desk("brake", "--reason", "drill", "--json")
            took = time.monotonic() - began
        finally:
            ended.set()
            thread.join()
        rows = {one["node"]: one for one in braked.document["guards"]}
        assert rows[node]["state"] == "observes", rows[node]
        assert took < 70.0
        silent = [one for one in rows.values() if one["state"] != "observes"]
        assert braked.status == (1 if silent else 0)
        print(f"brake to the answer of {node}: within {took:.0f} s")
        assert desk("brake", "--off").status == 0
