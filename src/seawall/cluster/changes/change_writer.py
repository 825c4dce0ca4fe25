# SPDX-License-Identifier: Apache-2.0
"""Makes changes on the API server, and undoes them; what was in between is looked at again.

writer = ChangeWriter(client, manager="seawall-actor")
writer.apply(ObjectChange(object_address(job), "batch-etl-1f", SUSPEND, False, True))
for one in changed_objects(client).objects:
    writer.undo(one, "batch-etl-1f")
"""

from typing import Final, Protocol

from seawall.cluster.changes.change_patch import (
    ChangeOutcome,
    ChangePatch,
    FieldChange,
    apply_patch,
    gate_patch,
    undo_patch,
)
from seawall.cluster.changes.object_change import ChangeProblem, ObjectAddress, ObjectChange
from seawall.cluster.kube.kube_client import KubeRefusal, Object, Query

TRIES_MOST: Final = 5
"""The kubelet writes a pod's status in between, and so does a Job's controller."""
_PRECONDITION: Final = frozenset({409, 422})
_MESSAGE_LETTERS: Final = 300


class ChangeRequests(Protocol):
    """What is asked of the API; ``KubeClient`` is it."""

    def get(self, path: str, query: Query | None = None) -> Object:
        """One object, as it stands."""

    def patch(self, path: str, operations: list[Object], *, manager: str = "",
              is_dry_run: bool = False) -> Object:  # fmt: skip
        """JSON patch; 422 where one of its tests fails."""

    def server_seconds(self) -> float:
        """Unix seconds by the API server's clock."""


class ChangeWriter:
    """One who changes objects, by a field manager's name.

    ``is_dry_run``: the server says what it would do, and keeps nothing.
    """

    def __init__(self, client: ChangeRequests, manager: str, *, is_dry_run: bool = False) -> None:
        self._client, self._manager, self._is_dry_run = client, manager, is_dry_run

    def apply(self, change: ObjectChange) -> FieldChange:
        """Change the field and write it down, both or neither.  KubeUnreachable: it is not known
        whether it was; ChangeProblem: no path that may be written.
        """
        at_seconds = self._client.server_seconds()
        fields = self._write(
            change.target, lambda document: apply_patch(document, change, at_seconds)
        )
        return fields[0]

    def undo(self, target: ObjectAddress, quarantine: str = "") -> tuple[FieldChange, ...]:
        """Put back what that quarantine changed, latest first; empty: all of it.  A field that
        somebody changed since is left, and its record goes.  Of what is refused the record stays.
        KubeUnreachable: it is not known whether it was written.
        """
        return self._write(target, lambda document: undo_patch(document, target, quarantine))

    def open_gate(self, target: ObjectAddress, *, to_guarded: bool = False) -> FieldChange:
        """Let a pod go that waits for the end of a quarantine, or onto guarded nodes while it
        lasts; there is no way back.
        """
        return self._write(
            target, lambda document: gate_patch(document, target, to_guarded=to_guarded)
        )[0]

    def _write(self, target: ObjectAddress, plan: "_Plan") -> tuple[FieldChange, ...]:
        version: object = None
        words = ""
        for _ in range(TRIES_MOST + 1):
            try:
                document = self._client.get(target.path)
                patch = plan(document)
                stands = document.get("metadata", {}).get("resourceVersion")
                if not patch.operations:
                    return patch.fields
                if stands == version:  # nobody wrote in between: the no is meant
                    return _refused(patch, words)
                version = stands
                self._client.patch(
                    target.path, patch.operations, manager=self._manager,
                    is_dry_run=self._is_dry_run,
                )  # fmt: skip
            except ChangeProblem as problem:
                return (FieldChange(ChangeOutcome.REFUSED, None, str(problem)),)
            except KubeRefusal as refusal:
                words = str(refusal)[:_MESSAGE_LETTERS]
                if refusal.status == 404:
                    return (FieldChange(ChangeOutcome.GONE, None, "it is not there any more"),)
                if refusal.status not in _PRECONDITION:
                    return (FieldChange(ChangeOutcome.REFUSED, None, words),)
            else:
                return patch.fields
        return (FieldChange(ChangeOutcome.REFUSED, None, f"others write it all the time: {words}"),)


class _Plan(Protocol):
    def __call__(self, document: Object) -> ChangePatch:
        """What is to be sent for the object as it stands."""


def _refused(patch: ChangePatch, words: str) -> tuple[FieldChange, ...]:
    return tuple(FieldChange(ChangeOutcome.REFUSED, one.record, words) for one in patch.fields)
