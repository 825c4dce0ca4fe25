# SPDX-License-Identifier: Apache-2.0
"""``seawall memory``: where the memory went, in lines that add up, and what none explains."""

import time
from argparse import ArgumentParser, Namespace
from typing import Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.cli import memory_watch, memory_who
from seawall.cli.base_file import learn_base, learn_if_idle
from seawall.cli.source_options import add_source_arguments
from seawall.cli.verb import SourceVerb
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.snapshot import Snapshot
from seawall.sources.source import Source
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
        from seawall.cli import census_page  # noqa: PLC0415 - only for this option

        return census_page.run(arguments)
    if arguments.learn_base and (arguments.bundle or arguments.root not in (None, "/")):
        raise UsageProblem("--learn-base is about this machine, without --from and --root")
    return MemoryVerb.run(arguments)


class MemoryVerb(SourceVerb[MemoryPage]):
    """The ledger of the node."""

    name = "memory"
    text_view = "seawall.views.memory_text:lines"
    document_table = "seawall.views.documents.memory_document:MEMORY"

    def page(self) -> MemoryPage:
        """With the base of this boot, where it is learned now."""
        if self.arguments.learn_base:
            learned = learn_base(_middle_snapshot(self.source), "asked")
            return MemoryPage.of(self.source.first, self.source.notes, learned)
        learned_if_idle = learn_if_idle(self.source, self.arguments)
        return MemoryPage.of(self.source.first, self.source.notes, learned_if_idle)


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
