"""Whether all that an actor changed is as it was before: of whole namespaces, by uid."""

import json
import os
import subprocess
import sys

from tests.cluster.acted_scene import without_bookkeeping
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.observer_process import REPOSITORY

from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    CHANGES_ANNOTATION,
    QUARANTINE_GATE,
)

PARTS = (
    "/apis/apps/v1/namespaces/{}/deployments", "/apis/apps/v1/namespaces/{}/replicasets",
    "/apis/batch/v1/namespaces/{}/jobs", "/api/v1/namespaces/{}/pods",
)  # fmt: skip
OF_THE_CORE = ("deletionTimestamp", "deletionGracePeriodSeconds")
JOB_TRACKING = "batch.kubernetes.io/job-tracking"
Objects = dict[str, Object]


def standing(client: ApiClient, space: str) -> Objects:
    """Of one namespace each workload and pod, by uid, without what the core counts in it."""
    found = {}
    for path in PARTS:
        for document in client.items(path.format(space)):
            whole = without_bookkeeping(document)
            for name in OF_THE_CORE:
                whole["metadata"].pop(name, None)
            whole["metadata"].get("annotations", {}).pop(JOB_TRACKING, None)
            others = [one for one in whole["metadata"].pop("finalizers", []) if one != JOB_TRACKING]
            whole["metadata"]["finalizers"] = others
            found[document["metadata"]["uid"]] = whole
    return found


def differences(before: Objects, now: Objects) -> list[str]:
    """Of what is there still, in words."""
    return sorted(words(before[uid], now[uid]) for uid in before.keys() & now.keys()
                  if now[uid] != before[uid])  # fmt: skip


def words(before: Object, now: Object) -> str:
    parts = [
        f"{part}.{name}: {json.dumps(before[part].get(name))} {json.dumps(now[part].get(name))}"
        for part in ("metadata", "spec") for name in sorted({*now[part], *before[part]})
        if now[part].get(name) != before[part].get(name)
    ]  # fmt: skip
    return f"{now['metadata']['name']} {'; '.join(parts)}"


def marks(objects: Objects) -> list[str]:
    """Objects that bear a label, a record or a gate of ours."""
    found = []
    for one in objects.values():
        metadata = one["metadata"]
        label = CHANGED_BY_LABEL in metadata.get("labels", {})
        record = CHANGES_ANNOTATION in metadata.get("annotations", {})
        if label or record or is_gated(one):
            found.append(str(metadata["name"]))
    return sorted(found)


def is_gated(pod: Object) -> bool:
    return {"name": QUARANTINE_GATE} in pod["spec"].get("schedulingGates", [])


def undo_all(plane: ControlPlane) -> subprocess.CompletedProcess[str]:
    """As a person does it, by the program."""
    config = str(plane.kubeconfig("admin"))
    line = [sys.executable, "-m", "seawall", "cluster", "undo", "--all", "--kubeconfig", config]
    return subprocess.run(
        [*line, "--json"], cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
