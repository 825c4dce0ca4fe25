# SPDX-License-Identifier: Apache-2.0
"""Words for a person at 3 a.m.: the number first, then what follows from it."""

from collections.abc import Sequence

from seawall.guard.judge.proof import Causes
from seawall.guard.judge.row import OVER_LIMIT, SOURCE, SOURCE_OUTSIDE, WITHIN, Row
from seawall.guard.judge.shortage import NO_END, Shortage
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED
from seawall.guard.verdict import Rank
from seawall.words import size

NAME_MOST = 120
ACCUSED_MOST = 2
"""Told one by one; more would leave no room for what is done to them."""
CLASSES = {BEST_EFFORT: "BestEffort", BURSTABLE: "Burstable", GUARANTEED: "Guaranteed"}


def plain(name: str) -> str:
    """A name that came out of a container: printable, on one line, of bounded length."""
    if len(name) > NAME_MOST:
        name = name[: NAME_MOST - 3] + "..."
    return name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)


def rank_of(row: Row, place: int) -> Rank:
    """The row as it is kept."""
    group = row.group
    return Rank(
        path=group.path,
        inode=group.inode,
        name=plain(group.name),
        place=place,
        class_rank=group.class_rank,
        charge_bytes=group.charge_bytes,
        limit_bytes=group.limit_bytes,
        outside_certain_bytes=row.certain,
        outside_most_bytes=group.outside.most_bytes,
        expected_return_bytes=row.expected,
        growth_bytes_per_second=group.charge_slope + group.outside_slope,
        score=row.score,
        reasons=reasons(row),
        against=tuple(row.against),
        is_source=row.is_source,
    )


def reasons(row: Row) -> tuple[str, ...]:
    """Why it goes, the strongest first."""
    group = row.group
    found = []
    if row.tier == OVER_LIMIT:
        found.append(over_limit(row))
    if row.tier in (SOURCE, SOURCE_OUTSIDE):
        found.append(f"{size(row.grown)} of what the node lost went to it")
    elif row.grown:
        found.append(f"it grew by {size(row.grown)}")
    if group.only_in_swap_bytes:
        found.append(f"{size(group.only_in_swap_bytes)} of it in swap")
    if row.over > 0 and row.promise:
        found.append(f"{size(row.over)} over the {size(row.promise)} that it was promised")
    if row.certain and row.tier != OVER_LIMIT:
        found.append(f"{size(row.certain)} of uncounted memory ({evidence(row)})")
    found.append(f"{size(row.expected)} should come back")
    if group.class_rank in CLASSES:
        found.append(CLASSES[group.class_rank])
    return tuple(found)


def over_limit(row: Row) -> str:
    """``210 MiB over its limit of 400 MiB: it holds 600 MiB of uncounted memory (..)``."""
    return (
        f"{size(row.over_limit)} over its limit of {size(row.limit or 0)}: "
        f"it holds {size(row.certain)} of uncounted memory ({evidence(row)})"
    )


def evidence(row: Row) -> str:
    """The kinds of evidence behind its uncounted memory."""
    return plain(row.group.outside.sources) or "no source named"


def within(row: Row) -> str:
    """Why a group that keeps its promise stays."""
    used, most = size(max(0, row.expected)), size(row.promise)
    whose = f"its limit of {most}" if row.is_hollow else f"{most} promised to it"
    return f"{used} used of {whose}: it is not the cause"


def left(headroom: int, total: int, shortage: Shortage, slope: float) -> str:
    """``60 MiB are left of 1.5 GiB, 160 MiB less every second: 0.4 s.``"""
    text = f"{size(max(0, headroom))} left of {size(total)}"
    if slope > 0 and shortage.budget_seconds < NO_END:
        text += f", {size(slope)} less every second: {shortage.budget_seconds:.1f} s"
    return f"{text} ({shortage.proof})" if shortage.proof else text


def guilt_of_all(rows: Sequence[Row], causes: Causes) -> str:
    """Why they go; beyond the first ones only how many."""
    words = [guilt(row, causes) for row in rows[:ACCUSED_MOST]]
    if more := len(rows) - len(words):
        words.append(f"and {more} more")
    return "; ".join(words)


def guilt(row: Row, causes: Causes) -> str:
    """Why this one, in half a sentence."""
    name = plain(row.group.name)
    if row.tier == OVER_LIMIT:
        return f"{name} is {over_limit(row)}"
    if row.tier in (SOURCE, SOURCE_OUTSIDE, WITHIN):
        took = f"{name} took {size(row.grown)} of the {size(causes.lost)} lost"
        took += f" in {causes.seconds:.0f} s"
        return took + (f", {size(row.certain)} of it uncounted memory" if row.certain else "")
    klass = CLASSES.get(row.group.class_rank)
    over = f"{size(max(0, row.over))} over what was promised to it"
    return f"{name} is {over}" + (f" ({klass})" if klass else "")
