"""The actor as it runs in a pod: a process of its own, an account of its own, nothing more."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import yaml
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.background_loop import BackgroundLoop
from tests.cluster.control_plane import ControlPlane
from tests.cluster.helm_build import build
from tests.cluster.observer_process import (
    NAMESPACE,
    RBAC,
    ObserverProcess,
    create,
    ready_for_observers,
)
from tests.cluster.rendered_manifests import ACTOR, MUTATING, documents, template

from seawall.cluster.kube.kube_client import ClusterAccess, KubeClient, KubeProblem
from seawall.cluster.objects.api_group import (
    API_VERSION,
    CLUSTER_POLICY,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.cluster.objects.workload_quarantine_object import workload_quarantine_object
from seawall.cluster.observer.in_force_map import InForceMap

ACTOR_ACCOUNT = "seawall-actor"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PLACES = {
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "ClusterRole": f"{RBAC}/clusterroles", "Role": f"{RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
}  # fmt: skip


def ready_for_actors(client: ApiClient) -> None:
    """As for observers, with the actor's rights, its fences and the policies of new pods."""
    ready_for_observers(client)
    install_actor(client)


def install_actor(client: ApiClient) -> None:
    """What of the chart's actor is no program."""
    for path, document in actor_objects(client):
        create(client, path, document)


def uninstall_actor(client: ApiClient) -> None:
    """As ``helm uninstall`` does it: our kinds and their objects stay."""
    for path, document in actor_objects(client):
        with contextlib.suppress(ApiError):
            client.delete(f"{path}/{document['metadata']['name']}")


def actor_objects(client: ApiClient) -> Iterator[tuple[str, Object]]:
    """Each with the path of its kind, of those that this server knows."""
    served = {one["name"] for one in client.get(ADMISSION)["resources"]}
    for document in documents(ACTOR):
        kind, name = document["kind"], document["metadata"]["name"]
        assert name.startswith("seawall-")
        plural = (
            f"{kind.lower().removesuffix('y')}ies" if kind.endswith("y") else f"{kind.lower()}s"
        )
        if kind in PLACES:
            yield PLACES[kind], document
        elif plural in served:
            yield f"{ADMISSION}/{plural}", document


class InForceWriter(BackgroundLoop):
    """Writes the map of quarantines as the observer does, for tests that have none: what they
    accuse no observer would.
    """

    def __init__(self, plane: ControlPlane) -> None:
        access = ClusterAccess(
            f"https://127.0.0.1:{plane.port}", ca_file=str(plane.folder / "tls.crt"),
            token=plane.tokens["admin"],
        )  # fmt: skip
        self.client = KubeClient(access, per_second=50.0)
        super().__init__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.client.close()

    def run(self) -> None:
        in_force = InForceMap(self.client, NAMESPACE)
        while not self.ended.wait(0.5):
            with contextlib.suppress(KubeProblem):
                items = self.client.items(path_of(WORKLOAD_QUARANTINE))
                in_force.write(map(workload_quarantine_object, items))


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


class PooledActorProcess(ActorProcess):
    """In a cluster of ten pools that stand for ten clusters: its storm brake wants as many more."""

    def command(self, *more: str) -> list[str]:
        words = super().command(*more)
        return ["tests.cluster.pooled_actor" if word == "seawall" else word for word in words]


@contextlib.contextmanager
def opted_in(client: ApiClient, *values: str) -> Iterator[None]:
    """Rights and fences as the chart renders them with these values, for as long as this lasts."""
    arguments = [word for value in values for word in ("--set", value)]
    whole = template(build(), "--set", "actor.enabled=true", "--api-versions", MUTATING, *arguments)
    wanted = [one for one in yaml.safe_load_all(whole) if one is not None]
    _patch(client, wanted)
    time.sleep(2)  # until the API server's own watches have heard of it
    try:
        yield
    finally:
        _patch(client, documents(ACTOR))


def _patch(client: ApiClient, wanted: list[Object]) -> None:
    for one in wanted:
        name = one["metadata"]["name"]
        if not name.startswith(ACTOR_ACCOUNT):
            continue
        if one["kind"] == "ClusterRole":
            client.patch(f"{PLACES['ClusterRole']}/{name}", {"rules": one["rules"]})
        elif one["kind"] == "ValidatingAdmissionPolicy":
            path = f"{ADMISSION}/validatingadmissionpolicies/{name}"
            client.patch(path, {"spec": one["spec"]})
