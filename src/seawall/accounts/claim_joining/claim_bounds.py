# SPDX-License-Identifier: Apache-2.0
"""Claims held against what there is: together they never say more than the ledger has."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from seawall.accounts.claim import RESIDUAL, Claim
from seawall.accounts.claim_joining.claim_owner import RANKS


def fit(claims: Sequence[Claim], most: int, traced_most: int | None = None) -> Iterator[Claim]:
    """The same claims such that together they are no more than ``most`` bytes, and traced ones
    no more than ``traced_most``: best evidence is served first, equal evidence in proportion.
    """
    most = max(0, most)
    limits = {1: most if traced_most is None else min(most, max(0, traced_most))}
    leasts, used = _serve(claims, [c.least_bytes for c in claims], most, limits)
    certain = sum(used.values())
    limits = {1: limits[1] - used.get(1, 0)}
    wanted = [max(0, c.bytes - least) for c, least in zip(claims, leasts, strict=True)]
    mores, _ = _serve(claims, wanted, most - certain, limits)
    for claim, least, more in zip(claims, leasts, mores, strict=True):
        # What others have for certain is not this one's.
        upper = min(claim.most_bytes, most - certain + least)
        if claim.confidence == "traced" and traced_most is not None:
            upper = min(upper, max(0, traced_most))
        yield replace(
            claim, least_bytes=least, bytes=least + more, most_bytes=max(least + more, upper)
        )


def _serve(
    claims: Sequence[Claim], wanted: Sequence[int], room: int, limits: dict[int, int]
) -> tuple[list[int], dict[int, int]]:
    """What each gets of ``room``; and what each rank used."""
    got = [0] * len(claims)
    used: dict[int, int] = {}
    for rank in sorted(set(RANKS.values())):
        members = [i for i, claim in enumerate(claims) if RANKS[claim.confidence] == rank]
        asked = sum(wanted[i] for i in members)
        there = min(room, limits.get(rank, room))
        for i in members:
            got[i] = wanted[i] if asked <= there else wanted[i] * there // asked
        # Not what rounding left of it: that is nobody's.
        used[rank] = min(asked, there)
        room -= used[rank]
    return got, used


def within_residual(claims: Iterable[Claim]) -> list[Claim]:
    """Those that no line of the ledger holds."""
    return [claim for claim in claims if claim.within == RESIDUAL]
