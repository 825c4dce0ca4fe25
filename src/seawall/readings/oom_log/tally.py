# SPDX-License-Identifier: Apache-2.0
"""What was looked at in a log besides its reports: lines not understood, repeats, doubts."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

EXAMPLES_MOST: Final = 20
"""Lines not understood that are kept; further ones are only counted."""
TEXT_MOST: Final = 200
_LOOKED_AT_BYTES: Final = 64 << 10
# Words of others: GPUs, and what systemd says after the kernel.
_OF_OTHERS: Final = re.compile(rb"cuda out of memory|hip out of memory|cuda error: out of memory")
_ECHO: Final = re.compile(rb"result 'oom-kill'|result=oom-kill")


class UnreadLine(NamedTuple):
    """A line with words of an OOM kill that was not understood."""

    number: int
    """In the log, from 1."""
    text: str
    """At most TEXT_MOST characters; may hold any character."""


@dataclass(slots=True)
class LogTally:
    """Filled while a log is read; complete when its last report was given."""

    not_understood: int = 0
    """Lines that hold "Killed process", "out of memory" or "oom-kill" in any case, and are of no
    report: nothing was concluded from them."""
    examples: list[UnreadLine] = field(default_factory=list)
    """The first EXAMPLES_MOST of them."""
    echoes: int = 0
    """Lines in which systemd says that a unit failed with the result oom-kill."""
    repeats: int = 0
    """Reports that say the same as an earlier one: the same call, read twice."""
    uncertain: int = 0
    """Reports that may be of the same call as the one before (``may_continue_line``)."""

    def note_unread(self, number: int, raw: bytes) -> None:
        """Count a line that was not understood."""
        if _ECHO.search(raw.lower()):
            self.echoes += 1
            return
        self.not_understood += 1
        if len(self.examples) < EXAMPLES_MOST:
            text = raw[: 4 * TEXT_MOST].decode("utf-8", "replace").strip()[:TEXT_MOST]
            self.examples.append(UnreadLine(number, text))

    def take_back(self, numbers: Collection[int]) -> None:
        """Lines that were counted as not understood, and that another reader has understood."""
        self.not_understood -= len(numbers)
        self.examples = [one for one in self.examples if one.number not in numbers]


def is_suspect(raw: bytes) -> bool:
    """Whether a line holds words of an OOM kill, the kernel's or not."""
    low = raw[:_LOOKED_AT_BYTES].lower()
    has_words = b"oom-kill" in low or b"killed process" in low or b"out of memory" in low
    return has_words and not _OF_OTHERS.search(low)
