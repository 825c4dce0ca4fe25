# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster release`` and ``undo``: a quarantine ends, and what was changed is put back.

What stands on the changed objects is enough: neither chart nor controller nor our kinds are
needed.  The quarantine ends first, so that nobody pulls a lever again that was just put back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from seawall.cluster.acts.act_desk import ActDesk, short
from seawall.cluster.acts.act_events import ActEvent, quarantine_event
from seawall.cluster.acts.cluster_state import quarantine_named, quarantines
from seawall.cluster.changes.change_patch import ChangeOutcome, FieldChange
from seawall.cluster.changes.changeable_kinds import (
    GATES,
    REPLICAS,
    SUSPEND,
    changeable_kind,
)
from seawall.cluster.changes.changed_objects import (
    ChangedObject,
    changed_objects,
    gated_pods,
)
from seawall.cluster.changes.object_change import ChangeProblem, ObjectAddress, object_address
from seawall.cluster.kube.kube_client import KubeRefusal, Object
from seawall.cluster.objects.action_levers import ActionLever, ActionResult
from seawall.cluster.objects.api_group import WORKLOAD_QUARANTINE, path_of
from seawall.cluster.objects.match_objects import meets_pod
from seawall.cluster.objects.object_fields import word_of
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    WorkloadQuarantineObject,
)
from seawall.cluster.pages.cluster_act_page import ActName, ClusterActPage
from seawall.findings.blindness import NotSeen
from seawall.problems import UsageProblem
from seawall.words import counted

_KIND: Final = WORKLOAD_QUARANTINE.kind
_OPEN: Final = (QuarantineState.ACTIVE, QuarantineState.CANARY)


def release(desk: ActDesk, words: str, reason: str) -> ClusterActPage:
    """End one quarantine.  UsageProblem: there is none; KubeProblem."""
    rows = quarantines(desk)
    one = quarantine_named(rows, words)
    if one is None:
        raise UsageProblem(
            f"no quarantine {words!r}: seawall cluster suspects lists them; what stands on objects "
            "is put back without: seawall cluster undo --all"
        )
    return _Undoing(desk, rows, "release", one.name, reason).run([one])


def undo(desk: ActDesk, words: str, reason: str) -> ClusterActPage:
    """Put back what was changed in the name of one quarantine, which need not be there any more;
    empty: of all.  UsageProblem: nothing is known of it; KubeProblem.
    """
    rows = quarantines(desk, is_needed=False)
    if not words:
        return _Undoing(desk, rows, "undo", "", reason).run(rows.values())
    one = quarantine_named(rows, words)
    name = one.name if one is not None else words
    return _Undoing(desk, rows, "undo", name, reason).run([one] if one is not None else [])


