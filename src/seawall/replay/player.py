# SPDX-License-Identifier: Apache-2.0
"""A judge over recorded ticks: as in the guard's loop (``guard/loop.py``), without a machine."""

from collections.abc import Iterable

from seawall.actions.orders import Order, Outcome
from seawall.guard.judge.judge import Judge
from seawall.guard.settings import Settings
from seawall.guard.verdict import Verdict
from seawall.host.host import JSON
from seawall.replay.policy_state_codec import judge_from_document, state_document
from seawall.replay.tick import Tick


class Player:
    """Steps once a tick.  With the settings of then, and every tick, it decides as was decided."""

    __slots__ = ("_is_other", "_judge", "settings")

    def __init__(
        self, settings: Settings, boot_id: str, own_cgroup: str, last_decision: str = "",
        *, is_other: bool = False,
    ) -> None:  # fmt: skip
        """``is_other``: the settings were not in force, so other things may be ordered."""
        self.settings = settings
        self._is_other = is_other
        self._judge = Judge(settings, boot_id, own_cgroup=own_cgroup)
        self._judge.count_from(last_decision)

    def use(self, settings: Settings) -> None:
        """The configuration was read anew: from the next tick on."""
        self.settings = settings
        self._judge.use(settings)

    def step(self, tick: Tick) -> Verdict | None:
        """What is decided in this tick; what it is then told of the orders stays with it.

        ``Judge.wants`` is not asked: it remembers nothing, and the details were read.
        """
        judge, node = self._judge, tick.node
        verdict = judge.step(node, tick.groups)
        for outcome in self._other_outcomes(verdict, tick) if self._is_other else tick.outcomes:
            judge.learn(outcome, node)
        judge.updates(node, tick.groups)
        return verdict

    def _other_outcomes(self, verdict: Verdict | None, tick: Tick) -> Iterable[Outcome]:
        """Where it orders what was ordered then, what became of that is known.  Of anything else
        nobody knows what it would have brought: it counts as observed, and whom it aims at lives
        on.
        """
        for order in verdict.orders if verdict is not None else ():
            then = next((out for out in tick.outcomes if _is_same(out.order, order)), None)
            if then is None:
                yield Outcome(order, is_done=True, is_observed=True)
            else:
                is_observed = then.is_observed or self.settings.mode == "observe"
                yield then._replace(order=order, is_observed=is_observed)

    def state_document(self) -> dict[str, JSON]:
        """The policy state before the next step, as JSON."""
        return state_document(self._judge)

    def recall(self, mind: JSON) -> None:
        """Go on with that policy state, its settings included; BundleProblem."""
        self._judge = judge_from_document(mind)
        self.settings = self._judge._mind.settings  # noqa: SLF001 - the judge has no word for it


def _is_same(one: Order, other: Order) -> bool:
    """The same thing to the same workload."""
    return one.step == other.step and one.target == other.target and (
        one.limit_bytes == other.limit_bytes
    )  # fmt: skip
