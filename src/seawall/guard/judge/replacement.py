# SPDX-License-Identifier: Apache-2.0
"""Replacements: what a group takes in a new cgroup is no growth, as far as a departed one had it.

A container that is started again is another cgroup of the same pod, a unit another one of the same
path, a pod that was moved or rolled out any other one of its class.  Each takes one's place at
most.
"""

from collections.abc import Sequence

from seawall.guard.judge.departed import DepartedGroup
from seawall.guard.judge.look import Look
from seawall.guard.judge.row import Row


def left_since(look: Look, rows: Sequence[Row]) -> list[DepartedGroup]:
    """Those that were there at ``look`` and are no more."""
    there = {row.group.path: row.group.inode for row in rows}
    return [
        DepartedGroup(path, then.certain, then.hard_at_most, then.class_rank)
        for path, then in look.groups.items() if there.get(path) != then.inode
    ]  # fmt: skip


def back_of(row: Row, look: Look, left: Sequence[DepartedGroup], taken: int) -> int:
    """Of what it has ``taken`` since the look, what it may have had before."""
    return max(0, min(taken, _had_before(row, left) - look.before(row.group).taken))


def _had_before(row: Row, left: Sequence[DepartedGroup]) -> int:
    """The most that a newcomer can have had in the cgroup before it."""
    path, rank = row.group.path, row.group.class_rank
    pod = _folder(path) if row.group.pod else None
    own = [one.taken for one in left if path == one.path or pod == _folder(one.path)]
    return max(own or [one.taken for one in left if one.class_rank == rank], default=0)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def seen_of(rows: Sequence[Row], left: Sequence[DepartedGroup]) -> tuple[int, int]:
    """What all groups took, and of it what newcomers may have had before in excess: that counts
    once, however many of them may be the same one.
    """
    back = sum(row.back for row in rows)
    excess = max(0, back - sum(one.taken for one in left))
    return sum(row.grown for row in rows) + excess, excess
