# SPDX-License-Identifier: Apache-2.0
"""``seawall pods``: workloads by memory, largest first."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Final

from seawall.accounts.claims import Claims
from seawall.accounts.entitlements import Entitlement, Entitlements
from seawall.accounts.pod_outside import with_outside
from seawall.accounts.pod_table import PodTable
from seawall.cli.named_workload import named_workload
from seawall.cli.numbers_given import a_number
from seawall.cli.page import print_page
from seawall.cli.paper import paper_for
from seawall.cli.source import Source, add_source_arguments, open_source
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.views.document import head, render
from seawall.views.pods_choice import Choice, Chosen, choose
from seawall.views.pods_columns import KEYS, column
from seawall.views.pods_unseen import unseen

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen: folders of runtimes are root's alone, and
what other processes hold of drivers is traced."""
TEXT_ROWS: Final = 30
"""More would push what is endangered off the screen."""


def add_arguments(parser: ArgumentParser) -> None:
    """The verb's own options."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="only this one and what is in it: namespace/pod[/container], a container id, "
        "pid:N, unit:NAME or a cgroup path",
    )  # fmt: skip
    parser.add_argument(
        "--sort", metavar="COLUMN", default="charge",
        help=f"default charge; one of {', '.join(KEYS)}",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=a_number("of rows"), metavar="N",
        help=f"this many rows at most (default {TEXT_ROWS} as text)",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="pods and slices too")
    parser.add_argument("--wide", action="store_true", help="every column and REQ, the request")


def run(arguments: Namespace) -> int:
    """Print the table; the exit status."""
    if arguments.sort != "name":
        column(arguments.sort)
    source = open_source(arguments)
    table, claims = source.first.get(PodTable), source.first.get(Claims)
    if arguments.json or arguments.wide:
        source.first.get(Entitlements)
    rows = unseen(table, unread_rows([source.first]), claims)
    named = arguments.workload
    within = None if named is None else named_workload(source, named)
    if isinstance(table, Unread):
        table = PodTable((), 0, None, None, ())
    if not isinstance(claims, Unread):
        table = with_outside(table, claims)
    most = arguments.limit or (None if arguments.json else TEXT_ROWS)
    choice = Choice(sort=arguments.sort, limit=most, everything=arguments.all, within=within)
    chosen = choose(table, choice)
    if arguments.json:
        _print_json(source, table, chosen, rows)
    else:
        _print_text(source, table, chosen, rows, arguments)
    return 0


def _asked(source: Source) -> Mapping[str, Entitlement]:
    """By cgroup."""
    found = source.first.get(Entitlements)
    return {} if isinstance(found, Unread) else found.by_cgroup


def _print_json(source: Source, table: PodTable, chosen: Chosen, rows: list[NotSeen]) -> None:
    from seawall.views.pods_json import document, page_end  # noqa: PLC0415 - only one of the two

    top = head("pods", source.first.get(Kernel), None)
    end = page_end(source.first.get(Claims), rows, source.notes)
    print(render(document(top, table, chosen, _asked(source), end)))


def _print_text(
    source: Source, table: PodTable, chosen: Chosen, rows: list[NotSeen], arguments: Namespace
) -> None:
    from seawall.views.pods_text import lines  # noqa: PLC0415 - only one of the two

    paper = paper_for(arguments.color)
    top = head("pods", source.first.get(Kernel), None)
    body = lines(table, chosen, paper, _asked(source) if arguments.wide else None)
    print_page(paper, top, source.notes, body, rows)
