# SPDX-License-Identifier: Apache-2.0
"""Who could hold what nobody owns, by bounds: enough to let somebody stand still for a moment.

A bound says what somebody holds at the most; it proves nothing, and nobody is killed by it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from seawall.actions.orders import Order, Step, Target
from seawall.guard.judge.look import Look
from seawall.guard.judge.proof import LEAST_GROWTH, Causes
from seawall.guard.judge.row import Row
from seawall.guard.judge.sentences import plain
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node

MOST_SECONDS = 2.0
TICK_SECONDS = 0.15
"""It goes on a tick before the hands would thaw it by themselves."""
LEAST_SECONDS = 0.5
"""Whoever freezes for less gains nothing by it."""
REST_SECONDS = 10.0
CLEARED_SECONDS = 60.0
"""So long who stood still while the growth went on is nobody's suspect."""
RESIDUAL_SHARE = 4
"""At least so large a part of the loss is uncounted memory that grows: only that would stop."""


class SuspectGuess(NamedTuple):
    """The suspects that stand still, and why.  Bytes."""

    rows: tuple[Row, ...]
    could: int
    """The most that they hold of ``unseen``."""
    unseen: int
    """What was lost and is nobody's."""


class _Bound(NamedTuple):
    """The most that a row could have taken of what is nobody's; bytes."""

    could: int
    row: Row


class Suspicion:
    """A hold that is in force; no reference to the groups themselves."""

    __slots__ = (
        "decision", "floor", "is_whole", "mark", "mark_seconds", "rate", "relief", "seconds",
        "targets", "until",
    )  # fmt: skip

    def __init__(self, decision: str, node: Node, rows: Sequence[Row], seconds: float) -> None:
        self.decision = decision
        self.seconds = node.seconds
        self.until = node.seconds + seconds - TICK_SECONDS
        self.floor = 0
        """Of then: while they stand still, the seconds that are left say nothing."""
        self.relief = 0
        """With so much headroom the node is not short any more; a blur over the floor is none."""
        self.targets = tuple(
            Target(row.group.path, row.group.inode, plain(row.group.name)) for row in rows
        )
        self.is_whole = True
        """All of them stand still: who is inside the kernel goes on there, and takes more."""
        self.rate = node.residual_slope_bytes_per_second
        self.mark: int | None = None
        """Uncounted memory once all of them stood still, and since when."""
        self.mark_seconds = 0.0

    @property
    def names(self) -> str:
        """``a``, or ``a and b``."""
        return " and ".join(target.name for target in self.targets)

    def orders(self, step: Step) -> tuple[Order, ...]:
        """Nothing should come back from it."""
        return tuple(Order(self.decision, step, target, "suspected") for target in self.targets)

    def is_needed(self, node: Node) -> bool:
        """The node is as short as it was when they were made to stand still."""
        return node.headroom_bytes < self.floor

    def holds(self, group: Group) -> bool:
        """It is one of them."""
        return any(t.path == group.path and t.inode == group.inode for t in self.targets)

    def is_gone(self, groups: Mapping[str, Group]) -> bool:
        """All of them have ended."""
        there = (groups.get(target.path) for target in self.targets)
        return not any(group and group.processes != 0 and self.holds(group) for group in there)


class SuspectRests:
    """Suspects that are not held again yet; bounded by the seconds between two holds."""

    __slots__ = ("cleared", "resting")

    def __init__(self) -> None:
        self.resting: dict[tuple[str, int], float] = {}
        """Path and inode, until when."""
        self.cleared: dict[tuple[str, int], float] = {}
        """What nobody owns grew while they stood still."""

    def look(self, now: float) -> None:
        """Forget suspects whose rest or clearance is over at ``now``, monotonic seconds."""
        for found in (self.resting, self.cleared):
            for key in [key for key, until in found.items() if until <= now]:
                del found[key]


def hold_seconds(settings: Settings) -> float:
    """How long somebody may stand still on suspicion; 0: never."""
    seconds = min(MOST_SECONDS, settings.freeze_seconds)
    return seconds if settings.hold_suspects and seconds >= LEAST_SECONDS else 0.0


def is_outside(node: Node) -> bool:
    """What is being lost now is uncounted memory; a freeze would not stop anything else."""
    grows = node.residual_slope_bytes_per_second
    return grows > 0 and RESIDUAL_SHARE * grows >= node.slope_bytes_per_second


def guess(
    rows: Sequence[Row], causes: Causes, node: Node, look: Look, passed_over: Collection[Row]
) -> SuspectGuess | None:  # fmt: skip
    """The one that alone could hold most of it; or two whose bounds both fit into it.

    None when another one could hold half as much: then nobody knows which, and all go on.
    """
    unseen = max(causes.unseen, causes.unexplained)
    told = unseen_when_told(unseen, node)
    bounds = [_Bound(could_of(row, look), row) for row in rows if row not in passed_over]
    bounds = [bound for bound in bounds if bound.could >= LEAST_GROWTH]
    bounds.sort(key=lambda bound: -bound.could)
    could = [bound.could for bound in bounds[:3]] + [0, 0, 0]
    if 2 * could[0] > told and 2 * could[1] <= could[0]:
        count = 1
    elif 2 * (could[0] + could[1]) > told and could[0] + could[1] <= unseen:
        count = 2 if could[1] and 2 * could[2] <= could[1] else 0
    else:
        count = 0
    most = min(unseen, sum(could[:count]))
    return SuspectGuess(tuple(one.row for one in bounds[:count]), most, unseen) if count else None


def could_of(row: Row, look: Look) -> int:
    """Of what is nobody's, the most that it took since the look; 0 when that is not known."""
    before = look.bound_before(row.group)
    if before is None:
        return 0
    certain = max(0, row.certain - look.before(row.group).certain)
    return max(0, row.group.outside.most_bytes - before - certain)


def unseen_when_told(unseen: int, node: Node) -> int:
    """A bound is as old as the claims, and is held against what was missing then."""
    since = max(0.0, node.residual_slope_bytes_per_second) * (node.claims_seconds or 0.0)
    return max(unseen - int(since), unseen // 2)
