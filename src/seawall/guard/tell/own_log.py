# SPDX-License-Identifier: Apache-2.0
"""The aide's standard error: the journal of the unit, ``kubectl logs``."""

import os
import select
from typing import Any, Final

_STDERR: Final = 2
_LINE_MOST: Final = 4096
"""What a pipe takes as a whole when it takes anything."""


def say(request: dict[str, Any]) -> None:
    """What the guard has to say there."""
    log(f"seawall guard: {request.get('words', '')}")


def log(words: str) -> None:
    """A line; none when nobody reads it, or it has no room.  That is no failure of an errand."""
    try:
        if select.select([], [_STDERR], [], 0)[1]:
            os.write(_STDERR, f"{words}\n".encode("utf-8", "replace")[:_LINE_MOST])
    except OSError:
        return