class _Undoing:
    """One run."""

    def __init__(
        self, desk: ActDesk, rows: Mapping[str, WorkloadQuarantineObject], act: ActName,
        name: str, reason: str,
    ) -> None:  # fmt: skip
        self._desk, self._rows, self._act, self._name = desk, rows, act, name
        self._reason = reason
        self._effects: list[str] = []
        self._put_back: list[tuple[ObjectAddress, FieldChange]] = []

    def run(self, ones: Iterable[WorkloadQuarantineObject]) -> ClusterActPage:
        """End them, then put back, then let pods go that wait."""
        chosen = [one for one in ones if self._name or one.state in _OPEN]
        found = changed_objects(self._desk.client, self._name)
        self._desk.unseen += [NotSeen("changed objects", words, "") for words in found.unseen]
        gated = self._gated(chosen)
        if self._act == "undo" and self._name and not chosen and not found.objects:
            raise UsageProblem(
                f"no quarantine {self._name!r}, and no object carries a change of it: seawall "
                "cluster undo --all --dry-run shows all that are known"
            )
        ended = [one for one in chosen if self._end(one)]
        for changed in sorted(found.objects, key=self._is_unknown):
            self._undo(changed)
        for pod in gated:
            self._open(pod)
        for one in chosen:
            self._note_undone(one)
        for one in ended:
            self._tell(one)
        return self._page(chosen, bool(found.objects or gated))

    def _is_unknown(self, changed: ChangedObject) -> bool:
        """Of no quarantine that there is: ten thousand forged ones are to hold up no other."""
        return not any(each.quarantine in self._rows for each in changed.records)

    def _end(self, one: WorkloadQuarantineObject) -> bool:
        """False: it was over, or that was refused."""
        if one.state is QuarantineState.RELEASED:
            return False
        path = path_of(WORKLOAD_QUARANTINE, one.name)
        before = {"spec": {"state": word_of(one.state)}}
        body = {"spec": {"state": word_of(QuarantineState.RELEASED)}}
        return self._desk.merge(path, _KIND, one.name, body, before=before)

    def _undo(self, changed: ChangedObject) -> None:
        target = changed.address
        if changed.problem:
            hand = f"{target.kind.plural} -n {target.namespace} {target.name}"
            words = f"{changed.problem}; nothing of it is believed. After a look: kubectl annotate"
            refused = FieldChange(
                ChangeOutcome.REFUSED, None, f"{words} {hand} seawall.internal/changes-"
            )
            self._desk.undone(target, [refused])
            return
        fields = self._desk.writer.undo(target, self._name)
        if (
            not fields and changed.records
        ):  # the actor sees the end of a quarantine as soon as we do
            words = "put back meanwhile, by the actor or somebody else"
            mine = (each for each in changed.records if self._name in ("", each.quarantine))
            fields = tuple(FieldChange(ChangeOutcome.AS_WANTED, each, words) for each in mine)
        self._desk.undone(target, fields)
        self._put_back += [(target, one) for one in fields]

    def _open(self, pod: Object) -> None:
        kind = changeable_kind("Pod", "v1")
        try:
            target = object_address(pod, kind)
        except ChangeProblem:
            return
        answer = self._desk.writer.open_gate(target)
        self._desk.undone(target, [answer])

    def _gated(self, chosen: list[WorkloadQuarantineObject]) -> list[Object]:
        """Pods that wait for none but the chosen ones."""
        try:
            pods = gated_pods(self._desk.client)
        except KubeRefusal as refusal:
            self._desk.unseen.append(NotSeen("pods that wait", short(refusal), "list pods"))
            return []
        names = {one.name for one in chosen}
        others = [
            one.match for one in self._rows.values() if one.state in _OPEN and one.name not in names
        ]
        mine = [one.match for one in chosen]
        is_all = not self._name
        return [
            pod
            for pod in pods
            if (is_all or any(meets_pod(match, pod) for match in mine))
            and not any(meets_pod(match, pod) for match in others)
        ]

    def _note_undone(self, one: WorkloadQuarantineObject) -> None:
        """In what was done in its name: this is undone."""
        back = {
            (target.uid, change.record.path)
            for target, change in self._put_back
            if change.outcome is ChangeOutcome.WRITTEN and change.record is not None
            and change.record.quarantine == one.name
        }  # fmt: skip
        actions = one.actor_status.actions
        after = [
            replace(each, result=ActionResult.UNDONE.value, undone_seconds=self._desk.now_seconds)
            if (each.uid, each.path) in back and each.result == ActionResult.DONE.value else each
            for each in actions
        ]  # fmt: skip
        if list(actions) == after:
            return
        path = path_of(WORKLOAD_QUARANTINE, one.name, status=True)
        before = {"status": {"actions": [each.document() for each in actions]}}
        body = {"status": {"actions": [each.document() for each in after]}}
        self._desk.merge(path, _KIND, one.name, body, before=before)

    def _tell(self, one: WorkloadQuarantineObject) -> None:
        note = self._reason or "ended by a person"
        self._desk.tell(self._events(one, note))

    def _events(self, one: WorkloadQuarantineObject, note: str) -> Iterator[ActEvent]:
        try:
            document = self._desk.client.get(path_of(WORKLOAD_QUARANTINE, one.name))
        except KubeRefusal:
            document = {}
        uid = str((document.get("metadata") or {}).get("uid", ""))
        yield quarantine_event("QuarantineEnded", note, one.name, uid)
        for target, change in self._put_back:
            if change.record is None or change.record.quarantine != one.name:
                continue
            words = f"{change.record.path} put back: {note}"
            yield ActEvent("QuarantineEnded", words, target.kind.kind, target.kind.api_version,
                           target.name, target.uid, target.namespace)  # fmt: skip

    # --- the page ------------------------------------------------------------------------

    def _page(self, chosen: list[WorkloadQuarantineObject], is_changed: bool) -> ClusterActPage:  # noqa: FBT001 - a value
        desk = self._desk
        is_nothing = not desk.steps and not is_changed and not desk.unseen
        return ClusterActPage(
            act=self._act, source=desk.source, as_of_unix_seconds=desk.now_seconds,
            subject=self._name, headline=self._headline(chosen), is_dry_run=desk.is_dry_run,
            outcome="nothing" if is_nothing else desk.outcome,
            steps=tuple(desk.steps), effects=tuple(self._outlook()), lost=tuple(_lost(chosen)),
            commands=("seawall cluster suspects",), unseen=tuple(desk.unseen),
        )  # fmt: skip

    def _headline(self, chosen: list[WorkloadQuarantineObject]) -> str:
        if self._name:
            whose = f" ({chosen[0].workload})" if chosen else ", which is not there any more"
            return f"{self._act} {self._name}{whose}"
        return f"undo all: {counted(len(chosen), 'quarantine')} in force"

    def _outlook(self) -> Iterator[str]:
        verb = "would be" if self._desk.is_dry_run else "is"
        for target, change in self._put_back:
            record = change.record
            if change.outcome is not ChangeOutcome.WRITTEN or record is None:
                continue
            if record.path == SUSPEND:
                pods = "" if target.kind.kind == "CronJob" else ": its pods are made again"
                yield f"{target} {verb} going on{pods}"
            elif record.path == REPLICAS:
                yield f"{target} {verb} back at {record.before} replicas"
        waiting = sum(step.path == GATES and step.result in ("done", "planned")
                      for step in self._desk.steps)  # fmt: skip
        if waiting:
            yield f"{counted(waiting, 'pod')} that waited at a gate {verb} let go"


def _lost(chosen: Iterable[WorkloadQuarantineObject]) -> Iterator[str]:
    """What no undo brings back."""
    for one in chosen:
        deleted = [
            each for each in one.actor_status.actions
            if each.lever == ActionLever.STOP_COPIES.value
            and each.result == ActionResult.DONE.value
        ]  # fmt: skip
        if deleted:
            pods = counted(len(deleted), "pod")
            yield f"{pods} of {one.workload} stay deleted: what they had not saved is lost"
        stopped = [
            each for each in one.actor_status.actions
            if each.path in (SUSPEND, REPLICAS) and each.result in ("done", "undone")
        ]  # fmt: skip
        for each in stopped:
            yield (
                f"{each.kind} {each.namespace}/{each.name} was stopped at its switch: its pods of "
                "then are gone, new ones begin anew"
            )
