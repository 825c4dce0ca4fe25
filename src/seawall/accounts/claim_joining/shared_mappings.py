# SPDX-License-Identifier: Apache-2.0
"""A driver's memory that one workload was seen to take, and another one has mapped.

A driver's file can be handed on, and what was taken through it is mapped by whoever has it: then
two claims are about one memory.  It counts once.  Whoever took it is certain to hold it, of who
has it mapped that is possible.  What a workload has mapped of its own is not meant (``join.py``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seawall.accounts.claim import Claim
from seawall.accounts.claim_joining.claim_bounds import fit
from seawall.accounts.claim_joining.claim_owner import driver_key, is_total, owner_of


def fit_once(claims: Sequence[Claim], most: int, traced_most: int | None = None) -> Iterator[Claim]:
    """As ``fit``, with what was taken by one and mapped by another counted once.

    Each taker gets what it would if the mappers had that much less, each mapper what all takers
    leave.  Nobody else gets more for it, so evidence against one raises no other.
    """
    owed = {taker: shared for taker in range(len(claims)) if any(shared := _shared(claims, taker))}
    if not owed:
        yield from fit(claims, most, traced_most)
        return
    owed_all = [min(c.bytes, sum(o[n] for o in owed.values())) for n, c in enumerate(claims)]
    lent = [sum(owed.get(n, ())) for n in range(len(claims))]
    less = list(fit(list(map(_less, claims, owed_all)), most, traced_most))
    whole = list(fit(list(map(_less, claims, lent)), most, traced_most))
    for n, claim in enumerate(claims):
        if n in owed:
            yield list(fit(list(map(_less, claims, owed[n])), most, traced_most))[n]
        elif owed_all[n]:
            others = sum(claims[t].most_bytes for t in owed if _may_be_one(claims[t], claim))
            certain = max(0, less[n].least_bytes + owed_all[n] - others)
            rest = _lower(less[n], whole[n], certain)
            yield rest if rest.bytes else replace(rest, confidence="bound")
        else:
            yield _lower(less[n], whole[n], less[n].least_bytes)


def _shared(claims: Sequence[Claim], taker: int) -> list[int]:
    """How much of each claim the one of ``taker`` may have taken."""
    one, found = claims[taker], [0] * len(claims)
    if one.confidence == "traced" and _is_users(one):
        left = one.bytes
        for n, other in enumerate(claims):
            if _is_mapped(other) and _may_be_one(one, other):
                found[n] = min(left, other.bytes)
                left -= found[n]
    return found


def _lower(one: Claim, other: Claim, least: int) -> Claim:
    """The lower one's best and least; ``other``'s most."""
    size = min(one.bytes, other.bytes)
    return replace(
        other, bytes=size, least_bytes=min(one.least_bytes, other.least_bytes, least, size)
    )  # fmt: skip


def _is_users(claim: Claim) -> bool:
    return bool(claim.driver) and not is_total(claim)


def _is_mapped(claim: Claim) -> bool:
    """What names things (a buffer, a socket) is told apart by them."""
    return claim.confidence == "exact" and _is_users(claim) and not claim.things


def _may_be_one(taker: Claim, mapper: Claim) -> bool:
    is_same = driver_key(taker.driver or "") == driver_key(mapper.driver or "")
    return is_same and owner_of(taker) != owner_of(mapper)


def _less(claim: Claim, size: int) -> Claim:
    """What is left of its best and its least; its most stays."""
    return replace(
        claim, bytes=claim.bytes - size, least_bytes=max(0, claim.least_bytes - size)
    )  # fmt: skip
