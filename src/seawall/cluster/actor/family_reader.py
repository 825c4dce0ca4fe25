# SPDX-License-Identifier: Apache-2.0
"""Reads the family of a quarantine: its pods, and the owners that make them.

No pod is watched.  The pods of one namespace are listed, by the owner's own labels where the match
names that owner; of owners those are asked for that the pods name, and the one that the quarantine
names.
"""

import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, Final

from seawall.cluster.actor.family_pods import FamilyPod, family_pod
from seawall.cluster.actor.family_view import FamilyOwner, WorkloadFamily
from seawall.cluster.actor.owner_switches import (
    KUEUE_GROUP,
    OwnerSwitch,
    is_managed_by_kueue,
    switch_of,
)
from seawall.cluster.changes.change_patch import value_at
from seawall.cluster.changes.changeable_kinds import CHANGEABLE_KINDS, changeable_kind
from seawall.cluster.changes.changed_objects import served_kinds
from seawall.cluster.changes.object_change import (
    ChangeProblem,
    ObjectAddress,
    field_records,
    object_address,
)
from seawall.cluster.kube.kube_client import (
    KubeClient,
    KubeProblem,
    KubeRefusal,
    Object,
    steady_seconds,
)
from seawall.cluster.objects.match_objects import meets_owner, meets_pod
from seawall.cluster.objects.workload_quarantine_object import WorkloadQuarantineObject

PODS_MOST: Final = 10_000
"""Of one namespace: of more is said that they were not read."""
OWNERS_MOST: Final = 24
KINDS_KEEP_SECONDS: Final = 600.0
_PAGE: Final = 250
_SELECTORS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "Job")


