# SPDX-License-Identifier: Apache-2.0
"""Claims as a watcher keeps them: made from a trace, added up, fit for a file."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from seawall.accounts.tracing.trace_rows import TracedRow
from seawall.accounts.tracing.traced_words import is_handed_on, source_words
from seawall.readings.cgroup_tree import file_path
from seawall.readings.saved_claims import CLAIMS_MOST, SavedClaim

CLAIM_LEAST_BYTES: Final = 1 << 20
"""What is smaller is not kept: a workload's own small change."""

_SENT: Final = "sent, and held by whose queues it lies in: "

Key: TypeAlias = tuple[str, int | None, str, str, str | None]
"""Cgroup (else holder), its inode, kind, what it is, driver."""


@dataclass(frozen=True, slots=True)
class ClaimPlace:
    """What of the host goes into a claim beside the trace."""

    boot_id: str
    unix_seconds: float
    mount_point: str | None
    """Of the tree that counts memory."""
    traced_seconds: float = 0.0

    def folder_of(self, cgroup: str | None) -> str | None:
        """Where a cgroup is on the host."""
        if cgroup is None or self.mount_point is None:
            return None
        return file_path(self.mount_point, cgroup, "").rstrip("/")


def key_of(row: SavedClaim | TracedRow) -> Key:
    """What is added up.  The words for a holder change when its cgroup goes."""
    return row.cgroup or row.holder, row.cgroup_inode, row.kind, row.what, row.driver


def draft_of(row: TracedRow, place: ClaimPlace, floor_bytes: int) -> SavedClaim:
    """A row of the trace as a claim, of which at least so much is certain (``watching.Floors``)."""
    least = max(row.least_bytes, floor_bytes)
    best = max(row.bytes, least)
    return SavedClaim(
        holder=row.holder, workload=row.workload, cgroup=row.cgroup,
        folder=place.folder_of(row.cgroup), cgroup_inode=row.cgroup_inode, driver=row.driver,
        kind=row.kind, what=row.what, within=row.within, bytes=best, least_bytes=least,
        most_bytes=max(row.most_bytes, best), source=source_words(row, place.traced_seconds),
        stack=row.stack, learned_at_unix_seconds=place.unix_seconds, is_gone=row.is_gone,
    )  # fmt: skip


def merged(claims: Iterable[SavedClaim]) -> tuple[SavedClaim, ...]:
    """One for each key, largest first: different bytes of the same holder.  The words are
    those of the first; what is certain together is as old as the oldest of it.
    """
    found: dict[Key, SavedClaim] = {}
    for claim in claims:
        key = key_of(claim)
        if key in found:
            first = found[key]
            claim = replace(
                first, bytes=first.bytes + claim.bytes,
                least_bytes=first.least_bytes + claim.least_bytes,
                most_bytes=first.most_bytes + claim.most_bytes,
                learned_at_unix_seconds=min(
                    one.learned_at_unix_seconds for one in (first, claim)
                    if one.least_bytes or not (first.least_bytes or claim.least_bytes)
                ),
            )  # fmt: skip
        found[key] = claim
    return tuple(sorted(found.values(), key=lambda claim: -claim.bytes)[:CLAIMS_MOST])


def worth(claim: SavedClaim) -> bool:
    """Whether a claim is large enough to stand in the file of claims."""
    return claim.bytes >= CLAIM_LEAST_BYTES


def as_told(claim: SavedClaim) -> SavedClaim:
    """What whoever reads the file may believe: who sent data does not hold it.  Its bytes stay, for
    a watcher that comes later explains by them what uncounted memory grew by.
    """
    if not is_handed_on(claim.kind):
        return claim
    source = claim.source if claim.source.startswith(_SENT) else f"{_SENT}{claim.source}"
    return replace(claim, least_bytes=0, source=source)


def tellable(claim: SavedClaim) -> bool:
    """Whether its cgroup can be known again when the file is read."""
    return claim.folder is None or claim.cgroup_inode is not None
