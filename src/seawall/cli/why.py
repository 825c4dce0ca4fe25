# SPDX-License-Identifier: Apache-2.0
"""``seawall why``: what is wrong, the numbers that prove it, what comes next, what to do.

Not a ``Verb``: it prints while it judges, and says what is certain before a page is whole.
"""

import re
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups, largest_holder
from seawall.accounts.claims.claims import Claims
from seawall.accounts.log_episodes.recent_events import RecentEvents
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.memory_left import MemoryLeft, memory_left
from seawall.cli import statuses
from seawall.cli.base_file import learn_if_idle
from seawall.cli.console import console_for
from seawall.cli.judging_options import add_judging_arguments
from seawall.cli.policy_file import load_policy
from seawall.cli.recent_event_sources import add_since_argument, begin_recent_events
from seawall.cli.source_options import INTERIM, add_source_arguments, open_source
from seawall.findings.blindness import NotSeen, not_seen
from seawall.findings.causes import about, causes
from seawall.findings.finding import Judged
from seawall.findings.rule import Rule, load_rules
from seawall.findings.rule_schedule import RuleSchedule
from seawall.host.host import Unread
from seawall.host.vitals import line_of
from seawall.problems import UsageProblem
from seawall.readings.guard_status import GuardStatus
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.numa import NumaNodes
from seawall.readings.pressure import HostPressure
from seawall.sources.source import Source
from seawall.views.document import head, render, taken_at
from seawall.views.terminal import plain
from seawall.words import size

if TYPE_CHECKING:
    from seawall.accounts.workloads import Workload
    from seawall.views.terminal import Console
    from seawall.views.why_screen import Answer

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen; it runs without any."""
_RULE_ID: Final = re.compile(r"[Ss][Ww]\d{3}")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall why`` to its parser."""
    add_source_arguments(parser)
    parser.add_argument(
        "subject", metavar="SW103 | WORKLOAD", nargs="?",
        help="one rule in full, or one workload alone (see seawall pods)",
    )  # fmt: skip
    parser.add_argument("--audit", action="store_true", help="judge settings too (info)")
    parser.add_argument("--whole", action="store_true", help="all findings with all evidence")
    parser.add_argument("--oneline", action="store_true", help="one line, for pdsh, clush and motd")
    add_since_argument(parser)
    add_judging_arguments(parser)


def complete(arguments: Namespace) -> None:
    """UsageProblem for options that exclude each other."""
    if arguments.oneline and (arguments.json or arguments.whole or arguments.subject):
        raise UsageProblem("--oneline is about the whole node and goes with neither --json, --whole"
                           " nor a subject")  # fmt: skip


def run(arguments: Namespace) -> int:
    """Print the answer once, in order; the exit status."""
    rules = load_rules()  # before the clock of --timeout starts: it is for questions
    rule, name = _subject(arguments.subject, rules)
    source = open_source(arguments)
    workload = None if name is None else _named(source, name)
    asked = rules if rule is None else [rule]
    audit = arguments.audit or rule is not None
    policy = load_policy(arguments.rules)
    schedule = RuleSchedule(source, asked, policy, time.monotonic, audit=audit)
    asking = Asking(arguments, source, schedule, workload)
    if arguments.json:
        asking.print_json()
    elif arguments.oneline:
        asking.print_oneline()
    elif arguments.whole or rule is not None:
        asking.print_whole(rule)
    else:
        asking.print_screen()
    learn_if_idle(source, arguments)
    return exit_status(asking.judged, arguments.fail_on)


def _subject(text: str | None, rules: Sequence[Rule]) -> tuple[Rule | None, str | None]:
    """The rule or the workload's name that was typed."""
    if text is None or not _RULE_ID.fullmatch(text):
        return None, text
    for rule in rules:
        if rule.id == text.upper():
            return rule, None
    raise UsageProblem(f"{text}: no such rule; see seawall rules list")


def _named(source: Source, text: str) -> "Workload":
    from seawall.cli.named_workload import named_workload  # noqa: PLC0415 - only when one is named

    return named_workload(source, text)


