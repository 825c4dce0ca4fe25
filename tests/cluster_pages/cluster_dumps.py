"""Dumps as ``kubectl get -o json`` makes them, from deaths that the judge itself has judged: pods,
scores, verdicts and odds are the judge's, none is written down by hand.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from seawall.cluster.judge.cluster_judge import (
    ClusterJudge,
    JudgePolicy,
    SuspicionState,
    WorkloadSuspicion,
)
from seawall.cluster.judge.death_coincidence import coincidence
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    EvidenceKind,
    NodeLoads,
    Stratum,
)
from seawall.cluster.judge.workload_keys import PodIdentity, keys_of
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.node_death_object import (
    CauseClass,
    CauseConfidence,
    DeathCulprit,
    DeathPhase,
    DeathWorkload,
    NodeDeathObject,
    node_death_name,
)
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.objects.seawall_policy_object import PolicyStatus, SeawallPolicyObject
from seawall.cluster.objects.workload_quarantine_object import (
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

START = datetime(2026, 11, 28, 10, 0, 12, 340000, tzinfo=timezone.utc).timestamp()
POOL = Stratum("gpu", "6.8.0-45", "on-demand", "a")
NODES = 200
GIB = 1 << 30
POLICY = JudgePolicy(frozenset({"kube-system"}))


def pod(
    name: str, number: int, *, nodes: int = 1, kind: str = "Deployment", is_static: bool = False
) -> DeathWorkload:
    """One pod of ``namespace/owner``."""
    space, owner = name.split("/")
    identity = PodIdentity(space, f"uid-of-{owner}", owner, (f"sha256:{owner}",), (("run", owner),))
    keys = keys_of(identity)
    uid = f"pod-{owner}-{number}"
    bound = BoundWorkload(uid, keys, tuple(nodes for _ in keys), space, is_static)
    return DeathWorkload(bound, f"{owner}-{number}", kind, owner, f"uid-of-{owner}")


def death(
    number: int, minutes: float, workloads: Iterable[DeathWorkload], *,
    record: tuple[RecordLine, ...] | None = None, phase: DeathPhase = DeathPhase.CONFIRMED,
    culprit: DeathCulprit | None = None, kind: DeathKind = DeathKind.SILENT, reason: str = "",
    node: str | None = None, unseen: tuple[str, ...] = (), domain: str | None = None,
) -> NodeDeathObject:  # fmt: skip
    node = node or f"gpu-{number:03}"
    at = START + minutes * 60.0
    cause, sure = CauseClass.UNKNOWN, CauseConfidence.UNKNOWN
    if record and any(line.kind is EvidenceKind.PROVED for line in record):
        phase, cause, sure = DeathPhase.EXPLAINED, CauseClass.MEMORY, CauseConfidence.PROVED
    elif record and any(line.kind is EvidenceKind.OTHER_CAUSE for line in record):
        phase, cause, sure = DeathPhase.EXPLAINED, CauseClass.HARDWARE, CauseConfidence.LIKELY
    return NodeDeathObject(
        name=node_death_name(node, f"{number:08x}-1111"), node=node, node_uid=f"uid-{number}",
        boot_id=f"{number:08x}-1111", kind=kind, stratum=POOL, stratum_nodes=NODES,
        zone_nodes=NODES, domain=f"rack{number}" if domain is None else domain,
        heartbeat_seconds=at, observed_seconds=at + 0.4, phase=phase, reason=reason,
        cause=cause, confidence=sure, culprit=culprit, record=record,
        workloads=tuple(workloads), loads=NodeLoads(6, NODES - 1, (6,) * 20), unseen=unseen,
    )  # fmt: skip


def proof(owner: str, number: int, certain: int = 41 * GIB) -> tuple[RecordLine, ...]:
    return (
        RecordLine(
            EvidenceKind.PROVED, (f"pod-{owner}-{number}",),
            f"{certain / GIB:.1f} GiB of 64.0 GiB that was lost, uncounted, of its sockets",
            START, "agent",
        ),
    )  # fmt: skip


def judged(
    deaths: Sequence[NodeDeathObject], policy: JudgePolicy, since: float
) -> tuple[ClusterJudge, list[WorkloadQuarantineObject]]:
    """What an observer would have written of them."""
    judge = ClusterJudge(policy)
    judge.watch_from(since)
    named: dict[Any, float] = {}
    for one in deaths:
        if one.counts:
            for suspicion in judge.judge(judge.add(one.to_judge())):
                named.setdefault(suspicion.key, one.observed_seconds + 1.2)
    owners = {
        key: workload for one in deaths for workload in one.workloads for key in workload.bound.keys
    }
    # As the observer does it: one object a workload, by its finest key.
    finest: dict[str, WorkloadSuspicion] = {}
    now = max((one.heartbeat_seconds for one in deaths), default=since)
    for suspicion in sorted(judge.suspicions(now), key=lambda one: one.key):
        finest.setdefault(owners[suspicion.key].owner_uid, suspicion)
    made = [
        _quarantine(judge, deaths, one, owners, named.get(one.key, now), policy)
        for one in finest.values()
    ]
    return judge, made


def _quarantine(
    judge: ClusterJudge, deaths: Sequence[NodeDeathObject], one: WorkloadSuspicion,
    owners: dict[Any, DeathWorkload], named: float, policy: JudgePolicy,
) -> WorkloadQuarantineObject:  # fmt: skip
    owner = owners[one.key]
    space = owner.bound.namespace
    hits = len(one.nodes)
    dead = len({each.node for each in deaths if each.counts})
    running = max(*owner.bound.nodes, hits)
    name = WorkloadName(space, owner.owner_kind, owner.owner_name)
    return WorkloadQuarantineObject(
        name=quarantine_name(space, owner.owner_name, one.key), workload=name, key=one.key,
        match=WorkloadMatch(space, (owner.owner_uid,)),
        state=QuarantineState.PROPOSED if one.state is SuspicionState.CONVICTED
        else QuarantineState.SUSPECTED,
        mode=QuarantineMode.TELL, reason="", deaths=one.deaths, expires_seconds=named + 86400.0,
        status=QuarantineStatus(
            verdict=one.state, score_log10=one.score_log10, threshold_log10=one.threshold_log10,
            false_per_thousand_node_years=policy.false_per_thousand_node_years, nodes=one.nodes,
            proved=one.proved, why_not=one.why_not,
            companions=tuple(
                CompanionWorkload(key, owners[key].bound.namespace, owners[key].owner_kind,
                                  owners[key].owner_name)
                for key in one.companions
            ),
            chance=ChanceNumbers(NODES, running, dead, hits,
                                 coincidence(NODES, running, dead, hits)),
            named_seconds=named, named_after_seconds=1.6,
        ),
    )  # fmt: skip


def dump(
    deaths: Sequence[NodeDeathObject], *, renewed_minutes: float | None = None,
    policy: JudgePolicy = POLICY, more: Sequence[Any] = (),
    with_suspects: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """A List; ``renewed_minutes``: when the observer's lease was renewed last; None: no lease."""
    since = START - 30 * 86400.0
    judge, quarantines = judged(deaths, policy, since)
    own = SeawallPolicyObject(
        protected_namespaces=tuple(sorted(policy.protected_namespaces)),
        false_per_thousand_node_years=policy.false_per_thousand_node_years,
        status=PolicyStatus(judge.threshold_log10(), NODES, 1, domains_labelled=True,
                            watched_since_seconds=since),
    )  # fmt: skip
    items = [own.document(), *(one.document() for one in deaths), *more]
    if with_suspects:
        items += [one.document() for one in quarantines]
    if renewed_minutes is not None:
        items.append(lease(START + renewed_minutes * 60.0))
    return {"apiVersion": "v1", "kind": "List", "items": items}


