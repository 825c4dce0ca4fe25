# SPDX-License-Identifier: Apache-2.0
"""Whose fault it is: who overruns its own limit for certain, who is the source of the growth.

Compared is what was lost since a look back with what every group took since then.  What a group
took within its promise (a model that is loaded) is nobody's fault; what no group took is the
fault of somebody who cannot be seen.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seawall.guard.judge.departed import is_young
from seawall.guard.judge.look import Look
from seawall.guard.judge.look_history import LookHistory
from seawall.guard.judge.replacement import back_of, left_since, seen_of
from seawall.guard.judge.row import OVER_LIMIT, RANKED, SOURCE, SOURCE_OUTSIDE, Row
from seawall.guard.tick_facts import Node

LEAST_OVERRUN = 64 << 20
LIMIT_SHARE = 20
MOST_OVERRUN = 1 << 30
"""An overrun is proof from 64 MiB or a twentieth of the limit on, whichever is more (at most
1 GiB): charges are summed per CPU and claims are read at another moment."""
LEAST_GROWTH = 64 << 20
LEAST_SHARE = 0.1
"""Growth that is less than either proves nothing."""
BESIDE_SHARE = 0.2
"""Of what was lost; who merely loads a model beside a leak must not look like the leak, whoever
took that, seen or unseen."""
LASTS_SECONDS = 2.0


class TakenTotal(NamedTuple):
    """What all groups took together since a look; bytes."""

    taken: int
    unexcused: int
    """Of it, what was excused in several as what one had before that is gone: it had it once."""


class Causes(NamedTuple):
    """What made the loss since the look back.  Bytes."""

    seconds: float
    """So long ago the look was."""
    lost: int
    seen: int
    """What groups took in that time, by evidence that is believed."""
    unseen: int
    """Of ``lost``, what no group took: a driver, the kernel, a claim that is not certain."""
    owed: int
    """What nobody was promised: all that groups took beyond their promises or within mere limits,
    what newcomers took beyond what can have been theirs before, and the unseen."""
    unexplained: int
    """Uncounted memory's growth that no certain claim explains: the largest of the window's own, of
    what was added since the start, and of the watcher's."""

    @property
    def is_unseen(self) -> bool:
        """Most of the loss is in no group."""
        return 2 * self.unseen > self.lost and self.unseen >= LEAST_GROWTH // 2


