# SPDX-License-Identifier: Apache-2.0
"""``seawall top``: how long memory lasts and who takes it, from one second to the next.

For a node that may be dying: one process, the standard library alone, everything opened at the
start.  What may hang is asked by a child (``top_look.py``), and its answer is shown with its age.
"""

import os
import signal
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import suppress
from dataclasses import replace
from typing import Final

from seawall.accounts.live_view.live_history import RATE_SECONDS, KnownWorkload, LiveHistory
from seawall.accounts.live_view.live_sample import NodeSample
from seawall.cgroup_paths import place_of
from seawall.cli.console import console_for
from seawall.cli.source_options import add_color_argument
from seawall.cli.top_look import SlowLook
from seawall.cli.top_terminal import TerminalGone, TopTerminal, check_terminal, readable
from seawall.host.vitals import line_of as heading_of
from seawall.readings.guard_status import GuardStatus
from seawall.sources.live_sampler import LiveSampler
from seawall.views.guard_line import OLD_SECONDS, age_seconds, guard_words
from seawall.views.screen_cells import line_of
from seawall.views.top_screen import (
    HEIGHT_LEAST,
    WIDTH_LEAST,
    Shown,
    TopPage,
    UncountedLook,
    screen,
    shown_name,
)
from seawall.views.top_state import SORT_WORDS, TopState, keys_of
from seawall.words import duration

WANTED: Final = ("DAC_READ_SEARCH", "SYS_PTRACE")
"""Capabilities without which something stays unseen: see ``pods``."""
INTERVAL_SECONDS: Final = 1.0
_INTERVAL_LEAST: Final = 0.1
_INTERVAL_MOST: Final = 3600.0
_MINUTE_PARTS: Final = 60
_ONCE_SECONDS: Final = 20.0
_ONCE_NAME: Final = 120
_ONCE_NUMBERS: Final = 66
"""Columns of a screen that is printed: for a name, and beside it."""
_ONCE_FRAME: Final = 8
"""Lines around the table."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall top`` to its parser."""
    parser.add_argument(
        "--root", metavar="DIR", help="the root of the host: /host in a DaemonSet, a tree of files"
    )
    parser.add_argument(
        "--interval", type=_interval, default=INTERVAL_SECONDS, metavar="SECONDS",
        help=f"between two screens (default {INTERVAL_SECONDS:g})",
    )  # fmt: skip
    parser.add_argument(
        "--once",
        action="store_true",
        help="one screen as text, every workload in it, after some 2 s; needs no terminal",
    )
    parser.add_argument(
        "--json", action="store_true", help="the same as one JSON document on stdout"
    )
    parser.add_argument(
        "--sort", choices=SORT_WORDS, default="charge", help="default: charge; keys change it"
    )
    parser.add_argument(
        "--filter", default="", metavar="TEXT", help="only workloads with TEXT in their name"
    )
    add_color_argument(parser)


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _INTERVAL_LEAST <= seconds <= _INTERVAL_MOST:
        raise ArgumentTypeError(f"expected {_INTERVAL_LEAST:g} to {_INTERVAL_MOST:g} seconds,"
                                f" not {text!r}")  # fmt: skip
    return seconds


def _is_once(arguments: Namespace) -> bool:
    return bool(arguments.once or arguments.json)


def run(arguments: Namespace) -> int:
    """Until ``q``; the exit status."""
    is_once = _is_once(arguments)
    if not is_once:
        check_terminal()
    view = TopView(arguments)
    try:
        if is_once:
            return view.print_once(is_document=arguments.json)
        with TopTerminal() as terminal, suppress(TerminalGone):
            view.run(terminal)
            return 128 + terminal.ended_by if terminal.ended_by else 0
        return 128 + signal.SIGHUP
    finally:
        view.close()


