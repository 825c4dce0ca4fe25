"""Quarantines, and the pods and owners that they are about, for tests on a real API server."""

import datetime as dt
from typing import Any

from tests.cluster.api_client import ApiClient, Object
from tests.cluster.custom_resources import API

QUARANTINES = f"{API}/workloadquarantines"
IMAGE = "r.test/hog:1"
LABEL = "seawall.internal/changed-by"
RECORD = "seawall.internal/changes"
GATE = "seawall.internal/quarantine"
GUARD = "seawall.internal/guard"


def in_days(days: float) -> str:
    at = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=days)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def quarantine(name: str, match: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "WorkloadQuarantine",
        "metadata": {"name": name},
        "spec": {"match": match, "key": {"level": 1, "value": name}, "state": "Active",
                 "mode": "gate", "expiresAt": in_days(1), **spec},
    }  # fmt: skip


def pod(space: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": space, "generateName": "hog-5f6d-",
                     "labels": {"app": "hog", "tier": "gpu"}, **metadata},
        "spec": {"serviceAccountName": "trainer",
                 "containers": [{"name": "main", "image": IMAGE},
                                {"name": "side", "image": "r.test/sidecar:2"}]},
    }  # fmt: skip


def template(image: str = IMAGE) -> Object:
    return {"metadata": {"labels": {"app": "hog"}},
            "spec": {"serviceAccountName": "trainer", "restartPolicy": "Never",
                     "containers": [{"name": "main", "image": image}]}}  # fmt: skip


def job(name: str, image: str = IMAGE) -> Object:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"parallelism": 1, "template": template(image)}}  # fmt: skip


def cron_job(name: str, image: str = IMAGE) -> Object:
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {
                "template": template(image)}}}}  # fmt: skip


def deployment(name: str, image: str = IMAGE) -> Object:
    spec = template(image)
    spec["spec"]["restartPolicy"] = "Always"
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "hog"}},
                     "template": spec}}  # fmt: skip


def service_account(client: ApiClient, space: str, name: str) -> None:
    client.create(f"/api/v1/namespaces/{space}/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
    })  # fmt: skip


def custom_owner(group: str, version: str, kind: str, plural: str) -> Object:
    """A kind of somebody else with a switch, as much of it as is needed."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": True, "storage": True,
                          "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip


def job_set(name: str, image: str = IMAGE) -> Object:
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": [
                {"name": "a", "template": {"spec": {"template": template(image)}}}]}}  # fmt: skip


def kueue_workload(name: str, owner: Object) -> Object:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner["metadata"]["name"],
                 "uid": owner["metadata"]["uid"]}  # fmt: skip
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
            "metadata": {"name": name, "ownerReferences": [reference]},
            "spec": {"active": True,
                     "podSets": [{"name": "main", "template": template()}]}}  # fmt: skip
