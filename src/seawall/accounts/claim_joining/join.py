# SPDX-License-Identifier: Apache-2.0
"""Joining claims: the same bytes once, whatever the order in which sources spoke.

One source does not count the same memory twice; between sources, what may be the same memory
is taken for the same: things of one identity, several looks at one workload, a parent and what
is in it, a driver's total and its users.  A total keeps what its parts leave of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.claim_joining.claim_owner import (
    RANKS,
    Owner,
    either,
    is_of_driver,
    is_total,
    likely_bytes,
    owner_of,
)

_SOURCES_SHOWN: Final = 2


@dataclass(frozen=True, slots=True)
class _View:
    """A claim with the numbers of the sources that it comes from."""

    claim: Claim
    sources: frozenset[int]

    @property
    def rank(self) -> int:
        return RANKS[self.claim.confidence]


def join(found: Sequence[SourceClaims]) -> list[Claim]:
    """Every claim that is left, not yet held against the ledger."""
    views = [
        _View(_sane(claim), frozenset({number}))
        for number, answer in enumerate(found)
        for claim in answer.claims
        if claim.most_bytes > 0
    ]
    views = _by_thing(sorted(views, key=_content))
    views = _looks(views)
    views = _less_parts(sorted(views, key=_outermost_last))
    return [view.claim for view in views if _says_something(view.claim)]


def _sane(claim: Claim) -> Claim:
    least = 0 if claim.confidence == "bound" else max(0, claim.least_bytes)
    most = max(least, claim.most_bytes)
    return replace(
        claim, least_bytes=least, most_bytes=most, bytes=min(max(claim.bytes, least), most)
    )


def _content(view: _View) -> tuple[object, ...]:
    """An order that does not depend on who spoke first; best evidence in front."""
    claim = view.claim
    return (
        view.rank, -claim.bytes, -claim.least_bytes, -claim.most_bytes, owner_of(claim),
        claim.kind, claim.within, claim.driver or "", claim.source, sorted(claim.things),
        claim.holder, claim.is_counted, claim.missing, claim.give_back,
    )  # fmt: skip


def _outermost_last(view: _View) -> tuple[object, ...]:
    """What is contained before what contains it."""
    claim = view.claim
    depth = len((claim.cgroup or "").rstrip("/").split("/")) if not is_total(claim) else 0
    return (-depth, claim.kind in ("unknown", "unified"), *_content(view))


def _says_something(claim: Claim) -> bool:
    return claim.bytes > 0 or (claim.confidence == "bound" and claim.most_bytes > 0)


# --- the same thing twice ---------------------------------------------------------------


def _by_thing(views: Iterable[_View]) -> list[_View]:
    """Best evidence first; what names a thing that better evidence has already gives way."""
    kept: dict[int, _View] = {}
    places: dict[str, int] = {}  # a thing -> its place in ``kept``
    for number, incoming in enumerate(views):
        view: _View | None = incoming
        for place in sorted({places[t] for t in incoming.claim.things if t in places}):
            if view is not None and view.claim.things & kept[place].claim.things:
                kept[place], view = _settle(kept[place], view)
                places.update(dict.fromkeys(kept[place].claim.things, place))
        if view is not None:
            kept[number] = view
            places.update(dict.fromkeys(view.claim.things, number))
    return list(kept.values())


def _settle(rival: _View, view: _View) -> tuple[_View, _View | None]:
    """What becomes of two that name one thing; ``rival`` has evidence at least as good."""
    mine, other = view.claim, rival.claim
    if owner_of(mine) == owner_of(other):
        return _merged([rival, view]), None
    if rival.rank == view.rank:
        return _of_either(rival, view)
    return rival, _without(view, rival)


def _without(view: _View, other: _View) -> _View | None:
    """What is left of ``view`` when ``other`` has the things of both."""
    things = view.claim.things - other.claim.things
    if not things:
        return None
    return _View(replace(_rest(view.claim, [other.claim]), things=things), view.sources)


def _of_either(rival: _View, view: _View) -> tuple[_View, _View | None]:
    """Equal evidence for two holders: what may be of both, the smaller one at most, is charged
    to neither; what the larger one has besides stays its own.
    """
    if rival.claim.things <= view.claim.things:
        small, large = rival, view
    elif view.claim.things <= rival.claim.things:
        small, large = view, rival
    else:
        small, large = sorted((rival, view), key=_content, reverse=True)
    told = "which of them took the memory"
    claim = replace(
        small.claim, holder=either(rival.claim, view.claim), workload=None, cgroup=None,
        driver=None,
        missing="; ".join(filter(None, (told, small.claim.missing.removeprefix(told)))),
    )  # fmt: skip
    shared, rest = _View(claim, rival.sources | view.sources), _without(large, small)
    return (rest, shared) if rest and large is rival else (shared, rest)


# --- several looks at one memory --------------------------------------------------------


def _looks(views: Iterable[_View]) -> list[_View]:
    """One claim for each owner, class and line: each source's own are added, then sources
    are compared.
    """
    groups: dict[tuple[Owner, str, str, bool], list[_View]] = {}
    for view in views:
        claim = view.claim
        key = owner_of(claim), claim.kind, claim.within, claim.is_counted
        groups.setdefault(key, []).append(view)
    found = []
    for members in groups.values():
        by_source: dict[int, list[_View]] = {}
        for view in members:
            for number in view.sources:
                by_source.setdefault(number, []).append(view)
        sums = [_added(own, number) for number, own in by_source.items()]
        found.append(_merged(sorted(sums, key=_content)))
    return found


def _added(views: list[_View], number: int) -> _View:
    """What one source says of one owner."""
    if len(views) == 1:
        return _View(views[0].claim, frozenset({number}))
    claims = [view.claim for view in views]
    likely = [claim for claim in claims if claim.confidence != "bound"] or claims
    weakest = max(likely, key=lambda claim: RANKS[claim.confidence])
    claim = replace(
        _told_together(claims), bytes=sum(claim.bytes for claim in likely),
        least_bytes=sum(claim.least_bytes for claim in claims),
        most_bytes=sum(claim.most_bytes for claim in claims), confidence=weakest.confidence,
    )  # fmt: skip
    return _View(claim, frozenset({number}))


def _merged(views: list[_View]) -> _View:
    """Looks at the same memory, best evidence first.

    Where one is certain of more than another holds possible, they cannot be the same memory
    alone: then all of it is possible, and no evidence is better than that of the least.
    """
    if len(views) == 1:
        return views[0]
    claims = [view.claim for view in sorted(views, key=_content)]
    least = max(claim.least_bytes for claim in claims)
    agree = least <= min(claim.most_bytes for claim in claims)
    most = max(claim.most_bytes for claim in claims)
    if not agree:
        most = sum(claim.most_bytes for claim in claims)
    surest = next(claim for claim in claims if claim.most_bytes >= least)
    claim = replace(
        _told_together(claims), bytes=max(claims[0].bytes, least), least_bytes=least,
        most_bytes=most, confidence=surest.confidence,
    )  # fmt: skip
    return _View(claim, frozenset().union(*(view.sources for view in views)))


def _told_together(claims: Sequence[Claim]) -> Claim:
    """The first one's words, with the sources of all."""
    sources = list(dict.fromkeys(claim.source for claim in claims))
    more = len(sources) - _SOURCES_SHOWN
    words = "; ".join(sources[:_SOURCES_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    drivers = {claim.driver for claim in claims if claim.driver}
    return replace(
        claims[0], source=words, driver=drivers.pop() if len(drivers) == 1 else None,
        things=frozenset().union(*(claim.things for claim in claims)),
    )  # fmt: skip


# --- a total and its parts --------------------------------------------------------------


def _less_parts(views: Sequence[_View]) -> list[_View]:
    """Each claim without what contained ones say already."""
    done: list[_View] = []
    below: dict[str, list[_View]] = {}  # a cgroup -> what is claimed for it and in it
    for view in views:
        total, owner = view.claim, owner_of(view.claim)[1]
        near = done if is_total(total) else below.get(owner, [])
        parts = [part.claim for part in near if _holds(view, part)]
        rest = _View(_rest(total, parts), view.sources) if parts else view
        done.append(rest)
        if not is_total(total):
            for path in dict.fromkeys((owner, *_above(owner))):
                below.setdefault(path, []).append(rest)
    return done


def _above(path: str) -> Iterator[str]:
    while "/" in path.strip("/"):
        path = path.rpartition("/")[0]
        yield path
    yield "/"


def _holds(view: _View, part_view: _View) -> bool:
    """Whether ``part_view`` is, or may be, part of the same memory."""
    total, part = view.claim, part_view.claim
    if part.within != total.within or _are_apart(part, total):
        return False
    if part_view.sources & view.sources and not (
        total.driver and is_total(total) and not is_total(part)
    ):
        return False  # one source counts a byte once, but for a driver's total and its users
    return _holds_part(total, part) if is_total(total) else _holds_own(total, part)


def _holds_part(total: Claim, part: Claim) -> bool:
    """Of the host or of a driver; a pool of free pages holds nobody's."""
    if (total.kind == "pool") != (part.kind == "pool"):
        return False
    if total.driver is None:
        return part.kind == total.kind
    return part.driver is not None and is_of_driver(total.driver, part.driver)


def _holds_own(total: Claim, part: Claim) -> bool:
    """Of the same owner, or of a cgroup above."""
    if owner_of(part) == owner_of(total):
        if total.kind == "unified":
            return (part.driver or "") != "" and is_of_driver(total.driver or "", part.driver or "")
        return total.kind == "unknown"  # traced, by code that is in no table
    if total.cgroup is None or part.cgroup is None:
        return False
    return part.kind == total.kind or "unknown" in (part.kind, total.kind)


def _are_apart(one: Claim, other: Claim) -> bool:
    """Both tell what they counted, and it is not the same."""
    return bool(one.things and other.things) and not one.things & other.things


def _rest(total: Claim, parts: Sequence[Claim]) -> Claim:
    """Together with its parts it most likely has what it said.  What is certain of the whole and
    not of a part that most likely has it stays that part's, and uncertain.
    """
    least = sum(part.least_bytes for part in parts)
    bytes_ = max(0, total.bytes - sum(likely_bytes(part) for part in parts))
    return replace(
        total, least_bytes=min(bytes_, max(0, total.least_bytes - least)), bytes=bytes_,
        most_bytes=max(bytes_, total.most_bytes - least),
    )  # fmt: skip
