# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain``: every OOM kill of a kernel log, in plain words.

Not a ``Verb``: a log may be larger than the memory, so reports are printed as they are read.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from seawall.accounts.oom.explanation import Explanation, explain_all, wholeness
from seawall.accounts.oom.report_facts import Hints
from seawall.cli.console import console_for
from seawall.cli.log_events_beside import LogEvents
from seawall.cli.newest_first import oldest_first
from seawall.cli.number_argument import a_number
from seawall.cli.oom_log_source import Log, file_log, reads_stdin
from seawall.cli.source_options import TIMEOUT_SECONDS, add_source_arguments, seconds_of
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.oom_log.parser import read_reports_in
from seawall.views.document import head
from seawall.views.oom_explain_unseen import unknown
from seawall.views.terminal import Console

if TYPE_CHECKING:
    from seawall.cli.box_beside_log import BoxBesideLog

FEW_MOST: Final = 3
"""As text, more reports than these are told as episodes, and the last whole one of them."""
_PAGE_LINES: Final = (20, 10, 7)
"""Of one report where there are one, two or three: with what follows, a screen of 24."""
_LAST_LINES: Final = 12
"""Of the one that is told beside episodes."""
_PAGE_SIZES: Final = (4096, 8192, 16384, 32768, 65536)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall oom explain`` to its parser."""
    add_source_arguments(parser)
    parser.add_argument(
        "--timeout", type=seconds_of, metavar="SECONDS",
        help=f"stop asking after this long (default {TIMEOUT_SECONDS:g}; a FILE has none)",
    )  # fmt: skip
    parser.add_argument(
        "file", metavar="FILE", nargs="?",
        help="a kernel log in any form: dmesg, /dev/kmsg, syslog, journalctl (short or json), "
        "pasted; .gz too; '-' for stdin; with --from BLACKBOX also who held uncounted memory then",
    )  # fmt: skip
    parser.add_argument("--live", action="store_true", help="this machine's own log (the default)")
    parser.add_argument("--follow", action="store_true", help="new kills of this machine, until ^C")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last", type=a_number("of reports"), metavar="N", help="the last N reports, whole"
    )
    which.add_argument("--all", action="store_true", help="every report whole")
    which.add_argument(
        "--report", type=a_number("of reports"), metavar="K", help="the K-th report alone, whole"
    )
    parser.add_argument(
        "--kernel", metavar="RELEASE", help="the kernel that wrote the log, where it does not say"
    )
    parser.add_argument(
        "--page-size", type=_page_size, metavar="BYTES", help="of that kernel, e.g. 65536"
    )


def complete(arguments: Namespace) -> None:
    """What is read from a file, or followed, takes as long as it takes."""
    if arguments.follow:
        arguments.timeout = None
    elif arguments.timeout is None and not _is_file(arguments):
        arguments.timeout = TIMEOUT_SECONDS


def run(arguments: Namespace) -> int:
    """Print what is asked for; the exit status."""
    _refuse_mixtures(arguments)
    if arguments.kernel is not None:
        from seawall.accounts.oom.badness import formula_named  # noqa: PLC0415 - a check alone

        formula_named(arguments.kernel)
    if _is_file(arguments):
        box = _box_beside(arguments)
        log, blocks = file_log(arguments.file or "-")
        hints = Hints(kernel=arguments.kernel, page_bytes=arguments.page_size)
        if box is not None:
            hints = box.hints()
        log.events = LogEvents(log.name)
        blocks = log.events.passing(oldest_first(blocks, log))
        explanations = explain_all(read_reports_in(blocks, log.tally), hints, is_guarded=True)
        first = list(islice(explanations, 1))
        if not first:
            log.is_like_a_log = log.is_like_a_log or log.events.are_there
            log.close(0)  # nothing is printed of what is no log
        return _tell(arguments, log, chain(first, explanations), _no_host(log), box)
    from seawall.cli import oom_live  # noqa: PLC0415 - a FILE needs no machine

    if arguments.follow:
        return oom_live.follow(arguments)
    found = oom_live.own_log(arguments)
    return _tell(arguments, found.log, found.explanations, found.head)


def _box_beside(arguments: Namespace) -> "BoxBesideLog | None":
    if arguments.bundle is None:
        return None
    from seawall.cli.box_beside_log import BoxBesideLog  # noqa: PLC0415 - few ask for it

    return BoxBesideLog(arguments)


def _is_file(arguments: Namespace) -> bool:
    if arguments.file is not None:
        return True
    elsewhere = arguments.live or arguments.follow or arguments.bundle or arguments.root
    return not elsewhere and reads_stdin()


def _refuse_mixtures(arguments: Namespace) -> None:
    if arguments.file is not None:
        for name in ("live", "follow", "root"):
            if getattr(arguments, name):
                raise UsageProblem(f"--{name} and FILE: give one of them")
    if arguments.follow and (arguments.bundle or arguments.root not in (None, "/")):
        raise UsageProblem("--follow is about this machine, without --from and --root")
    if arguments.follow and (arguments.last or arguments.report):
        raise UsageProblem("--follow shows every new report; without --last and --report")


def _no_host(log: Log) -> dict[str, Any]:
    """A log alone names no machine."""
    return head("oom-explain", Unread(log.name, "absent", "a log alone"), None)


def _tell(
    arguments: Namespace, log: Log, explanations: Iterable[Explanation], top: dict[str, Any],
    box: "BoxBesideLog | None" = None,
) -> int:  # fmt: skip
    if arguments.json:
        return _tell_json(arguments, log, explanations, top, box)
    from seawall.views.why_text import could_not_see, heading  # noqa: PLC0415 - text alone

    paper = console_for(arguments.color)
    if top["host"].get("node"):
        for line in heading(top, paper):
            print(line)
    text = _Text(log, paper)
    text.tell(arguments, explanations)
    if box is not None:
        text.tell_beside(box)
    if log.events is None or not log.events.told(log.lines_read, paper, text.found):
        text.end()
    for line in could_not_see(log.unseen, paper):
        print(line)
    return 0


def _tell_json(
    arguments: Namespace, log: Log, explanations: Iterable[Explanation], top: dict[str, Any],
    box: "BoxBesideLog | None",
) -> int:  # fmt: skip
    from seawall.views.documents.oom_explain_document import ReportTally, stream  # noqa: PLC0415 - only one of the two

    tail = ReportTally()

    def chosen() -> Iterator[Explanation]:
        last = None
        for explanation in _chosen(arguments, tail.counting(explanations)):
            log.add(unknown(explanation))
            last = explanation
            yield explanation
        if box is not None:
            then = box.moment(last)
            log.add([then] if isinstance(then, NotSeen) else [])
            tail.uncounted_then = None if isinstance(then, NotSeen) else then
        events = log.events.newest_first() if log.events else None
        log.close(tail.reports_found)
        tail.close(log.name, log.lines_read, log.unseen, events)

    for piece in stream(top, chosen(), tail):
        print(piece, end="")
    print()
    return _check_number(arguments, tail.reports_found)


def _chosen(arguments: Namespace, explanations: Iterable[Explanation]) -> Iterator[Explanation]:
    if arguments.last is not None:
        yield from deque(explanations, maxlen=arguments.last)
    elif arguments.report is not None:
        for explanation in explanations:
            if explanation.number == arguments.report:
                yield explanation
    else:
        yield from explanations


def _check_number(arguments: Namespace, found: int) -> int:
    if arguments.report is not None and arguments.report > found:
        raise UsageProblem(f"--report {arguments.report}: the log has {found}")
    return 0


class _Text:
    """Reports as text, whole or a line each."""

    def __init__(self, log: Log, paper: Console) -> None:
        self._log = log
        self._paper = paper
        self.found = 0
        self._shown: Explanation | None = None

    def tell(self, arguments: Namespace, explanations: Iterable[Explanation]) -> None:
        """What the options ask for."""
        rest = self._counting(explanations)
        if arguments.last is not None or arguments.report is not None or arguments.all:
            for explanation in _chosen(arguments, rest):
                self._whole(explanation)
        else:
            self._some(rest)
        _check_number(arguments, self.found)

    def _counting(self, explanations: Iterable[Explanation]) -> Iterator[Explanation]:
        for explanation in explanations:
            self.found += 1
            yield explanation

    def _some(self, explanations: Iterator[Explanation]) -> None:
        """A screen: a few on a page each; more as episodes, and the last whole one of them."""
        few = list(islice(explanations, FEW_MOST + 1))
        if len(few) <= FEW_MOST:
            for explanation in few:
                self._page(explanation, _PAGE_LINES[len(few) - 1], len(few))
            if len(few) > 1:
                print(f"  more       one of them whole, with its table: --report 1 to {len(few)}")
            return
        from seawall.accounts.oom.oom_episode import Episodes  # noqa: PLC0415 - many alone
        from seawall.views.oom_explain_text import episode_lines, page  # noqa: PLC0415 - text alone

        episodes, best, most = Episodes(), few[0], -1
        for explanation in chain(few, explanations):
            episodes.add(explanation.facts, explanation.number)
            if (worth := wholeness(explanation.facts.report)) >= most:
                best, most = explanation, worth
        for line in episode_lines(
            episodes.last(), episodes.count, episodes.kills, self.found, self._paper
        ):
            print(line)
        self._shown = best
        for line in page(best, self._paper, _LAST_LINES, self.found):
            print(line)

    def tell_beside(self, box: "BoxBesideLog") -> None:
        """Who held uncounted memory when the last report that is shown was written."""
        from seawall.views.uncounted_moment import lines  # noqa: PLC0415 - few ask for it

        then = box.moment(self._shown)
        if isinstance(then, NotSeen):
            self._log.add([then])
            return
        for line in lines(then, self._paper):
            print(line)

    def _page(self, explanation: Explanation, most: int, of: int) -> None:
        from seawall.views.oom_explain_text import page  # noqa: PLC0415 - text alone

        self._shown = explanation
        missing = list(unknown(explanation)) if of == 1 else []
        self._log.add(missing)
        for line in page(explanation, self._paper, most - 2 * len(missing), of):
            print(line)

    def _whole(self, explanation: Explanation, of: int | None = None) -> None:
        from seawall.views.oom_explain_text import lines  # noqa: PLC0415 - text alone

        self._shown = explanation
        self._log.add(unknown(explanation))
        for line in lines(explanation, self._paper, of):
            print(line)

    def end(self) -> None:
        """How many there were in how much."""
        from seawall.views.oom_explain_text import ending  # noqa: PLC0415 - text alone

        is_readable = not self._log.unseen
        self._log.close(self.found)
        for line in ending(self.found, self._log.lines_read, self._paper, is_readable=is_readable):
            print(line)


def _page_size(text: str) -> int:
    if text.isdecimal() and len(text) < 7 and int(text) in _PAGE_SIZES:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is none of {', '.join(map(str, _PAGE_SIZES))}")
