"""The actor's account on a real API server: what it is for it may do, and a thief of its token may
do nothing else.  Each attack is tried beside the lawful write that it resembles.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster import account_rights, quarantined
from tests.cluster.api_client import STRATEGIC, ApiClient, ApiError, Object
from tests.cluster.custom_resources import API, DEFINITIONS
from tests.cluster.installed_seawall import InstalledSeawall, installed, pods_of
from tests.cluster.quarantined import GATE, GUARD, LABEL, QUARANTINES, RECORD, quarantine
from tests.cluster.rendered_manifests import NAMESPACE
from tests.cluster.stolen_token import NEVER, may, refused, rights_of_accounts
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import namespace

from seawall.cluster.changes.change_patch import ChangeOutcome
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.changeable_kinds import ACTIVE, REPLICAS, SUSPEND, TOLERATIONS
from seawall.cluster.changes.object_change import ObjectChange, object_address
from seawall.cluster.kube.kube_client import ClusterAccess, KubeClient
from seawall.cluster.objects.api_group import ACTOR_MANAGER
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    workload_quarantine_object,
)
from seawall.cluster.observer.in_force_map import InForceMap

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SPACE = "ml"
JSON_PATCH = "application/json-patch+json"
HELD = [{"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": 1800} for taint in ("not-ready", "unreachable")]  # fmt: skip
OPT_IN = ["actor.levers.scaleToZero=true", "actor.levers.moveInnocents=true",
          "actor.levers.rescue=true"]  # fmt: skip
MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/seawall-in-force"


@pytest.fixture(scope="module")
def seawall(program: Path, kwok: Path) -> Iterator[InstalledSeawall]:
    with installed(program, kwok, with_actor=True) as seawall:
        prepare(seawall)
        yield seawall


@pytest.fixture(scope="module")
def opted_in(program: Path, kwok: Path) -> Iterator[InstalledSeawall]:
    with installed(program, kwok, with_actor=True, actor_values=OPT_IN) as seawall:
        prepare(seawall)
        yield seawall


def prepare(seawall: InstalledSeawall) -> None:
    for space in (SPACE, "web"):
        namespace(seawall.admin, space)
        quarantined.service_account(seawall.admin, space, "trainer")
    for words in (("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
                  ("kueue.x-k8s.io", "v1beta1", "Workload", "workloads")):  # fmt: skip
        seawall.admin.create(DEFINITIONS, quarantined.custom_owner(*words))


@pytest.fixture
def admin(seawall: InstalledSeawall) -> ApiClient:
    return seawall.admin


@pytest.fixture
def actor(seawall: InstalledSeawall) -> Iterator[ApiClient]:
    """As the kubelet gives the token to one of its pods."""
    with seawall.account("seawall-actor", pods_of(seawall.admin, "seawall-actor")[0]) as client:
        yield client


@pytest.fixture(autouse=True)
def none_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    for name in {"seawall", "opted_in"} & set(request.fixturenames):
        found = request.getfixturevalue(name)
        admin = found.admin
        admin.delete(QUARANTINES)
        admin.request("PATCH", MAP, [{"op": "add", "path": "/data", "value": {}}], kind=JSON_PATCH)
        is_seen(found, {"hog": False})
        for path in ("/apis/batch/v1/namespaces/{}/jobs", "/apis/batch/v1/namespaces/{}/cronjobs",
                     "/apis/apps/v1/namespaces/{}/deployments", "/api/v1/namespaces/{}/pods",
                     "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
                     "/apis/kueue.x-k8s.io/v1beta1/namespaces/{}/workloads"):  # fmt: skip
            for space in (SPACE, "web"):
                admin.delete(path.format(space), propagationPolicy="Background")


def kube(seawall: InstalledSeawall, account: str) -> KubeClient:
    with seawall.account(account) as client:
        server = f"https://127.0.0.1:{seawall.plane.port}"
        access = ClusterAccess(server, str(seawall.plane.folder / "tls.crt"), token=client.token)
        return KubeClient(access, per_second=1000.0)


def in_force(seawall: InstalledSeawall, name: str, match: Object, **spec: Any) -> None:
    """As if the observer had seen it; its own code and account write the map."""
    spec = {"mode": "hold", **spec}
    seawall.admin.create(QUARANTINES, quarantine(name, {"namespace": SPACE, **match}, **spec))
    say(seawall)


def say(seawall: InstalledSeawall) -> None:
    client = kube(seawall, "seawall-observer")
    found = [workload_quarantine_object(one) for one in seawall.admin.items(QUARANTINES)]
    InForceMap(client, NAMESPACE).write(found)
    client.close()
    names = {one.name: True for one in found if one.state is not QuarantineState.RELEASED}
    # Of one that is there and over two policies say no, and either may be heard.
    is_seen(seawall, names if found else {"hog": False})


def is_seen(seawall: InstalledSeawall, names: dict[str, bool]) -> None:
    """The API server's own watches are as far: what is in force names no match, the rest is not."""
    made = add(seawall.admin, "/api/v1", "pods", innocent_pod("web"), "web")
    with seawall.account("seawall-actor") as actor:
        for name, is_in_force in names.items():
            body = {"metadata": {"labels": {LABEL: name}}}
            words = "is not what quarantine" if is_in_force else "is not in force"
            wait_until(lambda body=body, words=words: words in words_of(actor, made["path"], body),
                       20, f"{name}: {words}")  # fmt: skip
    seawall.admin.delete(made["path"])


