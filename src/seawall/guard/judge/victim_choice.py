# SPDX-License-Identifier: Apache-2.0
"""The choice of a victim; a kill that cannot help is refused, for innocents would die for nothing.

Whoever is proved goes.  Anyone else only when what is missing would really come back: not when
most of the loss is held by somebody who cannot be seen, by somebody protected, or by a driver
that kept it, and not when the best of them together give back less than is needed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seawall.guard.judge.proof import BESIDE_SHARE, LEAST_GROWTH, Causes, enough_of
from seawall.guard.judge.row import PROVED, RANKED, WITHIN, Row
from seawall.guard.judge.sentences import plain
from seawall.guard.judge.shortage import URGENT_SECONDS, Shortage
from seawall.words import size

YOUNG_SECONDS = 3.0
"""After so short a look nobody is chosen by order alone."""
RIPE_SECONDS = 1.0
"""Nor in so short a shortage: claims and counters come late, and the cause shows itself."""
UNREAD_SECONDS = 3.0
"""For so long order waits for one that has grown and was not read."""
LAST_SECONDS = 2.0
"""But when time runs out before order may decide, who alone takes it all goes, if its promise
was hollow (see evidence)."""
BLUR_SHARE = 8
"""What nobody owns is no cause beside one who took so many times as much."""
OUTSIDE_SHARE = 4
"""Who took so large a part of what it took as uncounted memory is stopped by no limit."""
SUSPECTS_MOST = 3
SIBLINGS_MOST = 16


class VictimChoice(NamedTuple):
    """The victims of this tick, who go together; or the reason why there is none."""

    rows: tuple[Row, ...]
    code: str
    """Of the refusal, stable: ``unseen``, ``protected``, ``kept``, ``too_little``, ``young``,
    ``unripe``, ``spent``, ``nobody``, ``limits``."""
    refusal: str


class ChoiceContext(NamedTuple):
    """What the choice depends on beside the rows."""

    shortage: Shortage
    causes: Causes
    kills_left: int
    """Before the minute's budget is spent."""
    watched_seconds: float
    short_seconds: float
    """The node has really been short for so long, not only by what is foretold."""
    kept_bytes: int
    """Foretold for earlier kills and not come back."""
    spare_bytes: int
    """That can be taken yet before next to nothing is left."""


def choose(able: Sequence[Row], rows: Sequence[Row], about: ChoiceContext) -> VictimChoice:
    """The next to go out of ``able`` (in their order), or the reason against all."""
    proved = [row for row in able if row.tier <= PROVED]
    useful = [row for row in proved if is_useful(row, about)]
    if not useful and are_useful(proved, about):
        useful = proved
    if useful:
        return VictimChoice(as_many_as_urgent(useful, about), "", "")
    refusal = blocked(able, rows, about)
    if refusal is not None:
        return refusal
    return by_order(able, rows, about)


def is_useful(row: Row, about: ChoiceContext) -> bool:
    """The source of the growth always; who merely is over its limit, if it gives back enough."""
    if 2 * row.beyond > about.causes.owed > 0:
        return True
    return row.expected * max(1, about.kills_left) >= about.shortage.need_bytes


def are_useful(proved: Sequence[Row], about: ChoiceContext) -> bool:
    """Many small ones are what is missing as well as a large one: while they took most of it, or
    give back half of what is needed and nobody unseen took it, nobody else goes for it.
    """
    causes, enough = about.causes, enough_of(about.shortage.need_bytes)
    beyond = sum(row.beyond for row in proved)
    if beyond >= LEAST_GROWTH and 2 * beyond > causes.owed:
        return True
    if causes.is_unseen or max(causes.unseen, causes.unexplained) >= enough:
        return False
    back = sorted((row.expected for row in proved), reverse=True)
    return sum(back[: about.kills_left]) >= enough


