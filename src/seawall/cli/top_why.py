# SPDX-License-Identifier: Apache-2.0
"""Enter in ``seawall top``: ``seawall why WORKLOAD`` by a child, in a pager on the same screen."""

import os
import signal
import time
import traceback
from argparse import ArgumentParser
from contextlib import suppress
from typing import Final

from seawall.cli.top_terminal import TopTerminal, leave_signals_to_parent
from seawall.problems import UsageProblem
from seawall.views.pager_lines import pager_lines
from seawall.views.screen_cells import Segment, ascii_only, line_of
from seawall.views.terminal import plain
from seawall.views.top_state import keys_of

_READ_BYTES: Final = 1 << 16
_TEXT_BYTES_MOST: Final = 1 << 20
_REDRAW_SECONDS: Final = 1.0


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
        self._fd, out = os.pipe2(os.O_CLOEXEC)
        self._pid = os.fork()
        if self._pid:
            os.close(out)
            return
        _answer(out, words)

    def run(self) -> bool:
        """Until it is left; False: the whole verb is to end."""
        try:
            while not self._terminal.ended_by:
                height = self._draw()
                waited = (self._fd,) if self._fd >= 0 else ()
                # Once the answer is whole nothing moves but by a key.
                typed, ready = self._terminal.wait(_REDRAW_SECONDS if waited else 3600.0, *waited)
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
            self._end()

    def _take(self) -> None:
        part = os.read(self._fd, _READ_BYTES)
        self._data = (self._data + part)[:_TEXT_BYTES_MOST]
        if not part:
            os.close(self._fd)
            self._fd = -1

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
        if self._fd >= 0:
            waits = f"   asking, {time.monotonic() - self._began:.0f} s"
        return f"q back  arrows, PgUp, PgDn{place}{waits}"

    def _move(self, key: str, height: int) -> None:
        steps = {"up": -1, "down": 1, "pgup": -height, "pgdn": height, "space": height,
                 "home": -(1 << 30), "end": 1 << 30}  # fmt: skip
        self._first = max(0, self._first + steps.get(key, 0))

    def _end(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        with suppress(ProcessLookupError, ChildProcessError):
            if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                os.kill(self._pid, signal.SIGKILL)
                # One in state D stays behind; whoever ends this process inherits it.
                time.sleep(0.02)
                os.waitpid(self._pid, os.WNOHANG)


def _answer(out: int, words: list[str]) -> None:
    """In the child; never returns."""
    status = 1
    try:
        leave_signals_to_parent()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        from seawall.cli import why  # noqa: PLC0415 - forty files: the child reads them

        parser = ArgumentParser(prog="seawall why")
        why.add_arguments(parser)
        arguments = parser.parse_args(words)
        arguments.verb = "why"
        status = why.run(arguments)
    except UsageProblem as problem:
        print(f"seawall: {plain(str(problem))}")
    except BaseException:  # noqa: BLE001 - the border of the process
        traceback.print_exc()
    finally:
        import sys  # noqa: PLC0415 - see above

        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