def words_of(client: ApiClient, path: str, body: Object) -> str:
    try:
        client.request("PATCH", path, body, kind="application/merge-patch+json", dryRun="All")
    except ApiError as problem:
        return str(problem)
    return ""


def innocent_pod(space: str = SPACE) -> Object:
    whole = quarantined.pod(space, generateName="web-", labels={"app": "web"})
    whole["spec"]["containers"] = [{"name": "main", "image": "r.test/web:1"}]
    return whole


def add(admin: ApiClient, api: str, plural: str, body: Object, space: str = SPACE) -> Object:
    path = f"{api}/namespaces/{space}/{plural}"
    made = admin.create(path, body)
    return {**made, "path": f"{path}/{made['metadata']['name']}"}


def job(admin: ApiClient, name: str = "hog", image: str = quarantined.IMAGE) -> Object:
    return add(admin, "/apis/batch/v1", "jobs", quarantined.job(name, image))


def pod(admin: ApiClient, whole: Object | None = None) -> Object:
    return add(admin, "/api/v1", "pods", whole or quarantined.pod(SPACE))


def runs(admin: ApiClient, path: str) -> None:
    wait_until(lambda: admin.get(path)["status"].get("phase") == "Running", 30, f"{path} runs")


FAMILY: Object = {"generateNamePrefix": "hog-", "images": [quarantined.IMAGE]}


def unlike(before: Object, after: Object) -> list[str]:
    """Names of what differs but for bookkeeping."""
    found = []
    for one in (before, after):
        whole = copy.deepcopy({key: value for key, value in one.items() if key != "path"})
        for name in ("managedFields", "resourceVersion", "generation"):
            whole["metadata"].pop(name, None)
        for name in ("annotations", "labels"):
            whole["metadata"][name] = whole["metadata"].get(name) or {}
        whole.pop("status", None)
        found.append(whole)
    first, second = found
    return [key for key in first.keys() | second.keys() if first.get(key) != second.get(key)]


# --- Rights ----------------------------------------------------------------------------------


def test_the_actor_may_do_what_the_page_says_and_nothing_else(seawall: InstalledSeawall) -> None:
    accounts = ("seawall-guard", "seawall-agent", "seawall-observer", "seawall-actor")
    found = rights_of_accounts(seawall, *accounts)
    print(*sorted(found), sep="\n")
    assert found == account_rights.told(with_actor=True)


def test_it_may_do_nothing_that_would_make_it_more(admin: ApiClient) -> None:
    for verb, group, resource in NEVER:
        for space in ("", NAMESPACE, "default", "kube-system", SPACE):
            assert not may(admin, "seawall-actor", verb, group, resource, space), (verb, resource)


def test_no_expression_is_doubted_by_the_servers_types(admin: ApiClient) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    found = {one["metadata"]["name"]: one for one in admin.items(path)}
    assert len(found) == 16
    for name, policy in found.items():
        warnings = policy.get("status", {}).get("typeChecking", {}).get("expressionWarnings", [])
        assert not warnings, name


# --- What it is for --------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["Suspected", "Proposed", "Active"])
def test_it_holds_a_pod_and_puts_back_what_was(
    seawall: InstalledSeawall, admin: ApiClient, state: str
) -> None:
    in_force(seawall, "hog", FAMILY, state=state, mode="tell")
    made = pod(admin)
    runs(admin, made["path"])
    before = admin.get(made["path"])
    client = kube(seawall, "seawall-actor")
    writer = ChangeWriter(client, ACTOR_MANAGER)
    target = object_address(before)
    old = before["spec"]["tolerations"]
    change = ObjectChange(target, "hog", TOLERATIONS, old, HELD)
    result = writer.apply(change)
    assert result.outcome is ChangeOutcome.WRITTEN, result
    after = admin.get(made["path"])
    assert {one["tolerationSeconds"] for one in after["spec"]["tolerations"]} == {1800}
    assert after["metadata"]["labels"][LABEL] == "hog"
    # The quarantine goes, and so does its name in the map: it is put back all the same.
    admin.delete(f"{QUARANTINES}/hog")
    admin.patch(MAP, {"data": {"hog": None}})
    (undone,) = writer.undo(target)
    assert undone.outcome is ChangeOutcome.WRITTEN, undone
    assert unlike(before, admin.get(made["path"])) == []


