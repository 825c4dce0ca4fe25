"""What a quarantine's match means: the same table that the API server's policies are held to."""

import copy
from typing import Any

import pytest

from seawall.cluster.objects.match_objects import meets_owner, meets_pod
from seawall.cluster.objects.workload_quarantine_object import WorkloadMatch

POD: dict[str, Any] = {
    "metadata": {
        "namespace": "ml", "name": "hog-5f6d-x7k2p", "generateName": "hog-5f6d-", "uid": "p-1",
        "labels": {"app": "hog", "tier": "gpu"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "hog-5f6d", "uid": "rs-1"}],
    },
    "spec": {"serviceAccountName": "trainer",
             "containers": [{"image": "r.test/hog:1"}, {"image": "r.test/sidecar:2"}]},
}  # fmt: skip
WHOLE = WorkloadMatch(
    "ml", ("d-1", "rs-1"), "hog-", "trainer", ("r.test/hog:1",), (("app", "hog"),)
)


@pytest.mark.parametrize(("match", "is_met"), [
    (WHOLE, True),
    (WorkloadMatch("ml", owner_uids=("rs-1",)), True),
    (WorkloadMatch("ml", owner_uids=("p-1",)), True),
    (WorkloadMatch("ml", generate_name_prefix="hog-"), True),
    (WorkloadMatch("ml", service_account="trainer"), True),
    (WorkloadMatch("ml", images=("r.test/sidecar:2", "r.test/hog:1")), True),
    (WorkloadMatch("ml", labels=(("tier", "gpu"),)), True),
    # One field that differs is enough.
    (WorkloadMatch("other", owner_uids=("rs-1",)), False),
    (WorkloadMatch("ml", ("d-1",), "hog-"), False),
    (WorkloadMatch("ml", ("rs-1",), "hog-x"), False),
    (WorkloadMatch("ml", ("rs-1",), service_account="other"), False),
    (WorkloadMatch("ml", ("rs-1",), images=("r.test/hog:1", "r.test/none:1")), False),
    (WorkloadMatch("ml", ("rs-1",), labels=(("app", "hog"), ("tier", "cpu"))), False),
    (WorkloadMatch("ml", ("rs-1",), labels=(("none", ""),)), False),
    # A namespace is never enough, nor everybody's account.
    (WorkloadMatch("ml"), False),
    (WorkloadMatch("ml", service_account="default"), False),
])  # fmt: skip
def test_a_pod_is_met_where_all_agrees(match: WorkloadMatch, is_met: bool) -> None:
    assert meets_pod(match, POD) is is_met


def test_a_pod_without_an_account_has_the_default_one() -> None:
    pod = copy.deepcopy(POD)
    del pod["spec"]["serviceAccountName"]
    assert meets_pod(WorkloadMatch("ml", ("rs-1",), service_account="default"), pod)


def owner(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "ml", "name": "hog", "uid": "d-1", **metadata}, "spec": spec}


TEMPLATE = {"metadata": POD["metadata"], "spec": POD["spec"]}
OTHER = {"spec": {"containers": [{"image": "r.test/web:1"}]}}
JOB = {"spec": {"template": TEMPLATE}}


@pytest.mark.parametrize("spec", [
    {"template": TEMPLATE}, {"jobTemplate": JOB},
    {"replicatedJobs": [{"template": {"spec": {"template": OTHER}}}, {"template": JOB}]},
    {"podSets": [{"template": OTHER}, {"template": TEMPLATE}]},
    {"rayClusterSpec": {"headGroupSpec": {"template": OTHER},
                        "workerGroupSpecs": [{"template": TEMPLATE}]}},
], ids=lambda spec: next(iter(spec)))  # fmt: skip
def test_an_owner_is_met_by_its_uid_or_by_name_and_template(spec: dict[str, Any]) -> None:
    family = WorkloadMatch("ml", (), "hog-", "trainer", ("r.test/hog:1",))
    assert meets_owner(WHOLE, owner(spec))
    assert meets_owner(WHOLE, owner(spec, uid="w-1", ownerReferences=[{"uid": "d-1"}]))
    assert meets_owner(family, owner(spec, uid="w-1"))
    assert meets_owner(family, owner(spec, name="job-x", ownerReferences=[{"name": "hog-2"}]))
    assert not meets_owner(WHOLE, owner(spec, uid="d-2"))
    assert not meets_owner(WHOLE, owner(spec, namespace="other"))
    assert not meets_owner(family, owner(spec, name="hoglet"))
    assert not meets_owner(family, owner({"template": OTHER}))
    assert not meets_owner(family, owner({}))
    assert not meets_owner(WorkloadMatch("ml"), owner(spec))


@pytest.mark.parametrize("hostile", [
    {}, {"metadata": [], "spec": "x"}, {"metadata": {"namespace": ["ml"], "labels": 7}},
    {"metadata": {"namespace": "ml", "ownerReferences": [7, {"uid": []}], "generateName": {}},
     "spec": {"containers": {"image": "r.test/hog:1"}, "template": [], "podSets": [None]}},
])  # fmt: skip
def test_hostile_documents_are_met_by_nothing(hostile: dict[str, Any]) -> None:
    assert not meets_pod(WHOLE, hostile)
    assert not meets_owner(WHOLE, hostile)
    assert not meets_owner(WorkloadMatch("ml", images=("r.test/hog:1",)), hostile)
