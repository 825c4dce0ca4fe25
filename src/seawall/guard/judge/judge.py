# SPDX-License-Identifier: Apache-2.0
"""The judge: from what is seen in one tick to a verdict, and what it remembers between ticks.

Pure: time and machine come in with the ``Node``.  In peace it costs next to nothing; near a
shortage it asks for details of those who lead; in one it ranks, chooses or refuses, and follows
every decision until it is known what came back.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from seawall.actions.orders import Outcome
from seawall.guard.judge.at_limit import (
    judge_over_limit,
    judge_stuck,
    learn_clamp,
    learn_unclamp,
    report_over_limit,
)
from seawall.guard.judge.case_steps import go_on, learn
from seawall.guard.judge.evidence import given_back_since, promised_to
from seawall.guard.judge.node_short import judge_low, judge_short
from seawall.guard.judge.policy_state import PolicyState
from seawall.guard.judge.proof import LEAST_GROWTH
from seawall.guard.judge.quarantined import judge_quarantined
from seawall.guard.judge.rescue import RescueAnswer, RescueRequest, judge_rescue
from seawall.guard.judge.shortage import HURRY_GROWTH, HURRY_SECONDS, judge_shortage
from seawall.guard.judge.stuck import in_turn, is_candidate
from seawall.guard.judge.suspicion import look_after
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import DecisionUpdate, Rank, Verdict

WANTED_MOST = 16
GROWN_MOST = 32
"""Before them, that grew beyond their promise: whoever is not read cannot be the source."""
LARGE_MOST = 64
LARGE_SHARE = 64
"""Of all memory, and at most half of what the guard acts at: smaller groups are not worth a read in
peace, and cache of larger ones hides what they take."""
CALM_AGAIN_SECONDS = 10.0


class _HeldBytes(NamedTuple):
    """What a group holds, and held at a look; ordered by the first."""

    now: int
    before: int
    path: str


class Judge:
    """One for the life of the guard, or until the configuration is read again."""

    __slots__ = ("_mind", "_short_seconds", "_state", "_wanted")

    def __init__(self, settings: Settings, boot_id: str, *, own_cgroup: str = "") -> None:
        self._mind = PolicyState(settings, boot_id, own_cgroup)
        self._wanted: list[Group] = []
        self._state = "peace"
        self._short_seconds = float("-inf")

    def use(self, settings: Settings) -> None:
        """The configuration was read anew; what was decided so far stays."""
        self._mind.use(settings)

    def count_from(self, decision: str) -> None:
        """The last decision of this boot, of a guard before: the next one is one more."""
        number = decision.rpartition("-")[2]
        if number.isdecimal():
            self._mind.number = max(self._mind.number, int(number))

    @property
    def last_decision(self) -> str:
        """From which it counts on; empty: it has decided nothing in this boot."""
        state = self._mind
        return f"{state.boot}-{state.number:04d}" if state.number else ""

    def wants(self, node: Node, groups: Mapping[str, Group]) -> list[Group]:
        """Groups whose details are worth reading now: at most 16, 40 where many grew, and 64 large
        ones when a look is taken that others will be compared with.  The same list every time.
        """
        wanted = self._wanted
        wanted.clear()
        settings = self._mind.settings
        shortage = judge_shortage(node, settings)
        full = [g for g in groups.values() if g.at_limit_seconds and is_candidate(g, settings)]
        wanted += in_turn(full, node.seconds, WANTED_MOST // 2)
        if shortage.is_near or shortage.is_short:
            look = self._mind.window.best(node)
            held = [
                _HeldBytes(
                    group.taken_bytes + group.outside.certain_bytes, sum(look.before(group)), path
                )
                for path, group in groups.items()
            ]
            self._lead(held, groups, node.capacity_bytes)
        is_looked = not shortage.is_short and not self._mind.is_busy
        if is_looked and self._mind.window.is_due(node):
            self._add_large(node, groups)
        return wanted

    def _lead(
        self, held: list[_HeldBytes], groups: Mapping[str, Group], capacity_bytes: int
    ) -> None:
        """Whoever grew beyond its promise; and by growth, by size and by Kubernetes' order in
        turn, until the list is full; by order only those who could go.
        """
        wanted = self._wanted
        grown = self._grown(held, groups, capacity_bytes)
        wanted += grown
        most = max(WANTED_MOST, len(grown) + WANTED_MOST // 2)
        orders = (
            sorted(held, key=_growth, reverse=True)[:WANTED_MOST],
            sorted(held, reverse=True)[:WANTED_MOST],
            self._in_order(held, groups, capacity_bytes),
        )
        for place in range(WANTED_MOST):
            for order in orders:
                group = groups[order[place].path] if place < len(order) else None
                if group is not None and len(wanted) < most and group not in wanted:
                    wanted.append(group)

    def _grown(
        self, held: list[_HeldBytes], groups: Mapping[str, Group], capacity_bytes: int
    ) -> list[Group]:
        """Beyond their promise, and by more than proves nothing; the most first."""
        beyond: list[tuple[int, str]] = []
        for row in held:
            group = groups[row.path]
            if _growth(row) >= LEAST_GROWTH and group not in self._wanted:
                over = row.now - promised_to(group, capacity_bytes, group.limit_bytes)
                if over >= LEAST_GROWTH:
                    beyond.append((-min(over, _growth(row)), row.path))
        beyond.sort()
        return [groups[path] for _, path in beyond[:GROWN_MOST]]

    def _in_order(
        self, held: list[_HeldBytes], groups: Mapping[str, Group], capacity_bytes: int
    ) -> list[_HeldBytes]:
        """Best effort first, and the largest of them: who may be acted on, and may be over its
        promise.
        """
        state, found = self._mind, []
        for row in sorted(held, key=lambda row: (groups[row.path].class_rank, -row.now)):
            group = groups[row.path]
            if row.now <= promised_to(group, capacity_bytes, group.limit_bytes):
                continue
            if not state.protection.reason(group) and not state.hold.why_done(group):
                found.append(row)
                if len(found) >= WANTED_MOST:
                    break
        return found

    def _add_large(self, node: Node, groups: Mapping[str, Group]) -> None:
        """What only their end gives back is compared with what it was then."""
        wanted = self._wanted
        act = self._mind.settings.act_at_most_bytes
        least = min(node.total_bytes // LARGE_SHARE, act // 2)
        large = [(-group.charge_bytes, path) for path, group in groups.items()
                 if group.charge_bytes >= least]  # fmt: skip
        large.sort()
        wanted += [groups[path] for _, path in large[:LARGE_MOST] if groups[path] not in wanted]

    def step(self, node: Node, groups: Mapping[str, Group]) -> Verdict | None:
        """At most one verdict a tick; what is not said now is said in the next.  None while the
        node's memory cannot be read: what was short before may be over, and a kill too many.
        """
        state = self._mind
        state.rest = ()
        if not node.is_seen:
            self._state = "blind"
            return None
        shortage = judge_shortage(node, state.settings)
        state.note(shortage, node.seconds)
        if shortage.is_short:
            self._short_seconds = node.seconds
        elif node.seconds - self._short_seconds > CALM_AGAIN_SECONDS:
            state.refusal, state.refusal_said = "", None
        is_short = shortage.is_short or state.is_busy
        state.window.tick(node, groups, is_short=is_short, done=state.hold.done)
        state.descent.tick(node, state.window, 0.0 if is_short else shortage.budget_seconds)
        state.hold.look(node)
        given_back = given_back_since(node, state.window)
        state.is_believed = given_back == 0
        state.overruns.look(groups, node.seconds, given_back)
        self._state = self._word(node)
        verdict = go_on(state, node, groups) if state.cases else None
        held = state.suspicion
        if verdict is None and (shortage.is_short or (held and held.is_needed(node))):
            verdict = judge_short(state, shortage, node, groups)
        elif verdict is None and state.low_since is not None:
            verdict = judge_low(state, shortage, node, groups)
        verdict = verdict or look_after(state, node, groups)
        if verdict is None and not state.is_acting(node.seconds) and not shortage.is_short:
            verdict = (
                judge_over_limit(state, node, groups)
                or judge_stuck(state, node, groups)
                or report_over_limit(state, node, groups)
            )
        return verdict

    def rescue(self, node: Node, groups: Mapping[str, Group], wish: RescueRequest) -> RescueAnswer:
        """After ``step`` of the same tick, where that had no verdict."""
        return judge_rescue(self._mind, node, groups, wish)

    def quarantine(
        self, node: Node, groups: Mapping[str, Group], pods: Mapping[str, str]
    ) -> Verdict | None:  # fmt: skip
        """Where nothing else is decided in this tick; ``pods``: uid to quarantine."""
        return judge_quarantined(self._mind, node, groups, pods)

    def refuse(self, node: Node, why: str, sentence: str) -> Verdict:
        """A decision that somebody asked for and nobody takes."""
        state = self._mind
        return state.verdict(
            state.next_decision(), node, "node_short", refused=why, sentence=sentence
        )

    def is_open(self, decision: str) -> bool:
        """It is not known yet what came back of it."""
        return any(case.decision == decision for case in self._mind.cases)

    def _word(self, node: Node) -> str:
        state = self._mind
        shortage = state.shortage
        if shortage is None:
            return "peace"
        if state.is_busy or (shortage.is_short and state.hold.is_off(node.seconds)):
            return "holding"
        if shortage.is_short:
            return "short"
        if node.residual_bytes is None and node.claims_seconds is None:
            return "blind"
        return "near" if shortage.is_near else "peace"

    def is_hurried(self, node: Node) -> bool:
        """Seconds are running out; or nothing is left, and what nobody counts grows still."""
        shortage = self._mind.shortage
        if shortage is None:
            return False
        grows = node.residual_slope_bytes_per_second > HURRY_GROWTH
        return shortage.budget_seconds < HURRY_SECONDS or (shortage.is_pressing and grows)

    @property
    def rest(self) -> Iterable[Rank]:
        """Whom the ranking of this tick's verdict has no room for, once: words are made when they
        are asked for, which is after the orders.
        """
        return self._mind.rest

    def learn(self, outcome: Outcome, node: Node) -> None:
        """What became of an order; told with ``updates``."""
        learn(self._mind, outcome, node)
        if outcome.is_done:
            return
        if outcome.order.step == "clamp":  # also where it would be refused
            learn_clamp(self._mind, outcome.order.target.path, outcome.problem)
        elif outcome.order.step == "unclamp" and not outcome.is_observed:
            learn_unclamp(self._mind, outcome.order.target.path, node.seconds)

    def updates(self, node: Node, groups: Mapping[str, Group]) -> list[DecisionUpdate]:  # noqa: ARG002 - the loop's interface: what is told was measured in ``step``
        """How decisions ended, since it was asked last."""
        told, self._mind.told = self._mind.told, []
        return told

    def state(self) -> str:
        """One word for the status: peace, near, short, holding, blind."""
        return self._state


def _growth(row: _HeldBytes) -> int:
    return row.now - row.before