OWNERS = {
    "jobs": ("/apis/batch/v1", quarantined.job("hog"), SUSPEND, False, True),
    "cronjobs": ("/apis/batch/v1", quarantined.cron_job("hog"), SUSPEND, False, True),
    "jobsets": ("/apis/jobset.x-k8s.io/v1alpha2", quarantined.job_set("hog"), SUSPEND, None, True),
}  # fmt: skip


@pytest.mark.parametrize("by", ["uid", "family"])
@pytest.mark.parametrize("plural", OWNERS)
def test_it_stops_an_owner_by_its_switch_and_starts_it_again(
    seawall: InstalledSeawall, admin: ApiClient, plural: str, by: str
) -> None:
    api, body, path, old, new = OWNERS[plural]
    made = add(admin, api, plural, body)
    match = FAMILY if by == "family" else {"ownerUIDs": [made["metadata"]["uid"]]}
    in_force(seawall, "hog", match, mode="suspend")
    switched(seawall, made, path, old, new)


def test_of_a_job_that_kueue_manages_it_stops_the_workload(
    seawall: InstalledSeawall, admin: ApiClient
) -> None:
    owner = job(admin)
    made = add(admin, "/apis/kueue.x-k8s.io/v1beta1", "workloads",
               quarantined.kueue_workload("job-hog-1a2b", owner))  # fmt: skip
    in_force(seawall, "hog", {"ownerUIDs": [owner["metadata"]["uid"]]}, mode="suspend")
    switched(seawall, made, ACTIVE, True, False)


def switched(seawall: InstalledSeawall, made: Object, path: str, old: Any, new: Any) -> None:
    """And back, byte for byte but for what the server itself writes."""
    before = seawall.admin.get(made["path"])
    writer = ChangeWriter(kube(seawall, "seawall-actor"), ACTOR_MANAGER)
    target = object_address(before)
    result = writer.apply(ObjectChange(target, "hog", path, old, new))
    assert result.outcome is ChangeOutcome.WRITTEN, result
    assert seawall.admin.get(made["path"])["spec"][path.rpartition("/")[2]] == new
    seawall.admin.delete(f"{QUARANTINES}/hog")
    seawall.admin.patch(MAP, {"data": {"hog": None}})
    (undone,) = writer.undo(target)
    assert undone.outcome is ChangeOutcome.WRITTEN, undone
    assert unlike(before, seawall.admin.get(made["path"])) == []


