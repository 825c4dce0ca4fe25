# SPDX-License-Identifier: Apache-2.0
"""Finds every object that carries our label, of all kinds that Seawall may change."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from seawall.cluster.changes.change_patch import label_of
from seawall.cluster.changes.changeable_kinds import (
    CHANGEABLE_KINDS,
    ChangeableKind,
)
from seawall.cluster.changes.object_change import (
    ChangeProblem,
    FieldRecord,
    ObjectAddress,
    field_records,
    object_address,
)
from seawall.cluster.kube.kube_client import KubeRefusal, Object, Query
from seawall.cluster.objects.api_group import (
    CHANGED_BY_LABEL,
    QUARANTINE_GATE,
)

_MESSAGE_LETTERS: Final = 200


class ListRequests(Protocol):
    """What is asked of the API; ``KubeClient`` is it."""

    def get(self, path: str, query: Query | None = None) -> Object:
        """One object, as it stands."""

    def items(self, path: str, query: Query | None = None) -> list[Object]:
        """All objects of a list."""


class ChangedObject(NamedTuple):
    """An object that carries our label."""

    address: ObjectAddress
    records: tuple[FieldRecord, ...]
    """Oldest first."""
    problem: str = ""
    """Why its record cannot be believed: nothing of it is undone."""
    label: str = ""
    """The quarantine that its label names."""

    @property
    def quarantines(self) -> frozenset[str]:
        """In whose names it was changed, or was to be."""
        names = frozenset(record.quarantine for record in self.records)
        return names or frozenset({self.label} - {""})


class ChangeSearch(NamedTuple):
    """What was found."""

    objects: tuple[ChangedObject, ...]
    unseen: tuple[str, ...]
    """Kinds that could not be listed, and why."""


def changed_objects(client: ListRequests, quarantine: str = "") -> ChangeSearch:
    """Changed by that quarantine; empty: by any.  Kinds that the server does not have are passed
    over.  KubeUnreachable; what may not be listed stands in ``unseen``.
    """
    objects: list[ChangedObject] = []
    unseen: list[str] = []
    for kind in served_kinds(client):
        try:
            items = client.items(_list_path(kind), {"labelSelector": CHANGED_BY_LABEL})
        except KubeRefusal as refusal:
            if refusal.status != 404:
                unseen.append(f"{kind.plural}: {str(refusal)[:_MESSAGE_LETTERS]}")
            continue
        found = (changed_object(item, kind) for item in items)
        objects += [
            one
            for one in found
            if one is not None and (not quarantine or one.problem or quarantine in one.quarantines)
        ]
    return ChangeSearch(tuple(objects), tuple(unseen))


def changed_object(document: Object, kind: ChangeableKind) -> ChangedObject | None:
    """None: it has no name by which it could be asked for."""
    try:
        address = object_address(document, kind)
    except ChangeProblem:
        return None
    try:
        return ChangedObject(address, field_records(document, kind), "", label_of(document))
    except ChangeProblem as problem:
        return ChangedObject(address, (), str(problem))


def gated_pods(client: ListRequests) -> list[Object]:
    """Pods that wait because of our gate, as the API gives them.  KubeProblem."""
    pods = client.items("/api/v1/pods", {"fieldSelector": "spec.nodeName="})
    return [pod for pod in pods if QUARANTINE_GATE in _gates(pod)]


def served_kinds(client: ListRequests) -> Iterator[ChangeableKind]:
    """Those whose group the server has, in the version that it prefers.  KubeProblem."""
    versions = {"": "v1"}
    for group in client.get("/apis").get("groups") or ():
        if isinstance(group, dict):
            preferred = (group.get("preferredVersion") or {}).get("version")
            versions[str(group.get("name"))] = str(preferred)
    for kind in CHANGEABLE_KINDS:
        if kind.group in versions:
            yield kind._replace(version=versions[kind.group])


def _list_path(kind: ChangeableKind) -> str:
    return f"{'/apis' if kind.group else '/api'}/{kind.api_version}/{kind.plural}"


def _gates(pod: Object) -> Iterable[str]:
    gates = (pod.get("spec") or {}).get("schedulingGates") or ()
    return [str(gate.get("name")) for gate in gates if isinstance(gate, dict)]
