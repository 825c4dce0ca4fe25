"""Deaths of a pool of 200 nodes, written down by hand."""

from collections.abc import Iterable

from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    EvidenceKind,
    NodeDeath,
    NodeEvidence,
    NodeLoads,
    Stratum,
    WorkloadKey,
)

HOUR = 3600.0
POOL = Stratum("gpu", "6.8.0-45", "on-demand", "a")
ALIKE = NodeLoads(10, 199, (10,) * 20)
"""All nodes of the pool are as busy as the dead one."""
HOG = WorkloadKey(1, "hog")


def workload(name: str, nodes: int = 1, **more: object) -> BoundWorkload:
    """One pod of it; its only key is its name."""
    return BoundWorkload(f"pod of {name}", (WorkloadKey(1, name),), (nodes,), **more)  # type: ignore[arg-type]


def death(
    number: int,
    hours: float,
    workloads: Iterable[BoundWorkload],
    *,
    record: tuple[NodeEvidence, ...] | None = None,
    kind: DeathKind = DeathKind.SILENT,
    stratum: Stratum = POOL,
    domain: str | None = None,
    node: str | None = None,
    loads: NodeLoads | None = ALIKE,
) -> NodeDeath:
    return NodeDeath(
        name=f"n{number}.boot", node=node or f"n{number}", stratum=stratum, stratum_nodes=200,
        heartbeat_seconds=hours * HOUR, kind=kind, zone_nodes=200, record=record,
        domain=f"rack{number}" if domain is None else domain, workloads=tuple(workloads),
        loads=loads,
    )  # fmt: skip


def about(kind: EvidenceKind, *names: str) -> tuple[NodeEvidence, ...]:
    """A record that says so of these workloads."""
    return tuple(NodeEvidence(kind, frozenset({f"pod of {name}"})) for name in names)
