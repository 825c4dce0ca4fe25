# SPDX-License-Identifier: Apache-2.0
"""The node's conditions, with node-problem-detector's polarity: True is a problem.

A condition that was never True is never sent: a node in peace has none of them.
"""

from typing import Final, NamedTuple

from seawall.agent.culprits import Culprit, has_grown
from seawall.agent.guard_page import GuardPage
from seawall.words import duration, percent, size

MEMORY_SHORT: Final = "MemoryShort"
KERNEL_MEMORY_UNCOUNTED: Final = "KernelMemoryUncounted"
MEMORY_LIVELOCK: Final = "MemoryLivelock"
GUARD_IMPAIRED: Final = "SeawallGuardImpaired"
OF_MEMORY: Final = (MEMORY_SHORT, KERNEL_MEMORY_UNCOUNTED, MEMORY_LIVELOCK)
TYPES: Final = (*OF_MEMORY, GUARD_IMPAIRED)
HEALTHY: Final = {
    MEMORY_SHORT: "MemoryIsAmple", KERNEL_MEMORY_UNCOUNTED: "KernelMemoryIsCounted",
    MEMORY_LIVELOCK: "TasksRun", GUARD_IMPAIRED: "GuardIsWell",
}  # fmt: skip
SECONDS_LEFT: Final = 60.0
"""Near its limit and gone in so long: that is running out."""
STALL_SHARE: Final = 0.5
_MESSAGE_MOST: Final = 1000
_SHORT: Final = ("short", "holding")
BUSY: Final = ("near", *_SHORT)
"""States of the guard in which headroom has left peace."""


class NodeCondition(NamedTuple):
    """One of them."""

    type: str
    status: str
    """``True``, ``False``, ``Unknown``."""
    reason: str
    message: str


def is_running_out(page: GuardPage) -> bool:
    """The node is short of memory, or will be within a minute."""
    left = page.headroom_seconds
    is_soon = page.state == "near" and left is not None and left < SECONDS_LEFT
    return page.state in _SHORT or is_soon


def problems_of(page: GuardPage, culprits: list[Culprit]) -> list[NodeCondition]:
    """What is wrong with its memory now."""
    if not is_running_out(page):
        return []
    words = distress_words(page, culprits)
    found = [NodeCondition(MEMORY_SHORT, "True", "MemoryRunningOut", words)]
    if has_grown(page):
        words = f"uncounted memory grew by {size(page.grown_bytes or 0)}{_who(culprits)}"
        found.append(NodeCondition(KERNEL_MEMORY_UNCOUNTED, "True", "KernelMemoryGrows", words))
    if page.stall is not None and page.stall >= STALL_SHARE:
        words = f"what is protected stood still {percent(page.stall)} of the time"
        found.append(NodeCondition(MEMORY_LIVELOCK, "True", "TasksStandStill", words))
    return [one._replace(message=one.message[:_MESSAGE_MOST]) for one in found]


def distress_words(page: GuardPage, culprits: list[Culprit]) -> str:
    """How much is left, how long it lasts, who took it, what the guard does."""
    words = "headroom could not be read"
    if page.headroom_bytes is not None:
        words = f"{size(page.headroom_bytes)} of {size(page.total_bytes)} can still be had"
    if page.headroom_seconds is not None:
        words += f", gone in {duration(page.headroom_seconds)}"
    if page.uncounted_bytes is not None:
        words += f"; {size(page.uncounted_bytes)} uncounted"
    words += _who(culprits)
    if page.last is not None and page.last.trigger == "node_short":
        words += f"; guard ({page.mode}): {page.last.sentence}"
    return words[:_MESSAGE_MOST]


def _who(culprits: list[Culprit]) -> str:
    if not culprits:
        return "; nobody is proved to have taken it"
    one = culprits[0]
    if not one.is_proved:
        return f"; {one.name} may hold {size(one.most_bytes)} of it, which is not proved"
    return f"; {one.name} took {size(one.certain_bytes)} of it, proved"


def guard_problem(page: GuardPage) -> NodeCondition | None:
    """What the guard itself says that it cannot do."""
    if page.state == "blind" or not page.is_seen:
        words = "; ".join(page.blind) or "the node's memory could not be read"
        return NodeCondition(GUARD_IMPAIRED, "True", "GuardBlind", words[:_MESSAGE_MOST])
    if page.mode == "enforce" and not page.can_kill:
        words = page.can_kill_words or "its self-test has not proved that it can kill"
        return NodeCondition(GUARD_IMPAIRED, "True", "GuardCannotKill", words[:_MESSAGE_MOST])
    return None


def silent_guard(words: str) -> NodeCondition:
    """No page, or one that is old."""
    return NodeCondition(GUARD_IMPAIRED, "True", "GuardSilent", words[:_MESSAGE_MOST])


def healthy(kind: str) -> NodeCondition:
    """It was a problem, and is none."""
    return NodeCondition(kind, "False", HEALTHY[kind], "")


def not_known(kind: str, words: str) -> NodeCondition:
    """It was a problem, and who would know now is silent."""
    return NodeCondition(kind, "Unknown", "GuardSilent", words[:_MESSAGE_MOST])
