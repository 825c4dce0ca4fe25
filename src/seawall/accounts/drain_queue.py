# SPDX-License-Identifier: Apache-2.0
"""Whether a node may drain itself now, of many that may want to at the same moment.

The brake: at most 5 % of the nodes, and at most 10, are drained with our reason (of a few nodes
one).  All nodes ask at once when all have the same fault, so one look is not enough: each would see
nobody drained.  slurmctld has no "change it if it is as I saw it"; what it has is a node's comment.
So a node takes a number, as in Lamport's bakery:

1. it looks (the first question), and takes the largest number that it saw, plus one;
2. it writes that number into its own comment, within ``TICKET_TIMES`` of its look, or gives up;
3. it waits longer (``SETTLE_TIMES``): whoever looked before 2 has written his number by then;
4. it looks again, and drains itself if fewer than the brake's share are drained or before it.

Who is not seen in 4 looked after 2, and his number is larger: of two nodes that drain, the one
with the larger number saw the other.  So the last of any set of them saw all others, and a set
larger than the share cannot be.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.readings.slurm_node_rows import SlurmNodeRow

SHARE: Final = 0.05
NODES_MOST: Final = 10
REASON_HEAD: Final = "seawall: "
REASON_LENGTH_MOST: Final = 240
TICKET_TIMES: Final = 1.25
SETTLE_TIMES: Final = 1.5
"""Both of the deadline that one question to slurmctld has: with 4 s, 5 and 6 s."""
CLAIM_OLD_SECONDS: Final = 900
"""A check lives 60 s; clocks that differ by more than 300 s are refused by munge."""
LIFTS_A_DAY: Final = 2
DAY_SECONDS: Final = 86_400
_CLAIM: Final = re.compile(r"seawall wants to drain: ([0-9]{1,9}) at ([0-9]{1,12})\Z")
_MAY_DRAIN: Final = frozenset({
    "idle", "allocated", "mixed", "completing", "reserved", "planned", "cloud", "dynamic_norm",
    "dynamic_future", "blocked",
})  # fmt: skip
"""Whatever else stands there (down, drain, fail, maintenance, reboot, power, a word of a later
release) is somebody else's doing."""
_MAY_LIFT: Final = _MAY_DRAIN | {"drain", "not_responding"}


@dataclass(frozen=True, slots=True)
class DrainClaim:
    """A number that a node took."""

    number: int
    unix_seconds: int

    @property
    def text(self) -> str:
        """As it stands in the node's comment."""
        return f"seawall wants to drain: {self.number} at {self.unix_seconds}"


@dataclass(frozen=True, slots=True)
class DrainLimits:
    """The brake; a site may lower it."""

    share: float = SHARE
    most: int = NODES_MOST

    def of(self, rows: Collection[str]) -> int:
        """For that many nodes."""
        return share_of(len(rows), self.share, self.most)


def reason_of(findings: Iterable[str]) -> str:
    """``seawall: gpu: 7 of 8 GPUs; mounts: ...``: one line of plain characters, cut to a length
    that Slurm's commands show whole.
    """
    text = REASON_HEAD + "; ".join(findings)
    text = "".join(char if char.isascii() and char.isprintable() else "?" for char in text)
    text = text.replace('"', "'").replace("|", "/")
    return text if len(text) <= REASON_LENGTH_MOST else text[: REASON_LENGTH_MOST - 3] + "..."


def share_of(nodes: int, share: float = SHARE, most: int = NODES_MOST) -> int:
    """How many may be drained with our reason; at least one, or a small cluster had none."""
    return max(1, min(most, int(nodes * share)))


def drained(rows: Mapping[str, SlurmNodeRow]) -> list[str]:
    """Nodes that are drained with our reason, ours or not."""
    return [row.name for row in rows.values() if is_ours(row)]


def is_ours(row: SlurmNodeRow) -> bool:
    """Drained, and the reason begins as ours do."""
    return "drain" in row.states and row.reason.startswith(REASON_HEAD)


def refusal(rows: Mapping[str, SlurmNodeRow], node: str, most: int) -> str:
    """Why that node may not drain itself by what the first look shows, in words; else empty."""
    row = rows.get(node)
    if row is None:
        return f"slurmctld knows no node {node}"
    if row.states - _MAY_DRAIN:
        return f"it is {state_words(row)}: state and reason are left as they are"
    held = drained(rows)
    if len(held) >= most:
        return brake_words(len(held), most, len(rows))
    if not free_field(row):
        return "Comment and Extra of the node are both in use: there is no place to queue"
    return ""


def state_words(row: SlurmNodeRow) -> str:
    """``idle+drain (by another: disk)``."""
    reason = f" ({row.reason[:80]})" if row.reason else ""
    return "+".join(sorted(row.states)) + reason


def brake_words(held: int, most: int, nodes: int) -> str:
    """The refusal's own words."""
    return f"the brake: {held} of {nodes} nodes are drained by Seawall, and {most} may be"


def free_field(row: SlurmNodeRow) -> str:
    """Where a number can be written without taking anything away; empty: nowhere."""
    for name, value in (("Comment", row.comment), ("Extra", row.extra)):
        if not value or _CLAIM.match(value):
            return name
    return ""


def is_claim(text: str) -> bool:
    """Whether it is a number of somebody's in this queue."""
    return _CLAIM.match(text) is not None


def next_claim(rows: Mapping[str, SlurmNodeRow], now: float) -> DrainClaim:
    """One more than the largest that is seen."""
    return DrainClaim(max((one.number for _, one in _claims(rows, now)), default=0) + 1, int(now))


def places_before(
    rows: Mapping[str, SlurmNodeRow], node: str, own: DrainClaim, now: float
) -> int:  # fmt: skip
    """How many are drained or stand before it."""
    before = set(drained(rows))
    for name, claim in _claims(rows, now):
        if (claim.number, name) < (own.number, node):
            before.add(name)
    return len(before - {node})


def has_claim(row: SlurmNodeRow, own: DrainClaim) -> bool:
    """Whether its number still stands there."""
    return own.text in (row.comment, row.extra)


def _claims(rows: Mapping[str, SlurmNodeRow], now: float) -> Iterator[tuple[str, DrainClaim]]:
    for row in rows.values():
        for text in (row.comment, row.extra):
            found = _CLAIM.match(text)
            if found and abs(now - int(found[2])) <= CLAIM_OLD_SECONDS:
                yield row.name, DrainClaim(int(found[1]), int(found[2]))


def lift_refusal(
    row: SlurmNodeRow | None, reason: str, unix_seconds: int | None, lifts: Iterable[float],
    now: float,
) -> str:  # fmt: skip
    """Why a drain of ours is not taken back, in words; empty: it is ours, and may be.

    ``lifts``: when this node's drains were lifted before.
    """
    if row is None or not is_same_drain(row, reason, unix_seconds):
        return "the drain that stands there is not the one that was made here"
    if row.states - _MAY_LIFT:
        return f"it is {state_words(row)}"
    lately = sum(1 for moment in lifts if -DAY_SECONDS < now - moment < DAY_SECONDS)
    if lately >= LIFTS_A_DAY:
        return f"it was lifted {lately} times in a day: this one is for people to lift"
    return ""


def is_same_drain(row: SlurmNodeRow, reason: str, unix_seconds: int | None) -> bool:
    """The same reason, whole, of the same second."""
    return (
        "drain" in row.states
        and row.reason == reason
        and unix_seconds is not None
        and row.reason_unix_seconds == unix_seconds
    )
