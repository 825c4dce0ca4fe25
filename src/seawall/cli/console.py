# SPDX-License-Identifier: Apache-2.0
"""What the output goes to: how wide it is, and whether it shows colours."""

import os
import sys
from functools import cache
from typing import Final

from seawall.views.terminal import WIDTH, Console

_ROWS: Final = 24
_WIDTH_LEAST: Final = 40
_WIDTH_MOST: Final = 100  # long lines of prose are hard to read


@cache
def _terminal_size() -> os.terminal_size | None:
    """Asked once, before the worker is forked: what it writes to is a pipe."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()) if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


@cache
def stderr_is_terminal() -> bool:
    """Asked once, as the size is."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def terminal_columns() -> int | None:
    """Of the terminal on stdout; None where there is none."""
    size = _terminal_size()
    return None if size is None else size.columns


def terminal_rows() -> int:
    """Of the terminal on stdout, 24 where there is none."""
    size = _terminal_size()
    return max(_ROWS, size.lines) if size else _ROWS


def console_for(colour: str) -> Console:
    """``auto`` paints only on a terminal that did not ask for none (no-color.org)."""
    columns = terminal_columns()
    painted = colour == "always" or (
        colour == "auto"
        and columns is not None
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )
    return Console(width=max(_WIDTH_LEAST, min(columns or WIDTH, _WIDTH_MOST)), colour=painted)
