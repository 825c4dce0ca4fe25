# SPDX-License-Identifier: Apache-2.0
"""The bodies of ``tick`` frames back into ticks.  A box is hostile: bounded, and nothing but a
BundleProblem comes of what is not as ``ticks.py`` writes it.
"""

from collections.abc import Callable
from typing import Any, Final

from seawall.actions.plan import Outcome
from seawall.guard.facts import Group, Node
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.carried import INT_MOST, ITEMS_MOST, TEXT_MOST, items_of, read_float, shown
from seawall.replay.rows import COLUMNS, PATH, changed, group_of, read_row
from seawall.replay.tick import Tick
from seawall.replay.ticks import GROUP_COLUMNS, NODE, NODE_COLUMNS, OUTCOME

GROUPS_MOST: Final = 2_000_000
"""In all ticks of one frame together: small bytes must not become much memory."""
UNIX_MOST: Final = 1e12
_PLACES: Final = {name: at for at, name in enumerate(COLUMNS)}


class TickReader:
    """Takes the bodies in the order of the file."""

    __slots__ = ("_groups", "_last", "_rows", "lost")

    def __init__(self) -> None:
        self._last: int | None = None
        self._rows: list[list[Any]] = []
        self._groups: dict[str, Group] = {}
        self.lost = 0
        """Ticks that were a difference to one that was not there."""

    def take(self, body: dict[str, JSON]) -> list[Tick]:
        """Its ticks; none when the one that they are a difference to is missing."""
        try:
            return self._take(body)
        except (ValueError, RecursionError) as error:
            self._last = None
            raise BundleProblem(f"a tick in the black box: {error}") from error

    def forget(self) -> None:
        """What follows has to begin with a key."""
        self._last = None

    def _take(self, body: dict[str, JSON]) -> list[Tick]:
        ticks = items_of(body.get("ticks"))
        if body.get("key") is True:
            _check_columns(body.get("columns"))
            self._rows, self._groups = [], {}
        elif self._last is None or body.get("from") != self._last:
            self.lost += len(ticks)
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
            raise ValueError(f"expected the number of a tick, found {shown(number)}")
        if not isinstance(state, str) or len(state) > TEXT_MOST:
            raise ValueError(f"expected the judge's state, found {shown(state)}")
        node: Node = NODE.read(tick.get("node"))
        self._apply(tick)
        out = tuple(_outcomes(tick.get("out", [])))
        self._last = number
        return Tick(number, _unix_seconds(tick.get("u")), state, node, self._groups, out)

    # --- groups -------------------------------------------------------------------------------

    def _apply(self, tick: dict[str, JSON]) -> None:
        """Never in place: the tick before keeps its own."""
        if tick.get("whole") is True:
            self._rows, self._groups = [], {}
        rows = self._rows
        if "gone" in tick:
            gone = set(_places(tick["gone"], len(rows), lambda step, _: step))
            rows = [row for at, row in enumerate(rows) if at not in gone]
        fresh = _set(rows, tick.get("set", {}))
        new = [read_row(row) for row in items_of(tick.get("new", []))]
        if not (fresh or new) and len(rows) == len(self._rows):
            return
        groups = self._groups
        self._rows = [fresh.get(at, row) for at, row in enumerate(rows)] + new
        self._groups = {
            row[PATH]: group_of(row) if at in fresh or at >= len(rows) else groups[row[PATH]]
            for at, row in enumerate(self._rows)
        }
        if len(self._groups) != len(self._rows) or len(self._rows) > ITEMS_MOST:
            raise ValueError("expected each group once, and not too many")


def _object(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, dict) or len(value) > len(COLUMNS):
        raise ValueError(f"expected a small object, found {shown(value)}")
    return value


def _set(rows: list[list[Any]], columns: JSON) -> dict[int, list[Any]]:
    """Rows that changed, by place."""
    fresh: dict[int, list[Any]] = {}
    for name, pair in _object(columns).items():
        at = _PLACES.get(name)
        steps, values = items_of(pair, 2)
        if at is None:
            raise ValueError(f"expected a column of a group, found {shown(name)}")
        places = _places(steps, len(rows), lambda step, last: last + step)
        for place, change in zip(places, items_of(values, len(places)), strict=True):
            row = fresh.get(place)
            if row is None:
                row = fresh[place] = list(rows[place])
            row[at] = changed(at, row[at], change)
    return fresh


def _places(steps: JSON, count: int, place_of: Callable[[int, int], int]) -> list[int]:
    """Places among ``count`` rows; ValueError when one is outside."""
    places, last = [], 0
    for step in items_of(steps):
        if type(step) is not int:
            raise ValueError(f"expected a place, found {shown(step)}")
        last = place_of(step, last)
        if not 0 <= last < count:
            raise ValueError(f"expected a place below {count}, found {shown(step)}")
        places.append(last)
    return places


def _unix_seconds(value: JSON) -> float:
    seconds = read_float(value)
    if not abs(seconds) <= UNIX_MOST:
        raise ValueError(f"expected Unix seconds, found {shown(value)}")
    return seconds


def _outcomes(values: JSON) -> list[Outcome]:
    return [OUTCOME.read(value) for value in items_of(values)]


def _check_columns(columns: JSON) -> None:
    if columns != {"node": NODE_COLUMNS, "group": GROUP_COLUMNS}:
        raise ValueError("written by a version of Seawall that keeps other values")