def as_many_as_urgent(proved: Sequence[Row], about: ChoiceContext) -> tuple[Row, ...]:
    """One; more only when there is no time to see what the first gives back."""
    chosen = [proved[0]]
    if about.shortage.budget_seconds >= URGENT_SECONDS:
        return tuple(chosen)
    back = proved[0].expected
    for row in proved[1 : about.kills_left]:
        if back >= about.shortage.need_bytes:
            break
        chosen.append(row)
        back += row.expected
    return tuple(chosen)


def blocked(able: Sequence[Row], rows: Sequence[Row], about: ChoiceContext) -> VictimChoice | None:
    """Why nobody may go by order alone: what is missing is held by somebody else."""
    causes, enough = about.causes, enough_of(about.shortage.need_bytes)
    source = next((row for row in able if is_source_within(row, about)), None)
    held = max(causes.unseen, causes.unexplained)
    if source is None and (causes.is_unseen or held >= enough):
        text = f"{size(held)} of what was lost is in no cgroup, and no evidence says whose it is"
        return VictimChoice((), "unseen", text + suspects(rows))
    if about.kept_bytes >= enough:
        text = f"{size(about.kept_bytes)} of what was killed before has not come back"
        return VictimChoice((), "kept", f"{text}: the next one would not bring it back")
    barred = [row for row in rows if row.against and is_guilty(row)]
    theirs = sum(map(_blame, barred))
    # None of the three may be enough alone, and still all together be what is missing.
    if barred and (
        theirs + about.kept_bytes + (held if source is None else 0) >= enough
        or any(2 * row.beyond > causes.owed for row in barred)
    ):
        row = max(barred, key=_blame)
        text = f"{plain(row.group.name)} holds what is missing, and it stays: {row.against[0]}"
        return VictimChoice((), "protected", text)
    if about.watched_seconds < YOUNG_SECONDS:
        text = f"the node has been watched for {about.watched_seconds:.1f} s only"
        return VictimChoice((), "young", text)
    if about.short_seconds < RIPE_SECONDS:
        if source is not None and about.shortage.budget_seconds < LAST_SECONDS:
            return VictimChoice((source,), "", "")
        return VictimChoice(
            (), "unripe", "nobody is proved, and it has been short for a moment only"
        )
    return None


def is_guilty(row: Row) -> bool:
    """It took more than measuring blurs beyond its promise or its limit."""
    return row.tier <= PROVED or row.beyond >= LEAST_GROWTH


def _blame(row: Row) -> int:
    return max(row.over_limit, row.beyond)


def suspects(rows: Sequence[Row]) -> str:
    """Who may hold more than is certain, named as what they are."""
    vague = [row for row in rows if row.group.outside.most_bytes - row.certain >= LEAST_GROWTH]
    vague.sort(key=lambda row: -row.group.outside.most_bytes)
    if not vague:
        return ""
    return "; only suspects: " + ", ".join(
        f"{plain(row.group.name)} (at most {size(row.group.outside.most_bytes)})"
        for row in vague[:SUSPECTS_MOST]
    )


def by_order(able: Sequence[Row], rows: Sequence[Row], about: ChoiceContext) -> VictimChoice:
    """Kubernetes' order, a class after the other, until what may go can bring back enough.

    Where most was taken within mere limits, nobody of the same class goes for it who stood still.
    """
    need = about.shortage.need_bytes
    if (row := _unread(able, about)) is not None:
        text = f"{plain(row.group.name)} has grown, and what its end gives back is not read yet"
        return VictimChoice((), "unripe", text)
    # Of whom it was not read what their end gives back, a guess would decide.
    ranked = [row for row in able if row.tier == RANKED and row.is_read]
    takers = [row for row in ranked if row.is_taker and row.expected >= need]
    if takers:
        return VictimChoice((takers[0],), "", "")
    within: list[Row] = []
    for rank in sorted({row.group.class_rank for row in ranked}):
        if within := _took_within_limits(rows, rank, about):
            break
        pool = [row for row in ranked if row.group.class_rank <= rank]
        units = units_of(pool, need)
        if best_sum(units, about.kills_left) < need:
            continue
        least = need / max(1, about.kills_left)
        for unit in units:
            if unit_return(unit) >= least:
                return VictimChoice(unit, "", "")
    for row in able:
        if is_source_within(row, about):
            return VictimChoice((row,), "", "")
    return _limits_are_hollow(within, about) if within else too_little(ranked, about)


