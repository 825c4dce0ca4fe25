# SPDX-License-Identifier: Apache-2.0
"""What was done in the name of a quarantine, what is held, and what comes next, in words."""

from collections.abc import Iterator
from typing import Final

from seawall.cluster.objects.action_levers import ActionApproval, ActionLever, ActionResult
from seawall.cluster.objects.quarantine_actions import CanaryVerdict, QuarantineAction
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineMode,
    QuarantineState,
    WorkloadQuarantineObject,
)
from seawall.cluster.pages.cluster_reading import ClusterReading, is_killer
from seawall.cluster.pages.cluster_words import both
from seawall.findings.shell import quote
from seawall.words import counted, duration

GATES_SINCE: Final = (1, 36)
"""MutatingAdmissionPolicy: before it a pod cannot be made to wait, or to go elsewhere; it is only
refused."""
HOLD_SECONDS: Final = 1800.0
"""After which a hold ends by itself."""
IN_FORCE: Final = (QuarantineState.ACTIVE, QuarantineState.CANARY)
_SAID: Final = (QuarantineState.SUSPECTED, QuarantineState.PROPOSED)
_DONE: Final = ActionResult.DONE.value
_PODS: Final = {
    ActionLever.HOLD.value: ("{} held", "to hold {}"),
    ActionLever.STOP_COPIES.value: ("{} deleted", "to delete {}"),
    ActionLever.PROBATION.value: ("{} let onto guarded nodes", "to let {} onto guarded nodes"),
    ActionLever.MOVE_INNOCENTS.value: ("{} of others moved early", "to move {} of others early"),
}
"""What was done, and what was not."""
_SWITCHES: Final = {
    ActionLever.SUSPEND.value: ("{} suspended", "to suspend {}"),
    ActionLever.SCALE_TO_ZERO.value: ("{} scaled to 0", "to scale {} to 0"),
}
_WORDS: Final = {
    QuarantineMode.PROBATION: "new pods of it run only on nodes whose guard enforces",
    QuarantineMode.GATE: "new pods of it wait at a gate",
}
_CANARY: Final = "canary"
"""The actor's word for what it refuses of a trial."""
_RESULTS: Final = {
    ActionResult.DRY_RUN.value: "only told, in a dry run", ActionResult.REFUSED.value: "REFUSED",
    ActionResult.FAILED.value: "FAILED", ActionResult.UNDONE.value: "undone since",
    ActionResult.REVERTED.value: "put back by somebody else, so that lever rests",
}  # fmt: skip
_MADE: Final = (_DONE, ActionResult.UNDONE.value, ActionResult.REVERTED.value)


def done_words(one: WorkloadQuarantineObject) -> str:
    """In a sentence: state, who approved it, what was changed, what was not and why."""
    actions = one.actor_status.actions
    by = one.actor_status.approved_by
    whose = f", approved by {by}" if by else ""
    parts = list(_parts(actions))
    if one.state is QuarantineState.RELEASED:
        return f"it was released: {'; '.join(parts) or 'nothing is done to it'}"
    if one.state in _SAID:
        told = "; ".join(parts)
        return told or "nothing was changed: Seawall observes here, and only says who it is"
    canary = one.actor_status.canary
    if canary is not None:
        where = f" on {canary.node}" if canary.node else ", which runs nowhere yet"
        runs = "it runs" if canary.node else "it waits"
        parts.append(
            f"one pod is let through to see: {canary.pod}{where} ({canary.verdict or runs})"
        )
    nothing = "nothing was changed yet"
    return f"{one.state.value}, mode {one.mode.value}{whose}: {'; '.join(parts) or nothing}"


def is_stopped(one: WorkloadQuarantineObject, reading: ClusterReading) -> bool:
    """No new pod of it comes, as far as Seawall can see to that."""
    is_acted = reading.actor.state == "watching" and not reading.policy.actions.dry_run
    modes = (QuarantineMode.GATE, QuarantineMode.SUSPEND)
    return one.state in IN_FORCE and one.mode in modes and is_acted and not reading.policy.brake


def held_pods(one: WorkloadQuarantineObject, now: float) -> list[QuarantineAction]:
    """Holds that stand, and have not ended by themselves."""
    newest = {
        each.uid: each for each in one.actor_status.actions if each.lever == ActionLever.HOLD.value
    }
    return [
        each for each in newest.values()
        if each.result == _DONE and each.undone_seconds is None
        and now - each.at_seconds < HOLD_SECONDS
    ]  # fmt: skip


def next_words(one: WorkloadQuarantineObject, reading: ClusterReading) -> Iterator[str]:
    """What Seawall will do, what ends by itself, and what waits for whom."""
    now = reading.as_of_unix_seconds
    if one.state is QuarantineState.RELEASED:
        return
    if one.state in _SAID:
        yield from _waits(one, reading)
        return
    if reading.policy.brake:
        yield "the brake is on: nothing new is done (seawall cluster brake --off)"
    elif reading.actor.state == "nobody":
        yield f"NOBODY CARRIES IT OUT: {reading.actor.words}"
    elif reading.policy.actions.dry_run:
        yield "the actor only tells: the policy says dryRun"
    for brake in reading.policy.tripped[:2]:
        yield f"brake {brake.name} since {both(brake.since_seconds, now)}: {brake.why}"
    held = held_pods(one, now)
    if held:
        ends = max(each.at_seconds for each in held) + HOLD_SECONDS
        yield f"its {counted(len(held), 'held pod')} may move from {both(ends, now)} on"
    if one.mode is QuarantineMode.PROBATION and _can_gate(reading.kubernetes):
        yield from _trial_words(one, reading)
    else:
        yield from admission_words(one.mode, reading.kubernetes)
    if one.expires_seconds is not None:
        yield f"it ends by itself: {both(one.expires_seconds, now)}"


