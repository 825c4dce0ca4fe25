# SPDX-License-Identifier: Apache-2.0
"""One tick of a guard as it is kept: what the judge saw, and what became of its orders."""

from typing import NamedTuple

from seawall.actions.orders import Outcome
from seawall.guard.tick_facts import Group, Node


class Tick(NamedTuple):
    """Never changed once it is made; groups that did not change may be shared between ticks."""

    number: int
    """Of the guard's ticks, going on over restarts."""
    unix_seconds: float
    """Of its look."""
    state: str
    """The judge's word after it: ``peace``, ``near``, ``blind``, ``short``, ``holding``."""
    node: Node
    groups: dict[str, Group]
    """By path, in the order in which the guard had them: the judge takes the first of equals."""
    outcomes: tuple[Outcome, ...]
    """What ``Judge.learn`` was told behind it, in its order."""
