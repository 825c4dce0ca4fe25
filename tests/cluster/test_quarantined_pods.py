"""New pods of a workload in quarantine: what the chart's admission policies do with them, which
are parametrised by the quarantines themselves, and that nothing happens without the actor.
"""

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster import quarantined
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.installed_seawall import InstalledSeawall, installed
from tests.cluster.plane_build import version_wanted
from tests.cluster.quarantined import GATE, GUARD, IMAGE, QUARANTINES, job, pod, quarantine
from tests.cluster.rendered_manifests import NAMESPACE
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import namespace

from seawall.cluster.objects.match_objects import meets_pod
from seawall.cluster.objects.workload_quarantine_object import workload_quarantine_object

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

MUTATES = tuple(map(int, version_wanted().split("."))) >= (1, 36)
needs_mutating = pytest.mark.skipif(not MUTATES, reason="no MutatingAdmissionPolicy before 1.36")
denies = pytest.mark.skipif(MUTATES, reason="there is a MutatingAdmissionPolicy since 1.36")
SPACE = "ml"
OWNER = "0a1b2c3d-0000-4000-8000-00000000000a"


@pytest.fixture(scope="module")
def seawall(program: Path, kwok: Path) -> Iterator[InstalledSeawall]:
    with installed(program, kwok, with_actor=True) as seawall:
        for space in (SPACE, "web"):
            namespace(seawall.admin, space)
            quarantined.service_account(seawall.admin, space, "trainer")
        yield seawall


@pytest.fixture
def admin(seawall: InstalledSeawall) -> Iterator[ApiClient]:
    yield seawall.admin
    for space in (SPACE, "web", NAMESPACE):
        seawall.admin.delete(f"/api/v1/namespaces/{space}/pods", labelSelector="app=hog")
    seawall.admin.delete(QUARANTINES)
    wait_until(lambda: takes(seawall.admin, pod(SPACE)), 20, "nothing is in quarantine")


def takes(admin: ApiClient, whole: Object) -> bool:
    """Whether such a pod is made as it was sent, of which nothing is kept."""
    try:
        made = made_of(admin, whole, dryRun="All")
    except ApiError:
        return False
    return made["spec"].get("schedulingGates") is None and "nodeSelector" not in made["spec"]


def made_of(admin: ApiClient, whole: Object, **query: str) -> Object:
    space = whole["metadata"]["namespace"]
    return admin.request("POST", f"/api/v1/namespaces/{space}/pods", whole, **query)


def in_force(admin: ApiClient, name: str, match: Object, **spec: Any) -> None:
    """The API server's own watch has seen it when this returns: a probe is stopped by it."""
    admin.create(QUARANTINES, quarantine(name, match, **spec))
    probe = {"namespace": "web", "labels": {"probe": name}}
    admin.create(QUARANTINES, quarantine(f"{name}-probe", probe, mode="gate"))
    whole = pod("web", labels={"probe": name})
    wait_until(lambda: not takes(admin, whole), 20, "quarantines are seen")


def stopped(admin: ApiClient, whole: Object) -> bool:
    try:
        made = made_of(admin, whole, dryRun="All")
    except ApiError as problem:
        if "is in quarantine" not in str(problem):
            raise
        return True
    return {"name": GATE} in made["spec"].get("schedulingGates", [])


def owned(uid: str) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hog-5f6d", "uid": uid}
    return pod(SPACE, ownerReferences=[reference])


def with_spec(**changes: Any) -> Object:
    whole = pod(SPACE)
    whole["spec"] |= changes
    return whole


MATCHES: dict[str, tuple[Object, bool]] = {
    "owner": ({"ownerUIDs": ["x", OWNER]}, True), "prefix": ({"generateNamePrefix": "hog-"}, True),
    "account": ({"serviceAccount": "trainer"}, True), "image": ({"images": [IMAGE]}, True),
    "images": ({"images": ["r.test/sidecar:2", IMAGE]}, True), "label": ({"labels": {"app": "hog"}},
                                                                         True),
    "all": ({"ownerUIDs": [OWNER], "generateNamePrefix": "hog-5f", "serviceAccount": "trainer",
             "images": [IMAGE], "labels": {"app": "hog", "tier": "gpu"}}, True),
    "other-owner": ({"ownerUIDs": ["x"], "images": [IMAGE]}, False),
    "other-prefix": ({"ownerUIDs": [OWNER], "generateNamePrefix": "hog-6"}, False),
    "other-account": ({"ownerUIDs": [OWNER], "serviceAccount": "default"}, False),
    "one-image-more": ({"images": [IMAGE, "r.test/none:1"]}, False),
    "other-label": ({"ownerUIDs": [OWNER], "labels": {"app": "hog", "tier": "cpu"}}, False),
    "label-not-there": ({"labels": {"none": ""}}, False),
    "empty-ones": ({"ownerUIDs": [], "images": [], "labels": {}, "generateNamePrefix": "",
                    "serviceAccount": "trainer"}, True),
}  # fmt: skip


