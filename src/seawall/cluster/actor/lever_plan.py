# SPDX-License-Identifier: Apache-2.0
"""Which levers are pulled for one quarantine, mildest first, and which are not, and why.  Pure.

What a person has decided (a state that no observer writes, with ``status.approvedBy``) needs no
further evidence; protected namespaces, the policy's switches and the brakes hold for people, too.
"""

from collections.abc import Iterable
from typing import Final

from seawall.cluster.actor.canary_trial import FAILED, CanaryTrial
from seawall.cluster.actor.family_pods import FamilyPod
from seawall.cluster.actor.family_view import (
    ActorQuarantine,
    ClusterView,
    FamilyOwner,
    WorkloadFamily,
)
from seawall.cluster.actor.lever_steps import (
    DeleteStep,
    FieldStep,
    LeverPlan,
    LeverRefusal,
    LeverStep,
    RefusalReason,
    StateStep,
)
from seawall.cluster.actor.pod_hold import (
    CANCEL_SECONDS,
    HOLD_SECONDS,
    HoldStage,
    held_tolerations,
    hold_stage,
)
from seawall.cluster.changes.changeable_kinds import TOLERATIONS, changeable_kind
from seawall.cluster.changes.object_change import ObjectAddress
from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.objects.action_levers import ActionApproval, ActionLever, ActionResult
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState

ACTIVATE: Final = "activate"
"""The word of a quarantine's actions for its own change of state or mode."""
STOP_APART_SECONDS: Final = 10.0
SETTLE_SECONDS: Final = 5.0
"""Until an admission policy has heard of a quarantine for certain."""
HELD_LEAST: Final = 10
"""A share of a small cluster would be no pod at all."""
DRY_DELETES_MOST: Final = 16
HOUR_SECONDS: Final = 3600.0
DAY_SECONDS: Final = 86400.0
STORM: Final = "storm"
_OWN_STATES: Final = (QuarantineState.SUSPECTED, QuarantineState.PROPOSED)
_RANK: Final = {
    QuarantineMode.TELL: 0, QuarantineMode.HOLD: 1, QuarantineMode.PROBATION: 2,
    QuarantineMode.GATE: 3, QuarantineMode.SUSPEND: 4,
}  # fmt: skip
_STOPPING: Final = (QuarantineMode.GATE, QuarantineMode.SUSPEND, QuarantineMode.PROBATION)
_LASTING: Final = (ActionResult.DONE.value, ActionResult.REVERTED.value)


def held_pods_most(cluster: ClusterView, actions: PolicyActions) -> int:
    """How many pods may be held at a time."""
    brakes = actions.brakes
    if cluster.pods is None:
        return min(brakes.held_pods_most, HELD_LEAST)
    share = max(int(cluster.pods * brakes.held_pods_share), HELD_LEAST)
    return min(brakes.held_pods_most, share)


def quarantines_left(cluster: ClusterView, actions: PolicyActions) -> tuple[int, int]:
    """How many more may be made active by the actor in this hour, and in this day."""
    ages = [cluster.now_seconds - at for at in cluster.activations]
    hour = sum(1 for age in ages if age < HOUR_SECONDS)
    day = sum(1 for age in ages if age < DAY_SECONDS)
    brakes = actions.brakes
    return max(brakes.quarantines_per_hour - hour, 0), max(brakes.quarantines_per_day - day, 0)


