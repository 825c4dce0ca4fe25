"""The brake, rescue orders and the node's list on a real control plane: agents that bring them, the
verb that makes an order, and what a thief of an agent's token may not.
"""

import contextlib
import datetime as dt
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.pages import HERE, POD_UID
from tests.cluster.api_client import MERGE, ApiClient, ApiError, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import API
from tests.cluster.installed_seawall import APPLY, InstalledSeawall, installed
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.test_agent import Agents, agents, report_of  # noqa: F401 - the fixture
from tests.cluster.waiting import wait_until
from tests.guard.telling import MIB

from seawall.guard.order_files import OrderFiles

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

ORDERS = f"{API}/rescueorders"
POLICY = f"{API}/seawallpolicies"
BRAKE_SECONDS = 60.0


@pytest.fixture(scope="module")
def seawall(program: Path, kwok: Path) -> Iterator[InstalledSeawall]:
    with installed(program, kwok) as seawall:
        yield seawall


def later(seconds: float) -> str:
    moment = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def order(node: str, seconds: float = 300, **changes: Any) -> Object:
    spec = {"nodeName": node, "bootID": HERE, "podUIDs": [POD_UID], "requestedBy": "ops",
            "expiresAt": later(seconds), **changes}  # fmt: skip
    return {"apiVersion": "seawall.internal/v1alpha1", "kind": "RescueOrder",
            "metadata": {"name": node}, "spec": spec}  # fmt: skip


@contextlib.contextmanager
def ordered(admin: ApiClient, node: str) -> Iterator[Object]:
    made = admin.create(ORDERS, order(node))
    try:
        yield made
    finally:
        with contextlib.suppress(ApiError):
            admin.delete(f"{ORDERS}/{node}")


# --- attacks --------------------------------------------------------------------------------


def refusal(client: ApiClient, verb: str, path: str, body: Object | None, kind: str = MERGE) -> str:
    query: dict[str, object] = {}
    if kind == APPLY:
        query = {"fieldManager": "thief", "force": "true"}
    with pytest.raises(ApiError) as caught:
        client.request(verb, path, body, kind=kind if verb == "PATCH" else "application/json",
                       **query)  # fmt: skip
    assert caught.value.status in {403, 404, 405}, caught.value
    return str(caught.value)


def test_a_stolen_agents_token_orders_nothing(seawall: InstalledSeawall) -> None:
    own, other = seawall.gpu_nodes
    with seawall.agent(own) as thief:
        for node in (own, other):
            refusal(thief, "POST", ORDERS, order(node))
            refusal(thief, "PATCH", f"{ORDERS}/{node}", order(node), APPLY)
            refusal(thief, "PUT", f"{ORDERS}/{node}", order(node))
        assert seawall.admin.items(ORDERS) == []
        with ordered(seawall.admin, own) as mine, ordered(seawall.admin, other) as theirs:
            for made in (mine, theirs):
                path = f"{ORDERS}/{made['metadata']['name']}"
                for pods in (["another"], [POD_UID, "another"]):
                    refusal(thief, "PATCH", path, {"spec": {"podUIDs": pods}})
                refusal(thief, "PUT", path, {**made, "spec": {**made["spec"], "podUIDs": ["x"]}})
                refusal(thief, "DELETE", path, None)
                refusal(thief, "PATCH", path, order(made["metadata"]["name"]), APPLY)
            words = refusal(thief, "PATCH", f"{ORDERS}/{other}/status",
                            {"status": {"state": "Done"}})  # fmt: skip
            assert "its own node only" in words
            # By way of the status, which it may write, the order stays what it is.
            thief.request("PATCH", f"{ORDERS}/{own}/status",
                          {"spec": {"podUIDs": ["x"]}, "metadata": {"labels": {"a": "b"}},
                           "status": {"state": "Waiting"}}, kind=MERGE)  # fmt: skip
            after = seawall.admin.get(f"{ORDERS}/{own}")
            assert after["spec"] == mine["spec"]
            assert after["status"] == {"state": "Waiting"}


