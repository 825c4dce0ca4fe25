# SPDX-License-Identifier: Apache-2.0
"""The policy state: what the judge remembers between two ticks, all of it bounded."""

from collections.abc import Iterable

from seawall.actions.orders import Order, Outcome
from seawall.guard.judge.cooldown import Cooldown
from seawall.guard.judge.decision_case import DecisionCase
from seawall.guard.judge.descent import Descent
from seawall.guard.judge.look_history import LookHistory
from seawall.guard.judge.over_limit import OverLimitState
from seawall.guard.judge.protection import Protection
from seawall.guard.judge.shortage import Shortage
from seawall.guard.judge.suspects import SuspectRests, Suspicion
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import DecisionUpdate, Rank, Trigger, Verdict

TOLD_MOST = 64
DONE = "already acted on"
OBSERVED = "already decided on, and only observed"


class PolicyState:
    """One for the life of a judge.  The names of the slots stand in black boxes on disks."""

    __slots__ = (
        "boot", "cases", "descent", "hold", "is_believed", "low_since", "number", "overruns",
        "own_cgroup", "protection", "refusal", "refusal_said", "refusal_since", "rest", "rests",
        "settings", "short_since", "shortage", "suspicion", "told", "window",
    )  # fmt: skip

    def __init__(self, settings: Settings, boot_id: str, own_cgroup: str) -> None:
        self.settings = settings
        self.boot = boot_id[:8]
        self.number = 0
        self.own_cgroup = own_cgroup
        self.protection = Protection(settings, own_cgroup)
        self.hold = Cooldown()
        self.window = LookHistory()
        self.descent = Descent()
        self.overruns = OverLimitState(settings)
        self.cases: list[DecisionCase] = []
        """Decisions of which it is not known yet what came back."""
        self.suspicion: Suspicion | None = None
        """Somebody stands still until the proof comes, or does not."""
        self.rests = SuspectRests()
        self.is_believed = False
        """The claims of this tick are young enough to be evidence."""
        self.told: list[DecisionUpdate] = []
        self.shortage: Shortage | None = None
        """Of this tick."""
        self.short_since: float | None = None
        """Since when it has really been short without a break."""
        self.low_since: float | None = None
        """Since when its headroom, with or without swap, has been under the floor without a
        break."""
        self.rest: Iterable[Rank] = ()
        """Whom the ranking of this tick's verdict left out; words are made when it is asked for."""
        self.refusal = ""
        """The code of the refusal that holds now."""
        self.refusal_since = 0.0
        self.refusal_said: float | None = None

    def use(self, settings: Settings) -> None:
        """Other settings from here on; limits that we lowered are not forgotten.

        With another mode what was only observed has not been done, and the loop has put back
        what was in force.
        """
        if settings.mode != self.settings.mode:
            self.overruns.leave()
            self.cases = [case for case in self.cases if case.phase != "observed"]
            if settings.mode == "enforce":
                done = self.hold.done.items()
                self.hold.done = {at: why for at, why in done if why.startswith(DONE)}
        self.settings = settings
        self.protection = Protection(settings, self.own_cgroup)
        self.overruns.use(settings)

    @property
    def is_busy(self) -> bool:
        """Something that was decided is not over."""
        return bool(self.cases) or self.suspicion is not None

    def is_acting(self, now: float) -> bool:
        """A step of it is still to come, or it is not known yet whether memory comes back at all;
        longer than that no decision holds up what others do at their own limits.
        """
        return self.suspicion is not None or any(
            case.phase in ("terminating", "frozen")
            or (case.phase == "killed" and now - case.seconds < self.settings.verify_seconds)
            for case in self.cases
        )

    @property
    def is_observing(self) -> bool:
        """Nothing is done: sentences say ``would be``."""
        return self.settings.mode == "observe"

    def count_kills(self, case: DecisionCase, now: float) -> None:
        """All of it are sent a signal, if it is not only observed."""
        if not self.is_observing:
            self.hold.count_kills(now, case.workloads, case.tenants)

    def may_kill(self, group: Group, now: float) -> bool:
        """Who is proved may go: the node has a kill left in this minute, or its tenant has."""
        return self.hold.may_kill(group, now, self.settings.kills_per_minute)

    def note(self, shortage: Shortage, now: float) -> None:
        """The shortage of this tick."""
        self.shortage = shortage
        if not shortage.is_real:
            self.short_since = None
        elif self.short_since is None:
            self.short_since = now
        if not (shortage.is_under_floor or shortage.is_swapping):
            self.low_since = None
        elif self.low_since is None:
            self.low_since = now

    def short_seconds(self, now: float) -> float:
        """It has really been short for so long."""
        return 0.0 if self.short_since is None else now - self.short_since

    def low_seconds(self, now: float) -> float:
        """Its headroom has been under the floor for so long."""
        return 0.0 if self.low_since is None else now - self.low_since

    def next_decision(self) -> str:
        """The id of the next decision, ``BOOT8-NNNN``: the boot's id cut to 8, and a counter."""
        self.number += 1
        return f"{self.boot}-{self.number:04d}"

    def tell(self, told: DecisionUpdate) -> None:
        """Kept until it is asked for."""
        self.told.append(told)
        del self.told[:-TOLD_MOST]

    def tell_outcome(self, outcome: Outcome, seconds: float, sentence: str) -> None:
        """Note how one order of a decision ended, to be told in the journal."""
        self.tell(DecisionUpdate(outcome.order.decision, seconds, outcome, None, sentence))

    def verdict(
        self, decision: str, node: Node, trigger: Trigger, *, orders: tuple[Order, ...] = (),
        ranking: tuple[Rank, ...] = (), need: int = 0, refused: str = "", sentence: str = "",
    ) -> Verdict:  # fmt: skip
        """Orders, or the reason why there are none."""
        budget = self.shortage.budget_seconds if self.shortage is not None else 0.0
        return Verdict(
            decision, node.seconds, trigger, not orders, need, budget, orders, ranking,
            refused, sentence,
        )  # fmt: skip
