# SPDX-License-Identifier: Apache-2.0
"""The observer's loop: watches in, NodeDeath and WorkloadQuarantine objects and Events out.

Every replica watches; the one that holds the lease writes.  What it knows it knows from the
cluster: a replica that begins to lead reads nothing anew and says the same.  It changes nothing
but Seawall's own objects, and of quarantines proposes at most.
"""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.kube.controller_loop import ControllerLoop, WorkRetry
from seawall.cluster.kube.kube_client import (
    KubeClient,
    KubeProblem,
    KubeRefusal,
    LostLeadership,
    Object,
    steady_seconds,
)
from seawall.cluster.kube.leader_lease import LeaderLease
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind
from seawall.cluster.kube.node_row import NodeRow, RowFields, unix_seconds
from seawall.cluster.objects.api_group import (
    CLUSTER_POLICY,
    NODE_DEATH,
    NODE_REPORT,
    OBSERVER_MANAGER,
    POLICY_NAME,
    WORKLOAD_QUARANTINE,
    CustomKind,
    path_of,
)
from seawall.cluster.objects.api_time import microsecond_of, time_words
from seawall.cluster.objects.node_death_object import (
    DeathPhase,
    NodeDeathObject,
    node_death_name,
    node_death_object,
)
from seawall.cluster.objects.node_report_object import NodeReportObject, node_report_object
from seawall.cluster.objects.object_fields import ObjectProblem, clean
from seawall.cluster.objects.seawall_policy_object import (
    PolicyStatus,
    SeawallPolicyObject,
    seawall_policy_object,
)
from seawall.cluster.objects.workload_quarantine_object import (
    WorkloadQuarantineObject,
    workload_quarantine_object,
)
from seawall.cluster.observer.awaited_record import has_agent, has_spoken, overdue, with_wait
from seawall.cluster.observer.dead_node_workloads import DeadNodeWorkloads
from seawall.cluster.observer.death_ledger import DeathLedger
from seawall.cluster.observer.in_force_map import InForceMap
from seawall.cluster.observer.missing_records import MissingRecords
from seawall.cluster.observer.node_life import NodeLife, NodeLifeEvent, NodeLifeKind, NodeLifeTimes
from seawall.cluster.observer.observer_events import EventTarget, ObserverEvent
from seawall.cluster.observer.observer_metrics import ObserverMetrics
from seawall.cluster.observer.pod_rows import NodePod
from seawall.cluster.observer.quarantine_plan import LIFE_SECONDS, OWN_STATES, QuarantinePlanner
from seawall.cluster.observer.record_evidence import RecordEvidence, record_evidence
from seawall.cluster.observer.request_budget import LOOKS_MOST, LooksPerMinute

LOG: Final = logging.getLogger("seawall.observer")
NUMBERS_SECONDS: Final = 2.0
"""Between two looks at what the metrics show."""
STORM_OVER_SECONDS: Final = 600.0
"""Without a further node."""
WAITING_MOST: Final = 4096
POLICY_SECONDS: Final = 60.0
"""Between two writes of the policy's status that say nothing but other numbers."""
RETENTION_ROUND_SECONDS: Final = 600.0
REPORT_KEEP_SECONDS: Final = 30 * 86400.0
PODS_KEPT: Final = 4096
"""A loop that did not turn for so long is ill."""


@dataclass(frozen=True, slots=True)
class _Report:
    """A NodeReport, and when the API server took it."""

    report: NodeReportObject
    received_seconds: float


