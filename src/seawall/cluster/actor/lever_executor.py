# SPDX-License-Identifier: Apache-2.0
"""Carries out what the planner answered, one write after the other, each looked at again before.

Whatever became of a step stands in the quarantine's status, in an Event on what was touched, and in
the metrics.  A refusal by the API server, a webhook's say, is told and tried again later.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from seawall.cluster.actor.action_log import with_action
from seawall.cluster.actor.actor_events import ActorEvent, quarantine_target
from seawall.cluster.actor.actor_metrics import ActorMetrics
from seawall.cluster.actor.family_pods import family_pod
from seawall.cluster.actor.family_view import ActorQuarantine
from seawall.cluster.actor.lever_plan import ACTIVATE
from seawall.cluster.actor.lever_steps import (
    DeleteStep,
    FieldStep,
    GateStep,
    LeverPlan,
    LeverRefusal,
    LeverStep,
    RefusalReason,
    StateStep,
)
from seawall.cluster.actor.pod_hold import HoldStage, hold_stage
from seawall.cluster.actor.quarantine_view import ACTIVATED_AT, MODE_AT
from seawall.cluster.actor.step_rest import StepRest
from seawall.cluster.changes.change_patch import ChangeOutcome
from seawall.cluster.changes.change_writer import ChangeWriter
from seawall.cluster.changes.changeable_kinds import NODE_SELECTOR, changeable_kind
from seawall.cluster.changes.object_change import ChangeProblem, ObjectAddress, ObjectChange
from seawall.cluster.kube.kube_client import (
    KubeClient,
    KubeProblem,
    KubeRefusal,
    Object,
    steady_seconds,
)
from seawall.cluster.objects.action_levers import ActionLever, ActionResult
from seawall.cluster.objects.api_group import (
    ACTOR_MANAGER,
    CHANGED_BY_LABEL,
    GUARD_ENFORCING,
    GUARD_LABEL,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.match_objects import meets_owner, meets_pod
from seawall.cluster.objects.object_fields import word_of
from seawall.cluster.objects.quarantine_actions import ActorStatus, QuarantineAction
from seawall.cluster.objects.workload_quarantine_object import QuarantineState
from seawall.cluster.observer.observer_events import EventTarget

LOG: Final = logging.getLogger("seawall.actor")
_DONE: Final = {
    ActionLever.HOLD: "EvictionHeld", ActionLever.SUSPEND: "WorkloadSuspended",
    ActionLever.SCALE_TO_ZERO: "WorkloadSuspended", ActionLever.STOP_COPIES: "CopyStopped",
    ActionLever.PROBATION: "ProbationStarted",
}  # fmt: skip
STEPS_MOST: Final = 10
_WEBHOOK_FAILED: Final = 500
"""A webhook that cannot be asked: of this object, not of the API server."""
_ObjectStep = FieldStep | DeleteStep | GateStep
EventSink = Callable[[ActorEvent], None]


class CarriedOut(NamedTuple):
    """What became of a plan; the caller writes the status."""

    status: ActorStatus
    problem: KubeProblem | None = None
    """Why it was broken off: of the last step it is not known whether it was made.  What was made
    stands on the objects themselves.
    """


class LeverExecutor:
    """Of one process; remembers what was refused, and what was told."""

    def __init__(
        self, client: KubeClient, metrics: ActorMetrics, tell: EventSink,
        silent_since: Callable[[str], float | None],
    ) -> None:  # fmt: skip
        """``silent_since``: of a node, by the API server's clock; None: it is not silent."""
        self._client, self._metrics, self._tell = client, metrics, tell
        self._silent_since = silent_since
        self._writer = ChangeWriter(client, ACTOR_MANAGER)
        self._rests: dict[tuple[str, str, str], StepRest] = {}
        self._told: set[tuple[str, str, str, str]] = set()

    def carry_out(self, one: ActorQuarantine, plan: LeverPlan) -> CarriedOut:
        """At most ``STEPS_MOST`` writes: between two rounds all that stops them is heard of."""
        status = one.actor
        for refusal in plan.refusals:
            status = self._refused(one, refusal, status)
        steps = plan.finishing
        if plan.is_dry_run:
            for step in plan.steps:
                status = self._dry(one, step, status)
        else:
            steps += plan.steps
        for step in steps[:STEPS_MOST]:
            try:
                status = self._step(one, step, status)
            except KubeProblem as problem:
                return CarriedOut(status, problem)
        return CarriedOut(status)

    # --- one step ------------------------------------------------------------------------

    def _step(self, one: ActorQuarantine, step: LeverStep, status: ActorStatus) -> ActorStatus:
        key = (one.name, _lever(step), "" if isinstance(step, StateStep) else _uid(step))
        rest = self._rests.get(key)
        if rest is not None and steady_seconds() < rest.due:
            return status
        words = self._write(one, step)
        if words is None:
            return status
        if not words:
            self._rests.pop(key, None)
            return self._done(one, step, status)
        is_first = rest is None
        rest = self._rests.setdefault(key, StepRest())
        rest.refuse(words, steady_seconds())
        # The fences of our own account hear of a quarantine a moment after us.
        return status if is_first else self._refused(one, _refusal_of(step, words), status)

    def _write(self, one: ActorQuarantine, step: LeverStep) -> str | None:
        """Empty: it is done; None: it is of no use any more, look again; else who said no."""
        try:
            if isinstance(step, StateStep):
                return self._write_state(one, step)
            if isinstance(step, DeleteStep):
                return self._delete(one, step)
            if isinstance(step, GateStep):
                return self._open(one, step)
            return self._change(one, step)
        except KubeRefusal as problem:
            if problem.status in (404, 409):
                return None
            if problem.is_later and problem.status != _WEBHOOK_FAILED:
                raise
            return str(problem)
        except ChangeProblem as problem:
            return str(problem)

    def _write_state(self, one: ActorQuarantine, step: StateStep) -> str:
        """One patch, so that state, mode and who made it so are never apart."""
        now = time_words(self._client.server_seconds())
        is_begun = one.object.state in (QuarantineState.SUSPECTED, QuarantineState.PROPOSED)
        marks = {ACTIVATED_AT: now} if is_begun and step.state is QuarantineState.ACTIVE else {}
        if is_begun or one.object.mode is not step.mode:
            marks[MODE_AT] = now
        spec = {"state": word_of(step.state)}
        if step.state is not QuarantineState.RELEASED:
            spec["mode"] = step.mode.value
        metadata = {"resourceVersion": one.version, "uid": one.uid, "annotations": marks}
        body: Object = {"metadata": metadata, "spec": spec}
        self._client.merge(path_of(WORKLOAD_QUARANTINE, one.name), body, manager=ACTOR_MANAGER)
        return ""

    def _delete(self, one: ActorQuarantine, step: DeleteStep) -> str | None:
        path = _pod_address(step.namespace, step.name, step.uid).path
        document = self._client.get(path)
        pod = family_pod(document)
        if pod.uid != step.uid or not pod.lives or not meets_pod(one.object.match, document):
            return None
        if pod.is_untouchable:
            return pod.is_untouchable
        version = self._claim(path, document, one.name)
        self._client.delete(path, uid=step.uid, resource_version=version)
        return ""

    def _open(self, one: ActorQuarantine, step: GateStep) -> str | None:
        address = _place(step)
        document = self._client.get(address.path)
        pod = family_pod(document)
        if pod.uid != step.uid or not pod.lives or not meets_pod(one.object.match, document):
            return None
        if pod.is_untouchable:
            return pod.is_untouchable
        result = self._writer.open_gate(address, to_guarded=True)
        if result.outcome is ChangeOutcome.REFUSED:
            return result.words or "refused"
        return "" if result.outcome is ChangeOutcome.WRITTEN else None

    def _claim(self, path: str, document: Object, quarantine: str) -> str:
        """In whose name it is deleted stands on it before, for people and for our fences; its
        version then.
        """
        metadata = document["metadata"]
        labels = metadata.get("labels")
        place = f"/metadata/labels/{CHANGED_BY_LABEL.replace('/', '~1')}"
        if isinstance(labels, dict) and labels.get(CHANGED_BY_LABEL) == quarantine:
            return str(metadata.get("resourceVersion"))
        operations: list[Object] = [
            {"op": "test", "path": f"/metadata/{name}", "value": metadata.get(name)}
            for name in ("uid", "resourceVersion")
        ]
        if not isinstance(labels, dict):
            operations.append({"op": "add", "path": "/metadata/labels", "value": {}})
        operations.append({"op": "add", "path": place, "value": quarantine})
        answer = self._client.patch(path, operations, manager=ACTOR_MANAGER)
        return str((answer.get("metadata") or {}).get("resourceVersion") or "")

    def _change(self, one: ActorQuarantine, step: FieldStep) -> str | None:
        document = self._client.get(step.target.path)
        if (document.get("metadata") or {}).get("uid") != step.target.uid:
            return None
        is_pod = step.target.kind.kind == "Pod"
        meets = meets_pod if is_pod else meets_owner
        if not meets(one.object.match, document):
            return None
        is_first = hold_stage(step.before) is HoldStage.NONE if is_pod else True
        pod = family_pod(document) if is_pod else None
        if pod is not None and is_first and self._silent_since(pod.node) is None:
            return None  # its node speaks again
        if pod is not None and (pod.is_untouchable or pod.is_ending):
            return None
        change = ObjectChange(step.target, one.name, step.path, step.before, step.after)
        result = self._writer.apply(change)
        if result.outcome is ChangeOutcome.REFUSED:
            return result.words or "refused"
        if result.outcome is not ChangeOutcome.WRITTEN:
            return None
        since = None if pod is None or not is_first else self._silent_since(pod.node)
        if since is not None:
            self._metrics.hold_seconds.observe(max(self._client.server_seconds() - since, 0.0))
        return ""

    # --- what is said of it --------------------------------------------------------------

    def _done(self, one: ActorQuarantine, step: LeverStep, status: ActorStatus) -> ActorStatus:
        lever = _lever(step)
        self._metrics.count(lever, ActionResult.DONE.value, is_dry_run=False)
        LOG.info("%s: %s %s: %s", one.name, lever, _what(step), step.why)
        if isinstance(step, StateStep):
            over = step.state is QuarantineState.RELEASED
            reason = "QuarantineEnded" if over else "QuarantineStarted"
            note = f"{word_of(step.state)}, mode {step.mode.value}: {step.why}"
            self._tell_quarantine(one, reason, note, f"{step.state.value} {step.mode.value}")
        else:
            reason = _DONE.get(step.lever, "WorkloadActedOn")
            if isinstance(step, FieldStep) and hold_stage_of(step) is HoldStage.HELD:
                reason = ""  # the second step says nothing new
            if reason:
                note = f"quarantine {one.name}: {step.why}"
                self._tell_target(step, reason, note, f"{one.name} {one.uid}")
                self._tell_quarantine(one, reason, f"{_what(step)}: {step.why}", _uid(step))
        return with_action(status, self._action(one, step, ActionResult.DONE))

    def _dry(self, one: ActorQuarantine, step: LeverStep, status: ActorStatus) -> ActorStatus:
        action = self._action(one, step, ActionResult.DRY_RUN)
        after = with_action(status, action)
        if after is status:
            return status
        lever = _lever(step)
        self._metrics.count(lever, ActionResult.DRY_RUN.value, is_dry_run=True)
        LOG.info("%s: dry run: %s %s: %s", one.name, lever, _what(step), step.why)
        note = f"dry run, nothing was written: {lever} {_what(step)}: {step.why}"
        self._tell_quarantine(one, "DryRun", note, f"{lever} {_what(step)}")
        return after

    def _refused(
        self, one: ActorQuarantine, refusal: LeverRefusal, status: ActorStatus
    ) -> ActorStatus:
        key = (one.uid, refusal.lever, refusal.uid, refusal.reason.value)
        if key not in self._told:
            self._told.add(key)
            self._metrics.refusals.labels(refusal.reason.value).inc()
            place = f"{refusal.kind} {refusal.namespace}/{refusal.name}" if refusal.uid else ""
            note = f"{refusal.lever} {place}: {refusal.reason.value}: {refusal.words}"
            LOG.info("%s: not done: %s", one.name, note)
            mark = f"{refusal.lever} {refusal.uid} {refusal.reason.value}"
            self._tell_quarantine(one, "ActionRefused", note, mark)
            if refusal.reason is RefusalReason.REVERTED:
                target = EventTarget(
                    refusal.kind, refusal.name, refusal.uid, refusal.namespace
                )  # fmt: skip
                self._tell(ActorEvent(
                    "LeverReverted", target, f"quarantine {one.name}: {refusal.words}", one.uid,
                    api_version=_api_version(refusal.kind),
                ))  # fmt: skip
        is_reverted = refusal.reason is RefusalReason.REVERTED
        result = ActionResult.REVERTED if is_reverted else ActionResult.REFUSED
        if is_reverted and not any(
            row.result == result.value and row.uid == refusal.uid for row in status.actions
        ):
            self._metrics.count(refusal.lever, result.value, is_dry_run=False)
        words = f"{refusal.reason.value}: {refusal.words}"
        if any(row.lever == refusal.lever and row.uid == refusal.uid and row.problem == words
               and row.result == result.value for row in status.actions):  # fmt: skip
            return status
        return with_action(status, QuarantineAction(
            lever=refusal.lever, kind=refusal.kind, namespace=refusal.namespace,
            name=refusal.name, uid=refusal.uid, at_seconds=self._client.server_seconds(),
            result=result.value, problem=words,
        ))  # fmt: skip

    def forget(self, quarantine: ActorQuarantine) -> None:
        """It is gone, and so is what was told of it."""
        self._told = {key for key in self._told if key[0] != quarantine.uid}
        self._rests = {key: one for key, one in self._rests.items() if key[0] != quarantine.name}

    def _tell_quarantine(self, one: ActorQuarantine, reason: str, note: str, mark: str) -> None:
        target = quarantine_target(one.name, one.uid)
        is_warning = reason not in ("QuarantineEnded", "DryRun")
        self._tell(ActorEvent(reason, target, note, f"{one.uid} {mark}", is_warning))

    def _tell_target(self, step: _ObjectStep, reason: str, note: str, mark: str) -> None:
        place = _place(step)
        target = EventTarget(place.kind.kind, place.name, place.uid, place.namespace)
        self._tell(ActorEvent(reason, target, note, mark, api_version=place.kind.api_version))

    def _action(
        self, one: ActorQuarantine, step: LeverStep, result: ActionResult
    ) -> QuarantineAction:
        now = self._client.server_seconds()
        if isinstance(step, StateStep):
            was = f"{word_of(one.object.state)} {one.object.mode.value}"
            return QuarantineAction(
                lever=ACTIVATE, kind=WORKLOAD_QUARANTINE.kind, namespace="", name=one.name,
                uid=one.uid, at_seconds=now, result=result.value, path="/spec/state",
                before=was, after=f"{word_of(step.state)} {step.mode.value}",
            )  # fmt: skip
        place = _place(step)
        path = ""
        before: Any = None
        after: Any = None
        if isinstance(step, FieldStep):
            path, before, after = step.path, step.before, step.after
        if isinstance(step, GateStep):
            path, after = f"{NODE_SELECTOR}{GUARD_LABEL.replace('/', '~1')}", GUARD_ENFORCING
        return QuarantineAction(
            lever=step.lever.value, kind=place.kind.kind, namespace=place.namespace,
            name=place.name, uid=place.uid, at_seconds=now, result=result.value, path=path,
            before=before, after=after,
        )  # fmt: skip


