# SPDX-License-Identifier: Apache-2.0
"""The actor's loop: quarantines, policy and nodes in, levers out.

Every replica watches; the one that holds the lease acts.  What was done is read from the objects
themselves: a replica that begins to lead goes on where the last one was, wherever that ended.
"""

import contextlib
import logging
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from seawall.cluster.actor.action_brakes import ApiErrors, SilenceStorm
from seawall.cluster.actor.action_log import with_undone
from seawall.cluster.actor.actor_events import ActorEvent, canary_events, policy_target
from seawall.cluster.actor.actor_metrics import ActorMetrics
from seawall.cluster.actor.family_reader import FamilyReader
from seawall.cluster.actor.family_view import (
    NO_FAMILY,
    ActorQuarantine,
    ClusterView,
    WorkloadFamily,
)
from seawall.cluster.actor.lever_executor import LeverExecutor, written_status
from seawall.cluster.actor.lever_plan import LeverPlanner, held_pods_most, quarantines_left
from seawall.cluster.actor.lever_steps import LeverPlan, StateStep
from seawall.cluster.actor.node_levers import NodeLevers
from seawall.cluster.actor.node_list import pods_for_nodes
from seawall.cluster.actor.pod_hold import HoldStage, hold_stage
from seawall.cluster.actor.quarantine_undo import QuarantineUndo
from seawall.cluster.actor.quarantine_view import actor_quarantine
from seawall.cluster.changes.changeable_kinds import TOLERATIONS
from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.kube.controller_loop import ControllerLoop, WorkRetry
from seawall.cluster.kube.kube_client import (
    KubeClient,
    KubeProblem,
    KubeRefusal,
    LostLeadership,
    Object,
    can_mutate,
    steady_seconds,
)
from seawall.cluster.kube.leader_lease import LeaderLease
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind
from seawall.cluster.kube.node_row import NodeRow, RowFields
from seawall.cluster.objects.action_levers import ActionApproval, ActionLever
from seawall.cluster.objects.api_group import (
    ACTOR_MANAGER,
    CLUSTER_POLICY,
    NODE_REPORT,
    POLICY_NAME,
    WORKLOAD_QUARANTINE,
    CustomKind,
    path_of,
)
from seawall.cluster.objects.object_fields import ObjectFields, ObjectProblem
from seawall.cluster.objects.policy_actions import TrippedBrake
from seawall.cluster.objects.quarantine_actions import ActorStatus, QuarantineCanary, actor_status
from seawall.cluster.objects.seawall_policy_object import (
    SeawallPolicyObject,
    seawall_policy_object,
)
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineMode,
    QuarantineState,
    WorkloadMatch,
)

LOG: Final = logging.getLogger("seawall.actor")
BUSY_SECONDS: Final = 2.0
"""Between two looks at the family of an active quarantine while something is to be done."""
LOOK_SECONDS: Final = 10.0
"""Between two while nothing is."""
SWEEP_SECONDS: Final = 120.0
"""Between two looks for what a quarantine that is gone has left."""
UNDO_AGAIN_SECONDS: Final = 10.0
"""Where something was refused, or a kind could not be listed."""
PODS_SECONDS: Final = 300.0
MUTATES_SECONDS: Final = 600.0
EVENTS_MOST: Final = 1024
_GATING: Final = (QuarantineMode.GATE, QuarantineMode.SUSPEND, QuarantineMode.PROBATION)
_LIVE: Final = (QuarantineState.ACTIVE, QuarantineState.CANARY)


@dataclass(slots=True)
class _Work:
    """What is remembered of one quarantine between two rounds."""

    due: float = 0.0
    mode: QuarantineMode | None = None
    mode_seen_seconds: float = 0.0
    is_undone: bool = False
    held: int = 0