class ClusterObserver(ControllerLoop):
    """``run`` until ``stop``; one process has one."""

    def __init__(
        self, client: KubeClient, lease: LeaderLease, metrics: ObserverMetrics, instance: str,
        life_times: NodeLifeTimes | None = None,
    ) -> None:  # fmt: skip
        """``instance``: the pod's name, for Events."""
        super().__init__(client, lease)
        self._metrics, self._instance = metrics, instance
        self._life = NodeLife(life_times)
        self._policy = SeawallPolicyObject()
        self._policy_is_bad = ""
        self._ledger = DeathLedger(self._policy.judge_policy())
        self._looks = DeadNodeWorkloads(client, steady_seconds)
        self._quarantines: dict[str, WorkloadQuarantineObject] = {}
        self._in_force = InForceMap(client, lease.namespace)
        self._reports: dict[str, _Report] = {}
        self._changed_reports: set[str] = set()
        self._waiting: dict[str, NodeLifeEvent] = {}
        self._returned: dict[str, NodeLifeEvent] = {}
        self._pods: dict[str, NodePod] = {}
        self._looks_left = LooksPerMinute()
        self._missing = MissingRecords()
        self._events: deque[ObserverEvent] = deque(maxlen=WAITING_MOST)
        self._storm_events: set[tuple[str, str]] = set()
        self._bad_objects: dict[str, str] = {}
        self._has_domains = False
        self._term = 0
        self._told_gap = ""
        self._retry = WorkRetry()
        self._policy_written_at = self._retention_at = self._numbers_at = 0.0
        self._heard_at = 0.0

    # --- the process ---------------------------------------------------------------------

    def turn(self) -> None:
        """Take what the watches told, then do what is due."""
        self._take_events()
        self._turned_at = steady_seconds()
        self._start_node_watch()
        with contextlib.suppress(KubeProblem):
            now = self._client.server_seconds()
            is_broken = self._node_watch is None or bool(self._node_watch.problem)
            if self._lease.answered_at > self._heard_at and not is_broken:
                self._heard_at = self._lease.answered_at
                self._take_life(self._life.sign(now))
            self._take_life(self._life.tick(now))
            self._show_numbers()
            if self._lease.holds():
                self._lead(now)

    def look(self, deadline: float) -> Object:
        """What stands in the cluster, read once; nothing is written.  KubeProblem.

        deadline:  of ``time.monotonic``
        """
        self._watch_all()
        try:
            while self._gap():
                problems = [watch.problem for watch in self._watches().values() if watch.problem]
                if time.monotonic() > deadline or problems:
                    words = problems[0] if problems else "the lists did not end in time"
                    raise KubeProblem(words)
                self._take_events()
                self._start_node_watch()
            self._take_events()
        finally:
            for watch in self._watches().values():
                watch.stop()
        since = self._policy.status.watched_since_seconds
        return {
            "nodes": len(self._life), "strata": len(self._life.strata),
            "deaths": sum(1 for one in self._ledger.objects.values() if one.counts),
            "thresholdLog10": self._ledger.threshold_log10(),
            "watchedSince": None if since is None else time_words(since),
            "policy": bool(self._policy.resource_version),
            "suspects": [one.document() for one in self._quarantines.values()],
            "message": self._message(),
        }  # fmt: skip

    def _watch_all(self) -> None:
        self._watch_kinds({
            CLUSTER_POLICY: self._take_policy, NODE_DEATH: self._take_death,
            WORKLOAD_QUARANTINE: self._take_quarantine, NODE_REPORT: self._take_report,
        })  # fmt: skip

    def _start_node_watch(self) -> None:
        """After the deaths that are known: a node that was dead before is no news."""
        if not all(watch.is_synced for watch in self._custom.values()) or not self._queue.empty():
            return
        fields = RowFields.of_policy(self._policy)
        if fields == self._row_fields:
            return
        if self._node_watch is None:
            for death in self._ledger.objects.values():
                if death.phase is not DeathPhase.RETRACTED:
                    self._life.recall(death.node, death.boot_id, death.kind)
        else:
            LOG.info("the policy names other labels: all nodes are read again")
        self._watch_nodes(fields, self._take_node)

    # --- what the watches tell -----------------------------------------------------------

    def _take_node(self, event: ObjectEvent[NodeRow]) -> None:
        kind, now, row = event.kind, event.at_seconds, event.value
        if kind is ObjectEventKind.BROKEN:
            self._life.interrupt(now)
        elif kind is ObjectEventKind.GONE and row is not None:
            self._take_life(self._life.gone(row.name, now))
        elif row is not None:
            self._has_domains = self._has_domains or bool(row.domain)
            self._take_life(self._life.see(row, now))
        else:
            self._take_life(self._life.sign(now))

    def _take_life(self, events: list[NodeLifeEvent]) -> None:
        """Every replica remembers what it saw until it stands in the cluster."""
        for event in events:
            name = node_death_name(event.row.name, event.row.boot_id)
            if event.kind in (NodeLifeKind.DEATH, NodeLifeKind.PLANNED):
                self._waiting[name] = event
                self._returned.pop(name, None)
                if len(self._waiting) > WAITING_MOST:
                    del self._waiting[next(iter(self._waiting))]
            elif event.kind is NodeLifeKind.RETRACTED:
                self._waiting.pop(name, None)
                self._returned[name] = event

    def _take_policy(self, event: ObjectEvent[Object]) -> None:
        if event.value is None or event.value["metadata"].get("name") != POLICY_NAME:
            return
        if event.kind is ObjectEventKind.GONE:
            self._policy, self._policy_is_bad = SeawallPolicyObject(), ""
        else:
            try:
                self._policy = seawall_policy_object(event.value)
                self._policy_is_bad = ""
            except ObjectProblem as problem:  # the last one that was right stands
                self._policy_is_bad = str(problem)
                LOG.warning("%s; the policy before it stands", problem)
        self._set_ledger_policy()

    def _set_ledger_policy(self) -> None:
        policy = self._policy
        self._ledger.set_policy(policy.judge_policy(), policy.status.watched_since_seconds)

    def _take_death(self, event: ObjectEvent[Object]) -> None:
        if event.value is None:
            return
        name = str(event.value["metadata"].get("name"))
        if event.kind is ObjectEventKind.GONE:
            self._ledger.remove(name)
            self._bad_objects.pop(name, None)
        elif (death := self._read(event.value, node_death_object)) is not None:
            self._ledger.put(death)
            waiting = self._waiting.get(name)
            if waiting is not None and death.observed_seconds >= waiting.heartbeat_seconds:
                del self._waiting[name]  # the leader has written it down

    def _take_quarantine(self, event: ObjectEvent[Object]) -> None:
        if event.value is None:
            return
        name = str(event.value["metadata"].get("name"))
        if event.kind is ObjectEventKind.GONE:
            self._quarantines.pop(name, None)
            self._bad_objects.pop(name, None)
        elif (one := self._read(event.value, workload_quarantine_object)) is not None:
            self._quarantines[name] = one

    def _take_report(self, event: ObjectEvent[Object]) -> None:
        if event.value is None:
            return
        name = str(event.value["metadata"].get("name"))
        if event.kind is ObjectEventKind.GONE:
            self._reports.pop(name, None)
            self._bad_objects.pop(name, None)
        elif (report := self._read(event.value, node_report_object)) is not None:
            received = _received_seconds(event.value) or event.at_seconds
            self._reports[name] = _Report(report, received)
            self._changed_reports.add(name)

    def _read(self, document: Object, reader: Callable[[object], Any]) -> Any:
        """None: it cannot be used, which is said."""
        name = str(document["metadata"].get("name"))
        try:
            read = reader(document)
        except ObjectProblem as problem:
            if name not in self._bad_objects:
                LOG.warning("left out: %s", problem)
            self._bad_objects[name] = str(problem)
            return None
        self._bad_objects.pop(name, None)
        return read

    # --- what the leader does ------------------------------------------------------------

    def _gap(self) -> str:
        """Why the view is not whole; empty: it is."""
        for resource, watch in self._watches().items():
            if watch.problem:
                return f"{resource}: {watch.problem}"
            if not watch.is_synced:
                return f"{resource} are being listed"
        if self._node_watch is None:
            return "nodes are not listed yet"
        return "nodes: no sign of the API server" if self._life.is_interrupted else ""

    def _tell_gap(self, gap: str) -> None:
        """Once for each; in the policy too, where that can be written."""
        if gap == self._told_gap:
            return
        self._told_gap = gap
        if not gap:
            LOG.info("the view is whole")
            return
        LOG.warning("the view is not whole, nobody is convicted: %s", gap)
        if self._policy.resource_version and self._policy.status.message:
            message = clean(f"the view is not whole, nobody is convicted: {gap}", 500)
            with contextlib.suppress(KubeProblem):
                self._patch_policy_status(replace(self._policy.status, message=message))

    def _lead(self, now: float) -> None:
        term = self._lease.term
        self._client.fence = lambda: self._lease.holds(term)
        gap = self._gap()
        self._tell_gap(gap)
        if gap:
            return
        if term != self._term:
            self._term = term
            self._in_force.forget()
            LOG.info("leads: %d nodes, %d deaths", len(self._life), len(self._ledger.objects))
            self._ledger.change_all_since(now - LIFE_SECONDS)
            self._changed_reports |= set(self._reports)
        if steady_seconds() < self._retry.due:
            return
        try:
            self._write_all(now)
            self._retry = WorkRetry()
        except LostLeadership:
            LOG.warning("leads no more")
        except KubeProblem as problem:
            pause = self._retry.delay.next_seconds(problem)
            self._retry.due = steady_seconds() + pause
            LOG.warning("again in %.1f s: %s", pause, problem)

    def _write_all(self, now: float) -> None:
        self._begin_watching(now)
        self._write_deaths()
        self._write_records()
        self._end_waits(now)
        self._write_retractions()
        self._tell_storms(now)
        self._write_quarantines()
        self._in_force.write(self._quarantines.values())
        self._write_events()
        self._write_policy_status()
        self._forget(now)

    def _begin_watching(self, now: float) -> None:
        """The first leader of all says since when deaths would have been seen."""
        policy = self._policy
        if policy.resource_version and policy.status.watched_since_seconds is None:
            status = replace(policy.status, watched_since_seconds=microsecond_of(now))
            self._patch_policy_status(status)

    def _write_deaths(self) -> None:
        """Nodes that reported first: in a storm not all are looked into."""
        order = sorted(
            self._waiting, key=lambda name: self._waiting[name].row.name not in self._reports
        )
        for name in order:
            event = self._waiting[name]
            known = self._ledger.objects.get(name)
            if known is not None and known.phase is not DeathPhase.RETRACTED:
                del self._waiting[name]
                continue
            death = self._death_object(name, event)
            try:
                written = self._create_death(death, is_known=known is not None)
            except KubeRefusal as problem:
                if not _is_final(problem):
                    raise
                LOG.error("%s is not written down: %s", name, problem)  # noqa: TRY400 - its words do
                del self._waiting[name]
                continue
            self._ledger.put(written)
            self._waiting.pop(name, None)
            if written.counts:
                zone, pool = written.stratum.zone, written.stratum.pool
                self._metrics.deaths.labels(pool, zone, written.cause.value).inc()
                self._tell_node("NodeDeathObserved", written, _death_note(written))
                if written.record:
                    self._tell_record(written)
            LOG.info("%s: %s", name, _death_note(written))

    def _death_object(self, name: str, event: NodeLifeEvent) -> NodeDeathObject:
        row = event.row
        death = NodeDeathObject(
            name=name, node=row.name, node_uid=row.uid, boot_id=row.boot_id,
            kind=event.death_kind, stratum=event.stratum, stratum_nodes=event.stratum_nodes,
            zone_nodes=event.zone_nodes, domain=row.domain,
            heartbeat_seconds=microsecond_of(event.heartbeat_seconds),
            observed_seconds=microsecond_of(event.observed_seconds),
            phase=DeathPhase.CONFIRMED, reason=event.reason,
        )  # fmt: skip
        if event.kind is NodeLifeKind.PLANNED:
            return replace(death, phase=DeathPhase.PLANNED)
        kept = self._reports.get(row.name)
        has_told = kept is not None and kept.report.boot_id == row.boot_id
        if not self._looks_left.take(steady_seconds(), has_told=has_told):
            words = f"what ran on it: over {LOOKS_MOST} nodes died within a minute"
            return replace(death, unseen=(words,))
        since = event.heartbeat_seconds - 86400.0
        back = {name for name, now in self._life.rows.items() if now.ready == "True"}
        dead = {
            one.node
            for one in self._ledger.objects.values()
            if one.counts and one.heartbeat_seconds > since and one.node not in back
        } | {one.row.name for one in self._waiting.values()}
        look = self._looks.look(
            row.name, dead, self._policy.protected_namespaces, self._life.living(event.stratum)
        )
        self._metrics.requests_per_death.observe(look.requests)
        self._pods.update(look.pods)
        while len(self._pods) > PODS_KEPT:
            del self._pods[next(iter(self._pods))]
        death = replace(death, workloads=look.workloads, loads=look.loads, unseen=look.unseen)
        death = self._with_record(death) or death
        said, received = (kept.report, kept.received_seconds) if kept else (None, 0.0)
        if not has_agent(look.pods.values(), self._lease.namespace):
            return death
        death = replace(death, has_agent=True)
        return death if has_spoken(said, received, event) else with_wait(death, event)

    def _create_death(self, death: NodeDeathObject, *, is_known: bool) -> NodeDeathObject:
        """One write; what another leader wrote first stands."""
        path = path_of(NODE_DEATH, death.name)
        document = death.document()
        if is_known:  # it was retracted, and died after all
            document["status"] = _cleared(
                document["status"],
                ("record", "hasAgent", "recordAwaitedUntil", "loads", "culprit", "reason"),
            )
            return _as_written(self._client.merge(path, document, manager=OBSERVER_MANAGER), death)
        try:
            return _as_written(self._client.create(path_of(NODE_DEATH), document), death)
        except KubeRefusal as problem:
            if problem.status != 409:
                raise
            return _as_written(self._client.get(path), death)

    def _write_records(self) -> None:
        """Reports that came after the death."""
        for node in sorted(self._changed_reports):
            for death in [one for one in self._ledger.objects.values() if one.node == node]:
                told = self._with_record(death) if death.counts else None
                if told is None:
                    continue
                status = told.status_document()
                body = {"status": {
                    name: status.get(name)
                    for name in ("phase", "cause", "culprit", "record", "recordAwaitedUntil")
                }}  # fmt: skip
                path = path_of(NODE_DEATH, death.name)
                answer = self._client.merge(path, body, manager=OBSERVER_MANAGER)
                self._ledger.put(_as_written(answer, told))
                self._tell_record(told)
            self._changed_reports.discard(node)

    def _end_waits(self, now: float) -> None:
        """Written down, so that every observer lets these deaths count from the same moment."""
        for death in overdue(self._ledger.objects.values(), now):
            body = {"status": {"recordAwaitedUntil": None}}
            try:
                answer = self._client.merge(
                    path_of(NODE_DEATH, death.name), body, manager=OBSERVER_MANAGER
                )
            except KubeRefusal as problem:
                if problem.status != 404:
                    raise
                self._ledger.remove(death.name)
                continue
            LOG.info("%s: no record came in time", death.name)
            self._ledger.put(_as_written(answer, death))

    def _with_record(self, death: NodeDeathObject) -> NodeDeathObject | None:
        """None: its node's report says nothing new of it."""
        kept = self._reports.get(death.node)
        if kept is None:
            return None
        found = record_evidence(kept.report, death, kept.received_seconds)
        if found is None:
            return None
        before = {(line.kind, line.pods) for line in death.record or ()}
        after = {(line.kind, line.pods) for line in found.record}
        if death.record is not None and after <= before:
            return None
        return _explained(death, found)

    def _write_retractions(self) -> None:
        for name, event in list(self._returned.items()):
            death = self._ledger.objects.get(name)
            if death is not None and death.phase not in (DeathPhase.RETRACTED, DeathPhase.PLANNED):
                body = {"status": {"phase": "Retracted", "reason": event.reason}}
                path = path_of(NODE_DEATH, name)
                try:
                    answer = self._client.merge(path, body, manager=OBSERVER_MANAGER)
                except KubeRefusal as problem:
                    if problem.status != 404:
                        raise
                    self._ledger.remove(name)
                else:
                    phase = DeathPhase.RETRACTED
                    self._ledger.put(_as_written(answer, replace(death, phase=phase)))
                    self._metrics.retracted.inc()
                    self._tell_node("NodeDeathRetracted", death, event.reason)
            self._returned.pop(name, None)

    def _write_quarantines(self) -> None:
        now = self._client.server_seconds()
        keys = self._ledger.changed_keys()
        is_over = any(
            one.expires_seconds is not None and one.expires_seconds <= now
            for one in self._quarantines.values()
            if one.state in OWN_STATES
        )
        if not keys and not is_over:
            return
        try:
            planner = QuarantinePlanner(
                self._ledger, self._quarantines, self._pods,
                self._policy.false_per_thousand_node_years,
            )  # fmt: skip
            plan = planner.plan(keys, microsecond_of(now))
            for name in plan.delete:
                self._delete(WORKLOAD_QUARANTINE, name)
                self._quarantines.pop(name, None)
            for writing, ones in (
                (self._create_quarantine, plan.create), (self._update_quarantine, plan.update),
            ):  # fmt: skip
                for one in ones:
                    try:
                        writing(one)
                    except KubeRefusal as problem:
                        if not _is_final(problem):
                            raise
                        LOG.error("%s is not written down: %s", one.name, problem)  # noqa: TRY400
        except KubeProblem:
            self._ledger.change(keys)  # they are looked at once more
            raise

    def _create_quarantine(self, one: WorkloadQuarantineObject) -> None:
        document = one.document()
        document.pop("status", None)
        try:
            self._client.create(path_of(WORKLOAD_QUARANTINE), document)
        except KubeRefusal as problem:
            if problem.status != 409:
                raise
        self._write_verdict(one, None)

    def _update_quarantine(self, one: WorkloadQuarantineObject) -> None:
        before = self._quarantines[one.name]
        if one.state in OWN_STATES and replace(one, status=before.status) != before:
            spec = one.spec_document()
            del spec["match"]
            body = {"spec": spec}
            path = path_of(WORKLOAD_QUARANTINE, one.name)
            self._client.merge(path, body, manager=OBSERVER_MANAGER)
        self._write_verdict(one, before)

    def _write_verdict(
        self, one: WorkloadQuarantineObject, before: WorkloadQuarantineObject | None
    ) -> None:
        """The verdict alone: what was done stands in the same status, and is the actor's."""
        assert one.status is not None  # noqa: S101 - what is written has one
        path = path_of(WORKLOAD_QUARANTINE, one.name, status=True)
        status = one.status.document()
        body = {"status": _cleared(status, ("scoreLog10", "whyNot", "chance"))}
        self._client.merge(path, body, manager=OBSERVER_MANAGER)
        self._quarantines[one.name] = one
        was = before.status.verdict if before is not None and before.status else None
        if one.status.verdict is was:
            return
        LOG.info("%s: %s, %s", one.workload, one.status.verdict.value, one.reason)
        if one.status.verdict is SuspicionState.CONVICTED:
            seconds = one.status.named_after_seconds
            if seconds is not None:
                self._metrics.name_seconds.observe(seconds)
            self._tell_workload("WorkloadConvicted", one)
        elif one.status.verdict is not SuspicionState.CANNOT_TELL:
            self._tell_workload("WorkloadSuspected", one)

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

    def _write_policy_status(self) -> None:
        policy = self._policy
        if not policy.resource_version:
            return
        status = PolicyStatus(
            threshold_log10=self._ledger.threshold_log10(), nodes=len(self._life),
            strata=len(self._life.strata), domains_labelled=self._has_domains,
            watched_since_seconds=policy.status.watched_since_seconds,
            observed_generation=policy.generation, message=self._message(),
        )  # fmt: skip
        if status == policy.status:
            return
        is_soon = steady_seconds() - self._policy_written_at < POLICY_SECONDS
        if is_soon and status.message == policy.status.message:
            return
        self._patch_policy_status(status)

    def _patch_policy_status(self, status: PolicyStatus) -> None:
        path = path_of(CLUSTER_POLICY, POLICY_NAME, status=True)
        body = {"status": _cleared(status.document(), ("thresholdLog10", "message"))}
        answer = self._client.merge(path, body, manager=OBSERVER_MANAGER)
        self._policy_written_at = steady_seconds()
        with contextlib.suppress(ObjectProblem):
            self._policy = replace(self._policy, status=seawall_policy_object(answer).status)
        self._set_ledger_policy()

    def _message(self) -> str:
        words = []
        if self._policy_is_bad:
            words.append(f"this policy is not used: {self._policy_is_bad}")
        if self._bad_objects:
            first = next(iter(self._bad_objects.values()))
            words.append(f"{len(self._bad_objects)} objects cannot be read: {first}")
        if self._life.waiting:
            words.append(f"{len(self._life.waiting)} silent nodes wait: the view was interrupted")
        strata = self._life.strata.items()
        strangers = sum(nodes for stratum, nodes in strata if not stratum.is_known)
        if strangers:
            words.append(
                f"deaths of {strangers} nodes count against nobody: neither a label of a pool nor "
                "processors, memory and kernel are known"
            )
        if len(self._life) and not self._has_domains:
            words.append("no labels of racks: the mark is ten times higher without a record")
        return clean("; ".join(words) or "watches", 500)

    def _forget(self, now: float) -> None:
        """Deaths and reports of more than a month ago, and of deaths more than 1,000."""
        if steady_seconds() - self._retention_at < RETENTION_ROUND_SECONDS and self._retention_at:
            return
        names = self._ledger.outdated(now)
        latest = max((self._ledger.objects[name].heartbeat_seconds for name in names), default=0.0)
        for name in names:
            self._delete(NODE_DEATH, name)
            self._ledger.remove(name)
        since = self._policy.status.watched_since_seconds
        if since is not None and latest > since:  # what is forgotten was not watched
            self._patch_policy_status(replace(self._policy.status, watched_since_seconds=latest))
        for name, kept in list(self._reports.items()):
            if now - kept.received_seconds > REPORT_KEEP_SECONDS:
                self._delete(NODE_REPORT, name)
                self._reports.pop(name, None)
        self._retention_at = steady_seconds()

    def _delete(self, kind: CustomKind, name: str) -> None:
        try:
            self._client.delete(path_of(kind, name))
        except KubeRefusal as problem:
            if problem.status != 404:
                raise

    # --- what is told --------------------------------------------------------------------

    def _tell_node(self, reason: str, death: NodeDeathObject, note: str) -> None:
        is_warning = reason == "NodeDeathObserved"
        target = EventTarget("Node", death.node, death.node_uid)
        mark = f"{death.name} {death.observed_seconds}"
        self._events.append(ObserverEvent(reason, target, note, is_warning, mark))

    def _tell_storms(self, now: float) -> None:
        """On the policy: that many nodes fell silent at once, and that no more do."""
        target = EventTarget(CLUSTER_POLICY.kind, POLICY_NAME, self._policy.uid)
        for storm in self._ledger.incidents().storms():
            age = now - storm.last_seconds
            if age > 2 * STORM_OVER_SECONDS:
                continue
            mark = f"storm {storm.first_seconds:.0f}"
            is_over = age > STORM_OVER_SECONDS
            reason = "StormEnded" if is_over else "StormStarted"
            if (reason, mark) in self._storm_events:
                continue
            self._storm_events.add((reason, mark))
            note = f"{storm.nodes} nodes fell silent at once"
            if is_over:
                note += f", and none for {STORM_OVER_SECONDS / 60:.0f} minutes since"
            note += ": power, network or storage rather than a workload; they accuse nobody"
            self._events.append(ObserverEvent(reason, target, note, not is_over, mark))

    def _tell_record(self, death: NodeDeathObject) -> None:
        lines = [line.text or line.kind.value for line in death.record or ()]
        if lines:
            self._tell_node("NodeDeathExplained", death, "its own record: " + "; ".join(lines[:4]))

    def _tell_workload(self, reason: str, one: WorkloadQuarantineObject) -> None:
        """On the last dead node's pod and on its owner."""
        status = one.status
        rows = self._ledger.workloads_of(one.key, one.deaths)
        if status is None or not rows:
            return
        row, space = rows[0], one.workload.namespace
        score = "" if status.score_log10 is None else (
            f"; score {status.score_log10:.1f}, mark {status.threshold_log10:.1f}"
        )  # fmt: skip
        note = f"{one.reason}{score}{'; ' if status.why_not else ''}{status.why_not}"
        mark = f"{one.name} {len(one.deaths)} {status.verdict.value}"
        targets = [EventTarget("Pod", row.pod_name, row.bound.pod, space)]
        if row.owner_uid and row.owner_kind != "Pod":
            targets.append(EventTarget(row.owner_kind, row.owner_name, row.owner_uid, space))
        for target in targets:
            self._events.append(ObserverEvent(reason, target, note, True, mark))

    def _show_numbers(self) -> None:
        if steady_seconds() - self._numbers_at < NUMBERS_SECONDS:
            return
        self._numbers_at = steady_seconds()
        metrics = self._metrics
        metrics.leader.set(self._lease.holds())
        for resource, watch in self._watches().items():
            metrics.staleness.labels(resource).set(watch.stale_seconds())
        metrics.threshold.set(self._ledger.threshold_log10())
        metrics.show_quarantines(self._quarantines.values())
        metrics.show_incidents(self._ledger.incidents().sizes())
        strata, now = self._life.strata, self._client.server_seconds()
        deaths = self._ledger.objects.values()
        pools = {stratum.pool for stratum in strata}
        metrics.show_missing(self._missing.by_pool(deaths, self._life.rows, pools, now))
        metrics.show_background(self._ledger.background_by_pool(strata, now))

    def watch_restarts(self) -> dict[tuple[str, str], int]:
        """By resource and reason, for the metrics."""
        return {
            (resource, reason): number
            for resource, watch in self._watches().items()
            for reason, number in dict(watch.restarts).items()
        }


