# SPDX-License-Identifier: Apache-2.0
"""Who is back in a new cgroup: what it takes there is no growth, as far as one that is gone had it.

A container that is started again is another cgroup of the same pod, a unit another one of the same
path, a pod that was moved or rolled out any other one of its class.  Each takes one's place at
most.
"""

from collections.abc import Sequence

from seawall.guard.judge.gone import Left
from seawall.guard.judge.look import Look
from seawall.guard.judge.row import Row


def left_since(look: Look, rows: Sequence[Row]) -> list[Left]:
    """Those that were there at ``look`` and are no more."""
    there = {row.group.path: row.group.inode for row in rows}
    return [
        Left(path, held[2], held[4] if held[4] >= 0 else held[1], held[5])
        for path, held in look.groups.items() if there.get(path) != held[0]
    ]  # fmt: skip


def back_of(row: Row, look: Look, left: Sequence[Left], taken: int) -> int:
    """Of what it has ``taken`` since the look, what it may have had before."""
    return max(0, min(taken, _had_before(row, left) - look.before(row.group)[0]))


def _had_before(row: Row, left: Sequence[Left]) -> int:
    """The most that a newcomer can have had in the cgroup before it."""
    path, rank = row.group.path, row.group.class_rank
    pod = _folder(path) if row.group.pod else None
    own = [one.taken for one in left if path == one.path or pod == _folder(one.path)]
    return max(own or [one.taken for one in left if one.class_rank == rank], default=0)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def seen_of(rows: Sequence[Row], left: Sequence[Left]) -> tuple[int, int]:
    """What all groups took, and of it what newcomers may have had before in excess: that counts
    once, however many of them may be the same one.
    """
    back = sum(row.back for row in rows)
    excess = max(0, back - sum(one.taken for one in left))
    return sum(row.grown for row in rows) + excess, excess
