"""What Seawall's accounts may do on a real API server, and what a thief of their tokens may not.

The plain manifests are installed as they are committed; tokens are made as the kubelet has them.
"""

import copy
import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.pages import Pages
from tests.cluster import account_rights
from tests.cluster.api_client import STRATEGIC, ApiClient, ApiError, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.custom_resources import API
from tests.cluster.installed_seawall import APPLY, InstalledSeawall, apply, installed, pods_of
from tests.cluster.kwok_nodes import condition
from tests.cluster.rendered_manifests import NAMESPACE, documents
from tests.cluster.stolen_token import (
    NEVER,
    NEVER_WITHOUT_ACTOR,
    may,
    refused,
    rights_of_accounts,
)
from tests.cluster.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"


@pytest.fixture(scope="module")
def seawall(program: Path, kwok: Path) -> Iterator[InstalledSeawall]:
    with installed(program, kwok) as seawall:
        yield seawall


@pytest.fixture
def node(seawall: InstalledSeawall) -> str:
    return seawall.gpu_nodes[0]


@pytest.fixture
def agent(seawall: InstalledSeawall, node: str) -> Iterator[ApiClient]:
    with seawall.agent(node) as client:
        yield client


@pytest.fixture
def observer(seawall: InstalledSeawall) -> Iterator[ApiClient]:
    pod = pods_of(seawall.admin, "seawall-observer")[0]
    with seawall.account("seawall-observer", pod) as client:
        yield client


# --- Objects as rendered ---------------------------------------------------------------------


def test_the_api_server_takes_each_object_and_would_change_none(seawall: InstalledSeawall) -> None:
    for document in documents():
        before = apply(seawall.admin, document)
        again = apply(seawall.admin, document, dryRun="All")
        assert again["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_no_expression_of_a_policy_is_doubted_by_the_servers_types(
    seawall: InstalledSeawall,
) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    found = {one["metadata"]["name"]: one for one in seawall.admin.items(path)}
    assert len(found) == 8
    for name, policy in found.items():
        assert policy["spec"]["failurePolicy"] == "Fail"
        warnings = policy.get("status", {}).get("typeChecking", {}).get("expressionWarnings", [])
        assert not warnings, name


def test_guards_and_agents_are_everywhere_observers_off_the_gpu_pool(
    seawall: InstalledSeawall,
) -> None:
    nodes = {*seawall.gpu_nodes, *seawall.other_nodes}
    for name in ("seawall-guard", "seawall-agent"):
        assert {pod["spec"]["nodeName"] for pod in pods_of(seawall.admin, name)} == nodes
    observers = pods_of(seawall.admin, "seawall-observer")
    assert sorted(pod["spec"]["nodeName"] for pod in observers) == sorted(seawall.other_nodes)
    for pod in pods_of(seawall.admin, "seawall-guard"):
        assert not [v for v in pod["spec"]["volumes"] if "projected" in v]  # no token


# --- Rights ----------------------------------------------------------------------------------


def test_each_account_may_do_what_the_page_says_and_nothing_else(seawall: InstalledSeawall) -> None:
    found = rights_of_accounts(seawall, "seawall-guard", "seawall-agent", "seawall-observer")
    print(*sorted(found), sep="\n")
    assert found == account_rights.told()


@pytest.mark.parametrize("account", ["seawall-guard", "seawall-agent", "seawall-observer"])
def test_none_may_do_what_would_make_it_more(seawall: InstalledSeawall, account: str) -> None:
    for verb, group, resource in [*NEVER, *NEVER_WITHOUT_ACTOR]:
        for space in ("", NAMESPACE, "default", "kube-system"):
            assert not may(seawall.admin, account, verb, group, resource, space), (verb, resource)


# --- The agent's token -----------------------------------------------------------------------


def status_path(node: str) -> str:
    return f"/api/v1/nodes/{node}/status"


def of_ours(kind: str = "MemoryShort", status: str = "True") -> Object:
    return {
        "type": kind, "status": status, "reason": "MemoryRunningOut", "message": "1 GiB left",
        "lastTransitionTime": "2026-11-29T01:02:03Z", "lastHeartbeatTime": "2026-11-29T01:02:03Z",
    }  # fmt: skip


def event(node: str, **changes: Any) -> Object:
    return {
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": "seawall-", "namespace": "default"},
        "eventTime": "2026-11-29T01:02:03.000004Z", "type": "Warning",
        "reason": "MemoryRunningOut", "action": "Observe", "note": "1 GiB left",
        "reportingController": "seawall.internal/agent", "reportingInstance": node,
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node}, **changes,
    }  # fmt: skip


