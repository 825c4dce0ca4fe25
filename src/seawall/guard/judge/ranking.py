# SPDX-License-Identifier: Apache-2.0
"""Who goes first: the proved, then those over their promise in Kubernetes' order.

Order of the kubelet (node-pressure eviction): who uses more than was requested before who does
not, BestEffort first.  Within a class: expected return times overrun of the request (oomd's
idea) times growth.  The oom_score_adj of a pod says its class and its request, so it is a
priority only beyond what these explain.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from seawall.guard.judge import sentences
from seawall.guard.judge.cooldown import Doubt
from seawall.guard.judge.evidence import certain_of, given_back_since, is_kubelets, tolerance_of
from seawall.guard.judge.look_history import LookHistory
from seawall.guard.judge.proof import (
    BESIDE_SHARE,
    LEAST_GROWTH,
    Causes,
    accuse,
    enough_of,
    find_causes,
    grow,
)
from seawall.guard.judge.protection import Protection
from seawall.guard.judge.row import OVER_LIMIT, PROVED, RANKED, SOURCE_OUTSIDE, WITHIN, Row
from seawall.guard.tick_facts import BURSTABLE, SYSTEM, Group, Node
from seawall.guard.verdict import Rank

ROWS_MOST = 32
"""In the verdict, put into words before its orders are given; the others when they are."""
ADJ_STEP = 200
LEAST_PROMISE = 16 << 20
OVERRUN_MOST = 16.0
GROWTH_WEIGHT = 8.0
ALONE_SHARE = 0.5
"""Within its promise only who took over half of what was lost may go, and only when nobody else
took a ``BESIDE_SHARE`` of it."""
NO_LIMITS: Mapping[str, int] = {}


class RankedRows(NamedTuple):
    """All rows, and those of them that may go, first to last."""

    rows: list[Row]
    able: list[Row]


def rows_of(
    node: Node,
    groups: Iterable[Group],
    window: LookHistory,
    doubts: Mapping[tuple[str, int], Doubt],
    own_limits: Mapping[str, int] = NO_LIMITS,
) -> tuple[list[Row], Causes]:
    """Sums of every group against the look back, and what made the loss.

    ``own_limits``: of those whose limit was lowered by us.
    """
    given_back = given_back_since(node, window)
    total, capacity = node.total_bytes, node.capacity_bytes
    rows = []
    for group in groups:
        certain = certain_of(group, doubts, given_back)
        limit = own_limits.get(group.path, group.limit_bytes)
        rows.append(Row(group, certain, total, limit, capacity))
    look = window.best(node)
    seen = grow(rows, look, window)
    causes = find_causes(rows, node, look, window, seen)
    accuse(rows, causes)
    return rows, causes


def rank(
    rows: list[Row], causes: Causes, protection: Protection, capacity_bytes: int, need: int
) -> list[Row]:  # fmt: skip
    """Those that may go, first to last; every row gets its tier and what speaks against it."""
    for row in rows:
        reason = protection.reason(row.group)
        if reason:
            row.against.append(reason)
        if row.tier == RANKED and not is_over_promise(row):
            row.tier = WITHIN
        row.claim = "" if reason else protection.claim(row.group)
        if row.claim and row.tier > PROVED:
            row.against.append(f"goes only if it is proved to be the cause: {row.claim}")
        row.score = score_of(row, causes)
        row.is_taker = is_taker(row, causes)
    only_source_within(rows, causes, need)
    able = [row for row in rows if not row.against]
    able.sort(key=lambda row: sort_key(row, capacity_bytes))
    return able


def is_over_promise(row: Row) -> bool:
    """It uses more than anybody promised it, beyond what measuring blurs."""
    return row.over > tolerance_of(row.promise)


def only_source_within(rows: Sequence[Row], causes: Causes, need: int) -> None:
    """Of those within their promise, all but the one that alone makes the shortage stay.

    And that one only where its promise was hollow: more than half of the node, which the node
    cannot hold beside the others, or a mere limit.  Who loads a model within what it asked for
    stays.  A loss that is small beside what is needed has no source.
    """
    beside = [row for row in rows if row.grown > BESIDE_SHARE * causes.lost]
    for row in rows:
        if row.tier != WITHIN:
            continue
        grows = row.group.charge_slope + row.group.outside_slope > 0
        is_alone = not beside or (len(beside) == 1 and beside[0] is row)
        is_source = is_alone and grows and row.is_read and causes.lost >= enough_of(need)
        if is_source and row.is_hollow and row.grown > ALONE_SHARE * causes.lost > 0:
            continue
        row.against.append(sentences.within(row))


def is_taker(row: Row, causes: Causes) -> bool:
    """It took a good part of what nobody was promised: it goes before those who hold still."""
    return row.is_read and row.beyond >= LEAST_GROWTH and 4 * row.beyond >= causes.owed


def score_of(row: Row, causes: Causes) -> float:
    """Expected return times overrun of the promise times growth; no unit."""
    over = max(0, row.over) / max(row.promise, LEAST_PROMISE)
    share = min(1.0, row.grown / causes.lost) if causes.lost > 0 else 0.0
    return row.expected * (1 + min(OVERRUN_MOST, over)) * (1 + GROWTH_WEIGHT * share)


def sort_key(row: Row, capacity_bytes: int) -> tuple[float, float, float, float, str]:
    """Smaller goes first; paths decide between equals, so that two looks agree.  Who claims to
    be needed goes behind all others that are proved.
    """
    path = row.group.path
    if row.claim and row.tier <= PROVED:
        return (PROVED + 0.5, -float(row.beyond), -float(row.grown), 0.0, path)
    if row.tier == OVER_LIMIT:
        return (row.tier, -float(row.over_limit + row.grown), 0.0, 0.0, path)
    if row.tier <= SOURCE_OUTSIDE:
        return (row.tier, -float(row.beyond), -float(row.grown), 0.0, path)
    step = -float(priority_step(row.group, capacity_bytes))
    order = float(row.group.class_rank) + (0 if row.is_taker else 10)
    return (row.tier, order, step, -row.score, path)


def priority_step(group: Group, capacity_bytes: int) -> int:
    """oom_score_adj in steps, less what class and request explain; higher goes first."""
    adj = group.adj
    if adj is None:
        return 0
    if group.class_rank == SYSTEM or (group.class_rank == BURSTABLE and not is_kubelets(group)):
        return adj // ADJ_STEP
    if group.class_rank == BURSTABLE and group.request_bytes is not None and capacity_bytes > 0:
        usual = 1000 - 1000 * group.request_bytes // capacity_bytes
        return round((adj - min(999, max(3, usual))) / ADJ_STEP)
    return 0


def ranks_of(rows: Iterable[Row], able: Sequence[Row]) -> tuple[tuple[Rank, ...], Iterator[Rank]]:
    """The whole ranking as it is kept: those that may go, then the others, the largest first;
    apart from it those for whom its line has no room.
    """
    others = [row for row in rows if row.against]
    others.sort(key=lambda row: (row.tier, -row.taken))
    # At least a quarter of the leaders has reasons against: those are asked about afterwards.
    first = min(len(able), ROWS_MOST - min(ROWS_MOST // 4, len(others)))
    room = ROWS_MOST - first
    leaders = [sentences.rank_of(row, at + 1) for at, row in enumerate(able[:first])]
    leaders += [sentences.rank_of(row, 0) for row in others[:room]]
    placed = [*enumerate(able[first:], first + 1), *((0, row) for row in others[room:])]
    return tuple(leaders), (sentences.rank_of(row, place) for place, row in placed)
