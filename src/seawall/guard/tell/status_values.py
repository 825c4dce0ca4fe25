# SPDX-License-Identifier: Apache-2.0
"""Values of the status at one moment, for the page that people read and for its JSON."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from seawall.guard.tick_facts import Group, Node

TOP: Final = 3
PROVED: Final = "can kill: proved"
"""So the words of a self-test begin that succeeded."""
NOT_PROVED: Final = "not proved yet"
STALE_SECONDS: Final = 30
"""The page is written at least every ten seconds: an older one is of a guard that hangs."""


class LatestDecision(NamedTuple):
    """The last decision of this guard."""

    decision: str
    unix_seconds: float
    trigger: str
    how: str
    """``acted``, ``observed``, ``refused``, ``reported``."""
    sentence: str
    """Of its first step, which says why, and of its last one."""
    result: str
    """How it went on; empty: nothing is known yet."""


class StatusValues(NamedTuple):
    """The whole status.  Words are not yet made plain."""

    mode: str
    mode_why: str
    """Why it is not what the file says; empty: it is."""
    state: str
    unix_seconds: float
    node: Node
    top: list[Group]
    last: LatestDecision | None
    counts: dict[str, int]
    """decisions, kills, predicted_bytes, returned_bytes."""
    can_kill: str
    watcher: str
    blackbox: str
    """Where it is and how old, or why there is none."""
    blind: list[str]
    problems: list[str]
    others: list[str]
    notes: list[str]
    """Whatever else the loop has to say."""
    scope: tuple[str, ...]
    config: str
    folder: str
    pid: int
    since: float
    """Unix seconds."""
    boot_id: str
    host: str
    brake_since: float | None = None
    """Unix seconds: since then the brake is on; None: it is off."""
    rescue: dict[str, Any] | None = None
    """What became of the last rescue order (``rescue_desk.RescueResult``)."""
    takes_rescue: bool = False
    """Its mode or its file lets it carry one out."""

    @property
    def can_kill_is_proved(self) -> bool:
        """Whether the last self-test proved that the guard can kill."""
        return self.can_kill.startswith(PROVED)


def seconds_left(node: Node) -> float | None:
    """Until the headroom is gone at this pace; None: it does not shrink."""
    if node.slope_bytes_per_second <= 0:
        return None
    return max(0, node.headroom_bytes) / node.slope_bytes_per_second


def top_of(groups: Iterable[Group]) -> list[Group]:
    """The three that hold most uncounted memory; among those that hold nothing there,
    the largest.
    """
    return sorted(groups, key=_weight, reverse=True)[:TOP]


def top_shadow_charges(groups: Iterable[Group]) -> list[Group]:
    """The three largest by charge and certain uncounted memory."""
    return sorted(groups, key=_shadow_charge, reverse=True)[:TOP]


def top_uncounted(groups: Iterable[Group], most: int) -> list[Group]:
    """So many at most of those that are known to hold uncounted memory, the largest first."""
    held = [group for group in groups if group.outside.certain_bytes > 0]
    return sorted(held, key=lambda group: (-group.outside.certain_bytes, group.path))[:most]


def _shadow_charge(group: Group) -> int:
    return group.charge_bytes + group.outside.certain_bytes


def _weight(group: Group) -> tuple[int, int, int]:
    outside = group.outside
    return outside.certain_bytes, outside.likely_bytes, group.charge_bytes


def lines_of(words: str) -> list[str]:
    """The lines of these words that are not empty."""
    return [line for line in words.split("\n") if line]
