"""Changes on objects that are not ours, on a real API server: made, written down, undone."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import DEFINITIONS, is_served
from tests.cluster.test_kube_plane import access
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, pod_spec

from seawall.cluster.changes.change_patch import ChangeOutcome
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.changeable_kinds import (
    DEATH_TAINTS,
    GATES,
    REPLICAS,
    SUSPEND,
    TOLERATIONS,
)
from seawall.cluster.changes.changed_objects import changed_objects, gated_pods
from seawall.cluster.changes.object_change import (
    ObjectChange,
    object_address,
)
from seawall.cluster.kube.kube_client import KubeClient
from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    CHANGES_ANNOTATION,
    QUARANTINE_GATE,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"
_BOOKKEEPING = ("resourceVersion", "generation", "managedFields")


@pytest.fixture
def kube(plane: ControlPlane) -> Iterator[KubeClient]:
    client = KubeClient(access(plane))
    yield client
    client.close()


@pytest.fixture
def writer(kube: KubeClient) -> ChangeWriter:
    return ChangeWriter(kube, "seawall-test")


def lasting(document: Object) -> Object:
    """Without what the API server counts, and without what controllers say of it."""
    whole = copy.deepcopy(document)
    whole.pop("status", None)
    for name in _BOOKKEEPING:
        whole["metadata"].pop(name, None)
    return whole


def job(client: ApiClient, space: str, name: str) -> Object:
    template = {"spec": {**pod_spec("worker:1"), "restartPolicy": "Never"}}
    return client.create(f"/apis/batch/v1/namespaces/{space}/jobs", {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "annotations": {"owner": "somebody"}},
        "spec": {"template": template, "parallelism": 2},
    })  # fmt: skip


def cron_job(client: ApiClient, space: str, name: str) -> Object:
    template = {"spec": {**pod_spec("worker:1"), "restartPolicy": "Never"}}
    return client.create(f"/apis/batch/v1/namespaces/{space}/cronjobs", {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}},
    })  # fmt: skip


def lone_pod(client: ApiClient, space: str, name: str, **spec: Any) -> Object:
    return client.create(f"/api/v1/namespaces/{space}/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {**pod_spec("worker:1"), **spec},
    })  # fmt: skip


@pytest.fixture
def job_set(client: ApiClient, space: str) -> Iterator[Object]:
    """Of a kind with the switch of a JobSet, which has no ``suspend`` at first."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    name = "jobsets.jobset.x-k8s.io"
    client.create(DEFINITIONS, {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {
            "group": "jobset.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "JobSet", "plural": "jobsets", "singular": "jobset"},
            "versions": [{
                "name": "v1alpha2", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": open_schema},
            }],
        },
    })  # fmt: skip
    wait_until(lambda: is_served(client, f"{JOBSETS}/jobsets"), 20, "jobsets are served")
    yield client.create(f"{JOBSETS}/namespaces/{space}/jobsets", {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "gang"},
        "spec": {"replicatedJobs": [{"name": "worker", "replicas": 32}]},
    })  # fmt: skip
    client.delete(f"{DEFINITIONS}/{name}")


def found_in(kube: KubeClient, space: str, quarantine: str = "") -> list[str]:
    found = changed_objects(kube, quarantine)
    assert found.unseen == ()
    return sorted(str(one.address) for one in found.objects if one.address.namespace == space)


def round_trip(kube: KubeClient, writer: ChangeWriter, change: ObjectChange) -> None:
    """Made, found by its label, undone; then all is as it was."""
    target = change.target
    original = kube.get(target.path)
    dry = ChangeWriter(kube, "seawall-test", is_dry_run=True)
    assert dry.apply(change).outcome is ChangeOutcome.WRITTEN
    assert lasting(kube.get(target.path)) == lasting(original)
    made = writer.apply(change)
    assert made.outcome is ChangeOutcome.WRITTEN, made.words
    changed = kube.get(target.path)
    assert lasting(changed)["spec"] != lasting(original)["spec"]
    assert changed["metadata"]["labels"][CHANGED_BY_LABEL] == change.quarantine
    assert str(target) in found_in(kube, target.namespace, change.quarantine)
    assert found_in(kube, target.namespace, "another") == []
    [undone] = writer.undo(target, change.quarantine)
    assert undone.outcome is ChangeOutcome.WRITTEN, undone.words
    assert lasting(kube.get(target.path)) == lasting(original)
    assert found_in(kube, target.namespace) == []


@pytest.mark.parametrize("make", [job, cron_job])
def test_a_job_is_suspended_and_goes_on(
    client: ApiClient, space: str, kube: KubeClient, writer: ChangeWriter, make: Any
) -> None:
    target = object_address(make(client, space, "etl"))
    round_trip(kube, writer, ObjectChange(target, "q-1", SUSPEND, False, True))


def test_a_job_set_gets_its_absent_switch_back(
    space: str, job_set: Object, kube: KubeClient, writer: ChangeWriter
) -> None:
    target = object_address(job_set)
    round_trip(kube, writer, ObjectChange(target, "q-1", SUSPEND, None, True))
    assert "suspend" not in kube.get(target.path)["spec"]
    assert target.namespace == space


