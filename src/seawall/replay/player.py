# SPDX-License-Identifier: Apache-2.0
"""A judge over recorded ticks: as in the guard's loop (``guard/loop.py``), without a machine."""

from typing import Protocol

from seawall.actions.plan import Outcome
from seawall.guard.judge.judge import Judge
from seawall.guard.settings import Settings
from seawall.guard.verdict import Told, Verdict
from seawall.host.host import JSON
from seawall.replay.remembered import recalled, remembered
from seawall.replay.tick import Tick


class Learned(Protocol):
    """What a judge is told of the orders of one verdict."""

    def __call__(self, verdict: Verdict | None, tick: Tick) -> tuple[Outcome, ...]: ...


def as_recorded(verdict: Verdict | None, tick: Tick) -> tuple[Outcome, ...]:  # noqa: ARG001 - the protocol's: what was recorded does not depend on what is decided now
    """What the guard's own judge was told."""
    return tick.outcomes


class Player:
    """Steps once a tick.  With the settings of then, and every tick, it decides as was decided."""

    __slots__ = ("_judge", "_learned", "settings", "told")

    def __init__(
        self, settings: Settings, boot_id: str, own_cgroup: str, last_decision: str = "",
        *, learned: Learned = as_recorded,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.told: list[Told] = []
        """How decisions ended, as the last step told."""
        self._learned = learned
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
        for outcome in self._learned(verdict, tick):
            judge.learn(outcome, node)
        self.told = judge.told(node, tick.groups)
        return verdict

    @property
    def state(self) -> str:
        """One word, after the last step."""
        return self._judge.state()

    def remembered(self) -> dict[str, JSON]:
        """The whole mind, as it is before the next step."""
        return remembered(self._judge)

    def recall(self, mind: JSON) -> None:
        """Put such a mind in the place of this one, its settings included; BundleProblem."""
        self._judge = recalled(mind)
        self.settings = self._judge._mind.settings  # noqa: SLF001 - the judge has no word for it
