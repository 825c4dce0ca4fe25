# SPDX-License-Identifier: Apache-2.0
"""What was once seen being taken for packet rings, held against the rings that there are.

A claim that is not followed page by page any more (the trace is paused, or the watcher that learned
it is gone) may be of a ring that was closed since, whose pages somebody else has now.  PACKET_DIAG
tells every ring that can be found: nobody holds more than may be his of those.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from seawall.accounts.claim import RESIDUAL, Claim
from seawall.readings.packet_rings import PacketRings
from seawall.readings.saved_claims import SavedClaim

_WHAT: Final = "packet ring"  # accounts/tracing/page_kinds.py


def bounded(
    kept: Iterable[SavedClaim], rings: PacketRings, told: Sequence[Claim], page_size: int
) -> Iterator[SavedClaim]:
    """The same claims, those of packet rings no larger than ``told`` (what PACKET_DIAG says of
    now) leaves possible; their most stays.  Nothing is bounded by an answer that is not whole.
    """
    left: dict[str, int] = {}
    for claim in kept:
        holder = claim.cgroup
        if holder is None or claim.what != _WHAT or not _is_whole(rings):
            yield claim
            continue
        if holder not in left:
            left[holder] = _possible(holder, rings, told, page_size)
        size = min(claim.bytes, left[holder])
        left[holder] -= size
        yield replace(claim, bytes=size, least_bytes=min(claim.least_bytes, size))


def _is_whole(rings: PacketRings) -> bool:
    """Every namespace that was found was asked, and every process told its own."""
    return not (rings.why_not or rings.namespaces_left_out or rings.processes_left_out)


def _possible(
    holder: str, rings: PacketRings, told: Sequence[Claim], page_size: int
) -> int:  # fmt: skip
    """Uncounted bytes that may be ``holder``'s: its own, its pod's, and nobody's."""
    if not rings.is_looked:  # less than 1 MiB together, so nobody was asked whose they are
        return rings.others_bytes + sum(one.held_bytes(page_size) for one in rings.sockets)
    return sum(
        claim.most_bytes
        for claim in told
        if claim.within == RESIDUAL and (claim.cgroup is None or _is_near(claim.cgroup, holder))
    )


def _is_near(one: str, other: str) -> bool:
    """The same cgroup, or one of them is in the other."""
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")
