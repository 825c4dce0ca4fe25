# SPDX-License-Identifier: Apache-2.0
"""Rules over a machine or a recording, in the order in which they can be certain.

Cheap and severe ones first; those that need a second moment last, and before them what of theirs
fires at one.  Where so much time is gone that a machine must be in trouble, what is dear waits.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from seawall.accounts.scene import Scene
from seawall.findings.finding import Judged
from seawall.findings.policy import Policy
from seawall.findings.rule import Rule
from seawall.findings.rule_costs import cost_of, cost_of_topic, order
from seawall.findings.rule_runner import (
    copes_with_one_moment,
    judge,
    needs_window,
    window_topics,
)
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot, needs_of

UNHURRIED_SECONDS: Final = {1: 3.0, 2: 1.5}
"""By cost; a healthy machine with 5,000 processes has answered everything by then."""


class JudgedMoments(Protocol):
    """What is judged: ``sources/source.Source``."""

    first: Snapshot

    @property
    def live(self) -> object | None:
        """Set where the second moment has to be waited for."""

    def scene(self) -> Scene:
        """The first moment alone."""

    def later_scene(self) -> Scene:
        """Both moments; waits for the second one."""

    def mark_first_moment(self) -> None:
        """The window begins now."""


class RuleSchedule:
    """One run of the rules: what is certain at once, then what needs the window."""

    def __init__(
        self,
        source: JudgedMoments,
        rules: Iterable[Rule],
        policy: Policy,
        clock: Callable[[], float],
        *,
        audit: bool,
    ) -> None:
        """``clock``: monotonic seconds."""
        self._source = source
        self._clock = clock
        self._began = clock()
        self._postponed: list[Rule] = []
        self._left_out: set[type[Any]] = set()
        self.scene: Scene = source.scene()
        self._policy = policy
        self.rules = [rule for rule in rules if audit or not rule.audit]

    def everything(self) -> Iterator[Judged]:
        """Every finding, once: those of one moment, then those that need the window."""
        yield from self.at_once()
        yield from self.over_window()

    def as_certain(self) -> Iterator[tuple[Judged, bool]]:
        """The same, True with each; before the window, with False, what fires at one moment."""
        for item in self.at_once():
            yield item, True
        if self.waits:
            for item in self.first_look():
                yield item, False
        for item in self.over_window():
            yield item, True

    def at_once(self) -> Iterator[Judged]:
        """Findings of the rules that need one moment; cheap and severe ones first."""
        for topic in sorted(window_topics(self.rules), key=cost_of_topic):
            if self._is_too_slow_for(cost_of_topic(topic)):
                self._left_out.add(topic)
            else:
                self._source.first.get(topic)
        self._source.first.get(Kernel)  # its clock is where the window begins
        self._source.mark_first_moment()
        rules = sorted((r for r in self.rules if not needs_window(r)), key=order)
        for number, rule in enumerate(rules):
            # Where everything is slow, the window's rules know why: they go before these.
            if self._is_too_slow_for(cost_of(rule)):
                self._postponed = rules[number:]
                return
            yield from self._judged(rule)

    def first_look(self) -> Iterator[Judged]:
        """What fires already at one moment, of rules that judge again over the window."""
        for rule in sorted(filter(copes_with_one_moment, self.rules), key=order):
            if self._is_too_slow_for(cost_of(rule)):
                return
            for item in self._judged(rule):
                if item.finding.verdict == "fires":
                    yield item

    def _judged(self, rule: Rule) -> Iterator[Judged]:
        """Where all is slow, without what the rule copes without and would have to wait for."""
        likes = {need for _, need, copes in needs_of(rule.judge) if copes}
        self.scene.too_dear = {n for n in likes if self._is_too_slow_for(cost_of_topic(n))}
        yield from judge([rule], self.scene, self._policy)
        self.scene.too_dear = set()

    def over_window(self) -> Iterator[Judged]:
        """Findings of the rules that need two moments; waits for the second."""
        rules = sorted(filter(needs_window, self.rules), key=order)
        if rules:
            self.scene = self._source.later_scene()
            self.scene.left_out = self._left_out
            for rule in rules:
                yield from self._judged(rule)
        yield from judge(self._postponed, self.scene, self._policy)

    def _is_too_slow_for(self, cost: int) -> bool:
        """Whether so much time is gone that what costs this much has to wait."""
        seconds = self._clock() - self._began
        return self.waits and cost > 0 and seconds > UNHURRIED_SECONDS[cost]

    @property
    def waits(self) -> bool:
        """Whether the second moment has to be waited for: only on a live machine."""
        return self._source.live is not None

    def snapshots(self) -> list[Snapshot]:
        """The moments that were looked at."""
        last = self.scene.last
        return [self.scene.first] if last is None else [self.scene.first, last]
