"""The actor as it runs in a pod: a process of its own, an account of its own, nothing more."""

import time
from pathlib import Path

from tests.cluster.api_client import ApiClient, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.observer_process import INSTALLED, ObserverProcess, create, ready_for_observers
from tests.cluster.rendered_manifests import documents

from seawall.cluster.objects.api_group import (
    API_VERSION,
    CLUSTER_POLICY,
    WORKLOAD_QUARANTINE,
    path_of,
)

ACTOR_ACCOUNT = "seawall-actor"


def ready_for_actors(client: ApiClient) -> None:
    """As for observers, with the actor's rights and fences besides."""
    ready_for_observers(client)
    for document in documents():
        name = document["metadata"]["name"]
        if document["kind"] in INSTALLED and name.startswith(ACTOR_ACCOUNT):
            create(client, INSTALLED[document["kind"]], document)
    for document in rights():
        create(client, INSTALLED[document["kind"]], document)


def rights() -> list[Object]:
    """What the actor needs; where the manifests have it, theirs stands."""
    read, change = ["get", "list", "watch"], ["get", "list", "patch"]
    rules = [
        ([""], ["pods"], [*change, "delete"]), ([""], ["nodes"], [*read, "patch"]),
        (["events.k8s.io"], ["events"], ["create"]),
        (["seawall.internal"], ["workloadquarantines"], [*read, "patch", "delete"]),
        (["seawall.internal"], ["seawallpolicies", "nodereports", "nodedeaths"], read),
        (["seawall.internal"], ["workloadquarantines/status", "seawallpolicies/status"], ["patch"]),
        (["batch"], ["jobs", "cronjobs"], change),
        (["apps"], ["deployments", "statefulsets", "replicasets"], change),
        (["jobset.x-k8s.io"], ["jobsets"], change), (["kueue.x-k8s.io"], ["workloads"], change),
        (["ray.io"], ["rayjobs"], change), (["argoproj.io"], ["workflows"], change),
    ]  # fmt: skip
    version = "rbac.authorization.k8s.io/v1"
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
             "verbs": ["get", "create", "update"]}  # fmt: skip
    return [
        {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": ACTOR_ACCOUNT},
         "rules": [{"apiGroups": groups, "resources": resources, "verbs": verbs}
                   for groups, resources, verbs in rules]},
        {"apiVersion": version, "kind": "Role", "metadata": {"name": ACTOR_ACCOUNT},
         "rules": [lease]},
    ]  # fmt: skip


def set_policy(client: ApiClient, approval: str = "auto", **actions: object) -> None:
    """Of the whole cluster, written anew; no dry run unless ``dryRun`` says so."""
    body = {"dryRun": False, "approval": approval, **actions}
    policy = {"apiVersion": API_VERSION, "kind": CLUSTER_POLICY.kind,
              "metadata": {"name": "default"}, "spec": {"actions": body}}  # fmt: skip
    create(client, path_of(CLUSTER_POLICY), policy)
    client.patch(path_of(CLUSTER_POLICY, "default"), {"spec": {"brake": False, "actions": None}})
    client.patch(path_of(CLUSTER_POLICY, "default"), {"spec": {"actions": body}})


def convict(
    client: ApiClient, owner: Object, nodes: tuple[str, ...], *, verdict: str = "convicted",
    proved: int = 0, state: str = "Proposed", mode: str = "tell", life_seconds: float = 3600.0,
    **status: object,
) -> str:  # fmt: skip
    """A quarantine of that owner as the observer writes it; its name."""
    metadata = owner["metadata"]
    name = f"{metadata['name']}-{metadata['uid'][:8]}"
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + life_seconds))
    uids = [metadata["uid"], *(one["uid"] for one in owner.get("makers", ()))]
    client.create(path_of(WORKLOAD_QUARANTINE), {
        "apiVersion": API_VERSION, "kind": WORKLOAD_QUARANTINE.kind, "metadata": {"name": name},
        "spec": {
            "workload": {"namespace": metadata["namespace"], "kind": owner["kind"],
                         "name": metadata["name"]},
            "key": {"level": 1, "value": metadata["uid"]},
            "match": {"namespace": metadata["namespace"], "ownerUIDs": uids},
            "state": state, "mode": mode, "expiresAt": expires,
            "reason": f"{len(nodes)} nodes died with it",
        },
    })  # fmt: skip
    client.patch(path_of(WORKLOAD_QUARANTINE, name, status=True), {"status": {
        "verdict": verdict, "scoreLog10": 7.0, "thresholdLog10": 5.0, "nodes": list(nodes),
        "falsePerThousandNodeYears": 0.1, "proved": proved, **status,
    }})  # fmt: skip
    return name


class ActorProcess(ObserverProcess):
    """``with ActorProcess(plane, folder) as actor``."""

    role = ACTOR_ACCOUNT

    def __init__(self, plane: ControlPlane, folder: Path, account: str = ACTOR_ACCOUNT) -> None:
        super().__init__(plane, folder, account)

    def command(self, *more: str) -> list[str]:
        return super().command("--act", *more)
