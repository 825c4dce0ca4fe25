# SPDX-License-Identifier: Apache-2.0
"""The workload that a person names: its object, its living pods, and what a quarantine compares.

A match is as fine as admission can compare it, and never wider than the workload itself where the
API gives a way to say so: by the labels that its own selector counts its pods by, or by uid.
"""

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.acts.act_desk import short
from seawall.cluster.changes.changed_objects import served_kinds
from seawall.cluster.kube.kube_client import KubeClient, KubeRefusal, Object
from seawall.cluster.objects.match_objects import meets_pod
from seawall.cluster.objects.workload_quarantine_object import (
    WorkloadMatch,
    WorkloadName,
    WorkloadQuarantineObject,
)
from seawall.problems import UsageProblem

PODS_MOST: Final = 5000
"""Of one namespace; of more is said that they were not counted."""
JOB_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
JOB_SET_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
_SHORT_NAMES: Final = {
    "deploy": "Deployment", "sts": "StatefulSet", "rs": "ReplicaSet", "ds": "DaemonSet",
    "cj": "CronJob", "po": "Pod", "wf": "Workflow",
}  # fmt: skip
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_MOST: Final = 63
_OTHER_KINDS: Final = {"daemonset": ("DaemonSet", "apps/v1", "daemonsets")}
_ENDED: Final = ("Succeeded", "Failed")
_EXPECTED: Final = "expected NAMESPACE/KIND/NAME, ml/deployment/trainer say"


@dataclass(frozen=True, slots=True)
class WorkloadTarget:
    """An object that makes pods, or a pod of its own, and the pods that it has now."""

    name: WorkloadName
    api_version: str
    uid: str
    document: Object
    match: WorkloadMatch
    pods: tuple[Object, ...]
    """That live: neither ended nor being deleted."""
    unseen: str = ""
    """Why not all pods are counted."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Of its living pods, each once."""
        names = {str((pod.get("spec") or {}).get("nodeName") or "") for pod in self.pods}
        return tuple(sorted(names - {""}))


def workload_name_of(words: str) -> WorkloadName:
    """``ml/deployment/trainer``; kinds in any case, short ones too.  UsageProblem."""
    parts = words.split("/")
    if len(parts) != 3 or not all(parts):
        raise UsageProblem(f"{words!r}: {_EXPECTED}")
    namespace, kind, name = parts
    for part in (namespace, name):
        if _NAME.fullmatch(part) is None:
            raise UsageProblem(f"{part!r} is no name of an object: {_EXPECTED}")
    kind = kind.partition(".")[0]
    return WorkloadName(namespace, _SHORT_NAMES.get(kind.lower(), kind), name)


def read_target(client: KubeClient, words: str) -> WorkloadTarget:
    """As it stands now.  UsageProblem: there is none, or of a kind that has no pods that we know;
    KubeProblem.
    """
    wanted = workload_name_of(words)
    kind, api_version, plural = _served(client, wanted.kind)
    root = "/apis" if "/" in api_version else "/api"
    path = f"{root}/{api_version}/namespaces/{wanted.namespace}/{plural}/{wanted.name}"
    try:
        document = client.get(path)
    except KubeRefusal as refusal:
        if refusal.status == 404:
            raise UsageProblem(
                f"no {kind} {wanted.name} in namespace {wanted.namespace}: seawall cluster "
                "suspects lists those that are suspected"
            ) from None
        raise UsageProblem(f"{kind} {wanted.namespace}/{wanted.name}: {short(refusal)}") from None
    name = WorkloadName(wanted.namespace, kind, wanted.name)
    metadata = document.get("metadata") or {}
    uid = str(metadata.get("uid", ""))
    match = target_match(name, uid, document)
    pods, unseen = living_pods(client, match)
    return WorkloadTarget(name, api_version, uid, document, match, pods, unseen)


def target_match(name: WorkloadName, uid: str, document: Mapping[str, Any]) -> WorkloadMatch:
    """By its selector where it has one, by its uid where its pods carry that, else by what its
    controller writes on them; of a CronJob by name and images of its pods.
    """
    spec = document.get("spec") or {}
    labels = dict((spec.get("selector") or {}).get("matchLabels") or {})
    if name.kind in ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet") and labels:
        return WorkloadMatch(name.namespace, labels=tuple(sorted(labels.items())))
    if name.kind == "JobSet" and len(name.name) <= _LABEL_MOST:
        return WorkloadMatch(name.namespace, labels=((JOB_SET_LABEL, name.name),))
    if name.kind == "CronJob":
        template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
        inner = template.get("spec") or {}
        images = [str(one.get("image")) for one in inner.get("containers") or ()]
        marks = dict((template.get("metadata") or {}).get("labels") or {})
        return WorkloadMatch(
            name.namespace, generate_name_prefix=f"{name.name}-",
            images=tuple(dict.fromkeys(images)), labels=tuple(sorted(marks.items())),
        )  # fmt: skip
    return WorkloadMatch(name.namespace, (uid,))


def living_pods(client: KubeClient, match: WorkloadMatch) -> tuple[tuple[Object, ...], str]:
    """Those that the match means, and why not all were counted.  KubeUnreachable."""
    namespace = urllib.parse.quote(match.namespace, safe="")
    query = {}
    if match.labels:
        query["labelSelector"] = ",".join(f"{name}={value}" for name, value in match.labels)
    pods: list[Object] = []
    seen = 0
    try:
        for page in client.pages(f"/api/v1/namespaces/{namespace}/pods", query):
            items = page.get("items") or ()
            seen += len(items)
            pods += [pod for pod in items if meets_pod(match, pod) and is_living(pod)]
            if seen > PODS_MOST:
                return tuple(pods), f"more than {PODS_MOST} pods of {match.namespace}"
    except KubeRefusal as refusal:
        return (), short(refusal)
    return tuple(pods), ""


def is_living(pod: Mapping[str, Any]) -> bool:
    """It may run, or run again: neither ended nor being deleted."""
    is_ending = "deletionTimestamp" in (pod.get("metadata") or {})
    return not is_ending and (pod.get("status") or {}).get("phase") not in _ENDED


def quarantines_of(
    rows: Mapping[str, WorkloadQuarantineObject], name: WorkloadName
) -> Iterator[WorkloadQuarantineObject]:
    """Those of that workload."""
    for one in rows.values():
        if one.workload == name:
            yield one


def _served(client: KubeClient, kind: str) -> tuple[str, str, str]:
    """Kind as it is spelled, its group and version, its plural.  UsageProblem."""
    wanted = kind.lower()
    if wanted in _OTHER_KINDS:
        return _OTHER_KINDS[wanted]
    for one in served_kinds(client):
        if wanted in (one.kind.lower(), one.plural):
            return one.kind, one.api_version, one.plural
    raise UsageProblem(
        f"{kind!r} is no kind that can be quarantined here: {_EXPECTED}; Pod, Job, CronJob, "
        "Deployment, StatefulSet, JobSet and their like"
    )
