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
