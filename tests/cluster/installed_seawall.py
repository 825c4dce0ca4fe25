"""Seawall's plain manifests on a control plane of their own, with nodes whose agents run."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.helm_build import build
from tests.cluster.kwok_nodes import Hardware, KwokNodes
from tests.cluster.rendered_manifests import (
    ACTOR,
    MUTATING,
    MUTATING_FILE,
    NAMESPACE,
    documents,
    parts,
)
from tests.cluster.waiting import wait_until

APPLY = "application/apply-patch+yaml"
GPU = Hardware(labels={"nvidia.com/gpu.present": "true"})
SYSTEM = Hardware(pool="system")
POLICY_SECONDS = 30


@dataclass
class InstalledSeawall:
    """Two GPU nodes and two others; accounts are asked for by name."""

    plane: ControlPlane
    admin: ApiClient
    gpu_nodes: list[str]
    other_nodes: list[str]

    @contextlib.contextmanager
    def agent(self, node: str) -> Iterator[ApiClient]:
        """With a token as the kubelet gets it for the agent's pod on that node."""
        (pod,) = pods_of(self.admin, "seawall-agent", node)
        with self.account("seawall-agent", pod) as client:
            yield client

    @contextlib.contextmanager
    def account(self, name: str, pod: Object | None = None) -> Iterator[ApiClient]:
        """``pod``: the one that the token is made for; without it the token names no node."""
        spec: Object = {"expirationSeconds": 600}
        if pod is not None:
            meta = pod["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"],
            }  # fmt: skip
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token"
        made = self.admin.create(
            path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        )
        token = made["status"]["token"]
        with ApiClient(self.plane.port, str(self.plane.folder / "tls.crt"), token) as client:
            yield client


@contextlib.contextmanager
def installed(
    program: Path, kwok: Path, *, with_actor: bool = False, actor_values: Sequence[str] = ()
) -> Iterator[InstalledSeawall]:
    """Ready when the pods run and the policies answer.  ``actor_values``: as helm renders the chart
    with them, instead of what is committed.
    """
    with (
        ControlPlane(program, kwok=kwok) as plane,
        KwokNodes(plane) as nodes,
        plane.client() as admin,
    ):
        found = InstalledSeawall(
            plane, admin, nodes.add(2, GPU, "gpu"), nodes.add(2, SYSTEM, "sys")
        )
        added = actor_documents(admin, actor_values) if with_actor else []
        for document in [*documents(), *added]:
            apply(admin, document)
        whole = [*found.gpu_nodes, *found.other_nodes]
        wait_until(
            lambda: all(len(pods_of(admin, "seawall-agent", node)) == 1 for node in whole),
            60, "an agent on each node",
        )  # fmt: skip
        with found.agent(whole[0]) as agent, found.account("seawall-observer") as observer:
            wait_until(
                lambda: refuses(agent, f"/api/v1/nodes/{whole[1]}/status", {"status": {}}),
                POLICY_SECONDS, "the agent's policies answer",
            )  # fmt: skip
            wait_until(
                lambda: refuses_a_quarantine(observer),
                POLICY_SECONDS, "the observer's policies answer",
            )  # fmt: skip
        if with_actor:
            with found.account("seawall-actor") as actor:
                wait_until(
                    lambda: refuses(actor, f"/api/v1/nodes/{whole[0]}",
                                    {"metadata": {"labels": {"a": "b"}}}),
                    POLICY_SECONDS, "the actor's policies answer",
                )  # fmt: skip
        time.sleep(1)  # all of them are read at once, and compiled one by one
        yield found


def actor_documents(admin: ApiClient, values: Sequence[str]) -> list[Object]:
    """Those that this server can take."""
    served = admin.get("/apis/admissionregistration.k8s.io/v1")["resources"]
    mutates = any(one["kind"] == "MutatingAdmissionPolicy" for one in served)
    if values:
        flags = [flag for value in ("actor.enabled=true", *values) for flag in ("--set", value)]
        texts = parts(build(), *flags, *(("--api-versions", MUTATING) if mutates else ()))
        return [yaml.safe_load(text) for text in texts]
    return [
        one for path in sorted(ACTOR.glob("*.yaml")) if mutates or path.name != MUTATING_FILE
        for one in documents(path.parent, path.name)
    ]  # fmt: skip


def refuses(client: ApiClient, path: str, body: Object) -> bool:
    try:
        client.request("PATCH", path, body, kind="application/merge-patch+json", dryRun="All")
    except ApiError as problem:
        return "ValidatingAdmissionPolicy" in str(problem)
    return False


def refuses_a_quarantine(client: ApiClient) -> bool:
    body = {
        "apiVersion": "seawall.internal/v1alpha1", "kind": "WorkloadQuarantine",
        "metadata": {"name": "probe"},
        "spec": {"match": {"namespace": "a", "serviceAccount": "b"}, "state": "Active",
                 "mode": "gate", "expiresAt": "2020-01-01T00:00:00Z"},
    }  # fmt: skip
    try:
        client.request("POST", "/apis/seawall.internal/v1alpha1/workloadquarantines", body,
                       dryRun="All")  # fmt: skip
    except ApiError as problem:
        return "ValidatingAdmissionPolicy" in str(problem)
    return False


def pods_of(admin: ApiClient, name: str, node: str = "") -> list[Object]:
    """Running ones of one of our workloads."""
    query = {"labelSelector": f"app.kubernetes.io/name={name}"}
    if node:
        query["fieldSelector"] = f"spec.nodeName={node}"
    found = admin.items(f"/api/v1/namespaces/{NAMESPACE}/pods", **query)
    return [pod for pod in found if pod["status"].get("phase") == "Running"]


def apply(admin: ApiClient, document: Object, **query: object) -> Object:
    """As `kubectl apply --server-side`; waits until its kind is served."""
    wait_until(lambda: path_of(admin, document) is not None, 20, f"{document['kind']} is served")
    path = path_of(admin, document)
    assert path is not None
    return admin.request("PATCH", path, document, kind=APPLY, fieldManager="test", force="true",
                         **query)  # fmt: skip


def path_of(admin: ApiClient, document: Object) -> str | None:
    """By what the server says that it serves; None where it does not know the kind."""
    version = document["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        served = admin.get(base)["resources"]
    except ApiError as problem:
        if problem.status == 404:
            return None
        raise
    for one in served:
        if one["kind"] == document["kind"] and "/" not in one["name"]:
            space = document["metadata"].get("namespace")
            middle = f"/namespaces/{space}" if one["namespaced"] else ""
            return f"{base}{middle}/{one['name']}/{document['metadata']['name']}"
    return None
