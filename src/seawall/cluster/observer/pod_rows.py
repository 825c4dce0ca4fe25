# SPDX-License-Identifier: Apache-2.0
"""Pods as slim rows: what tells whose a pod is, and by what it is known again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from seawall.cluster.judge.workload_keys import PodIdentity

_MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCE: Final = "kubernetes.io/config.source"
_LABELS_MOST: Final = 16


class OwnerReference(NamedTuple):
    """The controller above an object."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class NodePod:
    """What is kept of a pod."""

    uid: str
    name: str
    namespace: str
    node: str
    owner: OwnerReference | None
    is_static: bool
    """The kubelet of its node made it: a static or mirror pod, or one that its Node owns."""
    is_ending: bool
    """It is being deleted; on a dead node that never ends."""
    phase: str
    is_disrupted: bool
    """Something outside the pod ended it: eviction, its node's death."""
    identity: PodIdentity
    """Without its root owner, which no pod says."""
    generate_name: str
    images: tuple[str, ...]
    """As written, by which a policy of admission can know it."""
    labels: tuple[tuple[str, str], ...]


class PodPage(NamedTuple):
    """One page of a list of pods."""

    pods: tuple[NodePod, ...]
    position: str
    """Where the next page begins; empty: it was the last."""


def pod_page(data: bytes) -> PodPage:
    """Of the JSON of a PodList.  ValueError: it is none."""
    try:
        page = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"no list of pods: {problem}") from problem
    return PodPage(tuple(_row(pod) for pod in page.items or ()), page.metadata.position or "")


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = False


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str | None = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None


class _Variable(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    resources: _Resources | None = None
    restart_policy: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = ""
    service_account_name: str | None = ""
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    volumes: list[dict[str, msgspec.Raw]] | None = None


class _ContainerStatus(msgspec.Struct, rename={"image_id": "imageID"}):
    image_id: str | None = ""


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str | None = ""
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


class _ListMetadata(msgspec.Struct, rename={"position": "continue"}):
    position: str | None = ""


class _PodList(msgspec.Struct):
    metadata: _ListMetadata
    items: list[_Pod] | None = None


_DECODER: Final = msgspec.json.Decoder(_PodList)


def owner_of(references: list[Any] | None) -> OwnerReference | None:
    """Of ``ownerReferences`` as plain JSON the one that controls; None: it is its own root."""
    for one in references if isinstance(references, list) else ():
        if isinstance(one, Mapping) and one.get("controller") is True:
            return OwnerReference(
                str(one.get("apiVersion", "")), str(one.get("kind", "")),
                str(one.get("name", "")), str(one.get("uid", "")),
            )  # fmt: skip
    return None


def _row(pod: _Pod) -> NodePod:
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    owner = next(
        (
            OwnerReference(one.api_version, one.kind, one.name, one.uid)
            for one in metadata.owner_references or ()
            if one.controller
        ),
        None,
    )
    annotations = metadata.annotations or {}
    source = annotations.get(_SOURCE, "api")
    is_of_node = any(one.kind == "Node" for one in metadata.owner_references or ())
    labels = sorted((metadata.labels or {}).items())[:_LABELS_MOST]
    return NodePod(
        uid=metadata.uid, name=metadata.name, namespace=metadata.namespace,
        node=spec.node_name or "", owner=owner,
        is_static=_MIRROR in annotations or source != "api" or is_of_node,
        is_ending=metadata.deletion_timestamp is not None, phase=status.phase or "",
        is_disrupted=any(
            one.type == "DisruptionTarget" and one.status == "True"
            for one in status.conditions or ()
        ),
        identity=_identity(pod), generate_name=metadata.generate_name or "",
        images=tuple(dict.fromkeys(one.image for one in spec.containers or ())),
        labels=tuple(labels),
    )  # fmt: skip


def _identity(pod: _Pod) -> PodIdentity:
    spec, status = pod.spec, pod.status
    # An init container that restarts is a sidecar; the others ended before the pod ran.
    sidecars = [one for one in spec.init_containers or () if one.restart_policy == "Always"]
    containers = [*(spec.containers or ()), *sidecars]
    statuses = [*(status.container_statuses or ())]
    if sidecars:
        statuses += status.init_container_statuses or ()
    digests = (str(one.image_id or "").rpartition("@")[2] for one in statuses)
    resources = [
        (f"{number}.{sort}.{name}", str(amount))
        for number, one in enumerate(containers)
        if one.resources is not None
        for sort, amounts in (("r", one.resources.requests), ("l", one.resources.limits))
        for name, amount in (amounts or {}).items()
    ]
    return PodIdentity(
        namespace=pod.metadata.namespace, root_owner_uid="", root_owner_name="",
        image_digests=tuple(digest for digest in digests if digest),
        commands=tuple((*(one.command or ()), *(one.args or ())) for one in containers),
        environment_names=tuple(
            variable.name for one in containers for variable in one.env or ()
        ),
        volume_kinds=tuple(
            kind for volume in spec.volumes or () for kind in volume if kind != "name"
        ),
        resources=tuple(resources), service_account=spec.service_account_name or "",
    )  # fmt: skip
