"""Kinds of other projects, bare: their definitions without the controllers behind them."""

from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.waiting import wait_until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1/namespaces/{}/workloads"
RAYJOBS = "/apis/ray.io/v1/namespaces/{}/rayjobs"
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/{}/workflows"
KINDS = (
    ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
    ("kueue.x-k8s.io", "v1beta1", "Workload", "workloads"),
    ("ray.io", "v1", "RayJob", "rayjobs"), ("argoproj.io", "v1alpha1", "Workflow", "workflows"),
)  # fmt: skip


def install_foreign_kinds(client: ApiClient) -> None:
    """All four, served by the time this returns."""
    for group, version, kind, plural in KINDS:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        definition: Object = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}", "annotations": {
                "api-approved.kubernetes.io": "unapproved, a test",
            }},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [{"name": version, "served": True, "storage": True,
                              "schema": {"openAPIV3Schema": schema}}],
            },
        }  # fmt: skip
        try:
            client.create(DEFINITIONS, definition)
        except ApiError as problem:
            if problem.status != 409:
                raise
        path = f"/apis/{group}/{version}/{plural}"
        wait_until(lambda path=path: _is_served(client, path), 20, f"{path} is served")


def _is_served(client: ApiClient, path: str) -> bool:
    try:
        client.get(path, limit=1)
    except ApiError:
        return False
    return True