def _trial_words(one: WorkloadQuarantineObject, reading: ClusterReading) -> Iterator[str]:
    """What new pods wait for, or no more."""
    canary, seconds = one.actor_status.canary, reading.policy.actions.canary_seconds
    if canary is not None and canary.verdict == CanaryVerdict.PASSED.value:
        yield _WORDS[QuarantineMode.PROBATION]
    elif canary is not None and canary.verdict:
        yield f"new pods of it wait at a gate: its canary {canary.verdict}"
    elif canary is not None and canary.since_seconds is not None:
        ends = both(canary.since_seconds + seconds, reading.as_of_unix_seconds)
        yield f"its other new pods wait until its canary has run {duration(seconds)}: {ends}"
    else:
        yield f"new pods of it wait until one has run {duration(seconds)} under a guard"
    why_not = [each.problem for each in one.actor_status.actions
               if each.lever == _CANARY and each.result == ActionResult.REFUSED.value]  # fmt: skip
    if why_not and (canary is None or not canary.verdict):
        yield f"none is tried: {why_not[-1]}"


def _can_gate(kubernetes: tuple[int, int] | None) -> bool:
    return kubernetes is not None and kubernetes >= GATES_SINCE


def admission_words(mode: QuarantineMode, kubernetes: tuple[int, int] | None) -> Iterator[str]:
    """What becomes of new pods; before 1.36 they can only be refused."""
    words = _WORDS.get(mode)
    if words is None:
        return
    if _can_gate(kubernetes):
        yield words
        return
    unless = ""
    if mode is QuarantineMode.PROBATION:
        unless = " unless they ask for such nodes themselves, and none is tried first"
    if kubernetes is None:
        yield f"{words}; before Kubernetes 1.36 they are refused{unless}"
    else:
        version = ".".join(map(str, kubernetes))
        why = f"Kubernetes {version} can add no {'gate' if not unless else 'node selector'}"
        yield f"new pods of it are REFUSED{unless}: {why}, 1.36 can"


def quarantine_commands(one: WorkloadQuarantineObject, reading: ClusterReading) -> tuple[str, ...]:
    """What a person would type next; empty: Seawall has no hand in it here."""
    if one.state in IN_FORCE:
        return (f"seawall cluster release {quote(one.name)}",)
    if one.state in _SAID and is_killer(one) and reading.actor.state == "watching":
        return (f"seawall cluster approve {quote(one.name)}",)
    return ()


def _waits(one: WorkloadQuarantineObject, reading: ClusterReading) -> Iterator[str]:
    if not is_killer(one) or reading.actor.state != "watching":
        return
    actions = reading.policy.actions
    approval = actions.approval_in(one.match.namespace)
    if reading.policy.brake:
        yield "the brake is on: nothing is done (seawall cluster brake --off)"
    elif approval is ActionApproval.OBSERVE:
        yield f"the policy says observe for {one.match.namespace}: the actor does nothing"
    elif approval is ActionApproval.APPROVE:
        yield "the actor waits for somebody's word: seawall cluster approve"
    elif actions.dry_run:
        yield "the actor only tells: the policy says dryRun"


def _parts(actions: tuple[QuarantineAction, ...]) -> Iterator[str]:
    """By what was done; of what was refused the newest, with why."""
    newest: dict[tuple[str, str, str], QuarantineAction] = {}
    for each in actions:
        newest[each.lever, each.uid or each.name, each.path] = each
    rows = list(newest.values())
    for result in (_DONE, *_RESULTS):
        these = [each for each in rows if each.result == result]
        if not these:
            continue
        words = "; ".join(_by_lever(these, is_made=result in _MADE))
        if result == _DONE:
            yield words
            continue
        last = these[-1]
        why = f": {last.problem}" if last.problem else ""
        yield f"{words}{', ' if result in _MADE else ' - '}{_RESULTS[result]}{why}"


def _by_lever(rows: list[QuarantineAction], *, is_made: bool) -> Iterator[str]:
    for lever in dict.fromkeys(each.lever for each in rows):
        these = [each for each in rows if each.lever == lever]
        first = these[0]
        if lever in _PODS:
            yield _PODS[lever][not is_made].format(counted(len(these), "pod"))
        elif lever in _SWITCHES and first.name:
            more = f" and {len(these) - 1} more" if len(these) > 1 else ""
            what = f"{first.kind} {first.namespace}/{first.name}{more}"
            yield _SWITCHES[lever][not is_made].format(what)
        elif first.after is not None and first.path == "/spec/state":
            yield f"made {str(first.after).lower()}"
        else:
            yield lever
