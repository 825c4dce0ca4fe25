# SPDX-License-Identifier: Apache-2.0
"""``seawall why``: what is wrong, the numbers that prove it, what comes next, what to do."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Final

from seawall.cli import statuses
from seawall.cli.base_file import learn_if_idle
from seawall.cli.judging import Judging
from seawall.cli.paper import paper_for
from seawall.cli.source import Source, add_source_arguments, open_source
from seawall.cli.telling import Telling
from seawall.findings.blindness import not_seen
from seawall.findings.finding import Judged
from seawall.findings.rule import load_rules
from seawall.host.host import Unread
from seawall.readings.guard_status import GuardStatus
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.pressure import HostPressure
from seawall.views.document import head, render
from seawall.views.guard_line import guard_lines, guard_object
from seawall.views.terminal import Paper
from seawall.views.why_json import document, order
from seawall.views.why_text import closing, heading, vitals

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen; it runs without any."""


def add_arguments(parser: ArgumentParser) -> None:
    """The verb's own options."""
    add_source_arguments(parser)
    parser.add_argument("--audit", action="store_true", help="judge settings too (info)")
    parser.add_argument("--whole", action="store_true", help="all evidence, of infos as well")
    add_judging_arguments(parser)


def add_judging_arguments(parser: ArgumentParser) -> None:
    """Options of every verb that judges."""
    parser.add_argument(
        "--fail-on", choices=("critical", "warning"),
        help="exit 10 if something at that level fires, 11 if blind there",
    )  # fmt: skip
    parser.add_argument(
        "--rules", metavar="FILE", default=None,
        help="mutes and thresholds (default /etc/seawall/rules.toml, where it exists)",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Print the answer as it becomes certain; the exit status."""
    rules = load_rules()  # before the clock of --timeout starts: it is for questions
    source = open_source(arguments)
    judging = Judging(source, rules, arguments.rules, audit=arguments.audit)
    if arguments.json:
        judged = [*judging.at_once(), *judging.over_window()]
        page = head("why", source.first.get(Kernel), judging.scene.window_seconds)
        page["guard"] = guard_object(*_guard(source, arguments))
        unseen = not_seen(judged, judging.snapshots())
        print(render(document(page, judged, unseen, source.notes)))
        learn_if_idle(source, arguments)
        return exit_status(judged, arguments.fail_on)
    paper = paper_for(arguments.color)
    for line in heading(head("why", source.first.get(Kernel), None), paper, source.notes):
        print(line)
    for line in guard_lines(paper, *_guard(source, arguments)):
        print(line)
    if arguments.bundle is not None or arguments.root is not None:
        # Of this very machine `console` has said it already, before it imported anything.
        print(vitals(source.first.get(Meminfo), source.first.get(HostPressure)))
    sys.stdout.flush()
    judged = _print_findings(judging, paper, whole=arguments.whole)
    learn_if_idle(source, arguments)
    return exit_status(judged, arguments.fail_on)


def _guard(
    source: Source, arguments: Namespace
) -> tuple[GuardStatus | Unread, float | None, float]:
    """What it last said, now, and how often a record keeps that (0: whenever it says it)."""
    status, now = source.first.get(GuardStatus), _now(source)
    if arguments.bundle is None or isinstance(status, Unread):
        return status, now, 0.0
    # Imported here: the machine itself needs none of it.
    from seawall.cli.box_guard import guard_then  # noqa: PLC0415

    return guard_then(source, status, now)


def _now(source: Source) -> float | None:
    """When the first moment was; None in a bundle without its clock."""
    kernel = source.first.get(Kernel)
    return None if isinstance(kernel, Unread) else kernel.taken_at_unix_seconds


def _print_findings(judging: Judging, paper: Paper, *, whole: bool) -> list[Judged]:
    """Critical ones as they become certain; each phase's others, worst first, at its end."""
    telling = Telling(paper, whole=whole)
    if judging.waits:
        judged = telling.tell(judging.at_once(), judging.first_look())
        judged += telling.tell(judging.over_window())
    else:
        everything = [*judging.at_once(), *judging.over_window()]
        judged = telling.tell(sorted(everything, key=order))
    telling.take_back(judged)
    unseen = not_seen(judged, judging.snapshots())
    for line in closing(judged, unseen, judging.scene.window_seconds, paper):
        print(line)
    return judged


def exit_status(judged: list[Judged], fail_on: str | None) -> int:
    """0, or with ``--fail-on`` 10 for a firing and 11 for a blind rule at that level."""
    if fail_on is None:
        return 0
    levels = ("critical",) if fail_on == "critical" else ("critical", "warning")
    counted = [i for i in judged if i.muted is None and i.finding.severity in levels]
    if any(i.finding.verdict == "fires" for i in counted):
        return statuses.FIRES
    return statuses.BLIND if any(i.finding.verdict == "blind" for i in counted) else 0
