# SPDX-License-Identifier: Apache-2.0
"""What the keys of ``seawall top`` do: which rows are shown, in which order, which one is chosen.

Pure: names of keys in, what is to be done out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from seawall.accounts.live_view.live_history import LiveRow

Mode: TypeAlias = Literal["table", "filter", "help"]
Order: TypeAlias = Literal["quit", "why", "redraw", ""]
"""What whoever owns the terminal has to do."""

SORTS: Final[dict[str, tuple[str, Callable[[LiveRow], float | None]]]] = {
    "c": ("charge", lambda row: row.charge_bytes),
    "u": ("uncounted", lambda row: row.uncounted_bytes),
    "g": ("growth", lambda row: row.growth),
    "s": ("stall", lambda row: row.stall),
    "k": ("kills", lambda row: row.kills),
    "n": ("name", lambda _: None),
}
"""Key -> the word for ``--sort``, and what is compared."""
SORT_WORDS: Final = tuple(word for word, _ in SORTS.values())
_FILTER_MOST: Final = 60
_ESCAPES: Final = {
    "[A": "up", "OA": "up", "[B": "down", "OB": "down", "[5~": "pgup", "[6~": "pgdn",
    "[H": "home", "OH": "home", "[1~": "home", "[7~": "home", "[F": "end", "OF": "end",
    "[4~": "end", "[8~": "end",
}  # fmt: skip
_CONTROLS: Final = {
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x0c": "redraw",
    "\x03": "quit", "\x04": "quit", "\x15": "clear", "\x10": "up", "\x0e": "down",
    " ": "space", "\t": "tab",
}  # fmt: skip


def keys_of(data: bytes) -> Iterator[str]:
    """The keys in what a terminal sent in one go: ``a``, ``up``, ``enter``, ``escape``.

    A sequence that is not known, and a byte that is no text, are no key.
    """
    text = data.decode("utf-8", "ignore")
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\x1b":
            name = _CONTROLS.get(char, char)
            if len(name) > 1 or name.isprintable():
                yield name
            continue
        end = _end_of_escape(text, at)
        if end == at:
            yield "escape"
        elif (known := _ESCAPES.get(text[at:end])) is not None:
            yield known
        at = end


def _end_of_escape(text: str, at: int) -> int:
    """Behind ``[...LETTER`` or ``OLETTER``; ``at`` for an escape key by itself."""
    if text[at : at + 1] == "O" and len(text) > at + 1:
        return at + 2
    if text[at : at + 1] != "[":
        return at
    end = at + 1
    while end < len(text) and not "@" <= text[end] <= "~":
        end += 1
    return min(end + 1, len(text))


@dataclass(slots=True, kw_only=True)
class TopState:
    """Changed by keys alone."""

    sort: str = "charge"
    is_reversed: bool = False
    filter: str = ""
    is_paused: bool = False
    mode: Mode = "table"
    selected: str | None = None
    """Its cgroup: it stays chosen wherever its row goes."""
    first: int = 0
    """Row at the top of the table."""
    news: set[str] = field(default_factory=set)
    """Titles of columns that had something to tell once: they stay."""
    _filter_before: str = ""

    def ordered(self, rows: Sequence[LiveRow]) -> list[LiveRow]:
        """Those that the filter leaves, in order; what is not known comes last."""
        wanted = self.filter.casefold()
        shown = [row for row in rows if wanted in row.name.casefold()] if wanted else list(rows)
        of = next(compared for word, compared in SORTS.values() if word == self.sort)
        if self.sort == "name":
            shown.sort(key=lambda row: (row.name, row.path), reverse=self.is_reversed)
            return shown
        sign = 1 if self.is_reversed else -1

        def rank(row: LiveRow) -> tuple[bool, float, float, str]:
            value = of(row)
            return value is None, sign * (value or 0), -(row.charge_bytes or 0), row.path

        shown.sort(key=rank)
        return shown

    def settle(self, shown: Sequence[LiveRow], height: int) -> int:
        """Which row is chosen now, -1 for none; ``first`` so that it is on the screen."""
        at = next((i for i, row in enumerate(shown) if row.path == self.selected), -1)
        if at < 0:
            self.selected = None
        elif at < self.first:
            self.first = at
        elif at >= self.first + height:
            self.first = at - height + 1
        self.first = max(0, min(self.first, len(shown) - height))
        return at

    def press(self, key: str, shown: Sequence[LiveRow], height: int) -> Order:
        """One key; ``shown`` and ``height``: of the table as it is on the screen."""
        if key == "redraw":
            return "redraw"
        if self.mode == "filter":
            return self._press_in_filter(key)
        if self.mode == "help":
            self.mode = "table"
            return "quit" if key == "quit" else ""
        if key in ("q", "quit"):
            return "quit"
        if key == "enter":
            if self.selected is None and shown:
                self.selected = shown[min(self.first, len(shown) - 1)].path
            return "why" if self.selected is not None else ""
        if key in SORTS:
            self.sort, self.is_reversed, self.first = SORTS[key][0], False, 0
        elif key in ("up", "down", "pgup", "pgdn", "home", "end"):
            self._move(key, shown, height)
        else:
            self._switch(key)
        return ""

    def _switch(self, key: str) -> None:
        if key == "r":
            self.is_reversed = not self.is_reversed
        elif key in ("p", "space"):
            self.is_paused = not self.is_paused
        elif key == "/":
            self.mode, self._filter_before = "filter", self.filter
        elif key in ("?", "h"):
            self.mode = "help"
        elif key == "escape":
            if self.selected is not None:
                self.selected = None
            else:
                self.filter = ""
            self.first = 0

    def _press_in_filter(self, key: str) -> Order:
        if key == "quit":
            return "quit"
        if key == "enter":
            self.mode = "table"
        elif key == "escape":
            self.mode, self.filter = "table", self._filter_before
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif key == "clear":
            self.filter = ""
        elif key == "space" or (len(key) == 1 and key.isascii()):
            self.filter = (self.filter + (" " if key == "space" else key))[:_FILTER_MOST]
        self.first = 0
        return ""

    def _move(self, key: str, shown: Sequence[LiveRow], height: int) -> None:
        if not shown:
            return
        at = next((i for i, row in enumerate(shown) if row.path == self.selected), None)
        if at is None:
            at = self.first if key in ("up", "down") else self.first - (key == "pgdn")
            steps = {"home": -len(shown), "end": len(shown), "pgup": -height, "pgdn": height}
        else:
            steps = {"up": -1, "down": 1, "pgup": -height, "pgdn": height,
                     "home": -len(shown), "end": len(shown)}  # fmt: skip
        self.selected = shown[max(0, min(len(shown) - 1, at + steps.get(key, 0)))].path