@pytest.mark.parametrize("name", MATCHES)
def test_a_pod_is_stopped_where_all_agrees_and_the_code_says_the_same(
    admin: ApiClient, name: str
) -> None:
    match, is_met = MATCHES[name]
    in_force(admin, name, {"namespace": SPACE, **match})
    whole = owned(OWNER)
    found = workload_quarantine_object(admin.get(f"{QUARANTINES}/{name}"))
    assert meets_pod(found.match, whole) is is_met
    assert stopped(admin, whole) is is_met
    elsewhere = copy.deepcopy(whole)
    elsewhere["metadata"]["namespace"] = "web"
    assert not stopped(admin, elsewhere)


@pytest.mark.parametrize(("state", "mode", "is_stopped"), [
    ("Suspected", "gate", False), ("Proposed", "gate", False), ("Released", "gate", False),
    ("Active", "tell", False), ("Active", "hold", False), ("Active", "gate", True),
    ("Canary", "gate", True), ("Active", "suspend", True),
])  # fmt: skip
def test_only_what_is_in_force_stops_anything(
    admin: ApiClient, state: str, mode: str, is_stopped: bool
) -> None:
    match = {"namespace": SPACE, "generateNamePrefix": "hog-"}
    in_force(admin, "hog", match, state=state, mode=mode)
    assert stopped(admin, owned(OWNER)) is is_stopped


def test_the_kubelets_own_system_priorities_and_protected_namespaces_are_let_be(
    admin: ApiClient,
) -> None:
    everything: Object = {"labels": {"app": "hog"}}
    for space in (SPACE, NAMESPACE, "kube-system"):
        in_force(admin, f"all-of-{space}", {"namespace": space, **everything})
    assert stopped(admin, pod(SPACE))
    for space in (NAMESPACE, "kube-system"):
        whole = pod(space)
        del whole["spec"]["serviceAccountName"]
        assert not stopped(admin, whole)
    assert not stopped(admin, with_spec(priorityClassName="system-node-critical", priority=None))
    mirror = pod(SPACE, annotations={"kubernetes.io/config.mirror": "x"})
    mirror["spec"] = {"nodeName": "gpu-0", "containers": mirror["spec"]["containers"]}
    assert not stopped(admin, mirror)


def test_a_deletion_of_the_quarantine_lets_all_through(admin: ApiClient) -> None:
    in_force(admin, "hog", {"namespace": SPACE, "generateNamePrefix": "hog-"})
    assert stopped(admin, owned(OWNER))
    admin.delete(f"{QUARANTINES}/hog")
    wait_until(lambda: takes(admin, owned(OWNER)), 10, "it is seen to be gone")


@needs_mutating
def test_a_gated_pod_waits_and_its_own_gates_stay(admin: ApiClient) -> None:
    in_force(admin, "hog", {"namespace": SPACE, "generateNamePrefix": "hog-"})
    made = made_of(admin, with_spec(schedulingGates=[{"name": "own.test/gate"}]))
    assert made["spec"]["schedulingGates"] == [{"name": "own.test/gate"}, {"name": GATE}]
    again = made_of(admin, with_spec(schedulingGates=[{"name": GATE}]))
    assert again["spec"]["schedulingGates"] == [{"name": GATE}]
    assert (
        "nodeName"
        not in admin.get(f"/api/v1/namespaces/{SPACE}/pods/{made['metadata']['name']}")["spec"]
    )


