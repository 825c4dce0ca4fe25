# SPDX-License-Identifier: Apache-2.0
"""``seawall memory``: where the memory went, in lines that add up, and what none explains."""

import time
from argparse import ArgumentParser, Namespace
from typing import Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.cli import memory_watch, memory_who
from seawall.cli.base_file import learn_base, learn_if_idle
from seawall.cli.console import console_for
from seawall.cli.source_options import add_source_arguments, open_source
from seawall.cli.verb_page import print_page
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.base import Base
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.sources.source import Source
from seawall.views.document import head, render
from seawall.views.memory_page import MemoryPage

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen: slabinfo is root's; pipes are traced."""
SAMPLES: Final = 5
SAMPLE_EVERY_SECONDS: Final = 0.3


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall memory`` to its parser."""
    add_source_arguments(parser)
    parser.add_argument(
        "workload", metavar="WORKLOAD", nargs="?",
        help="the memory of this one alone (see seawall pods): namespace/pod[/container], a "
        "container id, pid:N, unit:NAME or a cgroup path",
    )  # fmt: skip
    parser.add_argument(
        "--learn-base", action="store_true",
        help="remember what is uncounted now as normal for this boot (on an idle host)",
    )  # fmt: skip
    parser.add_argument(
        "--census", action="store_true",
        help="look at the page frames themselves: what each is and who pays (root; seconds)",
    )  # fmt: skip
    parser.add_argument(
        "--exact", action="store_true",
        help="with --census: look at all of them, for as long as --timeout allows; a large "
        "host is sampled otherwise",
    )  # fmt: skip
    memory_who.add_arguments(parser)
    memory_watch.add_arguments(parser)


def complete(arguments: Namespace) -> None:
    """What depends on several options; UsageProblem for those that exclude each other."""
    modes = ("census", "who", "watch", "learn_base")
    asked = [f"--{mode.replace('_', '-')}" for mode in modes if getattr(arguments, mode)]
    if len(asked) > 1:
        raise UsageProblem(f"{' and '.join(asked)}: one at a time")
    if asked and arguments.workload is not None:
        raise UsageProblem(f"{asked[0]} is about the whole node and goes without a WORKLOAD")
    if arguments.exact and not arguments.census:
        raise UsageProblem("--exact is about --census")
    memory_watch.complete(arguments)
    memory_who.complete(arguments)


def run(arguments: Namespace) -> int:
    """Print the ledger; the exit status."""
    if arguments.workload is not None:
        from seawall.cli import memory_workload  # noqa: PLC0415 - only when one is named

        return memory_workload.run(arguments)
    if arguments.watch:
        return memory_watch.run(arguments)
    if arguments.who:
        return memory_who.run(arguments)
    if arguments.census:
        return _print_census(arguments)
    if arguments.learn_base and (arguments.bundle or arguments.root not in (None, "/")):
        raise UsageProblem("--learn-base is about this machine, without --from and --root")
    source = open_source(arguments)
    if arguments.learn_base:
        learned: Base | None = learn_base(_middle_snapshot(source), "asked")
    else:
        learned = learn_if_idle(source, arguments)
    page = MemoryPage.of(source.first, source.notes, learned)
    if arguments.json:
        _print_json(source, page)
    else:
        _print_text(source, page, arguments.color)
    return 0


def _middle_snapshot(source: Source) -> Snapshot:
    """Of a few, the one with the median residual: the files are read one after the other."""
    snapshots = [source.first]
    while len(snapshots) < SAMPLES and source.live is not None:
        time.sleep(SAMPLE_EVERY_SECONDS)
        snapshots.append(Snapshot(source.live))
    known = [s for s in snapshots if not isinstance(s.get(Ledger), Unread)]
    return sorted(known, key=_residual)[len(known) // 2] if known else source.first


def _residual(snapshot: Snapshot) -> int:
    ledger = snapshot.get(Ledger)
    return 0 if isinstance(ledger, Unread) else ledger.residual_bytes


def _print_census(arguments: Namespace) -> int:
    from seawall.cli.census_page import make_page, print_json, print_text  # noqa: PLC0415 - only for --census

    source = open_source(arguments)
    page = make_page(source, exact=arguments.exact)
    if arguments.json:
        print_json(source, page)
    else:
        print_text(source, page, arguments.color)
    return 0


def _print_json(source: Source, page: MemoryPage) -> None:
    from seawall.views.documents.memory_document import MEMORY  # noqa: PLC0415 - one of the two

    print(render(MEMORY.of(head("memory", source.first.get(Kernel), None), page)))


def _print_text(source: Source, page: MemoryPage, colour: str) -> None:
    from seawall.views.memory_text import lines  # noqa: PLC0415 - only one of the two

    paper = console_for(colour)
    top = head("memory", source.first.get(Kernel), None)
    print_page(paper, top, source.notes, lines(page, paper), page.unseen)
