# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --json``: the node, one WORKLOAD, ``--who``, ``--census``."""

from typing import Final, NamedTuple

from seawall.accounts.census.census_agreement import CensusAgreement, largest_difference
from seawall.accounts.census.cgroups import CgroupPages
from seawall.accounts.census.frame_census import KindSum
from seawall.accounts.cgroup_memory.memory_numbers import held_bytes
from seawall.accounts.node_memory.ledger import LedgerLine, NodeLedger, UnknownLine
from seawall.accounts.pods.pod_danger import Danger, danger_of
from seawall.accounts.pods.pod_table import Room
from seawall.accounts.tracing.trace_rows import StackSum, TracedProcess, TracedRow, TraceSum
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.base import Base
from seawall.readings.reading import UNLIMITED, Unlimited
from seawall.views.documents.claims_shapes import (
    CLAIM_SHAPES,
    CLAIMED,
    NodeUncounted,
    node_uncounted,
)
from seawall.views.documents.document_fields import (
    Document,
    OneOf,
    Shapes,
    columns,
    known,
    shown,
    spread,
    unread,
)
from seawall.views.memory_census_page import CensusPage
from seawall.views.memory_page import MemoryPage
from seawall.views.memory_who_page import WhoPage
from seawall.views.memory_workload_page import WorkloadMemoryPage

# --- the node ------------------------------------------------------------------------------


def uncounted(page: MemoryPage) -> NodeUncounted:
    """Uncounted memory of all workloads together, in bytes."""
    return node_uncounted(page.shadow)


_HEADROOM: Final = unread(
    "available_bytes=headroom.available_bytes gpu_bytes=headroom.gpu_bytes "
    "available_is_estimate=headroom.is_estimate"
)
_END: Final = shown("could_not_see=unseen bundle_notes")

_NODE: Final[Shapes] = {
    MemoryPage: (
        *unread("total_bytes=ledger.total_bytes missing_lines=ledger.missing lines=ledger.lines"),
        *unread("residual_bytes=ledger.residual_bytes"),
        *unread("residual_error_bytes=ledger.residual_error_bytes"),
        *_HEADROOM,
        *unread("base_bytes=base.residual_bytes base"),
        *unread("unknown=ledger.unknown nodes=ledger.nodes notes=ledger.notes"),
        *spread(uncounted),
        *CLAIMED,
        *_END,
    ),
    LedgerLine: (*shown("name bytes source"), *known("reclaimable_bytes")),
    UnknownLine: (*shown("name why"), *unread("at_most_bytes")),
    NodeLedger: (
        *shown("node"),
        *unread("has_cpus available_bytes"),
        *shown("is_gpu_memory=is_gpu total_bytes lines residual_bytes residual_error_bytes"),
        *shown("unknown"),
    ),
    Base: (
        *shown("residual_bytes residual_error_bytes"),
        *unread("learned_at=learned_at_unix_seconds:time"),
        *shown("how", turn=OneOf(("asked", "no tenant"))),
    ),
}

# --- one workload --------------------------------------------------------------------------


class WorkloadMemory(NamedTuple):
    """The workload that was named."""

    page: WorkloadMemoryPage


def workload(page: WorkloadMemoryPage) -> WorkloadMemory:
    """The one that was named; its kinds sum to its charge where all are known."""
    return WorkloadMemory(page)


def danger(one: WorkloadMemory) -> Danger | None:
    """The worst thing that one look can tell; None: there is none."""
    return None if one.page.row is None else danger_of(one.page.row)


def held(one: WorkloadMemory) -> int | None:
    """What reclaim cannot take without swap."""
    return None if one.page.row is None else held_bytes(one.page.row.memcg)


def distance(one: WorkloadMemory) -> int | Unlimited | None:
    """From the charge to the limit that binds it, its own or one above it."""
    room = None if one.page.row is None else one.page.row.room
    return room.distance if isinstance(room, Room) else room


def grows(one: WorkloadMemory) -> int | Unlimited | None:
    """How much anonymous memory still fits."""
    room = None if one.page.row is None else one.page.row.room
    return room.grows if isinstance(room, Room) else room


def distance_cgroup(one: WorkloadMemory) -> str | None:
    """The cgroup whose limit is the nearest, where that is known."""
    room = None if one.page.row is None else one.page.row.room
    return room.cgroup if isinstance(room, Room) else None


_WORKLOAD: Final[Shapes] = {
    WorkloadMemoryPage: (
        *_HEADROOM,
        *unread("is_node_short"),
        *shown(workload, "claims suspects"),
        *_END,
    ),
    WorkloadMemory: (
        *shown("name kind namespace pod container container_id unit cgroup", of="page.workload"),
        *known("oom_kills_gone=gone oom_kills_in_window=in_window", of="page.row.kills"),
        *known("oom_kill_last_seconds_ago=page.row.kills.last_seconds_ago"),
        *shown(danger, "is_stopped_by_node=page.is_stopped_by_node"),
        *unread("charge_bytes=page.row.whole.charge", {"held_bytes": held}),
        *unread("anon cache=page_cache shmem kernel", of="page.parts", unit="bytes"),
        *unread("socket_bytes rest_bytes swap_bytes=parts.swap", of="page"),
        *unread("dirty uncounted uncounted_least", of="page.row.whole", unit="bytes"),
        *unread("uncounted_most shadow_charge", of="page.row.whole", unit="bytes"),
        *unread("oom_kills limit_hits processes limit_bytes=limit", of="page.row"),
        *unread("swap_limit_bytes=page.row.memcg.swap_limit", {"distance_bytes": distance}),
        *known(distance_cgroup),
        *unread({"grows_bytes": grows}),
    ),
}

