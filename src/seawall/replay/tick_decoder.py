# SPDX-License-Identifier: Apache-2.0
"""The bodies of ``tick`` frames back into ticks.  A box is hostile: bounded, and nothing but a
BundleProblem comes of what is not as ``ticks.py`` writes it.
"""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final

from seawall.guard.tick_facts import Group, Node
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.group_rows import COLUMNS, PATH, apply_change, group_of, read_row
from seawall.replay.tick import Tick
from seawall.replay.tick_encoder import GROUP_COLUMNS, NODE, NODE_COLUMNS, OUTCOME
from seawall.replay.typed_codec import (
    INT_MOST,
    ITEMS_MOST,
    TEXT_MOST,
    items_of,
    read_float,
    short_repr,
)

GROUPS_MOST: Final = 2_000_000
"""In all ticks of one frame together: small bytes must not become much memory."""
UNIX_MOST: Final = 1e12
_PLACES: Final = {name: at for at, name in enumerate(COLUMNS) if at != PATH}
"""Of what may change: a group of another path is another group."""
_CHANGES: Final = frozenset(("whole", "gone", "set", "new"))


class TickDecoder:
    """Takes the bodies in the order of the file."""

    __slots__ = ("_groups", "_last", "_rows", "lost_ticks")

    def __init__(self) -> None:
        self._last: int | None = None
        self._rows: list[list[Any]] = []
        self._groups: dict[str, Group] = {}
        self.lost_ticks = 0
        """Ticks that were a difference to one that was not there."""

    def take(self, body: dict[str, JSON]) -> list[Tick]:
        """Its ticks; none when the one that they are a difference to is missing."""
        try:
            return self._take(body)
        except (ValueError, RecursionError) as error:
            self._last = None
            raise BundleProblem(f"a tick in the black box: {error}") from error

    def _take(self, body: dict[str, JSON]) -> list[Tick]:
        ticks = items_of(body.get("ticks"))
        if body.get("key") is True:
            _check_columns(body.get("columns"))
            self._rows, self._groups = [], {}
        elif self._last is None or body.get("from") != self._last:
            self.lost_ticks += len(ticks)
            self._last = None
            return []
        made, groups = [], 0
        for tick in ticks:
            made.append(self._tick(tick))
            groups += len(self._rows)
            if groups > GROUPS_MOST:
                raise ValueError(f"expected at most {GROUPS_MOST:,} groups in a frame")
        return made

    def _tick(self, tick: JSON) -> Tick:
        tick = _object(tick)
        number, state = tick.get("n"), tick.get("s")
        if type(number) is not int or not 0 <= number <= INT_MOST:
            raise ValueError(f"expected the number of a tick, found {short_repr(number)}")
        if not isinstance(state, str) or len(state) > TEXT_MOST:
            raise ValueError(f"expected the judge's state, found {short_repr(state)}")
        node: Node = NODE.read(tick.get("node"))
        self._apply(tick)
        out = tuple([OUTCOME.read(value) for value in items_of(tick.get("out", []))])
        self._last = number
        return Tick(number, _unix_seconds(tick.get("u")), state, node, self._groups, out)

    # --- groups -------------------------------------------------------------------------------

    def _apply(self, tick: dict[str, JSON]) -> None:
        """Rows in place; the groups anew, for the tick before keeps its own."""
        if _CHANGES.isdisjoint(tick):
            return
        if tick.get("whole") is True:
            self._rows, self._groups = [], {}
        rows, groups = self._rows, self._groups.copy()
        if "gone" in tick:
            gone = set(_places(_whole_numbers(tick["gone"]), len(rows)))
            for at in gone:
                groups.pop(rows[at][PATH], None)
            rows = [row for at, row in enumerate(rows) if at not in gone]
        fresh = [rows[at] for at in _set(rows, tick.get("set", {}))]
        new = [read_row(row) for row in items_of(tick.get("new", []))]
        for row in (*fresh, *new):
            groups[row[PATH]] = group_of(row)
        self._rows, self._groups = rows + new, groups
        if len(groups) != len(self._rows) or len(groups) > ITEMS_MOST:
            raise ValueError("expected each group once, and not too many")


def _object(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, dict) or len(value) > len(COLUMNS):
        raise ValueError(f"expected a small object, found {short_repr(value)}")
    return value


def _set(rows: list[list[Any]], columns: JSON) -> set[int]:
    """Change the rows; which ones."""
    found: set[int] = set()
    for name, pair in _object(columns).items():
        at = _PLACES.get(name)
        steps, values = items_of(pair, 2)
        if at is None:
            raise ValueError(f"expected a column of a group, found {short_repr(name)}")
        places = _places(accumulate(_whole_numbers(steps)), len(rows))
        for place, change in zip(places, items_of(values, len(places)), strict=True):
            row = rows[place]
            row[at] = apply_change(at, row[at], change)
        found.update(places)
    return found


def _whole_numbers(values: JSON) -> list[Any]:
    found = items_of(values)
    if not {int}.issuperset(map(type, found)):
        raise ValueError("expected places, found something else")
    return found


def _places(places: Iterable[int], count: int) -> list[int]:
    """ValueError when one is not among ``count`` rows."""
    found = list(places)
    if found and not 0 <= min(found) <= max(found) < count:
        raise ValueError(f"expected places below {count}, found others")
    return found


def _unix_seconds(value: JSON) -> float:
    seconds = read_float(value)
    if not abs(seconds) <= UNIX_MOST:
        raise ValueError(f"expected Unix seconds, found {short_repr(value)}")
    return seconds


def _check_columns(columns: JSON) -> None:
    if columns != {"node": NODE_COLUMNS, "group": GROUP_COLUMNS}:
        raise ValueError("written by a version of Seawall that keeps other values")
