"""A cluster with an actor in it: a pool of nodes, quarantines as the observer writes them."""

from collections.abc import Callable
from typing import Any

from tests.cluster.api_client import ApiClient, Object
from tests.cluster.audit_log import AuditLog, Request
from tests.cluster.node_pool import NodePool
from tests.cluster.observer_process import ObserverProcess
from tests.cluster.waiting import wait_until

from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    CHANGES_ANNOTATION,
    WORKLOAD_QUARANTINE,
    path_of,
)

TOLERATION_SECONDS = 20
OWN_GROUP = "seawall.internal"
BOOKKEEPING = ("resourceVersion", "generation", "managedFields")


def until(actor: ObserverProcess, done: Callable[[], object], seconds: float) -> None:
    """With the actor's own words where it does not come true."""
    try:
        wait_until(done, seconds, "")
    except AssertionError as problem:
        raise AssertionError(f"{problem}\n{actor.log()[-4000:]}") from None


def quarantine(client: ApiClient, name: str) -> Object:
    return client.get(path_of(WORKLOAD_QUARANTINE, name))


def state(client: ApiClient, name: str) -> tuple[str, str]:
    spec = quarantine(client, name)["spec"]
    return spec["state"], spec["mode"]


def actions(client: ApiClient, name: str) -> list[Object]:
    return (quarantine(client, name).get("status") or {}).get("actions", [])


def results(client: ApiClient, name: str) -> set[tuple[str, str]]:
    return {(one["lever"], one["result"]) for one in actions(client, name)}


def release(client: ApiClient, name: str) -> None:
    client.patch(path_of(WORKLOAD_QUARANTINE, name), {"spec": {"state": "Released"}})


def deployment(pool: NodePool, name: str) -> Object:
    """With the uids of its ReplicaSets, which are what its pods name."""
    base = f"/apis/apps/v1/namespaces/{pool.space}"
    sets = [one for one in pool.client.items(f"{base}/replicasets")
            if one["metadata"]["ownerReferences"][0]["name"] == name]  # fmt: skip
    one = pool.client.get(f"{base}/deployments/{name}")
    return {**one, "makers": [each["metadata"] for each in sets]}


def job(pool: NodePool, name: str, parallelism: int = 2, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": name}},
                "spec": {**pool.spec(name), "restartPolicy": "Never"}}  # fmt: skip
    return pool.client.create(f"/apis/batch/v1/namespaces/{pool.space}/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **spec},
        "spec": {"parallelism": parallelism, "completions": 50, "template": template},
    })  # fmt: skip


def without_bookkeeping(document: Object) -> Object:
    """What an undo has to give back."""
    metadata = {name: value for name, value in document["metadata"].items()
                if name not in BOOKKEEPING and value}  # fmt: skip
    return {"metadata": metadata, "spec": document["spec"]}


def foreign_writes(audit: AuditLog, mark: int, user: str, *spaces: str) -> list[Request]:
    """What it wrote in namespaces, Events apart, and on objects of none that are not our own."""
    return [
        one for one in audit.since(mark)
        if one.user == user and one.is_write and one.status < 300 and one.namespace in (*spaces, "")
        and not one.resource.endswith(f".{OWN_GROUP}")
        and one.resource not in ("events.events.k8s.io", "leases.coordination.k8s.io")
    ]  # fmt: skip


def event_reasons(client: ApiClient, space: str) -> set[str]:
    return {one.get("reason", "") for one in
            client.items(f"/apis/events.k8s.io/v1/namespaces/{space}/events")}  # fmt: skip


def is_marked(client: ApiClient, path: str) -> bool:
    metadata = client.get(path)["metadata"]
    label = CHANGED_BY_LABEL in metadata.get("labels", {})
    return label or CHANGES_ANNOTATION in metadata.get("annotations", {})
