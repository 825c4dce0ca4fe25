# SPDX-License-Identifier: Apache-2.0
"""The rows of ``seawall pods`` with the uncounted memory of each workload."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from seawall.accounts.cgroup_memory.memory_groups import ancestors
from seawall.accounts.claim import Claim
from seawall.accounts.claims.claims import Claims
from seawall.accounts.claims.shadow_charge import (
    UncountedCharge,
    overrun_of,
    sum_of,
    uncounted_claims,
)
from seawall.accounts.pods.pod_table import PodHolding, PodRow, PodTable


def with_outside(table: PodTable, claims: Claims) -> PodTable:
    """The same rows; a claim belongs to the nearest leaf at or above its cgroup, else to the
    nearest parent: a pod, when whose of its containers it is cannot be told.  Where a source was
    refused, nothing seen is not nothing.
    """
    is_whole = not claims.refusals()
    rows = {row.workload.cgroup: row for row in table.rows}
    own: dict[str, list[Claim]] = {}
    whole: dict[str, list[Claim]] = {}
    undivided: dict[str, list[Claim]] = {}
    for claim in uncounted_claims(claims.claims):
        path = claim.cgroup or "/"
        places = [place for place in (path, *ancestors(path)) if place in rows]
        for place in places:
            whole.setdefault(place, []).append(claim)
        leaf = next((place for place in places if rows[place].is_leaf), None)
        if leaf is None and places:
            undivided.setdefault(places[0], []).append(claim)
        for place in places:
            # A parent shows all that is in it; only leaves leave out other leaves.
            if place == leaf or not rows[place].is_leaf:
                own.setdefault(place, []).append(claim)
    shown = tuple(_with(row, own, whole, undivided, is_whole=is_whole) for row in table.rows)
    return replace(table, rows=shown)


_Places: TypeAlias = Mapping[str, Sequence[Claim]]


def _with(
    row: PodRow, own: _Places, whole: _Places, undivided: _Places, *, is_whole: bool
) -> PodRow:  # fmt: skip
    path = row.workload.cgroup
    outside = sum_of(whole.get(path, ()))
    overrun = None
    if isinstance(row.limit, int) and row.whole.charge is not None:
        overrun = overrun_of(row.whole.charge, row.limit, outside.against_limit())
    return replace(
        row,
        own=_beside(row.own, sum_of(own.get(path, ())), is_whole=is_whole),
        whole=_beside(row.whole, outside, is_whole=is_whole),
        overrun=overrun,
        undivided=sum_of(undivided.get(path, ())).bytes,
    )


def _beside(holding: PodHolding, outside: UncountedCharge, *, is_whole: bool) -> PodHolding:
    charge = holding.charge
    seen = outside.bytes if is_whole or outside.bytes else None
    return replace(
        holding,
        uncounted=seen,
        uncounted_least=outside.least_bytes,
        uncounted_most=outside.most_bytes if is_whole else None,
        shadow_charge=None if charge is None or seen is None else charge + seen,
    )