def test_a_deployment_is_scaled_to_zero_and_back(
    client: ApiClient, space: str, kube: KubeClient, writer: ChangeWriter
) -> None:
    deploy(client, space, "web", 3, pod_spec("web:1"))
    path = f"/apis/apps/v1/namespaces/{space}/deployments/web"
    wait_until(lambda: client.get(path)["status"].get("replicas") == 3, 30, "three pods are made")
    target = object_address(client.get(path))
    change = ObjectChange(target, "q-1", REPLICAS, 3, 0)
    assert writer.apply(change).outcome is ChangeOutcome.WRITTEN
    wait_until(lambda: not client.get(path)["status"].get("replicas"), 30, "no pod is left")
    [undone] = writer.undo(target)
    assert undone.outcome is ChangeOutcome.WRITTEN
    wait_until(lambda: client.get(path)["status"].get("replicas") == 3, 30, "three pods again")
    assert client.get(path)["spec"]["replicas"] == 3


def test_a_hold_leaves_the_other_tolerations_alone(
    client: ApiClient, space: str, kube: KubeClient, writer: ChangeWriter
) -> None:
    gpu = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    target = object_address(lone_pod(client, space, "held", tolerations=[gpu]))
    rows = client.get(target.path)["spec"]["tolerations"]
    assert {row["key"] for row in rows} == {"gpu", *DEATH_TAINTS}
    longer = [
        row | {"tolerationSeconds": 1800} if row["key"] in DEATH_TAINTS else row for row in rows
    ]
    round_trip(kube, writer, ObjectChange(target, "q-1", TOLERATIONS, rows, longer))


def test_a_gate_of_ours_is_taken_away(
    client: ApiClient, space: str, kube: KubeClient, writer: ChangeWriter
) -> None:
    gates = [{"name": "example.org/other"}, {"name": QUARANTINE_GATE}]
    target = object_address(lone_pod(client, space, "gated", schedulingGates=gates))
    ours = [pod["metadata"]["name"] for pod in gated_pods(kube)]
    assert "gated" in ours
    change = ObjectChange(target, "q-1", GATES, gates, gates[:1])
    assert writer.apply(change).outcome is ChangeOutcome.WRITTEN
    assert client.get(target.path)["spec"]["schedulingGates"] == gates[:1]
    [undone] = writer.undo(target)
    assert undone.outcome is ChangeOutcome.REFUSED, "no gate is added to a pod that exists"
    assert undone.record is not None


def test_what_somebody_changed_since_is_left_and_named(
    client: ApiClient, space: str, kube: KubeClient, writer: ChangeWriter
) -> None:
    deploy(client, space, "web", 3, pod_spec("web:1"))
    path = f"/apis/apps/v1/namespaces/{space}/deployments/web"
    target = object_address(client.get(path))
    writer.apply(ObjectChange(target, "q-1", REPLICAS, 3, 0))
    client.patch(path, {"spec": {"replicas": 5}})
    [left] = writer.undo(target)
    assert left.outcome is ChangeOutcome.CHANGED_SINCE
    assert left.words == "somebody changed it since"
    document = client.get(path)
    assert document["spec"]["replicas"] == 5
    assert CHANGES_ANNOTATION not in document["metadata"].get("annotations", {})
    assert found_in(kube, space) == []


def test_a_change_is_not_written_over_what_was_not_seen(
    client: ApiClient, space: str, writer: ChangeWriter
) -> None:
    deploy(client, space, "web", 3, pod_spec("web:1"))
    path = f"/apis/apps/v1/namespaces/{space}/deployments/web"
    target = object_address(client.get(path))
    client.patch(path, {"spec": {"replicas": 5}})
    made = writer.apply(ObjectChange(target, "q-1", REPLICAS, 3, 0))
    assert made.outcome is ChangeOutcome.CHANGED_SINCE
    assert client.get(path)["spec"]["replicas"] == 5
    client.delete(path)
    assert writer.apply(ObjectChange(target, "q-1", REPLICAS, 5, 0)).outcome is ChangeOutcome.GONE
    deploy(client, space, "web", 5, pod_spec("web:1"))
    again = writer.apply(ObjectChange(target, "q-1", REPLICAS, 5, 0))
    assert again.outcome is ChangeOutcome.GONE, "another one has its name"


def test_a_hostile_record_is_found_and_never_applied(
    client: ApiClient, space: str, kube: KubeClient, writer: ChangeWriter
) -> None:
    target = object_address(job(client, space, "etl"))
    rows = [{
        "quarantine": "q-1", "path": "/spec/parallelism", "before": 100000, "after": 2,
        "at": "2026-11-29T11:00:00Z", "uid": target.uid,
    }]  # fmt: skip
    for text in (json.dumps(rows), "[" * 50_000, "no JSON"):
        metadata = {
            "annotations": {CHANGES_ANNOTATION: text}, "labels": {CHANGED_BY_LABEL: "q-1"}
        }  # fmt: skip
        before = client.patch(target.path, {"metadata": metadata})
        [one] = [
            found for found in changed_objects(kube).objects if found.address.namespace == space
        ]
        assert "record" in one.problem
        [refused] = writer.undo(target)
        assert refused.outcome is ChangeOutcome.REFUSED
        assert refused.words == one.problem
        after = client.get(target.path)
        assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
        assert after["spec"] == before["spec"]


def test_who_may_not_write_is_told_so(client: ApiClient, space: str, plane: ControlPlane) -> None:
    target = object_address(job(client, space, "etl"))
    weak = KubeClient(access(plane, "system:kube-scheduler"))
    refused = ChangeWriter(weak, "seawall-test").apply(
        ObjectChange(target, "q-1", SUSPEND, False, True)
    )
    assert refused.outcome is ChangeOutcome.REFUSED
    assert "403" in refused.words
    found = changed_objects(weak)
    assert any(line.startswith("jobs: 403") for line in found.unseen)
    weak.close()
