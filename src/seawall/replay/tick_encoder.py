# SPDX-License-Identifier: Apache-2.0
"""Ticks into the bodies of ``tick`` frames, exactly: what comes out again is judged the same.

========  ===========================================================================
key       what a body holds
========  ===========================================================================
key       true: begins from nothing, and needs no frame before it
rounded   true: slopes and shares have six digits (peace)
from      number of the tick that the first one is a difference to; null in a key
columns   in a key: the names of the values of a node and of a group
ticks     one or more, each a difference to the one before it
========  ===========================================================================

A tick: ``n`` number, ``u`` Unix seconds, ``s`` state, ``node`` its values, ``whole`` true: groups
begin from nothing, ``gone`` places of the groups that are not there any more, ``set`` by column
[[places of those that changed, as steps], [their changes]] among those that stayed, ``new`` rows
behind them, ``out`` outcomes.  What is empty is left out.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from seawall.actions.orders import Outcome
from seawall.guard.tick_facts import Node
from seawall.host.host import JSON
from seawall.replay.group_rows import (
    COLUMNS,
    Row,
    change_json,
    round_off,
    rounded,
    row_json,
    row_of,
)
from seawall.replay.tick import Tick
from seawall.replay.typed_codec import codec_of, write_float

NODE: Final = codec_of(Node)
OUTCOME: Final = codec_of(Outcome)
NODE_COLUMNS: Final = list(Node._fields)
GROUP_COLUMNS: Final = list(COLUMNS)
_EXACT: Final = {"seconds"}
"""Of the node: a monotonic clock needs all its digits."""


class TickEncoder:
    """Makes bodies; one for the life of a file, for each is a difference to the one before."""

    __slots__ = ("_last", "_rows")

    def __init__(self) -> None:
        self._last: int | None = None
        self._rows: dict[str, Row] = {}

    def body(
        self, ticks: Sequence[Tick], *, is_key: bool = False, is_rounded: bool = False
    ) -> dict[str, JSON]:
        """Of ticks that follow one another; the first body of a writer is a key anyway."""
        is_key = is_key or self._last is None
        if is_key:
            self._rows = {}
        base = None if is_key else self._last
        body: dict[str, JSON] = {"key": is_key, "rounded": is_rounded, "from": base}
        if is_key:
            body["columns"] = {"node": list(NODE_COLUMNS), "group": list(GROUP_COLUMNS)}
        body["ticks"] = [self._tick(tick, is_rounded=is_rounded) for tick in ticks]
        return body

    def _tick(self, tick: Tick, *, is_rounded: bool) -> JSON:
        rows = {path: row_of(group) for path, group in tick.groups.items()}
        if is_rounded:
            rows = {path: rounded(row) for path, row in rows.items()}
        made: dict[str, JSON] = {
            "n": tick.number, "u": write_float(tick.unix_seconds), "s": tick.state,
            "node": _node(tick.node, is_rounded=is_rounded),
        }  # fmt: skip
        made |= _difference(self._rows, rows)
        if tick.outcomes:
            made["out"] = [OUTCOME.write(outcome) for outcome in tick.outcomes]
        self._rows, self._last = rows, tick.number
        return made


def _node(node: Node, *, is_rounded: bool) -> JSON:
    if is_rounded:
        floats: dict[str, Any] = {
            name: round_off(value)
            for name, value in node._asdict().items()
            if isinstance(value, float) and name not in _EXACT
        }
        node = node._replace(**floats)
    return NODE.write(node)


def _difference(was: dict[str, Row], now: dict[str, Row]) -> dict[str, JSON]:
    """The dictionary's order counts: where those that stayed have another one, all is new."""
    stayed = [path for path in was if path in now]
    new = [path for path in now if path not in was]
    made: dict[str, JSON] = {}
    if stayed + new != list(now):
        return {"whole": True, "new": [row_json(row) for row in now.values()]}
    if len(stayed) != len(was):
        made["gone"] = [at for at, path in enumerate(was) if path not in now]
    changes = _changes((was[path], now[path]) for path in stayed)
    if changes:
        made["set"] = changes
    if new:
        made["new"] = [row_json(now[path]) for path in new]
    return made


def _changes(pairs: Iterable[tuple[Row, Row]]) -> dict[str, JSON]:
    """By column, places as steps from the one before."""
    found: dict[int, tuple[list[JSON], list[JSON]]] = {}
    last: dict[int, int] = {}
    for place, (was, now) in enumerate(pairs):
        if was == now:
            continue
        for at, (before, value) in enumerate(zip(was, now, strict=True)):
            if before != value:
                steps, values = found.setdefault(at, ([], []))
                steps.append(place - last.get(at, 0))
                values.append(change_json(at, before, value))
                last[at] = place
    return {COLUMNS[at]: [steps, values] for at, (steps, values) in found.items()}
