# SPDX-License-Identifier: Apache-2.0
"""Rules over a source, in the order in which they can be certain."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from seawall.accounts.scene import Scene
from seawall.cli.policy_file import load_policy
from seawall.cli.source import Source
from seawall.findings.finding import SEVERITIES, Judged
from seawall.findings.judge import (
    copes_with_one_moment,
    judge,
    needs_window,
    window_topics,
)
from seawall.findings.rule import Rule
from seawall.readings.snapshot import Snapshot, needs_of

# Topics that are one small file each; what is judged from them alone is judged first.
_CHEAP: Final = frozenset({"Meminfo", "Vmstat", "Zoneinfo", "HostPressure", "VmSysctls", "Swaps"})


class Judging:
    """One run of the rules: what is certain at once, then what needs the window."""

    def __init__(
        self, source: Source, rules: Iterable[Rule], rules_file: str | None, *, audit: bool
    ) -> None:
        self._source = source
        self.scene: Scene = source.scene()
        self._policy = load_policy(rules_file)
        self.rules = [rule for rule in rules if audit or not rule.audit]

    def at_once(self) -> Iterator[Judged]:
        """Findings of the rules that need one moment; cheap and severe ones first."""
        for topic in sorted(window_topics(self.rules), key=_cost_of_topic):
            self._source.first.get(topic)
        self._source.mark_first_moment()
        rules = sorted((r for r in self.rules if not needs_window(r)), key=_order)
        yield from judge(rules, self.scene, self._policy)

    def first_look(self) -> Iterator[Judged]:
        """What fires already at one moment, of rules that judge again over the window."""
        rules = sorted(filter(copes_with_one_moment, self.rules), key=_order)
        judged = judge(rules, self.scene, self._policy)
        return (item for item in judged if item.finding.verdict == "fires")

    def over_window(self) -> Iterator[Judged]:
        """Findings of the rules that need two moments; waits for the second."""
        rules = sorted(filter(needs_window, self.rules), key=_order)
        if rules:
            self.scene = self._source.later_scene()
            yield from judge(rules, self.scene, self._policy)

    @property
    def waits(self) -> bool:
        """Whether the second moment has to be waited for: only on a live machine."""
        return self._source.live is not None

    def snapshots(self) -> list[Snapshot]:
        """The moments that were looked at."""
        last = self.scene.last
        return [self.scene.first] if last is None else [self.scene.first, last]


def _order(rule: Rule) -> tuple[int, int, str]:
    costly = max((_cost_of_topic(need) for _, need, _ in needs_of(rule.judge)), default=0)
    return costly, SEVERITIES.index(rule.severity), rule.id


def _cost_of_topic(need: Any) -> int:
    names = {getattr(part, "__name__", "") for part in (need, *getattr(need, "__args__", ()))}
    return 0 if names & _CHEAP else 1