def hold_stage_of(step: FieldStep) -> HoldStage:
    """What a step makes of a pod; none where it is no hold."""
    is_hold = step.lever is ActionLever.HOLD and isinstance(step.after, list)
    return hold_stage(step.after) if is_hold else HoldStage.NONE


def written_status(status: ActorStatus, before: ActorStatus) -> dict[str, Any]:
    """The actor's part alone, as a merge patch wants it; a canary only where it is another one
    than before, for people take it away.
    """
    written: dict[str, Any] = {
        "actions": [one.document() for one in status.actions],
        "pods": [one.document() for one in status.pods],
    }
    if status.canary != before.canary:
        written["canary"] = None if status.canary is None else status.canary.document()
    return written


def _lever(step: LeverStep) -> str:
    if isinstance(step, StateStep):
        return "release" if step.state is QuarantineState.RELEASED else ACTIVATE
    return step.lever.value


def _place(step: _ObjectStep) -> ObjectAddress:
    if isinstance(step, FieldStep):
        return step.target
    return _pod_address(step.namespace, step.name, step.uid)


def _uid(step: _ObjectStep) -> str:
    return _place(step).uid


def _what(step: LeverStep) -> str:
    if isinstance(step, StateStep):
        return f"{word_of(step.state)} {step.mode.value}"
    return str(_place(step))


def _pod_address(namespace: str, name: str, uid: str) -> ObjectAddress:
    kind = changeable_kind("Pod", "v1")
    assert kind is not None  # noqa: S101 - a row of the table
    return ObjectAddress(kind, namespace, name, uid)


def _api_version(kind: str) -> str:
    found = changeable_kind(kind)
    return found.api_version if found is not None else ""


def _refusal_of(step: LeverStep, words: str) -> LeverRefusal:
    reason = RefusalReason.REFUSED_BY_API
    if isinstance(step, StateStep):
        return LeverRefusal(_lever(step), reason, words)
    place = _place(step)
    return LeverRefusal(
        step.lever.value, reason, words, place.kind.kind, place.namespace, place.name, place.uid
    )