class Asking:
    """One run: what was judged, and the forms in which it can be printed."""

    def __init__(
        self,
        arguments: Namespace,
        source: Source,
        schedule: RuleSchedule,
        workload: "Workload | None",
    ) -> None:
        self._arguments = arguments
        self._source = source
        self._schedule = schedule
        self._workload = workload
        self.judged: list[Judged] = []
        self._pending = begin_recent_events(source, arguments)
        self._events: RecentEvents | None = None

    def judge(self) -> None:
        """Everything, after the whole window."""
        self.judged = list(self._schedule.everything())

    def print_json(self) -> None:
        """Print the JSON document of ``seawall why``, after the whole window."""
        from seawall.views.documents.why_document import (  # noqa: PLC0415 - only one of the forms
            WHY,
            WhyPage,
        )
        from seawall.views.guard_line import guard_now  # noqa: PLC0415

        self.judge()
        shown, left_out = self._about(self.judged)
        top = head("why", self._source.first.get(Kernel), self._schedule.scene.window_seconds)
        named = self._workload
        page = WhyPage(
            guard=guard_now(*self._guard()),
            workload=None if named is None else named.name,
            others=None if named is None else left_out,
            judged=shown,
            unseen=self._unseen(),
            bundle_notes=self._source.notes,
            recent=self.recent(),
        )
        print(render(WHY.of(top, page)))

    def print_oneline(self) -> None:
        """One line for a fleet."""
        from seawall.views.why_oneline import line  # noqa: PLC0415 - only one of the forms

        self.judge()
        kernel = self._source.first.get(Kernel)
        node = None if isinstance(kernel, Unread) else kernel.node_name
        print(line(node or "unknown node", self.judged, self.recent()))

    def print_screen(self) -> None:
        """At most 24 lines, once and in order."""
        # Imported before anything is asked: later it may be a read from a stuck disk.
        from seawall.views.why_screen import interim_lines, lines  # noqa: PLC0415 - one of the forms

        paper = console_for(self._arguments.color)
        certain: list[Judged] = []
        for item, is_settled in self._schedule.as_certain():
            if is_settled:
                self.judged.append(item)
            if self._schedule.waits and item.finding.verdict == "fires":
                certain.append(item)
                INTERIM.write("\n".join(interim_lines(self._interim(certain), paper)))
        for line in lines(self.answer(), paper):
            print(line)

    def print_whole(self, rule: Rule | None) -> None:
        """All that fires with all evidence; of one ``rule`` what it said, fired or not."""
        from seawall.views.guard_line import guard_words  # noqa: PLC0415 - only one of the forms
        from seawall.views.why_text import (  # noqa: PLC0415
            cause_lines,
            closing,
            could_not_see,
            event_lines,
            rule_lines,
        )

        if rule is not None:
            self._pending.drop()
        paper = console_for(self._arguments.color)
        self.judge()
        shown, others = self._about(self.judged)
        text = self._top_lines(paper, is_whole=rule is None)
        if rule is not None:
            text += rule_lines(rule, shown, paper)
        else:
            if words := guard_words(*self._guard()):
                text += paper.wrap(f"guard: {words}", "       ", "")
            for cause in causes(shown):
                text += cause_lines(cause, paper)
            text += event_lines(self.recent(), paper)
            if others:
                text += ["", f"{others} findings about others: seawall why"]
        window = self._schedule.scene.window_seconds
        if rule is None:
            text += closing(shown, self._unseen(), window, paper)
        elif any(item.finding.verdict == "blind" for item in shown):
            text += could_not_see(self._unseen(), paper)
        print("\n".join(text))

    def _top_lines(self, paper: "Console", *, is_whole: bool) -> list[str]:
        """The machine, and what is to be known before a number is believed."""
        from seawall.views.why_text import note_lines  # noqa: PLC0415 - see above

        text: list[str] = []
        if not (is_whole and self._is_announced()):
            line = plain(self.machine_line(is_whole=True))
            parts = [line] if len(line) <= paper.width else paper.wrap(line)
            text += [paper.paint(part, "bold") for part in parts]
        if is_whole:
            text += note_lines(self._source.notes, paper)
        elif self._source.cut:
            text += paper.wrap(self._source.cut, " " * 10, f"{'cut':<10}")
        return text

    def _interim(self, certain: Sequence[Judged]) -> "Answer":
        from seawall.views.why_screen import Answer  # noqa: PLC0415 - imported by the caller

        return Answer(judged=self._about(certain)[0])

    def answer(self) -> "Answer":
        """What the screen shows; ``judged`` has to be complete."""
        from seawall.views.guard_line import guard_words  # noqa: PLC0415 - only one of the forms
        from seawall.views.why_screen import Answer  # noqa: PLC0415 - imported by the caller

        judged, others = self._about(self.judged)
        heading = "" if self._is_announced() else self.machine_line()
        workload, recent = self._workload_lines(), self.recent()
        guard = guard_words(*self._guard())
        return Answer(
            judged=judged,
            unseen=self._unseen(),  # the last: what was asked for above may be unread too
            heading=heading,
            recent=recent,
            suspects=self._suspects(),
            largest=self._largest(),
            is_live=self._schedule.waits,
            guard=guard,
            notes=sum(note != self._source.cut for note in self._source.notes),
            cut=self._source.cut or "",
            about=workload,
            others=others,
        )

    def _about(self, judged: Iterable[Judged]) -> tuple[list[Judged], int]:
        """Of the workload that was named; how many that fire were left out."""
        if self._workload is None:
            return list(judged), 0
        return about(judged, self._workload.name)

    def _workload_lines(self) -> list[str]:
        if self._workload is None:
            return []
        from seawall.cli.named_workload import summary  # noqa: PLC0415 - only when one is named

        return [summary(self._source, self._workload)]

    def _is_announced(self) -> bool:
        """Of this very machine `console` has said it already, before it imported anything."""
        asked = self._arguments
        return not (asked.bundle or asked.root or asked.subject or asked.at)

    def machine_line(self, *, is_whole: bool = False) -> str:
        """``is_whole``: with the kernel's whole release."""
        first = self._source.first
        kernel, meminfo, pressure = first.get(Kernel), first.get(Meminfo), first.get(HostPressure)
        known = None if isinstance(kernel, Unread) else kernel
        total = left = None
        how, beside = "left", 0
        if not isinstance(meminfo, Unread):
            total, left, how, beside = self._left(meminfo)
        stalls = {
            name: part.some.avg10 * 100
            for name in ("memory", "io")
            if not isinstance(pressure, Unread)
            and not isinstance(part := getattr(pressure, name), Unread)
        }
        moment = taken_at(known.taken_at_unix_seconds if known else None) or ""
        node, release = (known.node_name, known.release) if known else (None, None)
        return line_of(
            node or "", release or "", moment, total, left, stalls, how, beside, is_whole=is_whole
        )  # fmt: skip

    def _left(self, meminfo: Meminfo) -> MemoryLeft:
        """For ``line_of``: as ``machine_line`` has it of the machine itself."""
        first = self._source.first
        headroom, numa = first.get(Headroom), first.get(NumaNodes)
        estimate = None if isinstance(headroom, Unread) else headroom.available_bytes
        return memory_left(meminfo, numa, estimate)

    def _unseen(self) -> list[NotSeen]:
        return not_seen(self.judged, self._schedule.snapshots())

    def _suspects(self) -> list[str]:
        """Who may hold uncounted memory, where some rule asked for it."""
        for snapshot in reversed(self._schedule.snapshots()):
            if snapshot.has(Claims) and isinstance(claims := snapshot.get(Claims), Claims):
                return [f"{s.workload or 'a process of the host'} ({s.why})"
                        for s in claims.suspects]  # fmt: skip
        return []

    def _largest(self) -> str:
        """Who holds most of what cgroups count, where the node's memory is short."""
        if not any(i.is_of_node_memory and i.finding.verdict == "fires" for i in self.judged):
            return ""
        for snapshot in reversed(self._schedule.snapshots()):
            if not snapshot.has(MemoryGroups) or not snapshot.has(Meminfo):
                continue  # on a node that is short nothing is asked once more for this
            groups, meminfo = snapshot.get(MemoryGroups), snapshot.get(Meminfo)
            if not isinstance(groups, Unread) and not isinstance(meminfo, Unread):
                found = largest_holder(groups, meminfo.mem_total)
                return "" if found is None else f"{found.name}, {size(found.held_bytes or 0)}"
        return ""

    def recent(self) -> RecentEvents:
        """What the last minutes held; begun to be read with the first moment."""
        if self._events is None:
            self._events = self._pending.events()
        return self._events

    def _guard(self) -> tuple[GuardStatus | Unread, float | None, float]:
        return _guard(self._source, self._arguments)


def _guard(
    source: Source, arguments: Namespace
) -> tuple[GuardStatus | Unread, float | None, float]:
    """What it last said, now, and how often a record keeps that (0: whenever it says it)."""
    status, now = source.first.get(GuardStatus), _now(source)
    if arguments.bundle is None or isinstance(status, Unread):
        return status, now, 0.0
    # Imported here: the machine itself needs none of it.
    from seawall.sources.box_guard import guard_then  # noqa: PLC0415

    return guard_then(source, status, now)


def _now(source: Source) -> float | None:
    """When the first moment was; None in a bundle without its clock."""
    kernel = source.first.get(Kernel)
    return None if isinstance(kernel, Unread) else kernel.taken_at_unix_seconds


def exit_status(judged: Sequence[Judged], fail_on: str | None) -> int:
    """0, or with ``--fail-on`` 10 for a firing and 11 for a blind rule at that level."""
    if fail_on is None:
        return 0
    levels = ("critical",) if fail_on == "critical" else ("critical", "warning")
    counted = [i for i in judged if i.muted is None and i.finding.severity in levels]
    if any(i.finding.verdict == "fires" for i in counted):
        return statuses.FIRES
    return statuses.BLIND if any(i.finding.verdict == "blind" for i in counted) else 0
