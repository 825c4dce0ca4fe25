# SPDX-License-Identifier: Apache-2.0
"""What the judge says, as WorkloadQuarantine objects that are to be written or taken away.  Pure.

One object for each workload, by its finest key.  The observer proposes and never does more: what a
person or the actor made of an object stays as it is, its verdict apart.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from seawall.cluster.judge.cluster_judge import SuspicionState, WorkloadSuspicion
from seawall.cluster.judge.death_coincidence import coincidence
from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.judge.workload_keys import stable_name
from seawall.cluster.objects.node_death_object import DeathWorkload
from seawall.cluster.objects.workload_quarantine_object import (
    COMPANIONS_MOST,
    NAMES_MOST,
    ChanceNumbers,
    CompanionWorkload,
    QuarantineMode,
    QuarantineState,
    QuarantineStatus,
    WorkloadMatch,
    WorkloadName,
    WorkloadQuarantineObject,
    quarantine_name,
)
from seawall.cluster.observer.death_ledger import DeathLedger
from seawall.cluster.observer.pod_rows import NodePod

LIFE_SECONDS: Final = 86400.0
LIFE_MOST_SECONDS: Final = 7 * 86400.0 - 3600.0
"""After it was named; the schema takes a week."""
OWN_STATES: Final = (QuarantineState.SUSPECTED, QuarantineState.PROPOSED)
_RANK: Final = {
    SuspicionState.CONVICTED: 0, SuspicionState.INSEPARABLE: 1, SuspicionState.SUSPECTED: 2,
    SuspicionState.CANNOT_TELL: 3,
}  # fmt: skip
_SCORE_LEAST: Final = -1e9


@dataclass(frozen=True, slots=True)
class QuarantinePlan:
    """What is to be done, in this order."""

    delete: tuple[str, ...] = ()
    create: tuple[WorkloadQuarantineObject, ...] = ()
    update: tuple[WorkloadQuarantineObject, ...] = ()
    """Spec (but for ``match``) and status differ from what stands there; of an object that is no
    longer the observer's the status alone."""