class LeverPlanner:
    """For one look at one quarantine: ``plan`` is called once."""

    def __init__(
        self,
        one: ActorQuarantine,
        family: WorkloadFamily,
        cluster: ClusterView,
        actions: PolicyActions,
    ) -> None:
        self._one, self._family, self._cluster, self._wishes = one, family, cluster, actions
        self._levers = actions.levers_in(one.namespace)
        self._approval = actions.approval_in(one.namespace)
        # A person's word is written before the state that it allows: until that one comes, too,
        # nothing is done about it.
        is_live = one.object.state not in _OWN_STATES
        self._is_approved = bool(one.actor.approved_by) and is_live
        self._canary = one.actor.canary
        self._refusals: list[LeverRefusal] = []

    def plan(self) -> LeverPlan:
        """Steps and refusals.  In a dry run the levers are planned as if it were active already."""
        state, mode = self._one.object.state, self._one.object.mode
        if state is QuarantineState.RELEASED or self._one.is_over(self._cluster.now_seconds):
            return LeverPlan(canary=self._canary)
        if self._one.namespace in self._cluster.protected_namespaces:
            self._refuse(ACTIVATE, RefusalReason.PROTECTED, "its namespace is protected")
            return self._answer([])
        if self._approval is ActionApproval.OBSERVE:
            if state not in _OWN_STATES or self._is_convicted:
                self._refuse(ACTIVATE, RefusalReason.OBSERVE, "here the policy says observe")
            return self._answer([])
        change = self._state_step()
        steps: list[LeverStep] = [] if change is None else [change]
        if state not in _OWN_STATES:
            mode = change.mode if change is not None and self._wishes.dry_run else mode
            return self._answer([*steps, *self._pulled(mode)])
        if change is not None and self._wishes.dry_run:
            return self._answer([*steps, *self._pulled(change.mode)])
        if change is not None or self._may_hold():
            steps += self._holds()  # at once: it does not wait until all have heard of the state
        return self._answer(steps)

    # --- state and mode ------------------------------------------------------------------

    @property
    def _verdict(self) -> SuspicionState | None:
        status = self._one.object.status
        return None if status is None else status.verdict

    @property
    def _is_convicted(self) -> bool:
        return self._verdict is SuspicionState.CONVICTED

    def _state_step(self) -> StateStep | None:
        """To make it active, or to do more about one that is so by the actor or by approval."""
        state, mode = self._one.object.state, self._one.object.mode
        if mode is QuarantineMode.PROBATION and state not in _OWN_STATES:
            return None  # a person's choice; what becomes of it the trial says
        if state is QuarantineState.CANARY:
            words = f"mode {mode.value}: no pod is let through any more"
            return StateStep(QuarantineState.ACTIVE, mode, words)
        if state is QuarantineState.SUSPECTED:
            return None
        if state is QuarantineState.ACTIVE and (
            self._one.activated_seconds is None or self._is_approved
        ):
            return None  # a person has chosen
        wanted = self._wanted_mode()
        if state is QuarantineState.ACTIVE and _RANK[wanted] <= _RANK[mode]:
            return None
        if wanted is QuarantineMode.TELL:
            if self._is_convicted:
                self._refuse(ACTIVATE, RefusalReason.LEVER_OFF, "no lever is switched on here")
            return None
        if not self._may_decide():
            return None
        why = self._one.object.reason or "a person said so"
        return StateStep(QuarantineState.ACTIVE, wanted, why)

    def _wanted_mode(self) -> QuarantineMode:
        """The mildest that stops it."""
        if not self._is_convicted and not self._is_approved:
            return QuarantineMode.TELL
        return self._stopping_mode()

    def _stopping_mode(self) -> QuarantineMode:
        levers = self._levers
        hold = QuarantineMode.HOLD if ActionLever.HOLD in levers else QuarantineMode.TELL
        if self._has_switch():
            if not self._is_wide():
                return QuarantineMode.SUSPEND
            self._refuse(ActionLever.SUSPEND.value, RefusalReason.APPROVAL, self._wide_words())
        return QuarantineMode.GATE if ActionLever.GATE in levers else hold

    def _may_decide(self) -> bool:
        """Evidence and budgets; who was approved by a person needs neither."""
        if self._is_approved:
            return True
        if self._approval is ActionApproval.APPROVE:
            if self._is_convicted:
                self._refuse(
                    ACTIVATE, RefusalReason.APPROVAL,
                    f"seawall cluster approve {self._one.name}",
                )  # fmt: skip
            if not (self._wishes.dry_run and self._is_convicted):
                return False
        status = self._one.object.status
        nodes = 0 if status is None else len(set(status.nodes))
        least = self._wishes.brakes.nodes_least
        if nodes < least:
            words = f"{nodes} node of {least} that have to have died"
            self._refuse(ACTIVATE, RefusalReason.NODES, words)
            return False
        if self._one.object.state is QuarantineState.ACTIVE:
            return True
        hour, day = quarantines_left(self._cluster, self._wishes)
        for left, reason in ((hour, RefusalReason.HOUR), (day, RefusalReason.DAY)):
            if left <= 0:
                self._refuse(ACTIVATE, reason, f"no more of {reason.value}")
                return False
        return True

    def _may_hold(self) -> bool:
        """Before it is active: a hold ends by itself, so it does not wait for a person who has
        300 seconds to wake up.
        """
        if ActionLever.HOLD not in self._levers:
            return False
        return self._may_hold_a_proposal() if self._is_convicted else self._may_hold_a_suspect()

    def _may_hold_a_proposal(self) -> bool:
        """It is convicted, and only a person's word is wanting for more."""
        status = self._one.object.status
        nodes = 0 if status is None else len(set(status.nodes))
        is_asked = self._approval is ActionApproval.APPROVE
        return is_asked and nodes >= self._wishes.brakes.nodes_least

    def _may_hold_a_suspect(self) -> bool:
        """On suspicion alone: by a node's own word, where no person is asked first, and never the
        last replica that serves.
        """
        status = self._one.object.status
        if status is None or status.proved <= 0 or self._approval is not ActionApproval.AUTO:
            return False
        if self._family.ready_on(self._cluster.silent_nodes) < 2:
            words = "on suspicion alone no workload with a single ready replica is held"
            self._refuse(ActionLever.HOLD.value, RefusalReason.SINGLE_REPLICA, words)
            return False
        return True

    # --- levers --------------------------------------------------------------------------

    def _pulled(self, mode: QuarantineMode) -> list[LeverStep]:
        steps: list[LeverStep] = []
        if mode is QuarantineMode.TELL:
            return steps
        if mode is QuarantineMode.PROBATION:
            steps += self._tried()
        if mode is QuarantineMode.GATE and ActionLever.GATE not in self._levers:
            self._refuse(ActionLever.GATE.value, RefusalReason.LEVER_OFF, "it is switched off here")
        steps += self._holds()
        if mode is QuarantineMode.SUSPEND:
            steps += self._suspensions()
        if mode in _STOPPING:
            steps += self._deletions(mode)
        return steps

    def _tried(self) -> list[LeverStep]:
        turn = self._trial().turn()
        self._canary = turn.canary
        self._refusals += turn.refusals
        return list(turn.steps)

    def _trial(self) -> CanaryTrial:
        verdict = "" if self._one.actor.canary is None else self._one.actor.canary.verdict
        next_mode = self._stopping_mode() if verdict in FAILED else QuarantineMode.TELL
        return CanaryTrial(self._one, self._family, self._cluster, self._wishes, next_mode)

    def _holds(self) -> list[LeverStep]:
        """Of pods on silent nodes, as many as may be."""
        steps: list[LeverStep] = []
        if ActionLever.HOLD not in self._levers:
            return steps
        left = held_pods_most(self._cluster, self._wishes) - self._cluster.held_pods
        for pod in self._family.pods:
            if pod.node not in self._cluster.silent_nodes or not pod.lives or pod.owner is None:
                continue
            if hold_stage(pod.tolerations) is not HoldStage.NONE:
                continue
            if not self._may_touch(pod, ActionLever.HOLD):
                continue
            after = held_tolerations(pod.tolerations, None)
            if after is None:
                self._refuse_pod(pod, ActionLever.HOLD, RefusalReason.NO_SWITCH,
                                 "it has no toleration that could be made longer")  # fmt: skip
            elif left <= 0:
                self._refuse_pod(pod, ActionLever.HOLD, RefusalReason.HELD,
                                 "as many pods are held as may be")  # fmt: skip
            else:
                left -= 1
                why = f"node {pod.node} is silent: no copy of it elsewhere for 30 minutes"
                steps.append(self._pod_step(pod, after, why))
        return steps

    def _finished_holds(self) -> list[LeverStep]:
        """The second step: now the core has seen the first."""
        steps: list[LeverStep] = []
        for pod in self._family.pods:
            record = next((one for one in pod.records if one.quarantine == self._one.name
                           and one.path == TOLERATIONS and one.uid == pod.uid), None)  # fmt: skip
            if record is None or hold_stage(pod.tolerations) is not HoldStage.ENDLESS:
                continue
            if hold_stage(record.after) is not HoldStage.ENDLESS or pod.is_ending:
                continue
            if self._cluster.now_seconds - record.at_seconds >= CANCEL_SECONDS:
                after = held_tolerations(pod.tolerations, HOLD_SECONDS)
                if after is not None:
                    steps.append(self._pod_step(pod, after, "the hold ends by itself"))
        return steps

    def _pod_step(self, pod: FamilyPod, after: list[dict[str, object]], why: str) -> FieldStep:
        before = [dict(one) for one in pod.tolerations]
        return FieldStep(ActionLever.HOLD, pod_address(pod), TOLERATIONS, before, after, why)

    def _suspensions(self) -> list[LeverStep]:
        steps: list[LeverStep] = []
        owners = [one for one in self._family.owners if self._lever_of(one) in self._levers]
        if not owners:
            self._refuse(ActionLever.SUSPEND.value, RefusalReason.NO_SWITCH,
                         "none of its owners has a switch that may be used here")  # fmt: skip
        for owner in owners:
            lever = self._lever_of(owner)
            is_ours = any(one.quarantine == self._one.name and one.path == owner.switch.path
                          for one in owner.records)  # fmt: skip
            if owner.value == owner.switch.off:
                continue
            if is_ours or self._was_done(lever, owner.address.uid):
                self._refuse_owner(owner, RefusalReason.REVERTED,
                                   "somebody has put it back: this lever rests")  # fmt: skip
            elif owner.problem:
                self._refuse_owner(owner, RefusalReason.NO_SWITCH, owner.problem)
            elif self._is_wide():
                self._refuse_owner(owner, RefusalReason.APPROVAL, self._wide_words())
            else:
                why = self._one.object.reason or "a person said so"
                path, off = owner.switch.path, owner.switch.off
                steps.append(FieldStep(lever, owner.address, path, owner.value, off, why))
        return steps

    def _deletions(self, mode: QuarantineMode) -> list[LeverStep]:
        """One at a time, the oldest first, and only while no new one can take its place."""
        silent = self._cluster.silent_nodes
        if mode is QuarantineMode.PROBATION:
            silent |= self._cluster.enforcing_nodes  # what runs there may stay
        living = [one for one in self._family.pods
                  if one.lives and one.node and one.node not in silent]  # fmt: skip
        lever = ActionLever.STOP_COPIES
        if not living or lever not in self._levers:
            return []
        if self._family.unseen:
            self._refuse(lever.value, RefusalReason.UNSEEN, self._family.unseen[0])
            return []
        if self._is_wide():
            self._refuse(lever.value, RefusalReason.APPROVAL, self._wide_words())
            return []
        since = self._one.mode_seconds
        now = self._cluster.now_seconds
        if now - since < SETTLE_SECONDS + 1.0 and not self._wishes.dry_run:
            return []
        problem = self._not_in_force(mode, since, living)
        if problem and not self._wishes.dry_run:
            self._refuse(lever.value, RefusalReason.NOT_IN_FORCE, problem)
            return []
        last = max((one.at_seconds for one in self._one.actor.actions
                    if one.lever == lever.value and one.result == ActionResult.DONE.value),
                   default=0.0)  # fmt: skip
        if now - last < STOP_APART_SECONDS:
            return []
        ordered = sorted(living, key=lambda pod: (pod.made_seconds, pod.uid))
        if mode is QuarantineMode.PROBATION:
            ordered = ordered[: len(ordered) - self._trial().spared(len(ordered))]
        chosen = [pod for pod in ordered if self._may_touch(pod, lever)]
        most = DRY_DELETES_MOST if self._wishes.dry_run else 1
        return [
            DeleteStep(lever, pod.namespace, pod.name, pod.uid, pod.node,
                       f"it may kill node {pod.node} next")
            for pod in chosen[:most]
        ]  # fmt: skip

    def _not_in_force(self, mode: QuarantineMode, since: float, living: Iterable[FamilyPod]) -> str:
        """Why a new copy could start at once; empty: none can."""
        if mode is QuarantineMode.SUSPEND:
            usable = [one for one in self._family.owners if self._lever_of(one) in self._levers]
            on = [one for one in usable if one.value != one.switch.off]
            if not usable:
                return "nothing that makes its pods is suspended"
            return f"{on[0].address} is not suspended" if on else ""
        new = [pod for pod in living if pod.made_seconds > since + SETTLE_SECONDS]
        if new:
            return f"{new[0].name} was started in spite of the gate: are its policies installed?"
        return ""

    # --- small questions -----------------------------------------------------------------

    def _lever_of(self, owner: FamilyOwner) -> ActionLever:
        return ActionLever.SCALE_TO_ZERO if owner.switch.is_scale else ActionLever.SUSPEND

    def _has_switch(self) -> bool:
        return any(self._lever_of(one) in self._levers and not one.problem
                   and not self._was_reverted(one) for one in self._family.owners)  # fmt: skip

    def _was_reverted(self, owner: FamilyOwner) -> bool:
        return any(one.result == ActionResult.REVERTED.value and one.uid == owner.address.uid
                   for one in self._one.actor.actions)  # fmt: skip

    def _is_wide(self) -> bool:
        return not self._is_approved and self._width() > self._wishes.brakes.approval_above_nodes

    def _width(self) -> int:
        silent = self._cluster.silent_nodes
        return len({pod.node for pod in self._family.pods if pod.lives and pod.node} - silent)

    def _wide_words(self) -> str:
        most = self._wishes.brakes.approval_above_nodes
        return f"it runs on {self._width()} nodes, more than {most}: a person has to approve"

    def _was_done(self, lever: ActionLever, uid: str) -> bool:
        return any(
            one.lever == lever.value and one.uid == uid and one.result in _LASTING
            and one.undone_seconds is None and one.before != one.after
            for one in self._one.actor.actions
        )  # fmt: skip

    def _may_touch(self, pod: FamilyPod, lever: ActionLever) -> bool:
        if pod.is_untouchable:
            self._refuse_pod(pod, lever, RefusalReason.PROTECTED, pod.is_untouchable)
        elif pod.record_problem:
            self._refuse_pod(pod, lever, RefusalReason.UNSEEN, pod.record_problem)
        elif lever is ActionLever.HOLD and self._was_done(lever, pod.uid):
            self._refuse_pod(pod, lever, RefusalReason.REVERTED,
                             "somebody has put it back: this lever rests")  # fmt: skip
        else:
            return True
        return False

    # --- the answer ----------------------------------------------------------------------

    def _answer(self, steps: list[LeverStep]) -> LeverPlan:
        """What was begun is finished; all else waits for the brakes."""
        finishing = tuple(self._finished_holds())
        tripped = dict(self._cluster.tripped)
        status = self._one.object.status
        if status is not None and status.proved >= self._wishes.brakes.nodes_least:
            tripped.pop(STORM, None)  # the nodes themselves have said who it was
        if tripped and not self._wishes.dry_run:
            name, why = next(iter(tripped.items()))
            for one in steps:
                lever = ACTIVATE if isinstance(one, StateStep) else one.lever.value
                self._refuse(lever, RefusalReason.BRAKE, f"{name}: {why}")
            steps = []
            if self._one.actor.canary is None:
                self._canary = None  # nobody is chosen; what became of one is written down
        refusals = tuple(dict.fromkeys(self._refusals))
        return LeverPlan(
            finishing, tuple(steps), refusals, self._wishes.dry_run, self._canary
        )  # fmt: skip

    def _refuse(self, lever: str, reason: RefusalReason, words: str) -> None:
        self._refusals.append(LeverRefusal(lever, reason, words))

    def _refuse_pod(
        self, pod: FamilyPod, lever: ActionLever, reason: RefusalReason, words: str
    ) -> None:
        self._refusals.append(LeverRefusal(
            lever.value, reason, words, "Pod", pod.namespace, pod.name, pod.uid
        ))  # fmt: skip

    def _refuse_owner(self, owner: FamilyOwner, reason: RefusalReason, words: str) -> None:
        address = owner.address
        self._refusals.append(LeverRefusal(
            self._lever_of(owner).value, reason, words, address.kind.kind, address.namespace,
            address.name, address.uid,
        ))  # fmt: skip


def pod_address(pod: FamilyPod) -> ObjectAddress:
    """Of a pod, as the record of changes names it."""
    kind = changeable_kind("Pod", "v1")
    assert kind is not None  # noqa: S101 - a row of the table
    return ObjectAddress(kind, pod.namespace, pod.name, pod.uid)
