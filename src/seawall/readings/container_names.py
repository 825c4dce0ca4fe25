# SPDX-License-Identifier: Apache-2.0
"""Names in what runtimes write down: log links, OCI and Docker configs, Podman's list.

Pure.  A name that its own system could never have given (Kubernetes: RFC 1123) is no name:
links and configs are only as true as whoever wrote them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from seawall.problems import ParseProblem

ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}\Z")
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = r"[a-z0-9][a-z0-9.-]{0,252}"
_UID: Final = r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}"
_LOG: Final = re.compile(
    rf"(?P<pod>{_DOMAIN})_(?P<ns>{_LABEL})_(?P<container>{_LABEL})-(?P<id>[0-9a-f]{{64}})\.log\Z"
)
_POD_LOGS: Final = re.compile(rf"(?P<ns>{_LABEL})_(?P<pod>{_DOMAIN})_(?P<uid>{_UID})\Z")
# What dockershim, cri-dockerd and CRI-O call a container: k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT.
_K8S_NAME: Final = re.compile(
    rf"k8s_(?P<container>{_LABEL}|POD)_(?P<pod>{_DOMAIN})_(?P<ns>{_LABEL})_(?P<uid>{_UID})_\d+\Z"
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\Z")
_FORMS: Final = {
    "container_id": ID,
    "name": _PLAIN_NAME,
    "namespace": re.compile(rf"{_LABEL}\Z"),
    "pod": re.compile(rf"{_DOMAIN}\Z"),
    "pod_uid": re.compile(rf"{_UID}\Z"),
    "container": re.compile(rf"{_LABEL}\Z"),
    "sandbox_id": ID,
}
# Annotations and labels of containerd's CRI, CRI-O, cri-dockerd and nerdctl, first one wins.
_ANNOTATIONS: Final = {
    "namespace": (
        "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace",
        "io.kubernetes.cri-o.Namespace",
    ),
    "pod": (
        "io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name", "io.kubernetes.cri-o.KubeName",
    ),
    "pod_uid": ("io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"),
    "container": ("io.kubernetes.cri.container-name", "io.kubernetes.container.name"),
    "sandbox_id": (
        "io.kubernetes.cri.sandbox-id", "io.kubernetes.cri-o.SandboxID", "io.kubernetes.sandbox.id",
    ),
    "name": ("nerdctl/name",),
}  # fmt: skip
_TYPES: Final = (
    "io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType",
    "io.kubernetes.docker.type",
)  # fmt: skip
_MANAGERS: Final = {"libpod": "podman", "cri-o": "cri-o"}
_SANDBOX_TYPES: Final = ("sandbox", "podsandbox")
_CGROUPS_PATH_MOST: Final = 4096


def from_log_link(name: str) -> dict[str, str] | None:
    """``POD_NAMESPACE_CONTAINER-ID.log`` in /var/log/containers; None for any other name."""
    match = _LOG.match(name)
    if match is None:
        return None
    return {
        "container_id": match["id"], "pod": match["pod"], "namespace": match["ns"],
        "container": match["container"],
    }  # fmt: skip


def from_pod_logs(name: str) -> tuple[str, str, str] | None:
    """(uid, namespace, pod) of ``NAMESPACE_POD_UID`` in /var/log/pods."""
    match = _POD_LOGS.match(name)
    return (match["uid"], match["ns"], match["pod"]) if match else None


def from_k8s_name(name: str) -> dict[str, str | bool]:
    """What a ``k8s_...`` name tells; the plain name otherwise; nothing for an absurd one."""
    name = name.removeprefix("/")
    if match := _K8S_NAME.match(name):
        told: dict[str, str | bool] = {
            "pod": match["pod"], "namespace": match["ns"], "pod_uid": match["uid"],
        }  # fmt: skip
        if match["container"] == "POD":
            return {**told, "is_sandbox": True}
        return {**told, "container": match["container"]}
    return {"name": name} if _PLAIN_NAME.match(name) else {}


def parse_config(data: bytes) -> dict[str, str | bool]:
    """An OCI config.json or a Docker config.v2.json, after the sieve."""
    document = _object(data)
    config = document.get("Config")
    labels = config.get("Labels") if isinstance(config, dict) else None
    told: dict[str, str | bool] = {}
    if isinstance(document.get("Name"), str):
        told |= from_k8s_name(document["Name"])
    for words in (labels, document.get("annotations")):
        if isinstance(words, dict):
            told |= _from_annotations(words)
    linux = document.get("linux")
    path = linux.get("cgroupsPath") if isinstance(linux, dict) else None
    if isinstance(path, str) and 0 < len(path) <= _CGROUPS_PATH_MOST:
        told["cgroups_path"] = path
    return told


def parse_state(data: bytes) -> dict[str, str | bool]:
    """A runc or crun state.json after the sieve: the folder of its memory cgroup."""
    paths = _object(data).get("cgroup_paths")
    if not isinstance(paths, dict):
        return {}
    folder = paths.get("memory") or paths.get("")
    return {"cgroup_folder": folder} if isinstance(folder, str) else {}


def parse_containers(data: bytes) -> dict[str, dict[str, str | bool]]:
    """containers.json of containers/storage (Podman, CRI-O): id -> what its name tells."""
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "a JSON list of containers", data) from error
    if not isinstance(rows, list):
        raise ParseProblem(0, "a JSON list of containers", data)
    found: dict[str, dict[str, str | bool]] = {}
    for row in rows:
        if not isinstance(row, dict):
            continue
        key, names = row.get("id"), row.get("names")
        if not isinstance(key, str) or not ID.match(key) or not isinstance(names, list):
            continue
        name = next((name for name in names if isinstance(name, str)), "")
        found[key] = from_k8s_name(name)
    return found


def _from_annotations(words: Mapping[Any, Any]) -> dict[str, str | bool]:
    told: dict[str, str | bool] = {}
    for field, keys in _ANNOTATIONS.items():
        for key in keys:
            value = words.get(key)
            if isinstance(value, str) and _FORMS[field].match(value):
                told[field] = value
                break
    manager = words.get("io.container.manager")
    if isinstance(manager, str) and manager in _MANAGERS:
        told["runtime"] = _MANAGERS[manager]
    if any(words.get(key) in _SANDBOX_TYPES for key in _TYPES):
        told["is_sandbox"] = True
        told.pop("container", None)  # CRI-O and Docker call it POD
    return told


def _object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "a JSON object", data) from error
    if not isinstance(document, dict):
        raise ParseProblem(0, "a JSON object", data)
    return document