class TopView:
    """What is watched, and what of it is on the screen."""

    def __init__(self, arguments: Namespace) -> None:
        root = arguments.root or "/"
        self._root: str | None = arguments.root
        self._interval: float = arguments.interval
        self._sampler = LiveSampler(root)
        counted = None if _is_once(arguments) else self._sampler.memcgs
        self._look = SlowLook(root, time.monotonic(), counted)
        self._history = LiveHistory(arguments.interval, is_live=self._sampler.is_live)
        self._known: dict[str, KnownWorkload] = {}
        self._with_guard: tuple[GuardStatus | None, dict[str, KnownWorkload]] = (None, {})
        self._state = TopState(sort=arguments.sort, filter=arguments.filter)
        self._is_painted = console_for(arguments.color).colour
        self._has_blocks = _has_blocks()
        self._page: TopPage | None = None
        self._shown = Shown([], [], 1)

    def close(self) -> None:
        """Give everything back."""
        self._look.close()
        self._sampler.close()

    # --- on a terminal ------------------------------------------------------------------

    def run(self, terminal: TopTerminal) -> None:
        """Look and draw until somebody ends it; the node first, and then its workloads."""
        self._history.add(self._sampler.node_sample())
        self._page = self._new_page()
        self.draw(terminal)
        self._take_sample()
        self.draw(terminal)
        due = time.monotonic() + self._interval
        while not terminal.ended_by:
            now = time.monotonic()
            if now >= due:
                self._take_sample()
                due = max(due + self._interval, now + self._interval / 2)
            fd = self._look.fd
            typed, ready = terminal.wait(due - time.monotonic(), *((fd,) if fd >= 0 else ()))
            self._go_on_looking(is_ready=bool(ready))
            for key in keys_of(typed):
                order = self._state.press(key, self._shown.rows, self._shown.height)
                if order == "quit" or (order == "why" and not self._ask_why(terminal)):
                    return
                if order == "redraw":
                    terminal.forget()
                self.draw(terminal)
            self.draw(terminal)

    def _take_sample(self) -> None:
        self._history.add(self._sampler.sample())
        if self._sampler.has_new:
            self._look.hurry()
        if not self._state.is_paused or self._page is None:
            self._page = self._new_page()

    def _go_on_looking(self, *, is_ready: bool) -> bool:
        """Whether the slow look brought something."""
        if not self._look.go_on(time.monotonic(), is_ready=is_ready):
            return False
        if self._look.answer is not None:
            self._known = self._look.answer.known
            self._with_guard = (None, self._known)
            self._sampler.also(path for path, one in self._known.items() if one.is_leaf)
        if not self._state.is_paused:
            self._page = self._new_page()
        return True

    def draw(self, terminal: TopTerminal) -> None:
        """The screen as it is now; what of it has changed is sent."""
        if self._page is None:
            return
        columns, rows = terminal.size()
        width, height = max(columns, WIDTH_LEAST), max(rows, HEIGHT_LEAST)
        self._shown = screen(self._page, self._state, width, height, has_blocks=self._has_blocks)
        lines = [
            line_of(line, columns, is_painted=self._is_painted) for line in self._shown.lines[:rows]
        ]
        terminal.show(lines)

    def _ask_why(self, terminal: TopTerminal) -> bool:
        """False: the whole verb is to end."""
        from seawall.cli.top_why import WhyPager  # noqa: PLC0415 - only when it is asked for

        row = next((row for row in self._shown.rows if row.path == self._state.selected), None)
        if row is None:
            return True
        pager = WhyPager(terminal, row.name, row.path, self._root, is_painted=self._is_painted)
        goes_on = pager.run(self._interval, self._take_sample)
        self._take_sample()
        return goes_on

    # --- one screen ---------------------------------------------------------------------

    def print_once(self, *, is_document: bool) -> int:
        """As text or JSON: as many looks as rates take, and the slow one."""
        self._take_sample()
        began, due = time.monotonic(), time.monotonic() + self._interval
        least = max(self._interval, RATE_SECONDS) if self._sampler.is_live else self._interval
        self._go_on_looking(is_ready=False)
        while time.monotonic() - began < _ONCE_SECONDS + self._interval:
            fd = self._look.fd
            if fd < 0 and time.monotonic() - began >= least:
                break
            waits = min(due, began + least if fd < 0 else due) - time.monotonic()
            ready = readable((fd,) if fd >= 0 else (), waits)
            self._go_on_looking(is_ready=bool(ready))
            if time.monotonic() >= due:
                self._take_sample()
                due = time.monotonic() + self._interval
        self._take_sample()
        if self._page is not None:
            print(self._document(self._page) if is_document else self._text(self._page))
        return 0

    def _text(self, page: TopPage) -> str:
        longest = max((len(shown_name(row)) for row in page.rows), default=0)
        width = max(console_for("never").width, min(longest, _ONCE_NAME) + _ONCE_NUMBERS)
        height = len(page.rows) + _ONCE_FRAME
        shown = screen(page, self._state, width, height, has_blocks=self._has_blocks)
        lines = ["".join(part for part, _ in line).rstrip() for line in shown.lines[:-1]]
        return "\n".join(lines).rstrip("\n")

    def _document(self, page: TopPage) -> str:
        from seawall.findings.blindness import NotSeen  # noqa: PLC0415 - JSON alone
        from seawall.views.document import head, render  # noqa: PLC0415 - likewise
        from seawall.views.documents.top_document import TOP, TopAnswer  # noqa: PLC0415 - likewise

        look = self._look.answer
        unseen = [NotSeen("this look", why, "look at it by hand") for why in page.unseen]
        if self._look.problem or look is None:
            why = self._look.problem or f"no answer in {_ONCE_SECONDS:.0f} s"
            unseen.append(NotSeen("names of workloads and uncounted memory", why, "look again"))
        unseen += [NotSeen(*row) for row in (look.unseen if look is not None else ())]
        kernel = self._sampler.kernel
        if self._sampler.is_live:
            kernel = replace(kernel, taken_at_unix_seconds=page.node.unix_seconds)
        top = head("top", kernel, page.watched_seconds)
        return render(TOP.of(top, TopAnswer(page, self._state.ordered(page.rows), unseen)))

    # --- what is known now --------------------------------------------------------------

    def _new_page(self) -> TopPage | None:
        history, kernel = self._history, self._sampler.kernel
        if history.sample is None:
            return None
        node = history.sample.node
        left = node.left
        stalls = {name: share * 100 for name, share in node.stalls.items() if name != "cpu"}
        heading = heading_of(
            kernel.node_name or "", kernel.release or "", "", left and left.total_bytes,
            left and left.bytes, stalls, left.how if left else "left",
            left.beside_bytes if left else 0,
        )  # fmt: skip
        look = self._look.answer
        has_uncounted = look is not None and look.has_uncounted
        status = self._sampler.guard()
        guard = _guard_line(status, node.unix_seconds)
        running = _running(status, node.unix_seconds)
        known = self._known_now(running)
        return TopPage(
            heading=heading, clock=time.strftime("%H:%M:%SZ", time.gmtime(node.unix_seconds)),
            node=node, minute=history.headroom_minute(_MINUTE_PARTS), pace=history.pace(),
            seconds_left=history.seconds_left(), new_kills=history.new_kills(),
            watched_seconds=history.watched_seconds(), uncounted=self._uncounted(running, node),
            guard=guard, rows=history.rows(known, uncounted_is_known=has_uncounted),
            unseen=history.sample.unseen, is_live=self._sampler.is_live,
            has_workloads=self._sampler.has_groups,
        )  # fmt: skip

    def _known_now(self, status: GuardStatus | None) -> dict[str, KnownWorkload]:
        """With what a guard that runs is certain of, which is newer than our own look."""
        if status is None:
            return self._known
        if self._with_guard[0] is not status:
            known = dict(self._known)
            for held in status.top:
                one = known.get(held.cgroup)
                certain = held.outside_certain_bytes
                if one is not None and certain > (one.uncounted_bytes or 0):
                    known[held.cgroup] = one._replace(uncounted_bytes=certain, source="guard")
                elif one is None and self._look.answer is None:
                    kind = place_of(held.cgroup).kind
                    known[held.cgroup] = KnownWorkload(
                        held.name, kind, True, certain, source="guard"
                    )  # fmt: skip
            self._with_guard = status, known
        return self._with_guard[1]

    def _uncounted(self, status: GuardStatus | None, now: NodeSample) -> UncountedLook:
        """By our own look; until it has answered by a guard that runs."""
        look, problem = self._look.answer, self._look.problem
        if look is not None:
            age = max(0.0, now.seconds - look.seconds)
            return UncountedLook(look.node_bytes, age, "own_look", look.is_whole, problem)
        if status is not None and status.residual_bytes is not None:
            by_guard = age_seconds(status, now.unix_seconds)
            return UncountedLook(
                status.residual_bytes, by_guard, "guard", not status.blind, problem
            )
        return UncountedLook(problem=problem)


def _running(status: GuardStatus | None, now: float) -> GuardStatus | None:
    """None of one that was stopped, hangs or has died."""
    age = None if status is None else age_seconds(status, now)
    if status is None or age is None or age > OLD_SECONDS or status.state == "stopped":
        return None
    return status


def _guard_line(status: GuardStatus | None, now: float) -> str:
    """Nothing of one that was stopped."""
    if status is None or status.state == "stopped":
        return ""
    age = age_seconds(status, now)
    if age is not None and age > OLD_SECONDS:
        return f"silent for {duration(age)}: it has ended, or it hangs"
    return guard_words(status, now)


def _has_blocks() -> bool:
    """Whether whoever looks is likely to see block characters: a UTF-8 locale that somebody chose,
    and no console, whose font lacks most of them.
    """
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    chosen = next((name for name in names if name), "")
    is_utf8 = chosen.upper().replace("-", "").endswith("UTF8") and chosen != "C.UTF-8"
    return is_utf8 and os.environ.get("TERM", "") not in ("linux", "vt100", "vt220")
