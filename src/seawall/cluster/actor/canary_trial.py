# SPDX-License-Identifier: Apache-2.0
"""Probation: one new pod is let onto a guarded node, and the others wait for what becomes of it.

Who was chosen is written down before its gate is opened, so that whoever leads next opens the same
one's.  A trial has one canary; another one is a person's to ask for.  Pure.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.cluster.actor.family_pods import FamilyPod
from seawall.cluster.actor.family_view import ActorQuarantine, ClusterView, WorkloadFamily
from seawall.cluster.actor.lever_steps import (
    GateStep,
    LeverRefusal,
    LeverStep,
    RefusalReason,
    StateStep,
)
from seawall.cluster.objects.action_levers import ActionLever
from seawall.cluster.objects.api_group import GUARD_ENFORCING, QUARANTINE_GATE
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.quarantine_actions import CanaryVerdict, QuarantineCanary
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState

CANARY: Final = "canary"
"""The word of a quarantine's actions for what is refused of a trial."""
FAILED: Final = (CanaryVerdict.KILLED.value, CanaryVerdict.NODE_DIED.value)
"""After these the family is stopped."""


class CanaryTurn(NamedTuple):
    """What a trial wants at one moment."""

    canary: QuarantineCanary | None
    """As it is to stand in the quarantine's status."""
    steps: tuple[LeverStep, ...] = ()
    refusals: tuple[LeverRefusal, ...] = ()


