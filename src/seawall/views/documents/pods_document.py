# SPDX-License-Identifier: Apache-2.0
"""The fields of ``seawall pods --json``, and where their values come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.claim import Claim, Suspect
from seawall.accounts.claims.claims import Claims
from seawall.accounts.entitlements import Entitlement
from seawall.accounts.pods.pod_danger import Danger, danger_of
from seawall.accounts.pods.pod_kills import PodCoverage, coverage_of
from seawall.accounts.pods.pod_table import PodHolding, PodKills, PodRow, PodTable, Room
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.reading import Unlimited
from seawall.views.documents.claims_shapes import CLAIM_SHAPES, CLAIMED
from seawall.views.documents.document_fields import (
    Document,
    known,
    shown,
    unread,
)
from seawall.views.pods_choice import PodRows, summed
from seawall.views.pods_columns import holding_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsPage:
    """One answer of the verb."""

    table: PodTable
    chosen: PodRows
    entitlements: Mapping[str, Entitlement]
    """By cgroup."""
    claimed: Claims | Unread
    unseen: Sequence[NotSeen]
    bundle_notes: Sequence[str]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Who holds what is outside every charge."""
        return () if isinstance(self.claimed, Unread) else self.claimed.claims

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Who could hold uncounted memory; nothing is proved."""
        return () if isinstance(self.claimed, Unread) else self.claimed.suspects


class PodObject(NamedTuple):
    """One row, with what it holds and what was promised to it."""

    row: PodRow
    holding: PodHolding
    """With everything below it where it is a parent."""
    asked: Entitlement


class PodTotals(NamedTuple):
    """Sums over all leaves, shown or not; what is not known of one of them is not known."""

    workloads: int
    sums: PodHolding
    parents_own: int | None
    """Charged to parents alone: of removed cgroups, or shared by several children."""
    root_own: int | None
    """Charged to the root itself; v1 only."""


def workloads(page: PodsPage) -> list[PodObject]:
    """In the order of the text."""
    nothing = Entitlement()
    return [
        PodObject(
            row,
            holding_of(row, whole=page.chosen.whole),
            page.entitlements.get(row.workload.cgroup, nothing),
        )
        for row in page.chosen.rows
    ]


def looked_at(page: PodsPage) -> PodCoverage:
    """How much is known of how many, which the headline is about."""
    return coverage_of(page.chosen.looked_at())


class KillsElsewhere(NamedTuple):
    """Kills of the kernel's log in cgroups that are gone and were in no workload."""

    kills: PodKills | None


def kills_elsewhere(page: PodsPage) -> KillsElsewhere:
    """Of the kernel's log, in cgroups that are gone and were in no workload."""
    return KillsElsewhere(page.table.elsewhere)


def totals(page: PodsPage) -> PodTotals:
    """Sums over all leaves, shown or not."""
    chosen, table = page.chosen, page.table
    sums = {column.json_name.removesuffix("_bytes"): chosen.total(column) for column in summed()}
    whole = PodHolding(file=None, **sums)
    return PodTotals(len(chosen.leaves), whole, table.parents_own, table.root_own)


def danger(one: PodObject) -> Danger | None:
    """The worst thing that one look can tell; None: there is none."""
    return danger_of(one.row)


def distance(one: PodObject) -> int | Unlimited | None:
    """From the charge to the limit that binds it, its own or one above it."""
    room = one.row.room
    return room.distance if isinstance(room, Room) else room


def distance_cgroup(one: PodObject) -> str | None:
    """Whose limit it is."""
    return one.row.room.cgroup if isinstance(one.row.room, Room) else None


def request_least(one: PodObject) -> int | None:
    """What its pod asks for; the same as the most where it is exact."""
    request = one.asked.memory_request
    return None if request is None else request[0]


def request_most(one: PodObject) -> int | None:
    """What its pod asks for at most."""
    request = one.asked.memory_request
    return None if request is None else request[1]


PODS: Final = Document(
    name="pods",
    verb="seawall pods --json",
    about="Additive within a major number. Unlimited is null; what could not be read is absent and "
    "named in its object's unread.",
    pages=(PodsPage,),
    shapes={
        PodsPage: (
            *shown(workloads, "left_out=chosen.left_out", looked_at),
            *shown({"oom_kills_elsewhere": kills_elsewhere}, totals),
            *CLAIMED,
            *shown("could_not_see=unseen bundle_notes"),
        ),
        KillsElsewhere: (
            *unread("count=kills.gone"),
            *known("last_seconds_ago=kills.last_seconds_ago:1"),
        ),
        PodTotals: (
            *shown("workloads"),
            *unread("charge uncounted shadow_charge working_set anon", of="sums", unit="bytes"),
            *unread("cache reclaimable dirty shmem kernel swap", of="sums", unit="bytes"),
            *unread("parents_own root_own", unit="bytes"),
        ),
        PodObject: (
            *shown("name kind namespace pod pod_uid container container_id", of="row.workload"),
            *shown("runtime unit cgroup qos is_sandbox", of="row.workload"),
            *known("slurm=row.workload.slurm"),
            *shown("is_leaf nested undivided_bytes=undivided", of="row"),
            *shown(danger, distance_cgroup),
            *known("oom_kills_gone=gone oom_kills_in_window=in_window", of="row.kills"),
            *known("oom_kills_window_seconds=row.kills.window_seconds"),
            *known("oom_kill_last_seconds_ago=row.kills.last_seconds_ago"),
            *unread("charge_bytes=holding.charge limit_bytes=row.limit"),
            *unread({"distance_bytes": distance}),
            *unread("uncounted shadow_charge working_set anon", of="holding", unit="bytes"),
            *unread("cache reclaimable dirty shmem kernel swap", of="holding", unit="bytes"),
            *unread("pressure_some_avg10=pressure oom_kills limit_hits", of="row"),
            *unread("file_bytes=holding.file"),
            *unread("high low min peak swap_limit", of="row.memcg", unit="bytes"),
            *unread("processes=row.processes"),
            *unread("uncounted_least uncounted_most", of="holding", unit="bytes"),
            *unread("cpu_limit_cores=cpu.limit_cores cpu_shares=cpu.shares", of="asked"),
            *unread("cpu_weight=cpu.weight cpu_request_cores", of="asked"),
            *unread({"request_least_bytes": request_least, "request_most_bytes": request_most}),
        ),
        **CLAIM_SHAPES,
    },
)