def least_overrun(limit: int) -> int:
    """From so many bytes over ``limit`` on it is proof."""
    return max(LEAST_OVERRUN, min(limit // LIMIT_SHARE, MOST_OVERRUN))


def is_over_limit(row: Row) -> bool:
    """It holds more than its own limit; only uncounted memory can do that, the charge cannot."""
    limit = row.limit
    return limit is not None and row.certain > 0 and row.over_limit >= least_overrun(limit)


def grow(rows: Sequence[Row], look: Look, window: LookHistory) -> TakenTotal:
    """Fills what every group took since ``look``; the sum of it."""
    since = left_since(look, rows)
    left = since + window.gone.groups_before(look.seconds)
    gone = sum(one.certain for one in left)
    for row in rows:
        outside = row.certain - look.before(row.group).certain
        may_be_back = not look.knows(row.group) or is_young(row.group, look.seconds)
        if may_be_back:
            outside -= gone  # it may be the same workload, in a new cgroup
        row.outside_grown = max(0, outside)
        taken = _taken_since(row, look)
        row.back = back_of(row, look, left, taken) if may_be_back else 0
        row.grown = taken - row.back + row.outside_grown
        row.beyond = max(0, min(row.grown, row.hard + row.certain - row.promise))
        if not row.is_read:
            row.beyond = max(0, min(row.grown, row.taken - row.promise))
        keeps_within = row.is_limit_alone and row.beyond < LEAST_GROWTH
        row.within_limit = row.grown - row.beyond if keeps_within else 0
    return TakenTotal(*seen_of(rows, since))


def _taken_since(row: Row, look: Look) -> int:
    """Cache that can be dropped anyway is no loss, and whoever fills it took nothing by that.

    Where its parts were not read at the look, all that it had counts as hard then: the least
    that it can have taken since.
    """
    before = look.before(row.group).taken
    taken = row.group.taken_bytes - before
    if row.is_read:
        hard = look.hard_before(row.group)
        taken = row.hard - hard if hard is not None else min(taken, row.hard - before)
    return max(0, taken)


def find_causes(
    rows: Sequence[Row], node: Node, look: Look, window: LookHistory, seen: TakenTotal
) -> Causes:  # fmt: skip
    """After ``grow``, which has ``seen`` so much taken: how the loss divides."""
    lost = max(0, look.headroom - node.comparable_bytes)
    unseen = max(0, lost - seen.taken)
    unexplained, lately = node.unexplained_growth_bytes, 0
    if node.residual_bytes is not None and look.residual is not None:
        claimed = sum(row.outside_grown for row in rows)
        lately = node.residual_bytes - look.residual - claimed
        unexplained = max(unexplained, lately)
        held = sum(row.certain for row in rows)
        least = window.residual_least or 0
        unexplained = max(unexplained, node.residual_bytes - least - held)
    # Whoever is excused must not make somebody else the source of what is left.
    groups = sum(row.beyond + row.within_limit for row in rows) + seen.unexcused
    seconds = node.seconds - look.seconds
    # ``lost`` is a balance: what others gave back meanwhile must not hide what a driver took.
    owed = groups + max(unseen, lately)
    return Causes(seconds, lost, seen.taken, unseen, owed, max(0, unexplained))


def accuse(rows: Sequence[Row], causes: Causes) -> None:
    """Gives every row whose guilt is proved its tier; protected ones too, for who reads it."""
    least = max(LEAST_GROWTH, int(LEAST_SHARE * causes.lost))
    quarter = causes.owed / 4
    large = [row for row in rows if row.beyond >= quarter and row.beyond >= least and row.is_read]
    is_most = 2 * sum(row.beyond for row in large) > causes.owed
    outside = _sources_outside(rows, causes, least)
    for row in rows:
        row.is_outside = row in outside
        if is_over_limit(row):
            row.tier = OVER_LIMIT
        elif row.is_outside and row.tier > SOURCE_OUTSIDE:
            row.tier = SOURCE_OUTSIDE
    for row in large:
        if is_most and row.tier > SOURCE:
            row.tier = SOURCE


def _sources_outside(rows: Sequence[Row], causes: Causes, least: int) -> list[Row]:
    """By whose uncounted memory most of the loss came: one; or two or three of whom each took a
    quarter at least, and more than anybody promised to it.
    """
    took = [row for row in rows if row.is_unpromised and row.outside_grown >= least]
    alone = [row for row in took if 2 * row.outside_grown > causes.lost]
    shared = [row for row in took if 4 * min(row.outside_grown, row.beyond) >= causes.lost]
    is_most = 2 * sum(row.outside_grown for row in shared) > causes.lost
    return [*alone, *shared] if is_most else alone


def enough_of(need: int) -> int:
    """So many bytes count: without them half of what is needed would be there."""
    return max(need // 2, LEAST_GROWTH)


def acquit(rows: Sequence[Row], causes: Causes, need: int) -> None:
    """A loss that is small beside what is needed says nothing of who made the shortage."""
    if max(causes.lost, causes.owed) >= enough_of(need):
        return
    for row in rows:
        if row.tier in (SOURCE, SOURCE_OUTSIDE):
            row.tier = RANKED


def takes_on(row: Row) -> bool:
    """Its uncounted memory proves it guilty, and it goes on taking."""
    slope = row.group.charge_slope + row.group.outside_slope
    return row.is_proved_outside and row.beyond >= LEAST_GROWTH and slope > 0


def accuse_of_all(rows: Sequence[Row], causes: Causes, need: int) -> None:
    """Who took all that is needed beyond its promise, and most of the loss, is the source, whatever
    a driver took beside it and others gave back.
    """
    for row in rows:
        is_all = row.is_read and row.beyond >= need and 2 * row.beyond > causes.lost
        if is_all and row.tier > SOURCE:
            row.tier = SOURCE