def report(node: str, **changes: Any) -> Object:
    return {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "NodeReport",
        "metadata": {"name": node}, "spec": {"nodeName": node}, "report": {"sequence": 1},
        **changes,
    }  # fmt: skip


@pytest.mark.parametrize("kind", [STRATEGIC, APPLY], ids=["patch", "apply"])
def test_an_agent_says_its_own_nodes_conditions(
    seawall: InstalledSeawall, agent: ApiClient, node: str, kind: str
) -> None:
    before = seawall.admin.get(f"/api/v1/nodes/{node}")
    for status in ("True", "False"):
        body: Object = {"status": {"conditions": [of_ours(status=status)]}}
        if kind == APPLY:
            body |= {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
        query = {"force": "true"} if kind == APPLY else {}
        agent.request("PATCH", status_path(node), body, kind=kind, fieldManager="agent", **query)
        after = seawall.admin.get(f"/api/v1/nodes/{node}")
        assert condition(after, "MemoryShort") == status
        assert condition(after) == "True"
        for part in ("capacity", "addresses", "nodeInfo"):
            assert after["status"][part] == before["status"][part]


def test_an_agent_tells_of_its_own_node(agent: ApiClient, node: str) -> None:
    made = agent.create(EVENTS.format("default"), event(node))
    series = {"series": {"count": 2, "lastObservedTime": "2026-11-29T01:02:04.000004Z"}}
    agent.patch(f"{EVENTS.format('default')}/{made['metadata']['name']}", series)
    for number in (1, 2):
        body = report(node, report={"sequence": number})
        query = {"fieldManager": "seawall-agent", "force": "true"}
        agent.request("PATCH", f"{API}/nodereports/{node}", body, kind=APPLY, **query)
    assert agent.get(f"{API}/nodereports/{node}")["report"] == {"sequence": 2}
    assert agent.get(f"{API}/workloadquarantines")["items"] == []


def test_what_the_agent_says_of_a_node_in_distress_passes_every_fence(
    seawall: InstalledSeawall, tmp_path: Path
) -> None:
    """The program itself, with nothing but the chart's account, and the way back to peace."""
    node = seawall.gpu_nodes[1]
    pages = Pages(tmp_path / "run")
    pages.peace()
    with seawall.agent(node) as account:
        (tmp_path / "token").write_text(account.token)
    mark = AuditLog(seawall.plane.audit_path).mark()
    words = [
        sys.executable, "-m", "seawall", "agent", "--node-name", node,
        "--server", f"https://127.0.0.1:{seawall.plane.port}",
        "--ca", str(seawall.plane.folder / "tls.crt"), "--token-file", str(tmp_path / "token"),
        "--run-folder", str(pages.folder), "--blackbox", "",
    ]  # fmt: skip
    source = str(Path(__file__).parents[2] / "src")
    with subprocess.Popen(
        words, env={**os.environ, "PYTHONPATH": source}, stderr=subprocess.PIPE, text=True
    ) as agent:
        try:
            pages.decide()
            pages.short(decided=True)
            wait_until(lambda: told_of(seawall, node) == "True", 20, "the node says MemoryShort")
            pages.peace()
            wait_until(lambda: told_of(seawall, node) == "False", 60, "the node takes it back")
        finally:
            agent.terminate()
    assert seawall.admin.get(f"{API}/nodereports/{node}")["report"]["guard"]["state"] == "peace"
    about = f"regarding.name={node}"
    events = seawall.admin.items(EVENTS.format("default"), fieldSelector=about)
    assert {one["reason"] for one in events} >= {"MemoryRunningOut"}
    user = f"system:serviceaccount:{NAMESPACE}:seawall-agent"
    written = [one for one in AuditLog(seawall.plane.audit_path).since(mark)
               if one.user == user and one.is_write]  # fmt: skip
    assert len(written) >= 4
    assert not [one for one in written if one.status >= 300]
    seawall.admin.delete(f"{API}/nodereports/{node}")


def told_of(seawall: InstalledSeawall, node: str) -> str:
    conditions = seawall.admin.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
    return {one["type"]: one["status"] for one in conditions}.get("MemoryShort", "")


ATTACKS: dict[str, tuple[Object, str]] = {
    "capacity": ({"status": {"capacity": {"nvidia.com/gpu": "64"}}}, "conditions only"),
    "less-capacity": ({"status": {"capacity": {"cpu": "1"}}}, "conditions only"),
    "allocatable": ({"status": {"allocatable": {"cpu": "1"}}}, "conditions only"),
    "addresses": ({"status": {"addresses": [{"type": "Hostname", "address": "198.51.100.1"}]}},
                  "conditions only"),
    "daemon-endpoint": ({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}},
                        "conditions only"),
    "images": ({"status": {"images": [{"names": ["r.test/evil:1"]}]}}, "conditions only"),
    "boot-id": ({"status": {"nodeInfo": {"bootID": "another"}}}, "conditions only"),
    "volumes": ({"status": {"volumesInUse": ["kubernetes.io/csi/x"]}}, "conditions only"),
    "runtime-handlers": ({"status": {"runtimeHandlers": [{"name": "runc"}]}}, "conditions only"),
    "labels": ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, "metadata"),
    "fewer-labels": ({"metadata": {"labels": {"topology.kubernetes.io/zone": None}}}, "metadata"),
    "annotations": ({"metadata": {"annotations": {"a": "b"}}}, "metadata"),
    "finalizers": ({"metadata": {"finalizers": ["a.test/b"]}}, "metadata"),
    "owner": ({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "y"}]}}, "metadata"),
    "ready": ({"status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "x", "message": "y"}]}},
        "conditions of Seawall only"),
    "disk-pressure": ({"status": {"conditions": [
        {"type": "DiskPressure", "status": "True", "reason": "x", "message": "y"}]}},
        "conditions of Seawall only"),
    "ready-gone": ({"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
                   "conditions of Seawall only"),
    "one-of-ours-and-ready": ({"status": {"conditions": [
        of_ours(), {"type": "Ready", "status": "Unknown", "reason": "x", "message": "y"}]}},
        "conditions of Seawall only"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_stolen_agents_token_changes_nothing_else_of_its_node(
    seawall: InstalledSeawall, agent: ApiClient, node: str, attack: str
) -> None:
    body, words = ATTACKS[attack]
    before = unstamped(seawall.admin.get(f"/api/v1/nodes/{node}"))
    assert words in refused(agent, "PATCH", status_path(node), body, STRATEGIC)
    assert unstamped(seawall.admin.get(f"/api/v1/nodes/{node}")) == before


def unstamped(whole: Object) -> Object:
    found = copy.deepcopy(whole)
    del found["metadata"]["managedFields"], found["metadata"]["resourceVersion"]
    return found


def test_a_stolen_agents_token_puts_back_a_spec_that_it_sends(
    seawall: InstalledSeawall, agent: ApiClient, node: str
) -> None:
    """The core takes spec from the object that is there, whoever writes a status."""
    body = {"spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoExecute"}]},
            "status": {"conditions": [of_ours()]}}  # fmt: skip
    agent.request("PATCH", status_path(node), body, kind=STRATEGIC)
    spec = seawall.admin.get(f"/api/v1/nodes/{node}")["spec"]
    assert "unschedulable" not in spec
    assert "taints" not in spec


