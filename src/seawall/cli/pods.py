# SPDX-License-Identifier: Apache-2.0
"""``seawall pods``: workloads with their memory, what needs a look first."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.accounts.claims.claims import Claims
from seawall.accounts.entitlements import Entitlement, Entitlements
from seawall.accounts.pods.pod_kills import KillMoment, with_kills
from seawall.accounts.pods.pod_outside import with_outside
from seawall.accounts.pods.pod_table import PodTable
from seawall.accounts.workloads import Workloads
from seawall.cli.console import terminal_rows
from seawall.cli.named_workload import named_workload
from seawall.cli.number_argument import a_number
from seawall.cli.source_options import add_source_arguments
from seawall.cli.verb import Head, SourceVerb, folded, page_lines
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_log import PATH as LOG
from seawall.readings.kernel_log import KernelLog
from seawall.readings.memcg import Memcgs
from seawall.readings.process import Process, Processes
from seawall.readings.snapshot import Snapshot
from seawall.sources.source import Source
from seawall.views.pods_choice import PodChoice, choose
from seawall.views.pods_columns import ATTENTION, KEYS, column, has_no_name
from seawall.views.pods_unseen import unseen
from seawall.views.terminal import Console

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen: folders of runtimes are root's alone, and
what other processes hold of drivers is traced."""
ROWS_LEAST: Final = 5
WINDOW_SECONDS: Final = 1.0
"""Waited for only where somebody was OOM-killed before."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall pods`` to its parser."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="only this one and what is in it: namespace/pod[/container], a container id, "
        "pid:N, unit:NAME or a cgroup path",
    )  # fmt: skip
    parser.add_argument(
        "--sort", metavar="COLUMN", default=ATTENTION,
        help=f"default attention: those that need a look, then pods, units, other cgroups, each "
        f"by REALLY; one of {', '.join(KEYS)}",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=a_number("of rows", least=0), metavar="N",
        help="this many rows at most; 0: all (default as text: what fits in one screen)",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="pods and slices too")
    parser.add_argument("--wide", action="store_true", help="every column and REQ, the request")


class PodsAnswer(NamedTuple):
    """Every workload, and what of them was asked for."""

    table: PodTable
    choice: PodChoice
    unseen: Sequence[NotSeen]
    names: Mapping[str, str]
    """By cgroup, of those that have an id for a name: what runs there."""


class PodsVerb(SourceVerb[PodsAnswer]):
    """The table; without ``--limit`` as much of it as fits on the screen."""

    name = "pods"

    def page(self) -> PodsAnswer:
        """UsageProblem for a column or a workload that is not there."""
        arguments = self.arguments
        if arguments.sort not in ("name", ATTENTION):
            column(arguments.sort)
        source, named = self.source, arguments.workload
        if arguments.json or arguments.wide:
            source.first.get(Entitlements)
        within = None if named is None else named_workload(source, named)
        names = {} if arguments.json else largest_processes(source)
        table, rows = table_of(source, with_stalls=arguments.json)
        choice = PodChoice(
            sort=arguments.sort, limit=arguments.limit or None, everything=arguments.all,
            within=within,
        )  # fmt: skip
        return PodsAnswer(table, choice, rows, names)

    def text(self, page: PodsAnswer, paper: Console) -> list[str]:
        from seawall.views.pods_text import lines  # noqa: PLC0415 - text alone

        asked = _asked(self.source) if self.arguments.wide else None
        chosen = choose(page.table, page.choice)
        return list(lines(page.table, chosen, paper, asked, page.names))

    def document(self, top: Head, page: PodsAnswer) -> Head:
        from seawall.views.documents.pods_document import PODS, PodsPage  # noqa: PLC0415 - JSON alone

        source = self.source
        shown = PodsPage(
            table=page.table, chosen=choose(page.table, page.choice), entitlements=_asked(source),
            claimed=source.first.get(Claims), unseen=page.unseen, bundle_notes=source.notes,
        )  # fmt: skip
        return PODS.of(top, shown)

    def fitted(self, page: PodsAnswer, paper: Console) -> PodsAnswer:
        """With what could not be seen in short, then with fewer rows, until it fits."""
        if self.arguments.limit is not None:
            return page
        room = terminal_rows() - 1  # the prompt has the last one
        top, notes = self.head(page), self.source.notes
        body = self.text(page, paper)
        if page.unseen and len(list(page_lines(paper, top, notes, body, page.unseen))) > room:
            page = page._replace(unseen=folded(page.unseen, "--limit 0 tells all of it"))
        frame = len(list(page_lines(paper, top, notes, (), page.unseen)))
        shown = len(choose(page.table, page.choice).rows)
        while frame + len(body) > room and shown > ROWS_LEAST:
            shown = max(ROWS_LEAST, shown - (frame + len(body) - room))
            page = page._replace(choice=replace(page.choice, limit=shown))
            body = self.text(page, paper)
        return page


run = PodsVerb.run


def table_of(
    source: Source, *, with_stalls: bool, are_kills_wanted: bool = True
) -> tuple[PodTable, list[NotSeen]]:
    """Every workload with its uncounted memory and its kills, and what could not be
    seen of them; waits for a window where somebody was OOM-killed before.  Without kills the
    kernel's log is not read.
    """
    table, claims = source.first.get(PodTable), source.first.get(Claims)
    first = _kill_moment(source.first) if are_kills_wanted else None
    # Of the kernel's log that is refused the headline tells.
    topics = [row for row in unread_rows([source.first]) if row.what != LOG or row.kind == "bug"]
    rows = unseen(table, topics, claims, with_stalls=with_stalls)
    if isinstance(table, Unread):
        table = PodTable((), 0, None, None, ())
    if not isinstance(claims, Unread):
        table = with_outside(table, claims)
    return table if first is None else _with_kills(table, source, first), rows


def _with_kills(table: PodTable, source: Source, first: KillMoment) -> PodTable:
    """With a window where there is a second moment, and on a live host where anybody was
    killed before: to all others it would tell nothing.
    """
    table = with_kills(table, first)
    if source.live is None:
        last = source.later_scene().last
    elif any(row.oom_kills for row in table.rows):
        last = source.later_scene(WINDOW_SECONDS).last
    else:
        return table
    return table if last is None else with_kills(table, _kill_moment(last), first)


def _kill_moment(snapshot: Snapshot) -> KillMoment:
    return KillMoment(snapshot.get(Memcgs), snapshot.get(KernelLog), snapshot.get(Kernel))


def _asked(source: Source) -> Mapping[str, Entitlement]:
    """What each cgroup asked for of processors and memory, by its path; empty where unread."""
    found = source.first.get(Entitlements)
    return {} if isinstance(found, Unread) else found.by_cgroup


def largest_processes(source: Source) -> dict[str, str]:
    """By cgroup, of those that have an id for a name: what runs there."""
    workloads, processes = source.first.get(Workloads), source.first.get(Processes)
    if isinstance(workloads, Unread) or isinstance(processes, Unread):
        return {}
    largest: dict[str, Process] = {}
    for pid, owner in workloads.by_pid.items():
        process = processes.by_pid.get(pid)
        if process is None or not has_no_name(owner):
            continue
        known = largest.get(owner.cgroup)
        if known is None or process.rss_pages > known.rss_pages:
            largest[owner.cgroup] = process
    return {path: process.comm for path, process in largest.items()}
