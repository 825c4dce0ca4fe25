# SPDX-License-Identifier: Apache-2.0
"""``seawall check SW101``: one rule, for scripts; ``--npd`` for node-problem-detector.

The plugin protocol (node-problem-detector, docs/custom_plugin_monitor.md): exit status 0 OK,
1 a problem, 2 unknown; the message is the first line of stdout, of at most 80 characters.
"""

import time
from argparse import ArgumentParser, Namespace
from typing import Any, Final

from seawall.cli.console import console_for
from seawall.cli.policy_file import load_policy
from seawall.cli.rules import rule_named
from seawall.cli.source_options import add_source_arguments, open_source
from seawall.cli.statuses import NPD_OK, NPD_PROBLEM, NPD_UNKNOWN
from seawall.cli.why import add_judging_arguments, exit_status
from seawall.findings.blindness import not_seen
from seawall.findings.rule_schedule import RuleSchedule
from seawall.readings.kernel import Kernel
from seawall.views.document import head, render
from seawall.views.documents.why_document import WHY, CheckPage, order
from seawall.views.terminal import plain
from seawall.views.why_text import closing, finding_lines

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
_NPD_WIDTH: Final = 80


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall check`` to its parser."""
    parser.add_argument("id", metavar="ID", help="e.g. SW101; see seawall rules list")
    parser.add_argument("--npd", action="store_true", help="node-problem-detector's protocol")
    add_source_arguments(parser)
    add_judging_arguments(parser)


def run(arguments: Namespace) -> int:
    """Judge the one rule and print its answer; the exit status."""
    rule = rule_named(arguments.id)
    source = open_source(arguments)
    policy = load_policy(arguments.rules)
    schedule = RuleSchedule(source, [rule], policy, time.monotonic, audit=True)
    judged = [*schedule.at_once(), *schedule.over_window()]
    if arguments.npd:
        status, line = npd_answer(judged)
        print(line)
        return status
    unseen = not_seen(judged, schedule.snapshots())
    window = schedule.scene.window_seconds
    if arguments.json:
        page = CheckPage(judged=judged, unseen=unseen, bundle_notes=source.notes)
        print(render(WHY.of(head("check", source.first.get(Kernel), window), page)))
        return exit_status(judged, arguments.fail_on)
    paper = console_for(arguments.color)
    for item in sorted(judged, key=order):
        if item.finding.verdict == "fires":
            print("\n".join(finding_lines(item, paper)))
        elif item.finding.verdict == "quiet":
            print("\n".join(paper.wrap(item.finding.headline, "    ", f"{item.id} quiet: ")))
    print("\n".join(closing(judged, unseen, window, paper)))
    return exit_status(judged, arguments.fail_on)


def npd_answer(judged: list[Any]) -> tuple[int, str]:
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