def test_a_token_that_names_no_node_answers_for_none(seawall: InstalledSeawall) -> None:
    node = seawall.gpu_nodes[0]
    with ordered(seawall.admin, node), seawall.account("seawall-agent") as thief:
        words = refusal(thief, "PATCH", f"{ORDERS}/{node}/status", {"status": {"state": "Done"}})
        assert "this token is of none" in words


@pytest.mark.parametrize("account", ["seawall-observer", "seawall-guard"])
def test_nor_does_any_other_account_of_ours(seawall: InstalledSeawall, account: str) -> None:
    node = seawall.gpu_nodes[0]
    with seawall.account(account) as thief, ordered(seawall.admin, node):
        refusal(thief, "POST", ORDERS, order(seawall.gpu_nodes[1]))
        refusal(thief, "PATCH", f"{ORDERS}/{node}/status", {"status": {"state": "Done"}})
        refusal(thief, "DELETE", f"{ORDERS}/{node}", None)


def test_an_agent_takes_no_brake_off_and_puts_none_on(seawall: InstalledSeawall) -> None:
    policy = {"apiVersion": "seawall.internal/v1alpha1", "kind": "SeawallPolicy",
              "metadata": {"name": "default"}, "spec": {"brake": True}}  # fmt: skip
    with seawall.agent(seawall.gpu_nodes[0]) as thief:
        refusal(thief, "POST", POLICY, policy)
        refusal(thief, "PATCH", f"{POLICY}/default", policy, APPLY)


@pytest.mark.parametrize(
    "changes",
    [{"expiresAt": "2100-01-01T00:00:00Z"}, {"podUIDs": []}, {"podUIDs": ["x"] * 9},
     {"nodeName": "another"}, {"bootID": ""}, {"requestedBy": ""}],
    ids=str,
)  # fmt: skip
def test_no_order_is_longer_wider_or_of_another_node(
    seawall: InstalledSeawall, changes: dict[str, Any]
) -> None:
    with pytest.raises(ApiError):
        seawall.admin.create(ORDERS, order(seawall.gpu_nodes[0], **changes))


def test_an_order_is_never_changed_by_anybody(seawall: InstalledSeawall) -> None:
    node = seawall.gpu_nodes[0]
    with ordered(seawall.admin, node), pytest.raises(ApiError) as caught:
        seawall.admin.patch(f"{ORDERS}/{node}", {"spec": {"podUIDs": ["another"]}})
    assert "an order is not changed" in str(caught.value)


# --- a real agent ---------------------------------------------------------------------------


def test_the_brake_reaches_the_node_and_the_answer_the_cluster(
    agents: Agents,  # noqa: F811
    client: ApiClient,
    nodes: KwokNodes,
    audit: AuditLog,
) -> None:
    (node,) = nodes.add(1, prefix="braked")
    pages, _ = agents.start(node)
    brake = pages.folder / "orders/brake"
    put_brake(client, is_on=True)
    try:
        began = time.monotonic()
        mark = audit.mark()
        wait_until(brake.exists, BRAKE_SECONDS, "the brake is on the node's disk")
        files = OrderFiles(str(pages.folder))
        if os.geteuid() == 0:
            assert files.look()
        pages.peace(mode="observe", brake_since=time.time())
        wait_until(lambda: report_of(client, node).get("guard", {}).get("brake") is True, 10,
                   "the report says so")  # fmt: skip
        took = time.monotonic() - began
        print(f"brake to report, without the guard's own tick: {took:.1f} s")
        assert took < BRAKE_SECONDS - 20  # a guard in deep peace ticks every 20 s
        asked = [one for one in audit.since(mark) if one.user == agents.user
                 and one.resource.startswith("seawallpolicies")]  # fmt: skip
        assert len(asked) <= 1 + took / 25
        put_brake(client, is_on=False)
        wait_until(lambda: not brake.exists(), BRAKE_SECONDS, "it is off")
    finally:
        with contextlib.suppress(ApiError):
            client.delete(f"{POLICY}/default")