def test_it_stops_copies_of_what_is_active(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    made = pod(admin)
    in_force(seawall, "hog", FAMILY, mode="suspend")
    assert "in the name of a quarantine" in refused(actor, "DELETE", made["path"], None)
    actor.patch(made["path"], {"metadata": {"labels": {LABEL: "hog"}}})
    actor.delete(made["path"])
    wait_until(lambda: not exists(admin, made["path"]), 20, "it is gone")


def exists(admin: ApiClient, path: str) -> bool:
    try:
        return "deletionTimestamp" not in admin.get(path)["metadata"]
    except ApiError:
        return False


def test_it_lets_a_gated_pod_go(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    whole = quarantined.pod(SPACE)
    whole["spec"]["schedulingGates"] = [{"name": "own.test/gate"}, {"name": GATE}]
    made = pod(admin, whole)
    writer = ChangeWriter(kube(seawall, "seawall-actor"), ACTOR_MANAGER)
    result = writer.open_gate(object_address(admin.get(made["path"])))
    assert result.outcome is ChangeOutcome.WRITTEN, result
    assert admin.get(made["path"])["spec"]["schedulingGates"] == [{"name": "own.test/gate"}]
    refused(actor, "PATCH", made["path"], {"spec": {"schedulingGates": None}})
    assert admin.get(made["path"])["spec"]["schedulingGates"] == [{"name": "own.test/gate"}]


GATED: Object = {"schedulingGates": [{"name": GATE}], "nodeSelector": {"pool": "a"}}
SELECTORS: dict[str, Object] = {
    "another-key": {"nodeSelector": {"pool": "a", "zone": "b"}, "schedulingGates": None},
    "another-value": {"nodeSelector": {"pool": "a", GUARD: "no"}, "schedulingGates": None},
    "still-gated": {"nodeSelector": {"pool": "a", GUARD: "enforcing"}},
}


def test_it_lets_a_gated_pod_go_onto_guarded_nodes_and_nowhere_else(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    whole = quarantined.pod(SPACE)
    whole["spec"] |= GATED
    made = pod(admin, whole)
    # Two rules are against "still-gated"; the API server names the first that has answered.
    words = "in the name of|of the node selector the actor adds"
    for spec in SELECTORS.values():
        with pytest.raises(ApiError, match=words) as answer:
            actor.patch(made["path"], {"spec": spec})
        assert answer.value.status == 403
    writer = ChangeWriter(kube(seawall, "seawall-actor"), ACTOR_MANAGER)
    result = writer.open_gate(object_address(admin.get(made["path"])), to_guarded=True)
    assert result.outcome is ChangeOutcome.WRITTEN, result
    spec = admin.get(made["path"])["spec"]
    assert spec["nodeSelector"] == {"pool": "a", GUARD: "enforcing"}
    assert "schedulingGates" not in spec


def rescue_order(node: str, **spec: Any) -> Object:
    return {"apiVersion": "seawall.internal/v1alpha1", "kind": "RescueOrder",
            "metadata": {"name": node},
            "spec": {"nodeName": node, "bootID": "boot-0123", "podUIDs": ["u"],
                     "requestedBy": "seawall-actor",
                     "expiresAt": quarantined.in_days(5 / 1440), **spec}}  # fmt: skip


def test_it_orders_a_node_in_the_name_of_a_quarantine_that_stands_only(
    opted_in: InstalledSeawall,
) -> None:
    admin, path = opted_in.admin, f"{API}/rescueorders"
    in_force(opted_in, "hog", FAMILY, state="Suspected", mode="tell")
    in_force(opted_in, "over", FAMILY, state="Released", mode="tell")
    with opted_in.account("seawall-actor", pods_of(admin, "seawall-actor")[0]) as actor:
        for spec, words in (({}, "in the name of a quarantine"),
                            ({"quarantine": "over"}, "over is not in force"),
                            ({"quarantine": "x"}, "x is not in force")):  # fmt: skip
            with pytest.raises(ApiError, match=words) as answer:
                actor.create(path, rescue_order("gpu-0", **spec))
            assert answer.value.status == 403
        actor.create(path, rescue_order("gpu-0", quarantine="hog"))
        for change in ({"metadata": {"labels": {"a": "b"}}}, {"status": {"state": "Done"}}):
            refused(actor, "PATCH", f"{path}/gpu-0", change)
        actor.delete(f"{path}/gpu-0")
    admin.create(path, rescue_order("gpu-0"))  # a person needs none
    admin.delete(f"{path}/gpu-0")


def test_it_labels_nodes_whose_guard_enforces(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    path = f"/api/v1/nodes/{seawall.gpu_nodes[0]}"
    actor.patch(path, {"metadata": {"labels": {GUARD: "enforcing"}}})
    assert admin.get(path)["metadata"]["labels"][GUARD] == "enforcing"
    actor.patch(path, {"metadata": {"labels": {GUARD: None}}})
    assert GUARD not in admin.get(path)["metadata"]["labels"]


CONVICTED: Object = {"verdict": "convicted", "nodes": ["a", "b"]}


@pytest.mark.parametrize(("before", "status"), [
    ("Proposed", CONVICTED), ("Proposed", {"approvedBy": "ada"}),
    ("Suspected", {"verdict": "suspected", "approvedBy": "ada"}),
], ids=["convicted", "approved", "approved-suspect"])  # fmt: skip
def test_it_makes_a_quarantine_active_and_ends_it(
    admin: ApiClient, actor: ApiClient, before: str, status: Object
) -> None:
    match = {"namespace": SPACE, **FAMILY}
    admin.create(QUARANTINES, quarantine("hog", match, state=before, mode="tell"))
    path = f"{QUARANTINES}/hog"
    admin.patch(f"{path}/status", {"status": status})
    marks = {"annotations": {"seawall.internal/activated-at": "2026-11-29T01:02:03Z"}}
    actor.patch(path, {"metadata": marks, "spec": {"state": "Active", "mode": "suspend"}})
    actor.patch(path, {"spec": {"mode": "gate", "expiresAt": quarantined.in_days(0.5)}})
    action = {"lever": "gate", "at": "2026-11-29T01:02:03Z", "result": "done"}
    actor.patch(
        f"{path}/status",
        {
            "status": {
                "actions": [action],
                "canary": {"pod": "a"},
                "pods": [{"uid": "u", "node": "a"}],
            }
        },
    )
    for state in ("Canary", "Released"):
        actor.patch(path, {"spec": {"state": state}})
    assert admin.get(path)["status"]["actions"] == [action]


def test_it_says_which_brakes_hold_it_and_holds_its_lease(
    admin: ApiClient, actor: ApiClient
) -> None:
    policy = {"apiVersion": "seawall.internal/v1alpha1", "kind": "SeawallPolicy",
              "metadata": {"name": "default"}, "spec": {}}  # fmt: skip
    admin.create(f"{API}/seawallpolicies", policy)
    path = f"{API}/seawallpolicies/default"
    brake = {"name": "storm", "since": "2026-11-29T01:02:03Z", "why": "40 nodes"}
    actor.patch(f"{path}/status", {"status": {"brakes": [brake]}})
    assert admin.get(path)["status"]["brakes"] == [brake]
    words = refused(actor, "PATCH", f"{path}/status", {"status": {"nodes": 3}})
    assert "status.brakes only" in words
    for spec in ({"brake": True}, {"actions": {"dryRun": False}}):
        refused(actor, "PATCH", path, {"spec": spec})
    admin.delete(path)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
             "metadata": {"name": "seawall-actor"}}  # fmt: skip
    made = actor.create(leases, lease)
    actor.request("PUT", f"{leases}/seawall-actor", made)
    refused(actor, "GET", f"{leases}/seawall-observer", None)


# --- A stolen token: pods --------------------------------------------------------------------


def test_no_innocent_pod_is_held_marked_or_deleted(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    in_force(seawall, "hog", FAMILY, mode="suspend")
    for space in (SPACE, "web"):
        whole = innocent_pod(space)
        made = add(admin, "/api/v1", "pods", whole, space)
        runs(admin, made["path"])
        before = admin.get(made["path"])
        assert "in the name of" in refused(actor, "DELETE", made["path"], None)
        refused(actor, "PATCH", made["path"], {"spec": {"tolerations": HELD}})
        record = {"annotations": {RECORD: '[{"path":"/spec/tolerations"}]'}}
        for name, words in (("hog", "is not what quarantine hog is about"),
                            ("none", "quarantine none is not in force"),
                            ("HOG", "quarantine HOG is not in force")):  # fmt: skip
            labels = {"labels": {LABEL: name}}
            both = {"metadata": {**labels, **record}}
            for body in ({"metadata": labels}, both, {**both, "spec": {"tolerations": HELD}}):
                assert words in refused(actor, "PATCH", made["path"], body)
        assert unlike(before, admin.get(made["path"])) == []


def test_a_label_that_the_tenant_put_there_himself_lends_nobodys_pod(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    in_force(seawall, "hog", FAMILY, mode="suspend")
    whole = innocent_pod()
    whole["metadata"]["labels"][LABEL] = "hog"
    made = pod(admin, whole)
    assert "is not what quarantine" in refused(actor, "DELETE", made["path"], None)


@pytest.mark.parametrize(("state", "mode"), [
    ("Suspected", "tell"), ("Proposed", "tell"), ("Active", "tell"), ("Released", "gate"),
])  # fmt: skip
def test_what_is_not_active_is_held_at_most(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient, state: str, mode: str
) -> None:
    whole = quarantined.pod(SPACE)
    whole["metadata"]["labels"][LABEL] = "hog"
    made, owner = pod(admin, whole), job(admin)
    in_force(seawall, "hog", FAMILY, state=state, mode=mode)
    words = "is not in force" if state == "Released" else "its pods are held, and nothing else"
    assert words in refused(actor, "DELETE", made["path"], None)
    assert words in refused(actor, "PATCH", owner["path"], suspension())


def suspension(name: str = "hog", before: str = "false", **spec: Any) -> Object:
    record = f'[{{"quarantine":"{name}","path":"/spec/suspend","before":{before},"after":true}}]'
    return {"metadata": {"labels": {LABEL: name}, "annotations": {RECORD: record}},
            "spec": {"suspend": True, **spec}}  # fmt: skip


MARKS: Object = {
    "labels": {LABEL: "hog"},
    "annotations": {RECORD: '[{"path":"/spec/tolerations"}]'},
}
POD_ATTACKS: dict[str, tuple[Object, str]] = {
    "image": ({"spec": {"containers": [
        {"name": "main", "image": "r.test/evil:1"}, {"name": "side", "image": "r.test/sidecar:2"},
    ]}}, "the spec"),
    "deadline": ({"spec": {"activeDeadlineSeconds": 1}}, "the spec"),
    "gate": ({"spec": {"schedulingGates": [{"name": "a.test/b"}]}}, ""),
    "labels": ({"metadata": {"labels": {LABEL: "hog", "app": "web"}}}, "labels and annotations"),
    "fewer-labels": ({"metadata": {"labels": {LABEL: "hog", "app": None}}}, "labels and"),
    "annotations": ({"metadata": {**MARKS, "annotations": {"a.test/b": "c"}}}, "labels and"),
    "finalizers": ({"metadata": {**MARKS, "finalizers": ["a.test/b"]}}, "labels and"),
    "owners": ({"metadata": {**MARKS, "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]}}, "labels and"),
    "tolerates-all": ({"metadata": MARKS, "spec": {"tolerations": [*HELD, {"operator": "Exists"}]}},
                      "of a silent node only"),
    "tolerates-drain": ({"metadata": MARKS, "spec": {"tolerations": [
        *HELD, {"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                "effect": "NoSchedule"}]}}, "of a silent node only"),
    "no-record": ({"metadata": {"labels": {LABEL: "hog"}}, "spec": {"tolerations": HELD}},
                  "stands in the record"),
}  # fmt: skip


@pytest.mark.parametrize("attack", POD_ATTACKS)
def test_of_a_culprits_pod_nothing_else_is_changed(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient, attack: str
) -> None:
    made = pod(admin)
    runs(admin, made["path"])
    in_force(seawall, "hog", FAMILY, mode="suspend")
    before = admin.get(made["path"])
    body, words = copy.deepcopy(POD_ATTACKS[attack])
    body.setdefault("metadata", {}).setdefault("labels", {}).setdefault(LABEL, "hog")
    with pytest.raises(ApiError) as answer:
        actor.patch(made["path"], body, STRATEGIC)
    assert answer.value.status in ({403, 422} if not words else {403})
    assert words in str(answer.value)
    assert unlike(before, admin.get(made["path"])) == []
    # The lawful one beside it.
    actor.patch(made["path"], {"metadata": MARKS, "spec": {"tolerations": HELD}})


def test_nothing_in_a_protected_namespace_is_touched(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    """Not even where a person made a quarantine of it."""
    for space in ("kube-system", NAMESPACE):
        whole = quarantined.pod(space)
        whole["metadata"]["labels"][LABEL] = f"hog-{space}"
        del whole["spec"]["serviceAccountName"]
        made = add(admin, "/api/v1", "pods", whole, space)
        match = {"namespace": space, "generateNamePrefix": "hog-"}
        in_force(seawall, f"hog-{space}", match, mode="suspend")
        assert "touches nothing in namespace" in refused(actor, "DELETE", made["path"], None)
        body = {"spec": {"tolerations": HELD}, "metadata": {
            "annotations": MARKS["annotations"], "labels": {LABEL: f"hog-{space}"}}}  # fmt: skip
        assert "touches nothing in namespace" in refused(actor, "PATCH", made["path"], body)
        admin.delete(made["path"])


# --- A stolen token: owners ------------------------------------------------------------------


def test_no_innocent_job_is_suspended(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    culprit = job(admin)
    in_force(seawall, "hog", {"ownerUIDs": [culprit["metadata"]["uid"]]}, mode="suspend")
    for name, image in (("web", "r.test/web:1"), ("hog-2", quarantined.IMAGE)):
        innocent = job(admin, name, image)
        assert "is not what quarantine hog is about" in refused(
            actor, "PATCH", innocent["path"], suspension()
        )
        refused(actor, "PATCH", innocent["path"], {"spec": {"suspend": True}})
        assert "is not in force" in refused(actor, "PATCH", innocent["path"], suspension("none"))
        refused(actor, "DELETE", innocent["path"], None)
        assert admin.get(innocent["path"])["spec"]["suspend"] is False
    actor.patch(culprit["path"], suspension())


@pytest.mark.parametrize("body", [
    suspension(parallelism=0), suspension(template=quarantined.template("r.test/evil:1")),
    suspension(before="true"), {"metadata": {"labels": {LABEL: "hog"}}, "spec": {"suspend": True}},
    {"metadata": {"labels": {LABEL: "hog", "app": "x"}}},
    {"metadata": {"labels": {LABEL: "hog"}, "finalizers": ["a.test/b"]}},
    {"metadata": {"labels": {LABEL: "hog"}}, "spec": {"ttlSecondsAfterFinished": 0}},
], ids=["parallelism", "template", "false-record", "no-record", "labels", "finalizers",
        "ttl"])  # fmt: skip
def test_of_a_culprits_job_only_the_switch_is_changed(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient, body: Object
) -> None:
    culprit = job(admin)
    in_force(seawall, "hog", FAMILY, mode="suspend")
    with pytest.raises(ApiError) as answer:
        actor.patch(culprit["path"], body)
    assert answer.value.status in ({403} if "template" not in body.get("spec", {}) else {403, 422})
    actor.patch(culprit["path"], suspension())


def test_what_its_owner_suspended_stays_so(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    """Who has the token starts nothing that Seawall did not stop."""
    culprit = job(admin)
    admin.patch(culprit["path"], {"spec": {"suspend": True}})
    in_force(seawall, "hog", FAMILY, mode="suspend")
    on = {"spec": {"suspend": False}}
    refused(actor, "PATCH", culprit["path"], on)
    assert "is neither" in refused(actor, "PATCH", culprit["path"], {**suspension(), **on})
    assert "is neither" in refused(
        actor, "PATCH", culprit["path"], {"metadata": {"labels": {LABEL: "hog"}}, **on}
    )


def test_an_undo_adds_nothing_and_goes_back_to_what_was(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    culprit = job(admin)
    in_force(seawall, "hog", FAMILY, mode="suspend")
    actor.patch(culprit["path"], suspension())
    admin.delete(f"{QUARANTINES}/hog")
    say(seawall)
    gone = {"labels": {LABEL: None}, "annotations": {RECORD: None}}
    for body in (
        {"spec": {"suspend": False}},  # the record stays
        {"metadata": {"labels": {LABEL: None}}, "spec": {"suspend": False}},
        {"metadata": {**gone, "annotations": {RECORD: "[{}]"}}, "spec": {"suspend": False}},
        {"metadata": gone, "spec": {"suspend": False, "parallelism": 0}},
        {"metadata": {**gone, "annotations": {RECORD: None, "a.test/b": "c"}}},
    ):  # fmt: skip
        refused(actor, "PATCH", culprit["path"], body)
    actor.patch(culprit["path"], {"metadata": gone, "spec": {"suspend": False}})
    assert admin.get(culprit["path"])["spec"]["suspend"] is False
    # And it is nobody's any more: the same again is a new act, which needs a quarantine.
    assert "is not in force" in refused(actor, "PATCH", culprit["path"], suspension())


# --- A stolen token: everything else ---------------------------------------------------------


def test_no_quarantine_is_made_widened_or_deleted(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    everything = quarantine("all", {"namespace": SPACE, "labels": {"app": "web"}})
    refused(actor, "POST", QUARANTINES, everything)
    match = {"namespace": SPACE, **FAMILY}
    admin.create(QUARANTINES, quarantine("hog", match, state="Proposed", mode="tell"))
    path = f"{QUARANTINES}/hog"
    refused(actor, "DELETE", path, None)
    active = {"spec": {"state": "Active", "mode": "gate"}}
    for status in ({}, {"verdict": "suspected", "nodes": ["a", "b"]},
                   {"verdict": "convicted", "nodes": ["a"]}):  # fmt: skip
        admin.patch(f"{path}/status", {"status": status})
        assert "convicted of two nodes" in refused(actor, "PATCH", path, active)
    for status in ({"verdict": "inseparable"}, {"nodes": ["a", "b"]}, {"scoreLog10": 9.0}):
        assert "actions, canary and pods only" in refused(
            actor, "PATCH", f"{path}/status", {"status": status}
        )
    refused(actor, "PATCH", f"{path}/status", {"status": {"approvedBy": "ada"}})
    for change in ({"reason": "x"}, {"deaths": ["a"]}, {"mode": "gate"}, {"state": "Suspected"},
                   {"workload": {"name": "x"}}):  # fmt: skip
        with pytest.raises(ApiError) as answer:
            actor.patch(path, {"spec": change})
        assert answer.value.status in {403, 422}
    for marks in ({"finalizers": ["a.test/b"]}, {"labels": {"a.test/b": "c"}}):
        assert "seawall.internal only" in refused(actor, "PATCH", path, {"metadata": marks})
    assert admin.get(path)["spec"]["state"] == "Proposed"
    admin.create(QUARANTINES, quarantine(
        "system", {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
        state="Proposed", mode="tell"))  # fmt: skip
    admin.patch(f"{QUARANTINES}/system/status", {"status": CONVICTED})
    assert "protected namespace" in refused(actor, "PATCH", f"{QUARANTINES}/system", active)


def test_an_approval_is_the_word_of_who_may_approve(
    seawall: InstalledSeawall, admin: ApiClient
) -> None:
    admin.create(QUARANTINES, quarantine("hog", {"namespace": SPACE, **FAMILY}, state="Proposed"))
    path = f"{QUARANTINES}/hog/status"
    body = {"status": {"approvedBy": "ada"}}
    with seawall.account("seawall-observer") as observer:
        assert "the verb approve" in refused(observer, "PATCH", path, body)
        admin.patch(path, body)
        assert "the verb approve" in refused(
            observer, "PATCH", path, {"status": {"approvedBy": None}}
        )
        observer.patch(path, {"status": {"verdict": "convicted"}})


@pytest.mark.parametrize(("verb", "path", "body"), [
    ("PATCH", "/api/v1/nodes/{node}", {"metadata": {"labels": {"a": "b"}}}),
    ("PATCH", "/api/v1/nodes/{node}", {"metadata": {"labels": {GUARD: "observing"}}}),
    ("PATCH", "/api/v1/nodes/{node}", {"metadata": {"annotations": {"seawall.internal/a": "b"}}}),
    ("PATCH", "/api/v1/nodes/{node}", {"metadata": {"labels": {GUARD: "enforcing"}},
                                       "spec": {"unschedulable": True}}),
    ("PATCH", "/api/v1/nodes/{node}", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
    ("PATCH", "/api/v1/nodes/{node}/status", {"status": {"phase": "x"}}),
    ("DELETE", "/api/v1/nodes/{node}", None),
    ("GET", "/api/v1/namespaces/{space}/secrets", None),
    ("POST", "/api/v1/namespaces/{space}/pods/{pod}/exec", None),
    ("POST", "/api/v1/namespaces/{space}/pods/{pod}/eviction",
     {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "{pod}"}}),
    ("PATCH", "/api/v1/namespaces/{space}/pods/{pod}/status", {"status": {"phase": "Failed"}}),
    ("PATCH", "/api/v1/namespaces/{space}/pods/{pod}/ephemeralcontainers", {"spec": {}}),
    ("POST", "/api/v1/namespaces/{space}/pods", quarantined.pod(SPACE)),
    ("DELETE", "/api/v1/namespaces/{space}/pods", None),
    ("POST", "/apis/batch/v1/namespaces/{space}/jobs", quarantined.job("x")),
    ("PATCH", MAP, {"data": {"a": "Active gate"}}),
    ("PATCH", f"{API}/nodereports/{{node}}", {"report": {"sequence": 3}}),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
     {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}}),
], ids=lambda one: one if isinstance(one, str) else "")  # fmt: skip
def test_a_stolen_actors_token_writes_nothing_else(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient, verb: str, path: str,
    body: Object | None,
) -> None:  # fmt: skip
    made = pod(admin)
    place = path.format(node=seawall.gpu_nodes[1], space=SPACE, pod=made["metadata"]["name"])
    refused(actor, verb, place, body)


def test_the_policies_fence_more_than_the_rights_give(
    seawall: InstalledSeawall, admin: ApiClient, actor: ApiClient
) -> None:
    """Somebody binds cluster-admin to the actor: pods and owners stay closed to it."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "too-much"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "seawall-actor", "namespace": NAMESPACE}],
    }  # fmt: skip
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    made, owner = pod(admin), job(admin)
    deployed = add(admin, "/apis/apps/v1", "deployments", quarantined.deployment("hog"))
    in_force(seawall, "hog", FAMILY, mode="suspend")
    admin.create(path, binding)
    wait_until(lambda: may(admin, "seawall-actor", "create", "", "pods", SPACE), 20, "it is bound")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": made["metadata"]["name"], "namespace": SPACE}}  # fmt: skip
    try:
        for verb, place, body in (
            ("POST", f"/api/v1/namespaces/{SPACE}/pods", quarantined.pod(SPACE)),
            ("POST", f"{made['path']}/eviction", eviction),
            ("DELETE", owner["path"], None), ("DELETE", deployed["path"], None),
            ("PATCH", f"{deployed['path']}/scale", {"spec": {"replicas": 0}}),
            ("PATCH", deployed["path"], {"spec": {"replicas": 3}}),
            ("DELETE", f"{API}/workloadquarantines/hog", None),
            ("DELETE", f"/api/v1/nodes/{seawall.gpu_nodes[0]}", None),
        ):  # fmt: skip
            assert "ValidatingAdmissionPolicy" in refused(actor, verb, place, body)
    finally:
        admin.delete(f"{path}/too-much")


# --- Levers that are off by default ----------------------------------------------------------


def test_a_deployment_goes_to_zero_and_back_by_opt_in(
    opted_in: InstalledSeawall,
) -> None:
    admin = opted_in.admin
    made = add(admin, "/apis/apps/v1", "deployments", quarantined.deployment("hog"))
    admin.patch(made["path"], {"spec": {"replicas": 3}})
    in_force(opted_in, "hog", FAMILY, mode="suspend")
    with opted_in.account("seawall-actor") as actor:
        record = '[{{"path":"/spec/replicas","before":{},"after":0}}]'
        for replicas, before in ((5, 3), (0, 30)):
            body = {"metadata": {"labels": {LABEL: "hog"},
                                 "annotations": {RECORD: record.format(before)}},
                    "spec": {"replicas": replicas}}  # fmt: skip
            assert "is neither" in refused(actor, "PATCH", made["path"], body)
    switched(opted_in, made, REPLICAS, 3, 0)


def test_an_innocent_leaves_a_node_that_is_not_ready_by_opt_in(
    opted_in: InstalledSeawall,
) -> None:
    admin = opted_in.admin
    replica_set = add(admin, "/apis/apps/v1", "deployments", quarantined.deployment("hog"))
    pods = f"/api/v1/namespaces/{SPACE}/pods"
    wait_until(lambda: [one for one in admin.items(pods) if one["spec"].get("nodeName")], 30,
               "its pod runs")  # fmt: skip
    (one,) = [one for one in admin.items(pods) if one["spec"].get("nodeName")]
    assert replica_set
    path = f"{pods}/{one['metadata']['name']}"
    wait_until(lambda: ready(admin, path) == "True", 30, "it is ready")
    with opted_in.account("seawall-actor") as actor:
        assert "in the name of" in refused(actor, "DELETE", path, None)
        unready = {"type": "Ready", "status": "False"}
        admin.patch(f"{path}/status", {"status": {"conditions": [unready]}},
                    STRATEGIC)  # fmt: skip
        actor.request("DELETE", path, None, dryRun="All")
        alone = pod(admin, innocent_pod())
        admin.patch(f"{alone['path']}/status", {"status": {"conditions": [unready]}},
                    STRATEGIC)  # fmt: skip
        assert "in the name of" in refused(actor, "DELETE", alone["path"], None)


def ready(admin: ApiClient, path: str) -> str:
    conditions = admin.get(path)["status"].get("conditions", [])
    return {one["type"]: one["status"] for one in conditions}.get("Ready", "")