class QuarantinePlanner:
    """For one look at the ledger."""

    def __init__(
        self, ledger: DeathLedger, existing: Mapping[str, WorkloadQuarantineObject],
        pods: Mapping[str, NodePod], false_per_thousand_node_years: float,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._existing = existing
        self._pods = pods
        self._false = false_per_thousand_node_years

    def plan(self, keys: Collection[WorkloadKey], now_seconds: float) -> QuarantinePlan:
        """``keys``: whose score may have changed; those that have an object are looked at too."""
        wanted = set(keys) | {one.key for one in self._existing.values()}
        suspicions = self._ledger.judge(wanted)
        chosen, merged = self._one_each(suspicions)
        delete: list[str] = []
        create: list[WorkloadQuarantineObject] = []
        update: list[WorkloadQuarantineObject] = []
        by_key = {one.key: one for one in self._existing.values()}
        for one in self._existing.values():
            is_own = one.state in OWN_STATES
            is_over = one.expires_seconds is not None and one.expires_seconds <= now_seconds
            if is_own and (one.key in merged or one.key not in {s.key for s in chosen} or is_over):
                delete.append(one.name)
            elif is_over and one.state is QuarantineState.RELEASED:
                delete.append(one.name)  # else it could not be proposed again at the next death
        for suspicion in chosen:
            before = by_key.get(suspicion.key)
            if before is None or before.name in delete:
                is_new = suspicion.key in keys
                if is_new and suspicion.state is not SuspicionState.CANNOT_TELL:
                    create.append(self._object(suspicion, None, now_seconds))
                continue
            is_convicted = suspicion.state is SuspicionState.CONVICTED
            if before.state is QuarantineState.PROPOSED and not is_convicted:
                # A state moves forward only: what was taken back begins anew.
                delete.append(before.name)
                if suspicion.state is not SuspicionState.CANNOT_TELL:
                    create.append(self._object(suspicion, None, now_seconds))
                continue
            after = self._object(suspicion, before, now_seconds)
            if after != before:
                update.append(after)
        return QuarantinePlan(tuple(delete), tuple(create), tuple(update))

    def _one_each(
        self, suspicions: Iterable[WorkloadSuspicion]
    ) -> tuple[list[WorkloadSuspicion], set[WorkloadKey]]:
        """Of keys that name the same pods the one that tells most, and which keys it stands for."""
        ordered = sorted(
            suspicions,
            key=lambda one: (_RANK[one.state], one.key.level, -one.score_log10, one.key),
        )
        chosen: list[tuple[WorkloadSuspicion, set[str]]] = []
        merged: set[WorkloadKey] = set()
        for one in ordered:
            rows = self._ledger.workloads_of(one.key, one.deaths or self._all())
            pods = {row.bound.pod for row in rows}
            if any(pods & others for _, others in chosen):
                merged.add(one.key)
            else:
                chosen.append((one, pods))
        return [one for one, _ in chosen], merged

    def _all(self) -> Collection[str]:
        return self._ledger.objects

    def _object(
        self, suspicion: WorkloadSuspicion, before: WorkloadQuarantineObject | None,
        now_seconds: float,
    ) -> WorkloadQuarantineObject:  # fmt: skip
        rows = self._ledger.workloads_of(suspicion.key, suspicion.deaths or self._all())
        status = self._status(suspicion, before, now_seconds)
        if before is not None:
            if before.state not in OWN_STATES:
                return replace(before, status=status)
            is_newer = suspicion.deaths[:NAMES_MOST] != before.deaths
            named = status.named_seconds if status.named_seconds is not None else now_seconds
            expires = min(now_seconds + LIFE_SECONDS, named + LIFE_MOST_SECONDS)
            return replace(
                before, state=_state(suspicion), reason=_reason(suspicion),
                deaths=suspicion.deaths[:NAMES_MOST], status=status,
                expires_seconds=expires if is_newer else before.expires_seconds,
            )  # fmt: skip
        row = rows[0]
        owner = row.owner_name or row.pod_name
        namespace = row.bound.namespace
        return WorkloadQuarantineObject(
            name=quarantine_name(namespace, owner, suspicion.key),
            workload=WorkloadName(namespace, row.owner_kind or "Pod", owner),
            key=suspicion.key, match=self._match(suspicion.key, rows),
            state=_state(suspicion), mode=QuarantineMode.TELL, reason=_reason(suspicion),
            deaths=suspicion.deaths[:NAMES_MOST], expires_seconds=now_seconds + LIFE_SECONDS,
            status=status,
        )  # fmt: skip

    def _match(self, key: WorkloadKey, rows: list[DeathWorkload]) -> WorkloadMatch:
        """As fine as the key where admission can compare it, else finer: never wider."""
        row = rows[0]
        pod = next((self._pods[one.bound.pod] for one in rows if one.bound.pod in self._pods), None)
        uids = dict.fromkeys(one.owner_uid for one in rows if one.owner_uid)
        if key.level > 1 or pod is None:
            uids = uids if key.level == 1 else {}
        elif pod.owner is not None:
            uids[pod.owner.uid] = None
        stem = stable_name(row.owner_name or row.pod_name).partition("#")[0]
        is_coarse = key.level > 2
        return WorkloadMatch(
            row.bound.namespace, tuple(uids),
            "" if is_coarse or not stem else stem if stem.endswith("-") else f"{stem}-",
            pod.identity.service_account if pod else "",
            pod.images if pod else (),
        )  # fmt: skip

    def _status(
        self, suspicion: WorkloadSuspicion, before: WorkloadQuarantineObject | None,
        now_seconds: float,
    ) -> QuarantineStatus:  # fmt: skip
        old = before.status if before is not None else None
        named, after = (old.named_seconds, old.named_after_seconds) if old else (None, None)
        is_now = old is not None and old.verdict is suspicion.state
        if named is None or not is_now:
            deaths = (
                self._ledger.objects[name] for name in suspicion.deaths
                if name in self._ledger.objects
            )  # fmt: skip
            visible = max((one.observed_seconds for one in deaths), default=now_seconds)
            named, after = now_seconds, max(now_seconds - visible, 0.0)
        score = suspicion.score_log10
        return QuarantineStatus(
            verdict=suspicion.state, score_log10=score if score > _SCORE_LEAST else None,
            threshold_log10=suspicion.threshold_log10,
            false_per_thousand_node_years=self._false,
            nodes=suspicion.nodes[:NAMES_MOST], proved=suspicion.proved,
            why_not=suspicion.why_not, companions=tuple(self._companions(suspicion)),
            chance=self._chance(suspicion), named_seconds=named, named_after_seconds=after,
        )  # fmt: skip

    def _companions(self, suspicion: WorkloadSuspicion) -> Iterable[CompanionWorkload]:
        for key in suspicion.companions[:COMPANIONS_MOST]:
            rows = self._ledger.workloads_of(key, suspicion.deaths)
            if rows:
                yield CompanionWorkload(
                    key, rows[0].bound.namespace, rows[0].owner_kind,
                    rows[0].owner_name or rows[0].pod_name,
                )  # fmt: skip

    def _chance(self, suspicion: WorkloadSuspicion) -> ChanceNumbers | None:
        """Of the stratum of its last death, from its first death there to its last."""
        objects = self._ledger.objects
        own = [objects[name] for name in suspicion.deaths if name in objects]
        if not own:
            return None
        stratum, nodes = own[-1].stratum, own[-1].stratum_nodes
        own = [one for one in own if one.stratum == stratum]
        first, last = own[0].heartbeat_seconds, own[-1].heartbeat_seconds
        dead = {
            one.node
            for one in objects.values()
            if one.counts and one.stratum == stratum and first <= one.heartbeat_seconds <= last
        }
        hits = len({one.node for one in own})
        spread = max(
            (
                number
                for row in self._ledger.workloads_of(suspicion.key, [one.name for one in own])
                for key, number in zip(row.bound.keys, row.bound.nodes, strict=True)
                if key == suspicion.key
            ),
            default=hits,
        )
        with_workload = min(max(spread, hits), nodes)
        deaths = min(len(dead), nodes)
        if hits > min(with_workload, deaths):
            return None
        probability = coincidence(nodes, with_workload, deaths, hits)
        return ChanceNumbers(nodes, with_workload, deaths, hits, probability)


def _state(suspicion: WorkloadSuspicion) -> QuarantineState:
    is_convicted = suspicion.state is SuspicionState.CONVICTED
    return QuarantineState.PROPOSED if is_convicted else QuarantineState.SUSPECTED


def _reason(suspicion: WorkloadSuspicion) -> str:
    nodes = suspicion.nodes
    if not nodes:
        return suspicion.why_not
    shown = ", ".join(nodes[-4:])
    more = f" and {len(nodes) - 4} before" if len(nodes) > 4 else ""
    count = f"{len(nodes)} nodes" if len(nodes) > 1 else "1 node"
    proved = f", {suspicion.proved} by a record of their own" if suspicion.proved else ""
    return f"{count} died with it{proved}: {shown}{more}"
