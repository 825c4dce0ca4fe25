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
            *shown(workloads),
            *shown("left_out=chosen.left_out"),
            *shown(looked_at),
            *shown({"oom_kills_elsewhere": kills_elsewhere}),
            *shown(totals),
            *CLAIMED,
            *shown("could_not_see=unseen bundle_notes"),
        ),
        KillsElsewhere: (
            *unread("count=kills.gone"),
            *known("last_seconds_ago=kills.last_seconds_ago:1"),
        ),
        PodTotals: (
            *shown("workloads"),
            *unread("charge_bytes=sums.charge uncounted_bytes=sums.uncounted"),
            *unread("shadow_charge_bytes=sums.shadow_charge"),
            *unread("working_set_bytes=sums.working_set anon_bytes=sums.anon"),
            *unread("cache_bytes=sums.cache reclaimable_bytes=sums.reclaimable"),
            *unread("dirty_bytes=sums.dirty shmem_bytes=sums.shmem kernel_bytes=sums.kernel"),
            *unread("swap_bytes=sums.swap parents_own_bytes=parents_own root_own_bytes=root_own"),
        ),
        PodObject: (
            *shown("name=row.workload.name kind=row.workload.kind"),
            *shown("namespace=row.workload.namespace pod=row.workload.pod"),
            *shown("pod_uid=row.workload.pod_uid container=row.workload.container"),
            *shown("container_id=row.workload.container_id runtime=row.workload.runtime"),
            *shown("unit=row.workload.unit cgroup=row.workload.cgroup qos=row.workload.qos"),
            *shown("is_sandbox=row.workload.is_sandbox is_leaf=row.is_leaf nested=row.nested"),
            *shown("undivided_bytes=row.undivided"),
            *shown(danger, distance_cgroup),
            *known("oom_kills_gone=row.kills.gone oom_kills_in_window=row.kills.in_window"),
            *known("oom_kills_window_seconds=row.kills.window_seconds"),
            *known("oom_kill_last_seconds_ago=row.kills.last_seconds_ago"),
            *unread("charge_bytes=holding.charge limit_bytes=row.limit"),
            *unread({"distance_bytes": distance}),
            *unread("uncounted_bytes=holding.uncounted"),
            *unread("shadow_charge_bytes=holding.shadow_charge"),
            *unread("working_set_bytes=holding.working_set anon_bytes=holding.anon"),
            *unread("cache_bytes=holding.cache reclaimable_bytes=holding.reclaimable"),
            *unread("dirty_bytes=holding.dirty shmem_bytes=holding.shmem"),
            *unread("kernel_bytes=holding.kernel swap_bytes=holding.swap"),
            *unread("pressure_some_avg10=row.pressure oom_kills=row.oom_kills"),
            *unread("limit_hits=row.limit_hits file_bytes=holding.file"),
            *unread("high_bytes=row.memcg.high low_bytes=row.memcg.low min_bytes=row.memcg.min"),
            *unread("peak_bytes=row.memcg.peak swap_limit_bytes=row.memcg.swap_limit"),
            *unread("processes=row.processes uncounted_least_bytes=holding.uncounted_least"),
            *unread("uncounted_most_bytes=holding.uncounted_most"),
            *unread("cpu_limit_cores=asked.cpu.limit_cores cpu_shares=asked.cpu.shares"),
            *unread("cpu_weight=asked.cpu.weight cpu_request_cores=asked.cpu_request_cores"),
            *unread({"request_least_bytes": request_least, "request_most_bytes": request_most}),
        ),
        **CLAIM_SHAPES,
    },
)