def lease(renewed: float) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "seawall-observer", "namespace": "seawall"},
        "spec": {"holderIdentity": "seawall-observer-7d4b9", "renewTime": time_words(renewed)},
    }  # fmt: skip


INNOCENTS = ("shop/web", "shop/cart", "ml/notebook", "ci/runner", "db/replica")


def crowd(number: int) -> list[DeathWorkload]:
    """What else was on that node: three innocents each, none on all of them."""
    return [pod(INNOCENTS[(number + step) % 5], number, nodes=12) for step in range(3)]


def hog_deaths(*, with_records: bool = True) -> list[NodeDeathObject]:
    """ml/trainer, three replicas, kills four nodes in 14 minutes; an ordinary death before it."""
    hog = "ml/trainer"
    deaths = [
        death(90, -60 * 30, crowd(2)),
        death(91, -55, crowd(4), phase=DeathPhase.PLANNED, reason="drained: cluster autoscaler"),
        death(92, -50, [pod("shop/web", 92, nodes=12)], phase=DeathPhase.RETRACTED,
              reason="Ready again with the same boot id"),
    ]  # fmt: skip
    for number, minutes in ((17, 0.0), (101, 4.3), (44, 9.8), (163, 14.1)):
        workloads = [pod(hog, number, nodes=3), *crowd(number)]
        record = proof("trainer", number) if with_records and number != 101 else None
        culprit = (
            DeathCulprit("ml", "Deployment", "trainer", 41 * GIB, 47 * GIB) if record else None
        )
        deaths.append(death(number, minutes, workloads, record=record, culprit=culprit))
    return deaths


def write(path: Path, whole: object) -> str:
    path.write_text(json.dumps(whole))
    return str(path)