def test_a_stolen_agents_token_is_of_one_node(
    seawall: InstalledSeawall, agent: ApiClient, node: str
) -> None:
    other = seawall.gpu_nodes[1]
    ours: Object = {"status": {"conditions": [of_ours()]}}
    words = refused(agent, "PATCH", status_path(other), ours, STRATEGIC)
    assert f"this token is of node {node}, not of {other}" in words
    assert "own node" in refused(agent, "POST", EVENTS.format("default"), event(other))
    assert "own node" in refused(agent, "PATCH", f"{API}/nodereports/{other}", report(other), APPLY)
    assert "own node" in refused(agent, "POST", f"{API}/nodereports", report(other))
    with pytest.raises(ApiError):
        seawall.admin.get(f"{API}/nodereports/{other}")
    with seawall.agent(other) as its_own:
        its_own.create(f"{API}/nodereports", report(other))
    changed = {"report": {"sequence": 9}}
    assert "own node" in refused(agent, "PATCH", f"{API}/nodereports/{other}", changed)
    assert seawall.admin.get(f"{API}/nodereports/{other}")["report"] == {"sequence": 1}


def test_a_stolen_agents_token_tells_of_nothing_but_the_node(
    seawall: InstalledSeawall, agent: ApiClient, node: str
) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": node, "uid": "u"}
    path = EVENTS.format("default")
    assert "own node" in refused(agent, "POST", path, event(node, regarding=pod))
    # The kubelet's word for a node that was reset, which repair systems go by.
    for name in ("kubelet", "node-controller", "seawall.internal/observer"):
        words = refused(agent, "POST", path, event(node, reportingController=name))
        assert "reported by seawall.internal/agent" in words
    space = event(node)
    space["metadata"]["namespace"] = "kube-system"
    assert "forbidden" in refused(agent, "POST", EVENTS.format("kube-system"), space)
    core = {
        "apiVersion": "v1", "kind": "Event", "reason": "x", "message": "y", "type": "Warning",
        "metadata": {"generateName": "seawall-", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node},
    }  # fmt: skip
    assert "forbidden" in refused(agent, "POST", "/api/v1/namespaces/default/events", core)
    theirs = seawall.admin.create(path, event(seawall.gpu_nodes[1]))["metadata"]["name"]
    mine = {"regarding": event(node)["regarding"]}
    for body in ({"note": "all is well"}, mine):
        # What the event regards cannot be changed, and that is looked at first.
        with pytest.raises(ApiError) as answer:
            agent.patch(f"{path}/{theirs}", body)
        assert answer.value.status in {403, 422}
    assert seawall.admin.get(f"{path}/{theirs}")["note"] == "1 GiB left"


