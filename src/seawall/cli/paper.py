# SPDX-License-Identifier: Apache-2.0
"""What the output goes to: how wide it is, and whether it shows colours."""

import os
import sys

from seawall.views.terminal import WIDTH, Paper


def paper_for(colour: str) -> Paper:
    """``auto`` paints only on a terminal that did not ask for none (no-color.org)."""
    on_terminal = sys.stdout.isatty()
    painted = colour == "always" or (
        colour == "auto"
        and on_terminal
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )
    columns = os.get_terminal_size(sys.stdout.fileno()).columns if on_terminal else WIDTH
    # Long lines of prose are hard to read; a narrow window is obeyed.
    return Paper(width=max(40, min(columns or WIDTH, 100)), colour=painted)
