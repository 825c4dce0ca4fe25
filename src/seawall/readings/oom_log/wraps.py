# SPDX-License-Identifier: Apache-2.0
"""Messages of the kernel that were broken into several lines by a terminal, an editor or a mail.

A line without a prefix of its own that means nothing by itself is held together with the one
before it, until a line comes that means something.  Then the pieces are joined as far as they
make one whole message; what does not is left out, and the first piece stands alone.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from seawall.readings.oom_log.lines import Line
from seawall.readings.oom_log.shapes import Shape, is_whole, shape_of

PIECES_MOST: Final = 24
_JOINED_MOST: Final = 16 << 10
# A list has no end of its own: it goes on as long as the pieces look like a list.
_LISTS: Final = frozenset({"stats", "node", "zone", "buddy", "totals", "killed", "reaped"})
_LISTED: Final = re.compile(
    r"(?=[\w:,()*=?./\[\] -]*\Z)(?:.*(?:[:*]\s?-?\d|kB|KB|\([\w-]{1,16}\) )|\s*-?\d{1,20}\s*\Z)",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"-?\d{1,20}\Z", re.ASCII)
# What ``Killed process N (x)`` goes on with, blanks taken out, and how far into its next value.
_KILLED_TAIL: Final = re.compile(
    r".*Killedprocess\d.*\),?(?:(?:total-vm|vsz|anon-rss|file-rss|shmem-rss|pgtables|UID"
    r"|oom_score_adj):-?\d{1,20}(?:[kl]B)?,?)*(?P<rest>[A-Za-z_-]{0,20}:?-?\d{0,20}k?)\Z",
    re.ASCII,
)
_KILLED_NAMES: Final = (
    "total-vm:", "vsz:", "anon-rss:", "file-rss:", "shmem-rss:", "pgtables:", "UID:",
    "oom_score_adj:",
)  # fmt: skip
_LAST: Final = re.compile(r"oom_score_adj:-?\d+\Z", re.ASCII)
_NAME: Final = re.compile(
    r"([a-z_-]{2,30}(?:\([a-z]{1,8}\))?|\*\d{1,12}kB)(?:\s?:\s?\d|(?<=kB))", re.ASCII
)
_NUMBERS: Final = re.compile(r"[\d ]+\Z", re.ASCII)
# What stands at the end of these may be any text, so only the width of the page tells.
_OPEN_ENDED: Final = frozenset({"row", "task_in", "limit_reached"})
_PAGE_LEAST, _PAGE_MOST = 40, 300

IsRow = Callable[[str], bool]
"""Whether a text has all the columns of the table that is open now."""


class Message(NamedTuple):
    """A line of the report, put together again."""

    shape: Shape
    text: str
    line: Line
    """The first of its lines."""
    lines: int


class Joiner:
    """Holds the last line until it is known whether the next ones belong to it."""

    def __init__(self, is_row: IsRow) -> None:
        self._is_row = is_row
        self._shape: Shape | None = None
        self._first: Line | None = None
        self._pieces: list[str] = []
        self._merged = 0
        self._broken_at = 0

    @property
    def shape(self) -> Shape | None:
        """Of the line that is held."""
        return self._shape if self._first else None

    def restart(self) -> None:
        """Forget what is held: another part of the log begins."""
        self._broken_at = 0
        self._first = None

    def put(self, line: Line) -> Message | None:
        """The message that is complete now, if one is; the new line is held."""
        first = self._first
        if first and not line.is_prefixed and first.is_prefixed and not self._pieces[0].strip():
            # Broken right after the prefix: the next line is what it was for.
            line = first._replace(text=line.text, width=line.width)
            self._first = None
        text = line.text.strip()
        shape = shape_of(text)
        if self._first and not line.is_prefixed and self._may_go_on(shape) and self._holds(text):
            return None
        was_empty = first is not None and self._first is None
        done: Message | None
        if self._first and self._shape and len(self._pieces) == 1:
            done = Message(self._shape, self._pieces[0], self._first, 1 + self._merged)
        else:
            done = self.take()
        self._first, self._shape, self._pieces = line, shape, [line.text.lstrip()]
        self._merged = int(was_empty)
        return done

    def _may_go_on(self, shape: Shape | None) -> bool:
        """Whether a line of that shape can be a piece of what is held."""
        # ``failcnt 0``, left over from a counter, looks like a line of memory.stat.
        return not shape or (shape == "stat" and self._shape == "counter")

    def _holds(self, text: str) -> bool:
        """Keep a piece with what is held, if it may belong to it."""
        if self._shape is None:
            joined = self._pieces[0] + text
            self._shape = shape_of(joined)
            if self._shape:
                self._pieces = [joined]
                self._merged = 1
            return self._shape is not None
        if len(self._pieces) < PIECES_MOST and text and self._wants(text):
            self._pieces.append(text)
            return True
        return False

    def _wants(self, text: str) -> bool:
        """Whether a text that means nothing by itself looks like a piece of what is held."""
        if self._shape == "reserve":
            return _NUMBERS.match(text) is not None
        if self._shape in _LISTS:
            held = "".join(self._pieces)
            if self._shape == "killed" and _is_killed_so_far(held + text):
                return True
            if self._shape == "stats" and not is_whole("stats", held):
                return True
            if _NUMBER.match(text):  # the rest of a number, or nothing of ours
                return held[-1:] in "0123456789:*-" and (
                    not _LAST.search(held) or self._fills_the_page()
                )
            # What names a value again is not of the same list; the first name may be half of one.
            names = {found[1] for found in _NAME.finditer(text) if found.start()}
            return _LISTED.match(text) is not None and names.isdisjoint(_NAME.findall(held))
        if not self._is_whole(self._pieces[0]):
            return True
        may_be_cut = self._shape in _OPEN_ENDED or text.isdigit()
        return len(self._pieces) == 1 and may_be_cut and self._fills_the_page()

    def _is_whole(self, text: str) -> bool:
        if self._shape == "row":
            return self._is_row(text)
        return self._shape is None or is_whole(self._shape, text)

    def _fills_the_page(self) -> bool:
        """Whether the line that is held ends where another line was surely broken."""
        return self._first is not None and self._first.width == self._broken_at > 0

    def take(self) -> Message | None:
        """What is held, joined as far as it makes sense; None for a line of no report."""
        first, shape, pieces = self._first, self._shape, self._pieces
        glue = "" if self._fills_the_page() else " "
        self._first = None
        if first is None or shape is None:
            return None
        if shape == "reserve":
            return Message(shape, glue.join(pieces), first, len(pieces) + self._merged)
        for count in range(len(pieces), 1, -1):
            tight = "".join(pieces[:count])[:_JOINED_MOST]
            texts = (tight, " ".join(pieces[:count])[:_JOINED_MOST])
            for text in texts[: 1 if shape in _LISTS else 2]:
                if shape in _LISTS or self._whole_as(shape, text):
                    if _PAGE_LEAST <= first.width <= _PAGE_MOST and text == tight:
                        self._broken_at = first.width
                    return Message(shape, text, first, count + self._merged)
        return Message(shape, pieces[0], first, 1 + self._merged)

    def _whole_as(self, shape: Shape, text: str) -> bool:
        return self._is_row(text) if shape == "row" else is_whole(shape, text)


def _is_killed_so_far(joined: str) -> bool:
    """Whether it ends within a value of a kill's sizes, or in the middle of its name."""
    found = _KILLED_TAIL.match("".join(joined.split())[-1000:])
    if not found or ")" in found["rest"]:
        return False
    rest = found["rest"]
    return any(name.startswith(rest) or rest.startswith(name) for name in _KILLED_NAMES)
