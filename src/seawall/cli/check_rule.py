# SPDX-License-Identifier: Apache-2.0
"""``seawall check SW101``: the judging; ``--npd`` for node-problem-detector.

The plugin protocol (node-problem-detector, docs/custom_plugin_monitor.md): exit status 0 OK,
1 a problem, 2 unknown; the message is the first line of stdout, of at most 80 characters.
"""

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from seawall.cli.policy_file import load_policy
from seawall.cli.rules import rule_named
from seawall.cli.statuses import NPD_OK, NPD_PROBLEM, NPD_UNKNOWN
from seawall.cli.verb import SourceVerb
from seawall.cli.why import exit_status
from seawall.findings.blindness import not_seen
from seawall.findings.finding import Judged
from seawall.findings.rule_schedule import RuleSchedule
from seawall.views.documents.why_document import CheckPage, order
from seawall.views.terminal import Console, plain
from seawall.views.why_text import closing, finding_lines

_NPD_WIDTH: Final = 80


class CheckVerb(SourceVerb[CheckPage]):
    """What one rule says."""

    name = "check"
    document_table = "seawall.views.documents.why_document:WHY"
    is_framed = False

    @cached_property
    def schedule(self) -> RuleSchedule:
        """Of the one rule; UsageProblem where there is none of that name."""
        rule, source = rule_named(self.arguments.id), self.source
        policy = load_policy(self.arguments.rules)
        return RuleSchedule(source, [rule], policy, time.monotonic, audit=True)

    def page(self) -> CheckPage:
        schedule = self.schedule
        judged = [*schedule.at_once(), *schedule.over_window()]
        unseen = not_seen(judged, schedule.snapshots())
        return CheckPage(judged=judged, unseen=unseen, bundle_notes=self.source.notes)

    def window_seconds(self, _page: CheckPage) -> float | None:
        """Between the two moments, where the rule wants two."""
        return self.schedule.scene.window_seconds

    def text(self, page: CheckPage, paper: Console) -> Iterator[str]:
        for item in sorted(page.judged, key=order):
            if item.finding.verdict == "fires":
                yield from finding_lines(item, paper)
            elif item.finding.verdict == "quiet":
                yield from paper.wrap(item.finding.headline, "    ", f"{item.id} quiet: ")
        yield from closing(page.judged, page.unseen, self.window_seconds(page), paper)

    def status(self, page: CheckPage) -> int:
        """As ``--fail-on`` has it."""
        return exit_status(page.judged, self.arguments.fail_on)


def run_rule(arguments: Namespace) -> int:
    """Judge the one rule and print its answer; the exit status."""
    if not arguments.npd:
        return CheckVerb.run(arguments)
    status, line = npd_answer(CheckVerb(arguments).page().judged)
    print(line)
    return status


def npd_answer(judged: Sequence[Judged]) -> tuple[int, str]:
    """Status and line: the worst finding speaks; muted ones do not."""
    live = sorted((item for item in judged if item.muted is None), key=order)
    if not live:
        return NPD_OK, "muted"
    worst = live[0]
    status = {"fires": NPD_PROBLEM, "blind": NPD_UNKNOWN, "quiet": NPD_OK}[worst.finding.verdict]
    if status == NPD_PROBLEM and worst.finding.severity == "info":
        status = NPD_OK
    text = plain(f"{worst.id}: {worst.finding.headline}")
    return status, text if len(text) <= _NPD_WIDTH else text[: _NPD_WIDTH - 2] + ".."