@needs_mutating
@pytest.mark.parametrize("own", [{}, {"pool": "a"}])
def test_on_probation_a_pod_waits_and_goes_where_a_guard_enforces_when_one_was_tried(
    seawall: InstalledSeawall, admin: ApiClient, own: dict[str, str]
) -> None:
    match = {"namespace": SPACE, "generateNamePrefix": "hog-"}
    in_force(admin, "hog", match, mode="probation")
    changes = {"nodeSelector": own} if own else {}
    made = made_of(admin, with_spec(**changes))
    assert made["spec"]["schedulingGates"] == [{"name": GATE}]
    assert made["spec"].get("nodeSelector", {}) == own
    pinned = made_of(admin, with_spec(nodeSelector={GUARD: "enforcing"}), dryRun="All")
    assert pinned["spec"]["schedulingGates"] == [{"name": GATE}], "nobody goes round the trial"
    for verdict in ("killed", "passed"):
        status = {"status": {"canary": {"pod": "hog-1", "verdict": verdict}}}
        admin.patch(f"{QUARANTINES}/hog/status", status)
        time.sleep(2.0)
        made = made_of(admin, with_spec(**changes))
        assert ("schedulingGates" in made["spec"]) is (verdict == "killed")
    assert made["spec"]["nodeSelector"] == {**own, GUARD: "enforcing"}
    if not own:
        path = f"/api/v1/namespaces/{SPACE}/pods/{made['metadata']['name']}"
        node = seawall.gpu_nodes[0]
        assert "nodeName" not in admin.get(path)["spec"]
        admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {GUARD: "enforcing"}}})
        wait_until(lambda: admin.get(path)["spec"].get("nodeName") == node, 30, "it is scheduled")
        admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {GUARD: None}}})


@needs_mutating
def test_a_pod_that_names_its_node_is_refused_not_let_round_the_gate(admin: ApiClient) -> None:
    in_force(admin, "hog", {"namespace": SPACE, "generateNamePrefix": "hog-"})
    with pytest.raises(ApiError):
        made_of(admin, with_spec(nodeName="gpu-0"))


@denies
def test_before_1_36_probation_is_a_denial_that_says_so(admin: ApiClient) -> None:
    match = {"namespace": SPACE, "generateNamePrefix": "hog-"}
    in_force(admin, "hog", match, mode="probation")
    with pytest.raises(ApiError, match=r"on probation, quarantine hog: .* since 1\.36"):
        made_of(admin, with_spec())
    made = made_of(admin, with_spec(nodeSelector={GUARD: "enforcing"}), dryRun="All")
    assert made["spec"]["nodeSelector"] == {GUARD: "enforcing"}


def test_a_job_of_the_workload_gets_no_pod_that_runs(admin: ApiClient) -> None:
    in_force(admin, "hog", {"namespace": SPACE, "generateNamePrefix": "hog-", "images": [IMAGE]})
    jobs = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
    for name, image in (("hog-1", IMAGE), ("hog-2", "r.test/other:1")):
        admin.create(jobs, job(name, image))

    def running() -> set[str]:
        pods = admin.items(f"/api/v1/namespaces/{SPACE}/pods", labelSelector="job-name")
        return {
            one["metadata"]["labels"]["job-name"] for one in pods if one["spec"].get("nodeName")
        }

    wait_until(lambda: running() == {"hog-2"}, 30, "the other one runs")
    assert running() == {"hog-2"}
    for name in ("hog-1", "hog-2"):
        admin.delete(f"{jobs}/{name}", propagationPolicy="Background")


# --- Without the actor -----------------------------------------------------------------------


def test_without_the_actor_a_quarantine_is_a_remark(program: Path, kwok: Path) -> None:
    with installed(program, kwok) as plain:
        admin = plain.admin
        namespace(admin, SPACE)
        quarantined.service_account(admin, SPACE, "trainer")
        for mode in ("gate", "suspend", "probation"):
            match = {"namespace": SPACE, "generateNamePrefix": "hog-"}
            admin.create(QUARANTINES, quarantine(f"hog-{mode}", match, mode=mode))
        mark = AuditLog(plain.plane.audit_path).mark()
        made = made_of(admin, pod(SPACE))
        assert {"schedulingGates", "nodeSelector"}.isdisjoint(made["spec"])
        path = f"/api/v1/namespaces/{SPACE}/pods/{made['metadata']['name']}"
        wait_until(lambda: admin.get(path)["status"].get("phase") == "Running", 30, "it runs")
        with plain.account("seawall-observer") as observer:
            status = {"status": {"verdict": "convicted"}}
            observer.patch(f"{QUARANTINES}/hog-gate/status", status)
        ours = f"system:serviceaccount:{NAMESPACE}:"
        written = [one for one in AuditLog(plain.plane.audit_path).since(mark)
                   if one.is_write and one.user.startswith(ours)]  # fmt: skip
        assert written
        assert {one.resource for one in written} <= {
            "workloadquarantines/status.seawall.internal", "nodedeaths.seawall.internal",
            "events.events.k8s.io", "leases.coordination.k8s.io",
        }  # fmt: skip
        assert "deletionTimestamp" not in admin.get(path)["metadata"]