class FamilyReader:
    """Asks the API server; one family at a time."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._versions: dict[str, str] = {}
        self._versions_until = 0.0

    def read(self, one: WorkloadQuarantineObject) -> WorkloadFamily:
        """As it stands.  KubeProblem: the pods cannot be listed."""
        unseen: list[str] = []
        documents: dict[str, Object] = {}
        self._ask_workload(one, documents, unseen)
        pods = self._pods(one, _selector(one, documents.values()), unseen)
        self._ask_owners(pods, one.match.namespace, documents, unseen)
        owners = self._owners(one, documents, unseen)
        return WorkloadFamily(tuple(pods), tuple(owners), tuple(unseen))

    def _pods(
        self, one: WorkloadQuarantineObject, selector: str, unseen: list[str]
    ) -> list[FamilyPod]:
        namespace = urllib.parse.quote(one.match.namespace, safe="")
        query = {"labelSelector": selector} if selector else {}
        pods: list[FamilyPod] = []
        seen = 0
        pages = self._client.pages(f"/api/v1/namespaces/{namespace}/pods", query, limit=_PAGE)
        for page in pages:
            items = [item for item in page.get("items") or () if isinstance(item, dict)]
            pods += [family_pod(item) for item in items if meets_pod(one.match, item)]
            seen += len(items)
            if seen >= PODS_MOST:
                unseen.append(f"pods of {one.match.namespace} beyond {PODS_MOST}")
                break
        return pods

    # --- owners --------------------------------------------------------------------------

    def _ask_workload(
        self, one: WorkloadQuarantineObject, documents: dict[str, Object], unseen: list[str]
    ) -> None:
        """By the name that the quarantine is for people, which is tried and not believed."""
        for kind in CHANGEABLE_KINDS:
            if kind.kind != one.workload.kind or kind.kind == "Pod":
                continue
            version = self._served_versions().get(kind.group)
            if version is not None:
                kind = kind._replace(version=version)
                address = ObjectAddress(kind, one.match.namespace, one.workload.name, "")
                self._ask(address, documents, unseen)

    def _ask_owners(
        self, pods: Iterable[FamilyPod], namespace: str, documents: dict[str, Object],
        unseen: list[str],
    ) -> None:  # fmt: skip
        """Up from each living pod."""
        waiting = [_reference(pod.owner) for pod in pods if pod.lives and pod.owner is not None]
        waiting += [one for document in list(documents.values()) for one in _above(document)]
        tried: set[str] = set()
        while waiting:
            version, kind_name, name, uid = waiting.pop()
            if uid in documents or uid in tried:
                continue
            tried.add(uid)
            kind = changeable_kind(kind_name, version)
            if kind is None or kind.kind == "Pod":
                continue
            if len(tried) > OWNERS_MOST:
                unseen.append(f"owners beyond {OWNERS_MOST}")
                return
            found = self._ask(ObjectAddress(kind, namespace, name, uid), documents, unseen)
            if found is not None:
                waiting += _above(found)

    def _ask(
        self, address: ObjectAddress, documents: dict[str, Object], unseen: list[str]
    ) -> Object | None:
        try:
            document = self._client.get(address.path)
        except ChangeProblem as problem:
            unseen.append(str(problem))
        except KubeRefusal as problem:
            if problem.status != 404:
                unseen.append(f"{address}: {problem.status} {problem.reason}")
        except KubeProblem as problem:
            unseen.append(f"{address}: {problem}")
        else:
            uid = str((document.get("metadata") or {}).get("uid") or "")
            if uid and address.uid in ("", uid):
                documents[uid] = document
                return document
        return None

    def _owners(
        self, one: WorkloadQuarantineObject, documents: Mapping[str, Object], unseen: list[str]
    ) -> Iterable[FamilyOwner]:
        """Those that have a switch, the topmost where that one makes what is below it anew."""
        for document in documents.values():
            version, kind = str(document.get("apiVersion")), str(document.get("kind"))
            switch = switch_of(version, kind)
            if switch is None or _is_finished(document) or not meets_owner(one.match, document):
                continue
            if any(_remakes(documents[uid]) for *_, uid in _above(document) if uid in documents):
                continue
            if is_managed_by_kueue(document):
                yield from self._workloads_of(document, switch, unseen)
            else:
                yield _owner(document, switch)

    def _workloads_of(
        self, document: Object, switch: OwnerSwitch, unseen: list[str]
    ) -> Iterable[FamilyOwner]:
        """Of Kueue; without one it cannot be stopped, for Kueue would start it again."""
        metadata = document["metadata"]
        version = self._served_versions().get(KUEUE_GROUP)
        found = False
        if version is not None:
            namespace = urllib.parse.quote(str(metadata.get("namespace")), safe="")
            path = f"/apis/{KUEUE_GROUP}/{version}/namespaces/{namespace}/workloads"
            active = switch_of(f"{KUEUE_GROUP}/{version}", "Workload")
            assert active is not None  # noqa: S101 - a row of the table
            try:
                items = self._client.items(path)
            except KubeProblem as problem:
                unseen.append(f"Kueue's workloads: {problem}")
                items = []
            for item in items:
                if metadata.get("uid") in {uid for *_, uid in _references(item)}:
                    found = True
                    whole = {"apiVersion": f"{KUEUE_GROUP}/{version}", "kind": "Workload", **item}
                    yield _owner(whole, active)
        if not found:
            words = "Kueue manages it, and its Workload is not to be found"
            yield _owner(document, switch, words)

    def _served_versions(self) -> Mapping[str, str]:
        """By group, asked for every ten minutes."""
        if steady_seconds() >= self._versions_until:
            kinds = list(served_kinds(self._client))
            self._versions = {kind.group: kind.version for kind in kinds}
            self._versions_until = steady_seconds() + KINDS_KEEP_SECONDS
        return self._versions


def _owner(document: Object, switch: OwnerSwitch, problem: str = "") -> FamilyOwner:
    address = object_address(document)
    value = value_at(document, switch.path)
    try:
        records = field_records(document, address.kind)
    except ChangeProblem as words:
        return FamilyOwner(address, switch, value, (), str(words))
    return FamilyOwner(address, switch, value, records, problem)


def _selector(one: WorkloadQuarantineObject, documents: Iterable[Object]) -> str:
    """Of the one owner that the match means; empty: all pods of the namespace are listed."""
    for document in documents:
        uid = (document.get("metadata") or {}).get("uid")
        labels = value_at(document, "/spec/selector/matchLabels")
        is_it = uid in one.match.owner_uids and document.get("kind") in _SELECTORS
        if is_it and isinstance(labels, dict) and labels:
            return ",".join(f"{name}={value}" for name, value in labels.items())
    return ""


def _references(document: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = (document.get("metadata") or {}).get("ownerReferences")
    return [
        tuple(str(one.get(name) or "") for name in ("apiVersion", "kind", "name", "uid"))  # type: ignore[misc]
        for one in (rows if isinstance(rows, list) else ())
        if isinstance(one, Mapping)
    ]


def _above(document: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    return _references(document)


def _reference(owner: Any) -> tuple[str, str, str, str]:
    return owner.api_version, owner.kind, owner.name, owner.uid


def _remakes(document: Object) -> bool:
    """Whether a switch below it would be set back by it: all but a CronJob, which lets go of the
    Jobs that it has started.
    """
    switch = switch_of(str(document.get("apiVersion")), str(document.get("kind")))
    return switch is not None and switch.kind != "CronJob"


def _is_finished(document: Object) -> bool:
    rows = value_at(document, "/status/conditions")
    ended = {"Complete", "Failed", "Completed", "Finished"}
    return any(
        isinstance(one, dict) and one.get("type") in ended and one.get("status") == "True"
        for one in (rows if isinstance(rows, list) else ())
    )