def _explained(death: NodeDeathObject, found: RecordEvidence) -> NodeDeathObject:
    """With what was said before: a report after the boot may say less than one before the end."""
    lines = {(line.kind, line.pods): line for line in (*(death.record or ()), *found.record)}
    return replace(
        death, phase=DeathPhase.EXPLAINED, record=tuple(lines.values()),
        awaited_until_seconds=None,
        cause=found.cause if found.culprit or death.culprit is None else death.cause,
        confidence=found.confidence if found.culprit or death.culprit is None else death.confidence,
        culprit=found.culprit or death.culprit,
    )  # fmt: skip


def _death_note(death: NodeDeathObject) -> str:
    if death.phase is DeathPhase.PLANNED:
        return f"it was meant to end: {death.reason}"
    how = "reset: another boot id, nobody planned it"
    if death.kind.value == "silent":
        how = "silent: its kubelet says nothing more"
    ran = sum(1 for one in death.workloads if not one.bound.is_static)
    unseen = f"; not seen: {death.unseen[0]}" if death.unseen else ""
    return f"{how}; {ran} pods ran on it{unseen}"


def _as_written(answer: Object, death: NodeDeathObject) -> NodeDeathObject:
    """As any other observer will read it."""
    try:
        return node_death_object(answer)
    except ObjectProblem as problem:
        LOG.warning("%s", problem)
        return death


def _is_final(problem: KubeRefusal) -> bool:
    """The same request will be refused for ever."""
    return problem.status in (400, 422)


def _received_seconds(document: Object) -> float:
    """When the API server took the last write of it, by its own clock; 0: it does not say."""
    rows = document["metadata"].get("managedFields")
    times = [
        unix_seconds(row["time"])
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("time"), str)
    ]
    return max(times, default=0.0)


def _cleared(document: Object, names: tuple[str, ...]) -> Object:
    """A merge patch takes away only what it names."""
    return {**dict.fromkeys(names), **document}
