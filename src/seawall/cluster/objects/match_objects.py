# SPDX-License-Identifier: Apache-2.0
"""Whether a pod, or the owner of pods, is what a quarantine's match means.

The admission policies of the chart (``packaging/chart/seawall/templates``) say the same in CEL, and
a test holds both to one table.  All that a match gives must agree; the documents are hostile.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from seawall.cluster.objects.workload_quarantine_object import WorkloadMatch


def meets_pod(match: WorkloadMatch, pod: Mapping[str, Any]) -> bool:
    """``pod``: its JSON, as of the API."""
    metadata, spec = _level(pod, "metadata"), _level(pod, "spec")
    if not _is_narrow(match) or metadata.get("namespace") != match.namespace:
        return False
    name = metadata.get("generateName") or metadata.get("name") or ""
    return (
        (not match.owner_uids or not _uids(metadata).isdisjoint(match.owner_uids))
        and str(name).startswith(match.generate_name_prefix)
        and _meets_template(match, metadata, spec)
    )


def meets_owner(match: WorkloadMatch, owner: Mapping[str, Any]) -> bool:
    """``owner``: JSON of a Deployment, Job, CronJob, JobSet, Workload, RayJob and their like.

    By its own uid or that of who owns it where the match has uids: its name and its pods' template
    are then of no account.  Else by the name, and one of its templates has to agree.
    """
    metadata = _level(owner, "metadata")
    if not _is_narrow(match) or metadata.get("namespace") != match.namespace:
        return False
    if match.owner_uids:
        return not _uids(metadata).isdisjoint(match.owner_uids)
    names = [metadata.get("name"), *(one.get("name") for one in _references(metadata))]
    if not any(f"{name}-".startswith(match.generate_name_prefix) for name in names if name):
        return False
    return any(
        _meets_template(match, _level(one, "metadata"), _level(one, "spec"))
        for one in _templates(_level(owner, "spec"))
    )


def _is_narrow(match: WorkloadMatch) -> bool:
    """It says more than a namespace, as the schema of the object asks for."""
    has_account = match.service_account not in ("", "default")
    return bool(
        match.owner_uids or match.generate_name_prefix or has_account or match.images
        or match.labels
    )  # fmt: skip


def _meets_template(
    match: WorkloadMatch, metadata: Mapping[str, Any], spec: Mapping[str, Any]
) -> bool:
    account = spec.get("serviceAccountName") or "default"
    if match.service_account and account != match.service_account:
        return False
    images = {str(one.get("image")) for one in _rows(spec, "containers")}
    labels = _level(metadata, "labels")
    return images.issuperset(match.images) and all(
        labels.get(name) == value for name, value in match.labels
    )


def _templates(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Of pods, wherever a kind has them."""
    if "template" in spec:
        yield _level(spec, "template")
    if "jobTemplate" in spec:
        yield _level(_level(_level(spec, "jobTemplate"), "spec"), "template")
    for row in _rows(spec, "replicatedJobs"):
        yield _level(_level(_level(row, "template"), "spec"), "template")
    for row in _rows(spec, "podSets"):
        yield _level(row, "template")
    ray = _level(spec, "rayClusterSpec")
    if "headGroupSpec" in ray:
        yield _level(_level(ray, "headGroupSpec"), "template")
    for row in _rows(ray, "workerGroupSpecs"):
        yield _level(row, "template")


def _uids(metadata: Mapping[str, Any]) -> set[str]:
    uids = [metadata.get("uid"), *(one.get("uid") for one in _references(metadata))]
    return {uid for uid in uids if isinstance(uid, str)}


def _references(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _rows(metadata, "ownerReferences")


def _level(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _rows(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = document.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
