# SPDX-License-Identifier: Apache-2.0
"""``seawall report --html FILE``: one page for the ticket, from live, a bundle or a black box."""

import io
import os
import shlex
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Final

from seawall.blackbox.reader import Box
from seawall.cli.console import terminal_columns
from seawall.cli.judging_options import add_rules_argument
from seawall.cli.oom_live import log_of
from seawall.cli.output_file import check_output, write_whole
from seawall.cli.pods import table_of
from seawall.cli.policy_file import load_policy
from seawall.cli.progress import ProgressLine
from seawall.cli.recent_event_sources import add_since_argument
from seawall.cli.source_options import add_source_arguments, box_place, open_source
from seawall.cli.why import Asking
from seawall.findings.rule import load_rules
from seawall.findings.rule_schedule import RuleSchedule
from seawall.host.event_log.probe import DECISIONS
from seawall.host.host import Unread
from seawall.problems import BundleProblem, UsageProblem
from seawall.readings.kernel import Kernel
from seawall.sources.box_source import BoxSource, box_time, whole_span
from seawall.sources.incident_record import (
    box_decisions,
    box_history,
    journal_decisions,
    passes_history,
)
from seawall.sources.source import Source
from seawall.version import VERSION
from seawall.views.document import taken_at
from seawall.views.html_report.incident_html import incident_html
from seawall.views.html_report.incident_page import (
    DecisionRecord,
    IncidentHistory,
    IncidentPage,
    ReportOrigin,
)
from seawall.views.memory_page import MemoryPage
from seawall.views.pods_choice import PodChoice, choose
from seawall.views.why_text import rules_that_looked

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen; it runs without any."""
HISTORY_SECONDS: Final = 600.0
KILLS_MOST: Final = 10
_JOURNAL_MOST_BYTES: Final = 4 << 20


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall report`` to its parser."""
    add_source_arguments(parser, has_json=False)
    parser.add_argument(
        "--html", metavar="FILE", required=True,
        help="write the page there, readable by its owner alone; '-' for stdout",
    )  # fmt: skip
    add_since_argument(parser)
    add_rules_argument(parser)
    parser.set_defaults(subject=None, json=False)


def run(arguments: Namespace) -> int:
    """Write the page, and say where it is."""
    is_stdout = arguments.html == "-"
    if is_stdout and terminal_columns() is not None:
        raise UsageProblem("--html -: a page is not for a terminal; redirect stdout to a file")
    if not is_stdout:
        check_output(arguments.html, "--html")
    began = time.monotonic()
    progress = ProgressLine("report")
    data = incident_html(_page(arguments, began, progress))
    progress.end()
    if is_stdout:
        sys.stdout.buffer.write(data)
        return 0
    write_whole(arguments.html, io.BytesIO(data), "--html")
    print(f"{arguments.html}: {len(data) / 1024:.0f} KiB")
    return 0


def _page(arguments: Namespace, began: float, progress: ProgressLine) -> IncidentPage:
    rules, policy = load_rules(), load_policy(arguments.rules)  # before the clock of --timeout
    progress.tell("the machine")
    source = open_source(arguments)
    schedule = RuleSchedule(source, rules, policy, time.monotonic, audit=False)
    asking = Asking(arguments, source, schedule, None)
    asking.judge()
    answer, recent = asking.answer(), asking.recent()
    progress.tell("workloads")
    table, unseen = table_of(source, with_stalls=False)
    memory = MemoryPage.of(source.first, source.notes)
    progress.tell("OOM kills in the logs")
    oom = log_of(arguments, source)
    kills = list(oom.explanations)
    progress.tell("the last minutes")
    history, decisions = _past(source, arguments)
    kernel = source.first.get(Kernel)
    known = None if isinstance(kernel, Unread) else kernel
    looked, count = rules_that_looked(asking.judged)
    rows = (*answer.unseen, *memory.unseen, *unseen, *oom.log.unseen)
    return IncidentPage(
        node=(known.node_name if known else None) or "an unknown node",
        taken_at=taken_at(known.taken_at_unix_seconds if known else None) or "an unknown time",
        heading=asking.machine_line(is_whole=True), answer=answer, memory=memory, table=table,
        workloads=choose(table, PodChoice()), history=history, recent=recent,
        oom_kills=kills[-KILLS_MOST:], oom_left_out=max(0, len(kills) - KILLS_MOST),
        decisions=decisions, unseen=tuple({(row.what, row.why): row for row in rows}.values()),
        origin=ReportOrigin(
            command=shlex.join(["seawall", *sys.argv[1:]]), version=VERSION,
            source=arguments.bundle or arguments.root or "this machine itself",
            took_seconds=time.monotonic() - began, notes=source.notes, rules=count,
            rules_that_looked=looked,
        ),
    )  # fmt: skip


def _past(
    source: Source, arguments: Namespace
) -> tuple[IncidentHistory | Unread, DecisionRecord | Unread]:
    """From the box that was named, else from the one of this machine, else from what there is."""
    since = arguments.since
    if isinstance(source, BoxSource) and source.box is not None:
        return _of_box(source.box, source.asked_unix_seconds or 0.0, since)
    if source.live is None:
        history = passes_history(source.rounds, "the passes of this record")
        words = "this record holds no decisions: a guard's black box does, and its journal"
        return history, Unread("decisions", "not_captured", words)
    path = box_place(arguments.root)
    if not os.path.isfile(path):
        words = (
            "Not recorded: no guard keeps a black box on this machine (seawall guard run begins "
            "one), so the minutes before are not known."
        )
        return Unread(path, "absent", words), _journal(source, since)
    try:
        box = Box.open(path)
        return _of_box(box, box_time(box, None, whole_span(box)), since)
    except (BundleProblem, UsageProblem) as problem:
        return Unread(path, "malformed", str(problem)), _journal(source, since)


def _of_box(
    box: Box, until: float, since: float
) -> tuple[IncidentHistory | Unread, DecisionRecord | Unread]:
    return box_history(box, until, HISTORY_SECONDS), box_decisions(box, until, since)


def _journal(source: Source, since: float) -> DecisionRecord | Unread:
    data = source.first.host.read(DECISIONS, _JOURNAL_MOST_BYTES)
    if isinstance(data, Unread):
        if data.why != "absent":
            return data
        return Unread(DECISIONS, "absent", f"no guard has written {DECISIONS} in this boot")
    return journal_decisions(data, time.time() - since)