def _took_within_limits(rows: Sequence[Row], rank: int, about: ChoiceContext) -> list[Row]:
    """Who took most of what was lost and keeps within a limit, where nobody asked for anything;
    of this class or one that goes before it.  The most first; nobody, if it was not most of it.
    """
    found = [row for row in rows if row.within_limit and row.group.class_rank <= rank]
    taken = sum(row.within_limit for row in found)
    if 2 * taken <= about.causes.lost or taken < enough_of(about.shortage.need_bytes):
        return []
    return sorted(found, key=lambda row: -row.within_limit)


def _limits_are_hollow(within: Sequence[Row], about: ChoiceContext) -> VictimChoice:
    """More than one of them took it, and limits together may be more than the node."""
    names = ", ".join(
        f"{plain(row.group.name)} ({size(row.within_limit)})" for row in within[:SUSPECTS_MOST]
    )
    text = f"most of the {size(about.causes.lost)} lost was taken within limits, by {names}"
    return VictimChoice(
        (), "limits", f"{text}: nobody else goes for it, and none of them is the source"
    )


def _unread(able: Sequence[Row], about: ChoiceContext) -> Row | None:
    """Who may be the source; who cannot be read at all does not stay in the others' way."""
    if about.short_seconds >= UNREAD_SECONDS:
        return None
    enough = enough_of(about.shortage.need_bytes)
    return next((row for row in able if not row.is_read and row.beyond >= enough), None)


def is_source_within(row: Row, about: ChoiceContext) -> bool:
    """It alone makes the shortage, on a promise that no node could keep (see ranking)."""
    if row.tier != WITHIN or row.expected < about.shortage.need_bytes:
        return False
    if about.shortage.is_foretold and is_stopped(row, about.spare_bytes):
        return False
    held = max(about.causes.unexplained, about.causes.unseen)
    blur = min(LEAST_GROWTH, BESIDE_SHARE * about.causes.lost)
    return held < blur or held * BLUR_SHARE <= row.grown


def is_stopped(row: Row, spare: int) -> bool:
    """What is foretold does not come: its limit stops it while ``spare`` bytes of memory can still
    be taken.  Only of what it is charged with; and into swap it may go on.
    """
    is_charged = OUTSIDE_SHARE * row.outside_grown < row.grown
    return is_charged and row.limit is not None and row.limit - row.group.charge_bytes <= spare


def units_of(pool: Sequence[Row], need: int) -> list[tuple[Row, ...]]:
    """Whole pods where one container alone gives back too little; in the order of the first."""
    pods: dict[str, list[Row]] = {}
    for row in pool:
        if row.group.pod:
            pods.setdefault(row.group.pod, []).append(row)
    units: list[tuple[Row, ...]] = []
    for row in pool:
        family = pods.get(row.group.pod)
        if family is None or row.expected >= need:
            units.append((row,))
        elif family[0] is row:
            units.append(tuple(family[:SIBLINGS_MOST]))
    return units


def unit_return(unit: tuple[Row, ...]) -> int:
    """What the end of all of it gives back."""
    return sum(row.expected for row in unit)


def best_sum(units: Sequence[tuple[Row, ...]], most: int) -> int:
    """The most that ``most`` kills could bring back."""
    return sum(sorted(map(unit_return, units), reverse=True)[:most])


def too_little(ranked: Sequence[Row], about: ChoiceContext) -> VictimChoice:
    """Nobody may go, or all that may go cannot bring back enough."""
    need = about.shortage.need_bytes
    if not ranked:
        return VictimChoice(
            (), "nobody", "all that may be killed keep their promise or are protected"
        )
    best = best_sum([(row,) for row in ranked], about.kills_left)
    text = f"{size(need)} are needed and the best that may be killed give back {size(best)}"
    return VictimChoice((), "too_little", f"{text}: that would not help")
