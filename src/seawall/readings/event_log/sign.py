# SPDX-License-Identifier: Apache-2.0
"""A line of a log that tells of an event, and the pattern that recognised it."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from seawall.readings.event_log.log_line import LogLine


class Pattern(NamedTuple):
    """One kind of line that a writer writes."""

    what: str
    needle: str
    """Stands in every such line."""
    expression: str
    """Compiled when a line first has the needle: most logs have few of them."""
    programs: frozenset[str]
    """Who may say it; a line that names no program may be any of them.  Empty: anybody."""

    def match(self, text: str) -> "re.Match[str] | None":
        """What a line says, from its beginning."""
        return _compiled(self.expression).match(text)


class Sign(NamedTuple):
    """What one line says; its words are as the log has them."""

    what: str
    line: LogLine
    words: Mapping[str, str]
    """The pattern's named groups; those that did not match are empty."""


def pattern(what: str, needle: str, regex: str, programs: str = "") -> Pattern:
    """programs: names with blanks between them."""
    return Pattern(what, needle, regex, frozenset(programs.split()))


@cache
def _compiled(expression: str) -> "re.Pattern[str]":
    return re.compile(expression)