@pytest.mark.parametrize("how", ["no-pod", "pod-on-no-node"])
def test_an_agents_token_without_a_node_writes_nothing(
    seawall: InstalledSeawall, node: str, how: str
) -> None:
    pod = None
    if how == "pod-on-no-node":
        spec = {"serviceAccountName": "seawall-agent", "schedulerName": "nobody",
                "containers": [{"name": "main", "image": "r.test/i:1"}]}  # fmt: skip
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}, "spec": spec}
        pod = seawall.admin.create(f"/api/v1/namespaces/{NAMESPACE}/pods", body)
    with seawall.account("seawall-agent", pod) as stranger:
        ours: Object = {"status": {"conditions": [of_ours()]}}
        assert "of no node" in refused(stranger, "PATCH", status_path(node), ours, STRATEGIC)
        words = refused(stranger, "POST", EVENTS.format("default"), event(node))
        assert "this token is of none" in words
        words = refused(stranger, "PATCH", f"{API}/nodereports/{node}", report(node), APPLY)
        assert "this token is of none" in words


def test_the_policies_fence_more_than_the_rights_give(
    seawall: InstalledSeawall, node: str, agent: ApiClient
) -> None:
    """Somebody binds cluster-admin to the agents: the node's own fields stay closed to them."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "too-much"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "seawall-agent", "namespace": NAMESPACE}],
    }  # fmt: skip
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    seawall.admin.create(path, binding)
    try:
        whole = f"/api/v1/nodes/{node}"
        assert "nothing else" in refused(
            agent, "PATCH", whole, {"metadata": {"labels": {"a": "b"}}}
        )
        assert "nothing else" in refused(agent, "PATCH", whole, {"spec": {"unschedulable": True}})
        assert "nothing else" in refused(agent, "DELETE", whole, None)
        made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "made-up"}}
        assert "nothing else" in refused(agent, "POST", "/api/v1/nodes", made)
        kept = f"{API}/nodereports/{node}"
        body = report(node, metadata={"name": node, "finalizers": ["a.test/b"]})
        assert "no finalizers" in refused(agent, "PATCH", kept, body, APPLY)
    finally:
        seawall.admin.delete(f"{path}/too-much")


# --- The observer's token --------------------------------------------------------------------


def in_days(days: float) -> str:
    at = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=days)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def quarantine(name: str, **changes: Any) -> Object:
    spec = {"match": {"namespace": "ml", "labels": {"app": "x"}}, "state": "Suspected",
            "mode": "tell", "expiresAt": in_days(1), **changes}  # fmt: skip
    return {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "WorkloadQuarantine",
        "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


QUARANTINES = f"{API}/workloadquarantines"


def test_the_observer_names_and_withdraws(observer: ApiClient) -> None:
    observer.create(QUARANTINES, quarantine("named"))
    observer.patch(f"{QUARANTINES}/named/status", {"status": {"verdict": "suspected"}})
    observer.patch(f"{QUARANTINES}/named", {"spec": {"state": "Proposed", "reason": "again"}})
    observer.delete(f"{QUARANTINES}/named")
    death = {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "NodeDeath", "metadata": {"name": "a-1"},
        "spec": {"nodeName": "a", "bootID": "1", "kind": "Silent", "heartbeatAt": in_days(0),
                 "observedAt": in_days(0)},
    }  # fmt: skip
    observer.create(f"{API}/nodedeaths", death)
    observer.patch(f"{API}/nodedeaths/a-1", {"status": {"phase": "Confirmed"}})
    observer.delete(f"{API}/nodedeaths/a-1")


def test_a_stolen_observers_token_holds_nobody_back(observer: ApiClient) -> None:
    for state in ("Active", "Canary", "Released"):
        words = refused(observer, "POST", QUARANTINES, quarantine("held", state=state))
        assert "Suspected and Proposed only" in words
    for mode in ("hold", "probation", "gate", "suspend"):
        words = refused(observer, "POST", QUARANTINES, quarantine("held", mode=mode))
        assert "mode tell only" in words
    observer.create(QUARANTINES, quarantine("held"))
    for change in ({"state": "Active"}, {"mode": "gate"}, {"state": "Released"}):
        refused(observer, "PATCH", f"{QUARANTINES}/held", {"spec": change})
    body = quarantine("held", mode="suspend")
    refused(observer, "PATCH", f"{QUARANTINES}/held", body, APPLY)
    observer.delete(f"{QUARANTINES}/held")


def test_what_people_made_active_the_observer_leaves(
    seawall: InstalledSeawall, observer: ApiClient
) -> None:
    seawall.admin.create(QUARANTINES, quarantine("theirs", state="Active", mode="gate"))
    path = f"{QUARANTINES}/theirs"
    for change in ({"mode": "tell"}, {"reason": "x"}, {"expiresAt": in_days(0)}):
        words = refused(observer, "PATCH", path, {"spec": change})
        assert "people have taken over" in words
    assert "taken over" in refused(observer, "DELETE", path, None)
    observer.patch(f"{path}/status", {"status": {"scoreLog10": 7.5}})
    found = seawall.admin.get(path)
    assert (found["spec"]["mode"], found["status"]["scoreLog10"]) == ("gate", 7.5)
    seawall.admin.patch(path, {"spec": {"state": "Released"}})
    observer.delete(path)


@pytest.mark.parametrize(("verb", "path", "body"), [
    ("PATCH", "/api/v1/nodes/{node}", {"metadata": {"labels": {"a": "b"}}}),
    ("PATCH", "/api/v1/nodes/{node}/status", {"status": {"phase": "x"}}),
    ("DELETE", "/api/v1/nodes/{node}", None),
    ("DELETE", "/api/v1/namespaces/seawall/pods/{pod}", None),
    ("PATCH", "/api/v1/namespaces/seawall/pods/{pod}", {"metadata": {"labels": {"a": "b"}}}),
    ("PATCH", "/apis/apps/v1/namespaces/seawall/deployments/seawall-observer",
     {"spec": {"replicas": 0}}),
    ("PATCH", f"{API}/nodereports/{{node}}", {"report": {"sequence": 3}}),
    ("PATCH", f"{API}/seawallpolicies/default", {"spec": {"falsePerThousandNodeYears": 10}}),
    ("GET", "/api/v1/namespaces/seawall/secrets", None),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
     {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}}),
    ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/seawall/leases/another",
     {"spec": {"holderIdentity": "x"}}),
], ids=lambda one: one if isinstance(one, str) else "")  # fmt: skip
def test_a_stolen_observers_token_writes_nothing_else(
    seawall: InstalledSeawall, observer: ApiClient, node: str, verb: str, path: str,
    body: Object | None,
) -> None:  # fmt: skip
    pod = pods_of(seawall.admin, "seawall-guard")[0]["metadata"]["name"]
    refused(observer, verb, path.format(node=node, pod=pod), body)


# --- Everybody -------------------------------------------------------------------------------


def test_a_quarantine_ends_within_seven_days_unless_it_is_approved(
    seawall: InstalledSeawall, observer: ApiClient
) -> None:
    words = refused(observer, "POST", QUARANTINES, quarantine("long", expiresAt=in_days(7.01)))
    assert "at most seven days" in words
    endless = quarantine("long")
    del endless["spec"]["expiresAt"]
    assert "at most seven days" in refused(observer, "POST", QUARANTINES, endless)
    observer.create(QUARANTINES, quarantine("long", expiresAt=in_days(6.9)))
    later = {"spec": {"expiresAt": in_days(7.5)}}
    assert "at most seven days" in refused(observer, "PATCH", f"{QUARANTINES}/long", later)
    # Who has the verb approve: cluster-admin has all.
    seawall.admin.patch(f"{QUARANTINES}/long", later)
    # From then on the observer still says what it sees.
    observer.patch(f"{QUARANTINES}/long/status", {"status": {"proved": 1}})