class CanaryTrial:
    """Of one quarantine of mode probation, at one moment."""

    def __init__(
        self, one: ActorQuarantine, family: WorkloadFamily, cluster: ClusterView,
        actions: PolicyActions, next_mode: QuarantineMode,
    ) -> None:  # fmt: skip
        """``next_mode``: what is done where the canary fails; ``tell``: nothing may be."""
        self._one, self._family, self._cluster = one, family, cluster
        self._seconds, self._next_mode = actions.canary_seconds, next_mode
        self._levers = actions.levers_in(one.namespace)
        self._canary = one.actor.canary
        self._refusals: list[LeverRefusal] = []

    def turn(self) -> CanaryTurn:
        """What stands in the status first, then the steps."""
        canary, steps = self._turn()
        return CanaryTurn(canary, tuple(steps), tuple(self._refusals))

    def spared(self, living: int) -> int:
        """How many of so many living copies without a guard stay until the canary serves."""
        canary = self._canary
        if living == 0 or (canary is not None and canary.verdict) or self.obstacle() is not None:
            return 0
        guarded = self._cluster.enforcing_nodes
        is_served = any(pod.is_ready and not pod.is_ending and pod.node in guarded
                        for pod in self._family.pods)  # fmt: skip
        has_next = canary is not None or any(self._waiting())
        return int(has_next and not is_served)

    def obstacle(self) -> LeverRefusal | None:
        """Why no pod can be let through; None: one can."""
        if ActionLever.PROBATION not in self._levers:
            return LeverRefusal(ActionLever.PROBATION.value, RefusalReason.LEVER_OFF,
                                "it is switched off here: new pods wait")  # fmt: skip
        if self._cluster.mutates is False:
            words = (
                "this API server cannot make a pod wait (MutatingAdmissionPolicy, since 1.36): new "
                "pods are refused unless they ask for guarded nodes, and none is tried first"
            )
            return LeverRefusal(CANARY, RefusalReason.NO_CANARY, words)
        if not self._cluster.enforcing_nodes:
            words = "of no node it is known that its guard enforces: new pods wait, none is tried"
            return LeverRefusal(CANARY, RefusalReason.UNSEEN, words)
        return None

    def _turn(self) -> tuple[QuarantineCanary | None, list[LeverStep]]:
        canary = self._canary
        if canary is not None and canary.verdict:
            return canary, self._after(canary)
        obstacle = self.obstacle()
        if obstacle is not None:
            self._refusals.append(obstacle)
        if canary is None:
            return (None, []) if obstacle is not None else self._chosen()
        pod = next((pod for pod in self._family.pods if pod.uid == canary.uid), None)
        seen = self._seen(canary, pod)
        if seen is None or seen.verdict:
            return seen, []
        steps: list[LeverStep] = []
        if pod is not None and QUARANTINE_GATE in pod.gates and obstacle is None:
            steps = self._opened(pod)
        return seen, [*self._moved(QuarantineState.CANARY, f"{canary.pod} is tried first"), *steps]

    # --- who, and what became of it ------------------------------------------------------

    def _waiting(self) -> Iterator[FamilyPod]:
        """Pods that wait at our gate alone, and may go to a guarded node."""
        for pod in self._family.pods:
            is_free = pod.guard_wish in ("", GUARD_ENFORCING) and not pod.is_untouchable
            if pod.lives and not pod.node and is_free and set(pod.gates) == {QUARANTINE_GATE}:
                yield pod

    def _chosen(self) -> tuple[QuarantineCanary | None, list[LeverStep]]:
        pods = sorted(self._waiting(), key=lambda pod: (pod.made_seconds, pod.uid))
        if not pods:
            return None, []
        pod = pods[0]
        moved = self._moved(QuarantineState.CANARY, f"{pod.name} is tried first")
        return QuarantineCanary(pod.name, uid=pod.uid), [*moved, *self._opened(pod)]

    def _seen(self, canary: QuarantineCanary, pod: FamilyPod | None) -> QuarantineCanary | None:
        """With node, time and verdict as far as they are known now; None: it never ran, and is
        gone, so that another one may be chosen.
        """
        node = canary.node or (pod.node if pod is not None else "")
        boot = self._cluster.boots.get(node, "")
        end = self._end_of_node(canary, node, boot)
        if end is None and pod is not None:
            end = _end_of_pod(pod)
        if end is not None:
            return replace(canary, node=node, verdict=end.value)
        if pod is None:
            if self._family.unseen:
                self._refuse(RefusalReason.UNSEEN, self._family.unseen[0])
                return canary
            return replace(canary, verdict=CanaryVerdict.ENDED.value) if canary.node else None
        if canary.since_seconds is None:
            if not node or pod.phase != "Running":
                return canary
            now = self._cluster.now_seconds
            return replace(canary, node=node, boot_id=boot, since_seconds=now)
        return self._timed(canary, canary.since_seconds)

    def _end_of_node(self, canary: QuarantineCanary, node: str, boot: str) -> CanaryVerdict | None:
        """By what is known of the node that it is on."""
        if node and (node in self._cluster.silent_nodes or _is_other(canary.boot_id, boot)):
            return CanaryVerdict.NODE_DIED
        is_proved = (node, canary.uid) in self._cluster.proved_pods
        return CanaryVerdict.KILLED if is_proved else None

    def _timed(self, canary: QuarantineCanary, since_seconds: float) -> QuarantineCanary:
        """It runs: for long enough?"""
        if self._cluster.now_seconds - since_seconds < self._seconds:
            return canary
        if canary.node in self._cluster.enforcing_nodes:
            return replace(canary, verdict=CanaryVerdict.PASSED.value)
        words = f"of {canary.node} it is not known any more that its guard enforces: no verdict"
        self._refuse(RefusalReason.UNSEEN, words)
        return canary

    # --- after the verdict ---------------------------------------------------------------

    def _after(self, canary: QuarantineCanary) -> list[LeverStep]:
        if canary.verdict in FAILED:
            where = f" on {canary.node}" if canary.node else ""
            words = f"its canary {canary.pod}{where}: {canary.verdict}"
            if self._next_mode is not QuarantineMode.TELL:
                return [StateStep(QuarantineState.ACTIVE, self._next_mode, words)]
            self._refuse(RefusalReason.LEVER_OFF, f"{words}; no lever is on here, new pods wait")
            return self._moved(QuarantineState.ACTIVE, words)
        if canary.verdict != CanaryVerdict.PASSED.value:
            words = (
                f"its canary {canary.pod} {canary.verdict} before its time: new pods wait; "
                f"another one by a person: seawall cluster approve {self._one.name} "
                "--mode probation"
            )
            self._refuse(RefusalReason.NO_CANARY, words)
            return self._moved(QuarantineState.ACTIVE, f"its canary {canary.verdict}")
        words = f"its canary {canary.pod} ran and its node lives"
        steps = self._moved(QuarantineState.ACTIVE, words)
        obstacle = self.obstacle()
        if obstacle is not None:
            self._refusals.append(obstacle)
            return steps
        return [*steps, *(step for pod in self._waiting() for step in self._opened(pod))]

    # --- steps ---------------------------------------------------------------------------

    def _moved(self, state: QuarantineState, why: str) -> list[LeverStep]:
        if self._one.object.state is state:
            return []
        return [StateStep(state, QuarantineMode.PROBATION, why)]

    def _opened(self, pod: FamilyPod) -> list[LeverStep]:
        why = "on probation: onto nodes whose guard enforces"
        return [GateStep(ActionLever.PROBATION, pod.namespace, pod.name, pod.uid, why)]

    def _refuse(self, reason: RefusalReason, words: str) -> None:
        self._refusals.append(LeverRefusal(CANARY, reason, words))


def _end_of_pod(pod: FamilyPod) -> CanaryVerdict | None:
    """By its own status; a deletion ends containers by signal 9, too."""
    if pod.is_ending:
        return CanaryVerdict.ENDED
    if pod.is_killed:
        return CanaryVerdict.KILLED
    ends = {"Failed": CanaryVerdict.ENDED, "Succeeded": CanaryVerdict.PASSED}
    return ends.get(pod.phase)


def _is_other(before: str, now: str) -> bool:
    """Both are known, and differ."""
    return bool(before and now) and before != now
