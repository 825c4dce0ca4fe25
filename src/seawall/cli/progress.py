# SPDX-License-Identifier: Apache-2.0
"""How far a long answer is: one line on stderr, written over and erased at the end, and only on a
terminal.  The answer on stdout is never touched.

Whoever knows how far he is tells it; for all others the watchdog does (``host/watchdog.py``).
"""

import sys
import time
from typing import Final

from seawall.cli.console import stderr_is_terminal
from seawall.views.terminal import plain, shorten

_EVERY_SECONDS: Final = 0.2
QUIET_SECONDS: Final = 1.0
"""What is over by then says nothing."""
_WIDTH: Final = 78


class ProgressLine:
    """Of one answer.  Nothing but a terminal sees it."""

    def __init__(self, verb: str) -> None:
        self._head = f"seawall {verb}: "
        self._due = time.monotonic() + QUIET_SECONDS
        self._has_line = False

    def tell(self, text: str) -> None:
        """Say it when the last word is old enough."""
        if not stderr_is_terminal() or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_SECONDS
        sys.stderr.write(f"\r\x1b[K{shorten(plain(self._head + text), _WIDTH)}")
        sys.stderr.flush()
        self._has_line = True

    def end(self) -> None:
        """Erase the line from the terminal."""
        if self._has_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._has_line = False
