# SPDX-License-Identifier: Apache-2.0
"""Is the node short, near, or in peace; how long it has; how much has to come back.

A container at its own limit stalls, and the host's PSI rises with it (research: a host trigger
wakes, it proves nothing).  So the node is short only when its headroom is under the floor *and*
something of the node itself says so: watermarks of zones, direct reclaim of the whole node
(allocstall), a protected group that stood still, or seconds that are running out.  Where nothing
does, only proved uncounted memory is acted on (``node_short.judge_low``).
"""

from typing import NamedTuple

from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Node

NO_END = 86_400.0
"""Budget in seconds when the headroom does not shrink; also the most that is ever said."""
REACTION_SECONDS = 1.0
"""From the look that sees it to memory that is back: a tick, a kill, the exit of the victim."""
URGENT_SECONDS = 1.0
CALM_SECONDS = 6.0
"""Budgets: below the first kill at once; above the second there is time for SIGTERM."""
NEAR_SECONDS = 10.0
HURRY_SECONDS = 3.0
"""With more time than that the proof may come by itself; with less, evidence has to come as fast
as a processor can bring it, and who may be it stands still.
"""
HURRY_GROWTH = 1 << 20
"""Bytes a second of uncounted memory: less is noise."""
STALLS_PER_SECOND = 1.0
PROTECTED_STALL = 0.1


class Shortage(NamedTuple):
    """What the counters of one tick say of the node.  Bytes, seconds."""

    is_short: bool
    is_near: bool
    floor_bytes: int
    need_bytes: int
    """So much has to come back: over the floor by the target."""
    budget_seconds: float
    is_real: bool
    """Short, and not only because of the seconds that are left."""
    proof: str
    """What of the node itself says so, in words; empty: nothing does."""
    is_under_floor: bool
    """The headroom is under the floor, whatever else says so."""
    is_foretold: bool
    """Only what is on its way makes it so: the floor that does not move is not reached, or nothing
    but the seconds that are left says so."""
    is_swapping: bool
    """Without swap it is: the others' memory goes there."""
    is_pressing: bool
    """Under the floor, and no time for anything, whatever the slope says: what is used up shrinks
    no more, and what is taken from program text and cache does not show.
    """

    @property
    def is_calm(self) -> bool:
        """There is time for SIGTERM."""
        return self.budget_seconds > CALM_SECONDS and not self.is_pressing


def judge_shortage(node: Node, settings: Settings) -> Shortage:
    """The node of this tick against the settings."""
    least = base_floor(node, settings)
    slope = node.slope_bytes_per_second
    floor = least + int(min(least, max(0.0, slope * REACTION_SECONDS)))
    headroom = max(0, node.headroom_bytes)
    budget = min(NO_END, headroom / slope) if slope > 0 else NO_END
    proof = proof_of(node) if headroom < floor else ""
    is_real = bool(proof)
    if headroom < floor and budget < URGENT_SECONDS and node.free_bytes < 2 * floor:
        proof = proof or f"{budget:.1f} s are left"
    target = min(int(settings.target_fraction * node.total_bytes), settings.act_at_most_bytes)
    return Shortage(
        is_short=bool(proof),
        is_near=headroom < 2 * floor or budget < NEAR_SECONDS,
        floor_bytes=floor,
        need_bytes=max(target, floor + target - headroom),
        budget_seconds=budget,
        is_real=is_real,
        proof=proof,
        is_under_floor=headroom < floor,
        is_foretold=headroom >= least or not is_real,
        is_swapping=headroom >= floor > node.memory_bytes,
        is_pressing=headroom < floor and _presses(node, headroom, least),
    )


def _presses(node: Node, headroom: int, least: int) -> bool:
    if node.is_min or node.protected_stall >= PROTECTED_STALL:
        return True
    return headroom < least // 2


def base_floor(node: Node, settings: Settings) -> int:
    """Below it the node is short, however slowly it got there."""
    return min(int(settings.act_fraction * node.total_bytes), settings.act_at_most_bytes)


def proof_of(node: Node) -> str:
    """What corroborates that the whole node is short, in words, the strongest first."""
    if node.is_min:
        return "free pages are under the min watermark"
    if node.is_low:
        return "free pages are under the low watermark"
    if node.stalls_per_second >= STALLS_PER_SECOND:
        return f"{node.stalls_per_second:.0f} direct reclaims a second"
    if node.protected_stall >= PROTECTED_STALL:
        return f"what is protected stood still {node.protected_stall:.0%} of the time"
    return ""
