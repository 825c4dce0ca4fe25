# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --who``: who takes uncounted memory, and keeps it."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import cached_property
from typing import TYPE_CHECKING

from seawall.cli.verb import SourceVerb
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.sources.source import Source
from seawall.views.memory_page import MemoryPage

if TYPE_CHECKING:
    from seawall.host.live import LiveHost
    from seawall.views.memory_who_page import WhoPage


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``seawall memory`` that are about tracing."""
    parser.add_argument(
        "--who", action="store_true",
        help="trace for a while: who takes uncounted memory and keeps it (root)",
    )  # fmt: skip
    parser.add_argument(
        "--for", dest="trace_seconds", type=trace_seconds, metavar="SECONDS",
        help="with --who: trace for so long (default 10)",
    )  # fmt: skip
    parser.set_defaults(timeout=None)


def trace_seconds(text: str) -> float:
    """From the command line; ArgumentTypeError for anything else."""
    from seawall.cli.source_options import seconds_of  # noqa: PLC0415 - cli/memory.py imports us first
    from seawall.cli.tracing import LEAST_SECONDS, MOST_SECONDS  # noqa: PLC0415

    seconds = seconds_of(text)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        words = f"expected {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds, not {text!r}"
        raise ArgumentTypeError(words)
    return seconds


def complete(arguments: Namespace) -> None:
    """Defaults that depend on other options, and what only the terminal's process can do."""
    from seawall.cli.source_options import TIMEOUT_SECONDS  # noqa: PLC0415

    if not arguments.who:
        if arguments.trace_seconds is not None:
            raise UsageProblem("--for says how long --who traces; give --who with it")
        if arguments.timeout is None and not arguments.watch:
            arguments.timeout = TIMEOUT_SECONDS
        return
    from seawall.cli import tracing  # noqa: PLC0415 - only for this option

    seconds = arguments.trace_seconds or tracing.TRACE_SECONDS
    least = seconds + tracing.AROUND_LEAST_SECONDS
    arguments.trace_seconds = seconds
    if arguments.timeout is None:
        arguments.timeout = max(TIMEOUT_SECONDS, seconds + tracing.AROUND_SECONDS)
    elif arguments.timeout < least and arguments.bundle is None:
        raise UsageProblem(
            f"--timeout {arguments.timeout:g} ends before --for {seconds:g} is told; give at least "
            f"--timeout {least:g}, or a shorter --for"
        )
    if arguments.bundle is None:
        tracing.ENDING.listen()


class WhoVerb(SourceVerb["WhoPage"]):
    """The ledger after a trace, and who it was."""

    name = "memory"
    text_view = "seawall.views.memory_who_text:lines"
    document_table = "seawall.views.documents.memory_document:MEMORY"

    @cached_property
    def source(self) -> Source:
        """The moment after the trace, or what was recorded."""
        source = super().source
        return source if source.live is None else _traced(source, source.live, self.arguments)

    def page(self) -> "WhoPage":
        from seawall.accounts.tracing.trace_rows import NOBODY_TRACED  # noqa: PLC0415 - only for this option
        from seawall.accounts.tracing.traced_memory import Traced  # noqa: PLC0415 - likewise
        from seawall.views.memory_who_page import WhoPage  # noqa: PLC0415 - likewise

        memory = MemoryPage.of(self.source.first, self.source.notes)
        traced = self.source.first.get(Traced)
        return WhoPage(
            memory=memory,
            traced=NOBODY_TRACED if isinstance(traced, Unread) else traced.sum,
            unseen=tuple(_unseen(self.source, memory.unseen)),
        )


run = WhoVerb.run


def _traced(source: Source, live: "LiveHost", arguments: Namespace) -> Source:
    from seawall.cli.progress import ProgressLine  # noqa: PLC0415 - only for this option
    from seawall.cli.tracing import overlay_host_of  # noqa: PLC0415 - likewise

    progress = ProgressLine("memory")
    is_here = arguments.root in (None, "/")
    host = overlay_host_of(live, is_here, arguments.trace_seconds, progress.tell)
    progress.end()
    return Source(host, None, live=None, notes=source.notes)


def _unseen(source: Source, others: tuple[NotSeen, ...]) -> list[NotSeen]:
    """Why nobody could trace first, then what the trace lacks, then everything else."""
    from seawall.accounts.tracing.traced_memory import Traced  # noqa: PLC0415 - only for this option
    from seawall.readings.finished_trace import FinishedTrace  # noqa: PLC0415 - likewise
    from seawall.views.memory_who_page import not_traced, trace_lacks  # noqa: PLC0415 - likewise

    finished, traced = source.first.get(FinishedTrace), source.first.get(Traced)
    if isinstance(finished, Unread):
        # Said here with what would provide it, not among the files.
        return [not_traced(finished), *(row for row in others if row.what != finished.path)]
    if isinstance(traced, Unread) or not traced.sum.has_trace:
        return [not_traced(None), *others]
    return [*trace_lacks(traced.sum), *others]
