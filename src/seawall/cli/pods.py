# SPDX-License-Identifier: Apache-2.0
"""``seawall pods``: workloads with their memory, what needs a look first."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from seawall.accounts.claims.claims import Claims
from seawall.accounts.entitlements import Entitlement, Entitlements
from seawall.accounts.pods.pod_kills import KillMoment, with_kills
from seawall.accounts.pods.pod_outside import with_outside
from seawall.accounts.pods.pod_table import PodTable
from seawall.accounts.workloads import Workloads
from seawall.cli.console import console_for, terminal_rows
from seawall.cli.named_workload import named_workload
from seawall.cli.number_argument import a_number
from seawall.cli.source_options import add_source_arguments, open_source
from seawall.cli.verb_page import folded, page_lines, print_page
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_log import PATH as LOG
from seawall.readings.kernel_log import KernelLog
from seawall.readings.memcg import Memcgs
from seawall.readings.process import Process, Processes
from seawall.readings.snapshot import Snapshot
from seawall.sources.source import Source
from seawall.views.document import head, render
from seawall.views.pods_choice import PodChoice, PodRows, choose
from seawall.views.pods_columns import ATTENTION, KEYS, column, has_no_name
from seawall.views.pods_unseen import unseen

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


def run(arguments: Namespace) -> int:
    """Print the table; the exit status."""
    if arguments.sort not in ("name", ATTENTION):
        column(arguments.sort)
    source = open_source(arguments)
    if arguments.json or arguments.wide:
        source.first.get(Entitlements)
    named = arguments.workload
    within = None if named is None else named_workload(source, named)
    names = {} if arguments.json else _largest_processes(source)
    table, rows = table_of(source, with_stalls=arguments.json)
    choice = PodChoice(
        sort=arguments.sort, limit=arguments.limit or None, everything=arguments.all, within=within
    )
    if arguments.json:
        _print_json(source, table, choose(table, choice), rows)
    else:
        _print_text(source, table, choice, rows, arguments, names)
    return 0


def table_of(source: Source, *, with_stalls: bool) -> tuple[PodTable, list[NotSeen]]:
    """Every workload with its uncounted memory and its kills, and what could not be
    seen of them; waits for a window where somebody was OOM-killed before.
    """
    table, claims = source.first.get(PodTable), source.first.get(Claims)
    first = _kill_moment(source.first)
    # Of the kernel's log that is refused the headline tells.
    topics = [row for row in unread_rows([source.first]) if row.what != LOG or row.kind == "bug"]
    rows = unseen(table, topics, claims, with_stalls=with_stalls)
    if isinstance(table, Unread):
        table = PodTable((), 0, None, None, ())
    if not isinstance(claims, Unread):
        table = with_outside(table, claims)
    return _with_kills(table, source, first), rows


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


def _print_json(source: Source, table: PodTable, chosen: PodRows, rows: list[NotSeen]) -> None:
    from seawall.views.documents.pods_document import PODS, PodsPage  # noqa: PLC0415 - one of the two

    page = PodsPage(
        table=table, chosen=chosen, entitlements=_asked(source),
        claimed=source.first.get(Claims), unseen=rows, bundle_notes=source.notes,
    )  # fmt: skip
    print(render(PODS.of(head("pods", source.first.get(Kernel), None), page)))


def _print_text(
    source: Source, table: PodTable, choice: PodChoice, rows: list[NotSeen], arguments: Namespace,
    names: Mapping[str, str],
) -> None:  # fmt: skip
    from seawall.views.pods_text import lines  # noqa: PLC0415 - only one of the two

    paper = console_for(arguments.color)
    top = head("pods", source.first.get(Kernel), None)
    asked = _asked(source) if arguments.wide else None

    def page(limit: int | None) -> list[str]:
        chosen = choose(table, replace(choice, limit=limit))
        return list(lines(table, chosen, paper, asked, names))

    body = page(choice.limit)
    if arguments.limit is None:
        room = terminal_rows() - 1  # the prompt has the last one
        shown = len(choose(table, choice).rows)
        if rows and len(list(page_lines(paper, top, source.notes, body, rows))) > room:
            rows = folded(rows, "--limit 0 tells all of it")
        frame = len(list(page_lines(paper, top, source.notes, (), rows)))
        while frame + len(body) > room and shown > ROWS_LEAST:
            shown = max(ROWS_LEAST, shown - (frame + len(body) - room))
            body = page(shown)
    print_page(paper, top, source.notes, body, rows)


def _largest_processes(source: Source) -> dict[str, str]:
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
