# SPDX-License-Identifier: Apache-2.0
"""Enter in ``seawall top``: ``seawall why WORKLOAD`` by a child, in a pager on the same screen."""

import os
import sys
import time
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from seawall.cli.top_terminal import TopTerminal, leave_signals_to_parent
from seawall.problems import UsageProblem
from seawall.proc.forked_child import ForkedChild
from seawall.views.pager_lines import pager_lines
from seawall.views.screen_cells import Segment, ascii_only, line_of
from seawall.views.terminal import plain
from seawall.views.top_state import keys_of

_READ_BYTES: Final = 1 << 16
_TEXT_BYTES_MOST: Final = 1 << 20


class WhyPager:
    """One answer, from its question to ``q``."""

    def __init__(
        self, terminal: TopTerminal, name: str, cgroup: str, root: str | None, *, is_painted: bool
    ) -> None:
        self._terminal, self._name, self._is_painted = terminal, name, is_painted
        self._first = 0
        self._data = b""
        self._began = time.monotonic()
        words = [cgroup, "--color", "always" if is_painted else "never"]
        if root is not None:
            words += ["--root", root]
        self._child = ForkedChild(lambda to: _answer(to, words))
        self._is_whole = False

    def run(self, interval_seconds: float, look: Callable[[], None]) -> bool:
        """Until it is left; False: the whole verb is to end.  ``look`` is called meanwhile, so that
        the minute of the table behind it has no hole.
        """
        due = time.monotonic() + interval_seconds
        try:
            while not self._terminal.ended_by:
                height = self._draw()
                waited = () if self._is_whole else (self._child.fd,)
                typed, ready = self._terminal.wait(due - time.monotonic(), *waited)
                if time.monotonic() >= due:
                    look()
                    due = time.monotonic() + interval_seconds
                if ready:
                    self._take()
                for key in keys_of(typed):
                    if key in ("q", "escape", "enter", "backspace"):
                        return True
                    if key == "quit":
                        return False
                    if key == "redraw":
                        self._terminal.forget()
                    self._move(key, height)
            return False
        finally:
            self._child.give_up()

    def _take(self) -> None:
        part = os.read(self._child.fd, _READ_BYTES)
        self._data = (self._data + part)[:_TEXT_BYTES_MOST]
        self._is_whole = not part

    def _draw(self) -> int:
        columns, rows = self._terminal.size()
        title: list[Segment] = [
            (f" seawall why {ascii_only(plain(self._name))} ".ljust(columns), "head")
        ]
        text = self._data.decode("utf-8", "replace").rstrip("\n")
        body = list(pager_lines(text, columns)) if text else []
        height = max(1, rows - 2)
        self._first = max(0, min(self._first, len(body) - height))
        shown = body[self._first : self._first + height]
        foot: list[Segment] = [(self._foot(len(body), height), "dim")]
        lines = [title, *shown, *([[]] * (height - len(shown))), foot]
        self._terminal.show([
            line_of(line, columns, is_painted=self._is_painted) for line in lines[:rows]
        ])  # fmt: skip
        return height

    def _foot(self, lines: int, height: int) -> str:
        place = ""
        if lines > height:
            place = f"   lines {self._first + 1}-{min(lines, self._first + height)} of {lines}"
        waits = ""
        if not self._is_whole:
            waits = f"   asking, {time.monotonic() - self._began:.0f} s"
        return f"q back  arrows, PgUp, PgDn{place}{waits}"

    def _move(self, key: str, height: int) -> None:
        steps = {"up": -1, "down": 1, "pgup": -height, "pgdn": height, "space": height,
                 "home": -(1 << 30), "end": 1 << 30}  # fmt: skip
        self._first = max(0, self._first + steps.get(key, 0))


def _answer(out: int, words: list[str]) -> None:
    """In the child."""
    leave_signals_to_parent()
    for fd in (1, 2):
        os.dup2(out, fd)
    try:
        from seawall.cli import why  # noqa: PLC0415 - forty files: the child reads them

        parser = ArgumentParser(prog="seawall why")
        why.add_arguments(parser)
        why.run(parser.parse_args(words, Namespace(verb="why")))
    except UsageProblem as problem:
        print(f"seawall: {plain(str(problem))}")
    except Exception:  # noqa: BLE001 - the border of the process: a bug keeps its traceback
        traceback.print_exc()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