class ClusterActor(ControllerLoop):
    """``run`` until ``stop``; one process has one."""

    BATCH_SECONDS = 0.1
    STUCK_SECONDS = 180.0

    def __init__(
        self, client: KubeClient, lease: LeaderLease, metrics: ActorMetrics, instance: str,
        own_namespace: str,
    ) -> None:  # fmt: skip
        """``instance``: the pod's name; ``own_namespace``: whose pods are never touched."""
        super().__init__(client, lease)
        self._metrics = metrics
        self._instance, self._own_namespace = instance, own_namespace
        self._policy = SeawallPolicyObject()
        self._policy_problem = ""
        self._quarantines: dict[str, ActorQuarantine] = {}
        self._bad: dict[str, str] = {}
        self._work: dict[str, _Work] = {}
        self._nodes: dict[str, NodeRow] = {}
        self._events: deque[ActorEvent] = deque(maxlen=EVENTS_MOST)
        self._reader = FamilyReader(client)
        self._undo = QuarantineUndo(client, metrics, self._events.append)
        self._executor = LeverExecutor(client, metrics, self._events.append, self._silent_since)
        self._node_levers = NodeLevers(client, metrics, self._events.append)
        self._storm, self._errors = SilenceStorm(), ApiErrors()
        self._tripped: dict[str, float] = {}
        self._tripped_why: dict[str, str] = {}
        self._told_brakes: set[str] | None = None
        self._activations: dict[str, float] = {}
        self._pods: int | None = None
        self._pods_at = self._sweep_at = self._undo_due = 0.0
        self._mutates: bool | None = None
        self._mutates_until = 0.0
        self._term = 0
        self._retry = WorkRetry()

    # --- the process ---------------------------------------------------------------------

    def turn(self) -> None:
        """Take what the watches told, then do what is due."""
        self._take_events()
        self._turned_at = steady_seconds()
        self._start_node_watch()
        with contextlib.suppress(KubeProblem):
            now = self._client.server_seconds()
            self._look_at_brakes(now)
            self._show_numbers(now)
            if self._lease.holds() and not self._is_stopped:
                self._lead(now)

    def _watch_all(self) -> None:
        self._watch_kinds({
            CLUSTER_POLICY: self._take_policy, WORKLOAD_QUARANTINE: self._take_quarantine,
            NODE_REPORT: self._node_levers.take_report,
        })  # fmt: skip

    def _start_node_watch(self) -> None:
        fields = RowFields.of_policy(self._policy)
        if fields != self._row_fields and self._queue.is_taken(CLUSTER_POLICY.plural):
            self._watch_nodes(fields, self._take_node)

    # --- what the watches tell -----------------------------------------------------------

    def _take_node(self, event: ObjectEvent[NodeRow]) -> None:
        row = event.value
        if row is None:
            return
        before = self._nodes.get(row.name)
        if event.kind is ObjectEventKind.GONE:
            self._nodes.pop(row.name, None)
            return
        self._nodes[row.name] = row
        if row.ready == "Unknown" and (before is None or before.ready != "Unknown"):
            if before is not None:
                self._storm.fall(row.name, event.at_seconds)
            for work in self._work.values():
                work.due = 0.0

    def _take_policy(self, event: ObjectEvent[Object]) -> None:
        if event.value is None or event.value["metadata"].get("name") != POLICY_NAME:
            return
        if event.kind is ObjectEventKind.GONE:
            self._policy, self._policy_problem = SeawallPolicyObject(), ""
        else:
            try:
                self._policy, self._policy_problem = seawall_policy_object(event.value), ""
            except ObjectProblem as problem:
                self._policy_problem = str(problem)
                LOG.warning("%s: nothing new is done until it is right", problem)
        for work in self._work.values():
            work.due = 0.0

    def _take_quarantine(self, event: ObjectEvent[Object]) -> None:
        if event.value is None:
            return
        name = str(event.value["metadata"].get("name"))
        if event.kind is ObjectEventKind.GONE:
            gone = self._quarantines.pop(name, None)
            self._work.pop(name, None)
            self._bad.pop(name, None)
            if gone is not None:
                self._executor.forget(gone)
            self._sweep_at = 0.0
            return
        work = self._work.setdefault(name, _Work())
        try:
            one = actor_quarantine(event.value, work.mode_seen_seconds or event.at_seconds)
        except ObjectProblem as problem:
            if name not in self._bad:
                LOG.warning("left out: %s", problem)
            self._bad[name] = str(problem)
            self._quarantines.pop(name, None)
            return
        self._bad.pop(name, None)
        if work.mode is not one.object.mode:
            work.mode, work.mode_seen_seconds = one.object.mode, event.at_seconds
        before = self._quarantines.get(name)
        if before is None or before.object.spec_document() != one.object.spec_document():
            work.due, work.is_undone = 0.0, False
        if before is None or before.object.status != one.object.status:
            work.due = 0.0
        self._quarantines[name] = one
        if one.activated_seconds is not None:
            self._activations[one.uid] = one.activated_seconds

    def _silent_since(self, node: str) -> float | None:
        row = self._nodes.get(node)
        return row.ready_seconds if row is not None and row.ready == "Unknown" else None

    # --- brakes --------------------------------------------------------------------------

    def _look_at_brakes(self, now: float) -> None:
        self._errors.take(self._client.request_counts(), steady_seconds())
        found = {
            "disarmed": "SeawallPolicy spec.brake is set" if self._policy.brake else "",
            "policy": self._policy_problem, "view": self._view_problem(),
            "api": self._errors.why(), "storm": self._storm.why(now, len(self._nodes)),
        }  # fmt: skip
        self._tripped_why = {name: why for name, why in found.items() if why}
        self._tripped = {name: self._tripped.get(name, now) for name in self._tripped_why}
        self._metrics.show_brakes(self._tripped_why)

    def _view_problem(self) -> str:
        most = self._policy.actions.brakes.view_age_seconds
        for resource, watch in self._watches().items():
            if not self._queue.is_taken(resource):
                return f"{resource} are not listed yet"
            if watch.problem:
                return f"{resource}: {watch.problem}"
        if self._node_watch is None:
            return "nodes are not listed yet"
        age = min(self._node_watch.stale_seconds(), steady_seconds() - self._lease.answered_at)
        # A small cluster's nodes say nothing for minutes: an answered lease is a sign, too.
        return f"it is {age:.0f} s old" if age > most else ""

    def _tell_brakes(self, now: float) -> None:
        """On the policy, once for each."""
        target = policy_target(POLICY_NAME, self._policy.uid)
        names = set(self._tripped_why)
        told = self._told_brakes or set()
        for name in sorted(names - told):
            mark = f"{name} {self._tripped[name]:.0f}"
            note = f"{name}: {self._tripped_why[name]}: nothing new is done"
            self._events.append(ActorEvent("BrakeTripped", target, note, mark))
        for name in sorted(told - names):
            self._events.append(ActorEvent(
                "BrakeReset", target, f"{name} holds nothing back any more", f"{name} {now:.0f}",
                is_warning=False,
            ))  # fmt: skip
        if self._policy.resource_version and (names != told or self._told_brakes is None):
            rows = [
                TrippedBrake(name, self._tripped[name], self._tripped_why[name]).document()
                for name in sorted(names)
            ]
            path = path_of(CLUSTER_POLICY, POLICY_NAME, status=True)
            self._client.merge(path, {"status": {"brakes": rows}}, manager=ACTOR_MANAGER)
        self._told_brakes = names

    # --- what the leader does ------------------------------------------------------------

    def _lead(self, now: float) -> None:
        term = self._lease.term
        self._client.fence = lambda: self._lease.holds(term)
        if term != self._term:
            self._term, self._told_brakes, self._sweep_at = term, None, 0.0
            self._node_levers.forget()
            self._work = {name: replace(work, due=0.0) for name, work in self._work.items()}
            LOG.info("leads: %d quarantines, %d nodes", len(self._quarantines), len(self._nodes))
        if steady_seconds() < self._retry.due:
            return
        try:
            self._act(now)
            self._retry = WorkRetry()
        except LostLeadership:
            LOG.warning("leads no more")
        except KubeProblem as problem:
            pause = self._retry.delay.next_seconds(problem)
            self._retry.due = steady_seconds() + pause
            LOG.warning("again in %.1f s: %s", pause, problem)

    def _act(self, now: float) -> None:
        """Undo first: it is what no brake stops."""
        if self._is_synced(WORKLOAD_QUARANTINE):
            self._take_back(now)
        if self._queue.is_taken("nodes") and all(self._is_synced(kind) for kind in self._custom):
            self._count_pods()
            self._look_at_brakes(now)  # the lists may have ended since
            for name in sorted(self._quarantines, key=self._turn_of):
                self._look(name)
            quarantines = self._quarantines.values()
            self._node_levers.act(self._nodes, quarantines, self._policy.actions, self._view())
            self._tell_brakes(now)
        self._write_events()

    def _is_synced(self, kind: CustomKind) -> bool:
        """Of a list that is not whole nothing is known to be gone."""
        return self._queue.is_taken(kind.plural) and not self._custom[kind].problem

    def _view(self) -> ClusterView:
        now = self._client.server_seconds()
        enforcing = self._node_levers.enforcing(self._nodes)
        return ClusterView(
            now_seconds=now,
            silent_nodes=frozenset(
                name for name, row in self._nodes.items() if row.ready == "Unknown"
            ),
            enforcing_nodes=enforcing, boots=self._boots(enforcing),
            proved_pods=self._node_levers.proved(), mutates=self._can_mutate(),
            held_pods=sum(work.held for work in self._work.values()), pods=self._pods,
            activations=tuple(self._activations.values()), tripped=self._tripped_why,
            protected_namespaces=frozenset((*self._policy.protected_namespaces,
                                            self._own_namespace)),
        )  # fmt: skip

    def _boots(self, enforcing: frozenset[str]) -> dict[str, str]:
        canaries = (one.actor.canary for one in self._quarantines.values())
        names = {canary.node for canary in canaries if canary is not None} | enforcing
        return {name: self._nodes[name].boot_id for name in names if name in self._nodes}

    def _can_mutate(self) -> bool | None:
        """Whether the API server has policies that change pods; asked for where it counts."""
        on_probation = any(
            one.object.state in _LIVE and one.object.mode is QuarantineMode.PROBATION
            for one in self._quarantines.values()
        )
        if on_probation and steady_seconds() >= self._mutates_until:
            with contextlib.suppress(KubeRefusal):
                self._mutates = can_mutate(self._client)
            self._mutates_until = steady_seconds() + MUTATES_SECONDS
        return self._mutates

    def _count_pods(self) -> None:
        """Of the whole cluster, without reading them."""
        if self._pods is not None and steady_seconds() - self._pods_at < PODS_SECONDS:
            return
        self._pods_at = steady_seconds()
        answer = self._client.get("/api/v1/pods", {"limit": 1})
        left = (answer.get("metadata") or {}).get("remainingItemCount") or 0
        is_number = isinstance(left, int)
        self._pods = len(answer.get("items") or ()) + (left if is_number else 0)

    # --- one quarantine ------------------------------------------------------------------

    def _turn_of(self, name: str) -> bool:
        """Suspects come last: what stops a culprit does not wait for them."""
        one = self._quarantines[name]
        return one.object.state not in _LIVE and not _is_convicted(one)

    def _look(self, name: str) -> None:
        one, work = self._quarantines[name], self._work[name]
        now = self._client.server_seconds()
        if steady_seconds() < work.due or one.object.state is QuarantineState.RELEASED:
            return
        if one.is_over(now):
            if one.object.state in _LIVE:
                self._release(one)
            return
        family = self._family_of(one)
        work.held, is_half = _held(one, family)
        work.due = steady_seconds() + (BUSY_SECONDS if is_half else LOOK_SECONDS)
        plan = LeverPlanner(one, family, self._view(), self._policy.actions).plan()
        if plan.finishing or (plan.steps and not plan.is_dry_run):
            work.due = steady_seconds() + BUSY_SECONDS
            if not self._is_still(one):
                return
        if plan.canary != one.actor.canary and not plan.is_dry_run:
            self._write_canary(one, plan.canary)  # before anything is done about it
            plan, work.due = replace(plan, steps=()), 0.0
            one = self._quarantines[name]
        done = self._executor.carry_out(one, plan)
        pods = pods_for_nodes(one, family, self._policy.actions)
        self._write_status(one, replace(done.status, pods=pods))
        if any(isinstance(step, StateStep) for step in plan.steps):
            work.due = 0.0
        if done.problem is not None:
            work.due = 0.0
            raise done.problem

    def _family_of(self, one: ActorQuarantine) -> WorkloadFamily:
        """Is not read where nothing can come of it: each look at a suspect costs requests that a
        hold elsewhere waits for.
        """
        is_waiting = one.object.state not in _LIVE
        if is_waiting and self._policy.actions.approval_in(one.namespace) is ActionApproval.OBSERVE:
            return NO_FAMILY
        status, work = one.object.status, self._work[one.name]
        is_accused = _is_convicted(one) or (status is not None and status.proved > 0)
        if is_waiting and not is_accused and not work.held:
            return NO_FAMILY
        return self._reader.read(one.object)

    def _is_still(self, one: ActorQuarantine) -> bool:
        """Right before a write: whether it stands as the plan saw it."""
        try:
            document = self._client.get(path_of(WORKLOAD_QUARANTINE, one.name))
            now = actor_quarantine(document, one.mode_seconds)
        except KubeRefusal as problem:
            if problem.status == 404:
                return False
            raise
        except ObjectProblem:
            return False
        return now.uid == one.uid and now.object.spec_document() == one.object.spec_document()

    def _release(self, one: ActorQuarantine) -> None:
        step = StateStep(QuarantineState.RELEASED, one.object.mode, "its time has run out")
        done = self._executor.carry_out(one, LeverPlan(steps=(step,)))
        if done.problem is not None:
            raise done.problem

    def _write_canary(self, one: ActorQuarantine, canary: QuarantineCanary | None) -> None:
        """Who is tried, and what became of it; said on the quarantine and on the pod."""
        self._write_status(one, replace(one.actor, canary=canary))
        if self._quarantines[one.name].actor.canary == canary and canary is not None:
            self._events += canary_events(one, canary)
            if canary.verdict:
                LOG.info("%s: canary %s: %s", one.name, canary.pod, canary.verdict)

    def _write_status(self, one: ActorQuarantine, status: ActorStatus) -> None:
        """Its part alone; whoever wrote in between is heard first."""
        before = one.actor
        if (status.actions, status.pods, status.canary) == (
            before.actions, before.pods, before.canary
        ):  # fmt: skip
            return
        path = path_of(WORKLOAD_QUARANTINE, one.name, status=True)
        for _ in range(3):
            document = self._client.get(path_of(WORKLOAD_QUARANTINE, one.name))
            metadata = document["metadata"]
            if metadata.get("uid") != one.uid:
                return
            if status.canary != before.canary and not _has_canary(document, before.canary):
                return  # a person has asked for the next trial
            body = {"metadata": {"resourceVersion": metadata["resourceVersion"]},
                    "status": written_status(status, before)}  # fmt: skip
            try:
                answer = self._client.merge(path, body, manager=ACTOR_MANAGER)
            except KubeRefusal as problem:
                if problem.status == 404:
                    return
                if problem.status != 409:
                    raise
            else:
                with contextlib.suppress(ObjectProblem):
                    self._quarantines[one.name] = actor_quarantine(answer, one.mode_seconds)
                return

    # --- undo ----------------------------------------------------------------------------

    def _take_back(self, now: float) -> None:
        """Of what is released, over or gone, at once; of what was left behind, now and then."""
        over = [
            one for name, one in self._quarantines.items()
            if not self._stands(one, now) and not self._work[name].is_undone
        ]  # fmt: skip
        is_swept = self._sweep_at and steady_seconds() - self._sweep_at < SWEEP_SECONDS
        if (not over and is_swept) or steady_seconds() < self._undo_due:
            return
        search = self._undo.changed()
        standing, gating = self._in_force(now)
        for words in search.unseen:
            LOG.warning("cannot be searched for changes: %s", words)
        undone = self._undo.undo(search.objects, standing)
        self._undo.finish_holds(search.objects, standing, now)
        self._undo.ungate(gating)
        for one in over:
            own = [field for field in undone if field.quarantine in ("", one.name)]
            status = one.actor
            for each in own:
                if each.change.record is not None:
                    status = with_undone(
                        status, each.address.uid, each.change.record.path, now,
                        "" if each.is_over else each.change.words,
                    )  # fmt: skip
            self._write_status(one, status)
            work = self._work[one.name]
            work.is_undone = all(field.is_over for field in own) and not search.unseen
            work.held = 0
        self._sweep_at = steady_seconds()
        is_left = not all(self._work[one.name].is_undone for one in over)
        is_left = is_left or not all(field.is_over for field in undone)
        if is_left:
            self._undo_due, self._sweep_at = steady_seconds() + UNDO_AGAIN_SECONDS, 0.0

    def _in_force(self, now: float) -> tuple[set[str], dict[str, WorkloadMatch]]:
        """Whose changes stay, and whose gates: as of now and after the search, for what a watch has
        not told yet is in force, too.  KubeProblem.
        """
        standing: set[str] = set()
        gating: dict[str, WorkloadMatch] = {}
        for document in self._client.items(path_of(WORKLOAD_QUARANTINE)):
            name = str(document["metadata"].get("name"))
            try:
                one = actor_quarantine(document, 0.0)
            except ObjectProblem:
                standing.add(name)
                continue
            if self._stands(one, now):
                standing.add(name)
                if one.object.state in _LIVE and one.object.mode in _GATING:
                    gating[name] = one.object.match
        return standing, gating

    def _stands(self, one: ActorQuarantine, now: float) -> bool:
        return one.object.state is not QuarantineState.RELEASED and not one.is_over(now)

    # --- what is told --------------------------------------------------------------------

    def _write_events(self) -> None:
        """What the API server refuses is not said again: an Event is no state."""
        at = self._client.server_seconds()
        while self._events:
            event = self._events[0]
            try:
                self._client.create(event.path, event.document(at, self._instance))
            except KubeRefusal as problem:
                if problem.is_later:
                    raise
                if problem.status not in (404, 409):
                    LOG.warning("event %s: %s", event.reason, problem)
            self._events.popleft()

    def _show_numbers(self, now: float) -> None:
        metrics, view = self._metrics, self._view()
        metrics.leader.set(self._lease.holds())
        for resource, watch in self._watches().items():
            metrics.staleness.labels(resource).set(watch.stale_seconds())
        metrics.show_quarantines(one.object.state for one in self._quarantines.values())
        metrics.held_pods.set(view.held_pods)
        hour, day = quarantines_left(view, self._policy.actions)
        metrics.budget.labels("activate").set(min(hour, day))
        left = held_pods_most(view, self._policy.actions) - view.held_pods
        metrics.budget.labels(ActionLever.HOLD.value).set(max(left, 0))
        outdated = [uid for uid, at in self._activations.items() if now - at > 2 * 86400.0]
        for uid in outdated:
            del self._activations[uid]


def _is_convicted(one: ActorQuarantine) -> bool:
    status = one.object.status
    return status is not None and status.verdict is SuspicionState.CONVICTED


def _has_canary(document: Object, canary: QuarantineCanary | None) -> bool:
    """Whether the quarantine's status still says so, as the API gives it."""
    try:
        stands = actor_status(ObjectFields(document, "quarantine").fields("status"))
    except ObjectProblem:
        return False
    return stands.canary == canary


def _held(one: ActorQuarantine, family: WorkloadFamily) -> tuple[int, bool]:
    """How many of its pods wait by our hold just now, and whether one still needs its end."""
    stages = [
        hold_stage(pod.tolerations) for pod in family.pods
        if pod.lives and any(record.quarantine == one.name and record.path == TOLERATIONS
                             for record in pod.records)
    ]  # fmt: skip
    held = [stage for stage in stages if stage is not HoldStage.NONE]
    return len(held), HoldStage.ENDLESS in held