# --- a trace -------------------------------------------------------------------------------


class TraceFields(NamedTuple):
    """What a trace of page allocations told: who took memory, and by which stacks."""

    by_stack: tuple[StackSum, ...]
    """Kernel stacks through which memory was taken that is still held, largest first."""
    lost_events: int
    """Reports of the kernel that came faster than they could be read."""
    trace: TraceSum
    """Who took uncounted memory while it was watched, and still holds it."""


def trace(page: WhoPage) -> TraceFields | None:
    """What the trace told; None where nobody traced."""
    traced = page.traced
    if not traced.has_trace:
        return None
    return TraceFields(traced.by_stack, traced.lost_events, traced)


def counted_elsewhere(traced: TraceSum) -> dict[str, int]:
    """What was taken and is on a line of the ledger, by line: nobody's claim."""
    return dict(sorted(traced.counted.items()))


_WHO: Final[Shapes] = {
    WhoPage: (
        *spread("memory"),
        *spread(trace, TraceFields),
        *shown("could_not_see=unseen"),
    ),
    TraceFields: shown("by_stack lost_events trace"),
    TraceSum: (
        *shown("seconds:3 mechanism events sampled_one_in held=rows", counted_elsewhere),
        *shown("given_back", turn=columns("holder bytes")),
        *shown("capped_from_bytes=capped.traced_bytes notes"),
        *unread("residual_growth_bytes=growth_bytes residual_growth_error_bytes=error_bytes"),
    ),
    TracedRow: shown(
        "holder workload cgroup gone=is_gone class=kind what driver within bytes least_bytes "
        "most_bytes mapped_bytes frames=stack processes"
    ),
    TracedProcess: shown("pid name bytes alive=is_alive"),
}

# --- a census ------------------------------------------------------------------------------


class MemoryCensus(NamedTuple):
    """The node's memory with a census of its frames."""

    memory: MemoryPage
    page: CensusPage


class AgreementRow(NamedTuple):
    """One comparison with the ledger."""

    pair: CensusAgreement
    agrees: bool
    """Within 0.5 % of MemTotal, besides what moved and what a sample may be off."""


class AgreementSum(NamedTuple):
    """The census beside the ledger: the same memory counted twice."""

    largest_difference_fraction: float
    """Of MemTotal, as far as neither movement nor a sample explains it."""
    agrees: bool
    """No line differs by more than 0.5 % of MemTotal, besides moved_bytes and error_bytes."""
    lines: list[AgreementRow]


def agreement(one: MemoryCensus) -> AgreementSum | None:
    """The same memory counted twice, frame by frame and by counters."""
    pairs, census = one.page.agreements, one.page.census
    if not pairs or isinstance(census, Unread):
        return None
    total = census.total_bytes
    rows = [AgreementRow(pair, pair.agrees(total)) for pair in pairs]
    largest = round(largest_difference(pairs, total), 6)
    return AgreementSum(largest, all(row.agrees for row in rows), rows)


def sampled(one: MemoryCensus) -> float | Unlimited | Unread:
    """The fraction of frames that was read; null: all."""
    census = one.page.census
    if isinstance(census, Unread):
        return census
    return UNLIMITED if census.sampled is None else census.sampled


def of_which(one: MemoryCensus) -> dict[str, int] | None:
    """Parts of the pages of programs and files, by further marks."""
    census = one.page.census
    if isinstance(census, Unread):
        return None
    return {f"{name.replace(' ', '_')}_bytes": n for name, n in census.of_which.items()}


def errors(one: MemoryCensus) -> dict[str, int] | None:
    """By kind: what the sample may be off."""
    census = one.page.census
    if isinstance(census, Unread):
        return None
    return {part.kind: part.error_bytes for part in census.kinds}


def sums(parts: tuple[KindSum, ...]) -> dict[str, int]:
    """Bytes of memory by the kind of page frame."""
    return {part.kind: part.bytes for part in parts}


def unseen(one: MemoryCensus) -> list[NotSeen]:
    """What could not be seen, each once."""
    rows = {(row.what, row.why): row for row in (*one.memory.unseen, *one.page.unseen)}
    first = [(row.what, row.why) for row in one.page.unseen]
    return [rows[key] for key in dict.fromkeys((*first, *rows))]


_CENSUS: Final[Shapes] = {
    MemoryCensus: (
        *spread("memory"),
        *unread("by_cgroup=page.cgroups"),
        *unread("pages=page.census.kinds outside_pages=page.census.outside", turn=sums),
        *unread(of_which, errors, "error_bytes=page.census.error_bytes frames=page.census.frames"),
        *unread("frames_per_second=page.census.frames_per_second", turn=round),
        *unread("scan_seconds=page.census.seconds:3", agreement, sampled),
        *shown({"could_not_see": unseen}),
    ),
    AgreementRow: shown(
        "name=pair.name ledger_lines=pair.lines kinds=pair.kinds ledger_bytes=pair.ledger_bytes "
        "census_bytes=pair.census_bytes difference_bytes=pair.difference_bytes "
        "moved_bytes=pair.moved_bytes error_bytes=pair.error_bytes agrees"
    ),
    CgroupPages: shown("cgroup inode workload state bytes error_bytes kinds"),
}

MEMORY: Final = Document(
    name="memory",
    verb="seawall memory [WORKLOAD] --json",
    about="Where the memory went. Lines plus residual equal the total, exactly. Additive within a "
    "major number; what could not be read is absent and named in its object's unread.",
    pages=(MemoryPage, WorkloadMemoryPage, WhoPage, MemoryCensus),
    shapes={**_NODE, **_WORKLOAD, **_WHO, **_CENSUS, **CLAIM_SHAPES},
)
