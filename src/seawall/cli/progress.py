# SPDX-License-Identifier: Apache-2.0
"""How far a long scan is, on stderr: one line that is written over on a terminal, else a line
every few seconds.  The answer on stdout is never touched.
"""

import sys
import time
from typing import Final

from seawall.views.terminal import plain, shorten

_TERMINAL_SECONDS: Final = 0.2
_LINE_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 1.0
"""A scan that is over by then says nothing."""
_WIDTH: Final = 78


class ProgressLine:
    """``is_terminal``: of stderr, asked before the worker was forked."""

    def __init__(self, verb: str, *, is_terminal: bool) -> None:
        self._head = f"seawall {verb}: "
        self._is_terminal = is_terminal
        self._every = _TERMINAL_SECONDS if is_terminal else _LINE_SECONDS
        self._due = time.monotonic() + (QUIET_SECONDS if is_terminal else _LINE_SECONDS)
        self._has_line = False

    def tell(self, text: str) -> None:
        """Say it when the last word is old enough."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._every
        line = shorten(plain(self._head + text), _WIDTH)
        sys.stderr.write(f"\r\x1b[K{line}" if self._is_terminal else f"{line}\n")
        sys.stderr.flush()
        self._has_line = self._is_terminal

    def end(self) -> None:
        """Erase the progress line from the terminal."""
        if self._has_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._has_line = False
