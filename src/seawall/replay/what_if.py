# SPDX-License-Identifier: Apache-2.0
"""What becomes of the orders of a policy that was not in force.

Where it orders what was ordered then, what became of that is known.  Of anything else nobody
knows what it would have brought: it counts as observed, and whom it aims at lives on.
"""

from typing import Final

from seawall.actions.plan import Order, Outcome
from seawall.guard.settings import Settings
from seawall.guard.verdict import Verdict
from seawall.replay.tick import Tick


class OtherOutcomes:
    """For one policy; a ``player.Learned``."""

    __slots__ = ("_mode",)

    def __init__(self, settings: Settings) -> None:
        self._mode: Final = settings.mode

    def __call__(self, verdict: Verdict | None, tick: Tick) -> tuple[Outcome, ...]:
        if verdict is None:
            return ()
        return tuple(self._of(order, tick) for order in verdict.orders)

    def _of(self, order: Order, tick: Tick) -> Outcome:
        recorded = next((out for out in tick.outcomes if is_same(out.order, order)), None)
        if recorded is None:
            return Outcome(order, is_done=True, is_observed=True)
        outcome = recorded._replace(order=order)
        return outcome._replace(is_observed=True) if self._mode == "observe" else outcome


def is_same(one: Order, other: Order) -> bool:
    """The same thing to the same workload."""
    return one.step == other.step and one.target == other.target and (
        one.limit_bytes == other.limit_bytes
    )  # fmt: skip
