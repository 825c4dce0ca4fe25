# SPDX-License-Identifier: Apache-2.0
"""What the guard has done since it started, in numbers: for the status and for Prometheus."""

from typing import Any, Final

from seawall.actions.orders import Order, Outcome
from seawall.guard.tick_facts import Node
from seawall.guard.verdict import TRIGGERS, DecisionUpdate, Verdict

_REMEMBERED: Final = 32
ENDS: Final = ("terminate", "kill")
"""Steps after which a workload is told to be gone."""
HOWS: Final = ("acted", "observed", "refused", "reported")


def how_of(verdict: Verdict, mode: str) -> str:
    """``acted``, ``observed``, ``refused`` or ``reported``."""
    if verdict.is_report or not verdict.orders:
        return "refused" if verdict.is_refusal else "reported"
    return "acted" if mode == "enforce" or verdict.is_ordered else "observed"


class DecisionTally:
    """Only ever grows, as counters do."""

    __slots__ = (
        "_counted", "_known", "_returned", "decisions", "kills", "own_major_faults",
        "predicted_bytes", "reaction_seconds", "returned_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.decisions = {(trigger, how): 0 for trigger in TRIGGERS for how in HOWS}
        """By trigger and by how it was taken: every pair from the first scrape on, for a counter
        that begins at 1 has no increase.
        """
        self.kills = 0
        """Workloads that were told to end, by SIGTERM or SIGKILL."""
        self.predicted_bytes = 0
        self.returned_bytes = 0
        self.reaction_seconds: float | None = None
        """From the last order to its first write or signal."""
        self.own_major_faults = 0
        self._counted: list[str] = []
        self._known: list[tuple[str, str, str, int]] = []
        self._returned: tuple[str, int] = ("", 0)

    def verdict(self, verdict: Verdict, mode: str) -> str:
        """Count it, once for all its steps; how it was taken."""
        how = how_of(verdict, mode)
        if verdict.decision not in self._counted:
            self._counted.append(verdict.decision)
            del self._counted[:-_REMEMBERED]
            self.decisions[verdict.trigger, how] += 1
        return how

    def outcome(self, outcome: Outcome) -> bool:
        """Whether it is the first time that this one is told of."""
        order = outcome.order
        mark = (order.decision, order.step, order.target.path, order.target.inode)
        if mark in self._known:
            return False
        self._known.append(mark)
        del self._known[:-_REMEMBERED]
        if outcome.is_observed or order.why == "self_test":
            return True
        self.reaction_seconds = outcome.first_action_seconds
        if outcome.is_done and self._is_first_end(order):
            self.kills += 1
            self.predicted_bytes += order.predicted_bytes
        return True

    def _is_first_end(self, order: Order) -> bool:
        """SIGTERM ends a workload as well, and the kill that follows ends it no second time."""
        if order.step not in ENDS:
            return False
        here = (order.decision, order.target.path, order.target.inode)
        ends = [mark for mark in self._known if mark[1] in ENDS]
        return sum([(mark[0], mark[2], mark[3]) == here for mark in ends]) == 1

    def add_update(self, told: DecisionUpdate) -> None:
        """What came back of one decision is told more than once: the last word counts."""
        if told.returned_bytes is None:
            return
        decision, before = self._returned
        known = before if decision == told.decision else 0
        self.returned_bytes += max(0, told.returned_bytes - known)
        self._returned = (told.decision, max(known, told.returned_bytes))

    def node(self, node: Node) -> None:
        """Add the guard's own major faults of a tick; called at every tick."""
        self.own_major_faults += node.own_major_faults

    def counts(self) -> dict[str, int]:
        """Decisions, kills, and bytes predicted and returned, for the guard's status."""
        return {
            "decisions": sum(self.decisions.values()),
            "kills": self.kills,
            "predicted_bytes": self.predicted_bytes,
            "returned_bytes": self.returned_bytes,
        }

    def rows(self) -> list[list[Any]]:
        """``[trigger, how, count]``, for the textfile."""
        return [[trigger, how, count] for (trigger, how), count in self.decisions.items()]
