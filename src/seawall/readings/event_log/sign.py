# SPDX-License-Identifier: Apache-2.0
"""A line of a log that tells of an event, and the pattern that recognised it."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from seawall.readings.event_log.log_line import LogLine


class Pattern(NamedTuple):
    """One kind of line that a writer writes."""

    what: str
    needle: str
    """Stands in every such line."""
    regex: "re.Pattern[str]"
    programs: frozenset[str]
    """Who may say it; a line that names no program may be any of them.  Empty: anybody."""


class Sign(NamedTuple):
    """What one line says; its words are as the log has them."""

    what: str
    line: LogLine
    words: Mapping[str, str]
    """The pattern's named groups; those that did not match are empty."""


def pattern(what: str, needle: str, regex: str, programs: str = "") -> Pattern:
    """programs: names with blanks between them."""
    return Pattern(what, needle, re.compile(regex), frozenset(programs.split()))