def put_brake(client: ApiClient, *, is_on: bool) -> None:
    body = {"apiVersion": "seawall.internal/v1alpha1", "kind": "SeawallPolicy",
            "metadata": {"name": "default"}, "spec": {"brake": is_on}}  # fmt: skip
    client.request("PATCH", f"{POLICY}/default", body, kind=APPLY, fieldManager="ops", force="true")


def rescue(plane: ControlPlane, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seawall", "cluster", "rescue", *words, "--json", "--kubeconfig",
         str(plane.kubeconfig("admin"))],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_an_order_of_a_person_is_carried_to_the_guard_and_its_answer_back(
    agents: Agents,  # noqa: F811
    plane: ControlPlane,
    client: ApiClient,
    nodes: KwokNodes,
) -> None:
    """The guard is played by its own pages; what a real one does: tests/kernels."""
    (node,) = nodes.add(1, prefix="silent")
    pages, _ = agents.start(node)
    told = rescue(plane, node)
    assert told.returncode == 2
    assert "no agent has told anything" in told.stderr
    pages.decide()
    pages.short(decided=True)
    wait_until(lambda: report_of(client, node).get("distress"), 20, "distress")
    dry = rescue(plane, node, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(dry.stdout)["outcome"] == "planned"
    assert client.items(ORDERS) == []
    ended = threading.Thread(target=guard, args=(pages,))
    ended.start()
    try:
        done = rescue(plane, node, "--wait", "60", "--reason", "silent")
    finally:
        ended.join()
    assert done.returncode == 0, (done.stdout, done.stderr, agents.log(node))
    page = json.loads(done.stdout)
    assert (page["act"], page["outcome"], page["subject"]) == ("rescue", "done", node)
    assert "1.0 GiB came back" in page["headline"]
    found = client.get(f"{ORDERS}/{node}")
    assert found["spec"]["podUIDs"] == [POD_UID]
    assert found["spec"]["requestedBy"] == "admin"
    assert found["status"]["state"] == "Done"
    assert not (pages.folder / "orders/rescue").exists()
    client.delete(f"{ORDERS}/{node}")


def guard(pages: Any) -> None:
    """Answers as one does that ends the culprit."""
    path = pages.folder / "orders/rescue"
    until = time.monotonic() + 30
    while time.monotonic() < until and not path.exists():
        time.sleep(0.05)
    asked = json.loads(path.read_text())
    result = {"order": asked["order"], "state": "accepted", "words": "killed",
              "decision": "d-0002", "returned_bytes": None}  # fmt: skip
    pages.short(decided=True, rescue=result)
    time.sleep(1)
    pages.peace(rescue={**result, "state": "done", "returned_bytes": 1024 * MIB})


def test_the_pods_of_a_quarantine_reach_the_disk_of_their_own_node(
    agents: Agents,  # noqa: F811
    client: ApiClient,
    nodes: KwokNodes,
) -> None:
    one, other = nodes.add(2, prefix="listed")
    path = f"{API}/workloadquarantines"
    made = client.create(path, {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "WorkloadQuarantine",
        "metadata": {"name": "listed"},
        "spec": {"match": {"namespace": "a", "serviceAccount": "b"}, "state": "Active",
                 "mode": "gate", "expiresAt": later(600)},
    })  # fmt: skip
    try:
        pods = [{"uid": "u-1", "node": one}, {"uid": "u-2", "node": other}]
        client.request("PATCH", f"{path}/{made['metadata']['name']}/status",
                       {"status": {"pods": pods}}, kind=MERGE)  # fmt: skip
        agents.start(one)
        kept = agents.folder / one / "kept/quarantine.json"
        wait_until(kept.exists, BRAKE_SECONDS, "the list is on the disk")
        (row,) = json.loads(kept.read_text())["quarantines"]
        assert (row["name"], row["pods"]) == ("listed", ["u-1"])
    finally:
        client.delete(f"{path}/listed")
