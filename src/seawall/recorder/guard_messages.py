# SPDX-License-Identifier: Apache-2.0
"""Datagrams of the guard decoded into messages: ticks, journal lines, start and end.

``guard/recorder_wire.py`` has the format and how a message is divided.

Nothing that was handed out is changed afterwards, so ticks may be kept; a group of which nothing
new was told is the same object in the next tick.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from seawall.actions.orders import Order, Outcome, Target
from seawall.guard.handover import from_json
from seawall.guard.recorder_wire import INDEX, NONE, PART, ROW, STATES, TICK
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node, Outside
from seawall.host.host import JSON
from seawall.replay.tick import Tick

PARTS_MOST: Final = 512


class GuardStart(NamedTuple):
    """What holds from the next tick on."""

    settings: Settings
    last_decision: str
    """Whose number the judge counts on from; empty: it has decided nothing in this boot."""
    mind: dict[str, JSON] | None
    """What the judge remembers; None: the judge of the ticks before goes on."""


class JournalLine(NamedTuple):
    """One line of the guard's decision journal, as it was sent to the recorder."""

    tick: int
    """The number of the tick that it tells of, or of the last before it."""
    text: str
    """JSON, without a newline."""


class GuardBye(NamedTuple):
    """The message that the guard ends, and no tick follows."""


Message: TypeAlias = GuardStart | Tick | JournalLine | GuardBye


class GuardMessageReader:
    """``take`` each datagram, ``flush`` when there is none for now."""

    def __init__(self) -> None:
        self.dropped = 0
        """Messages that were malformed, incomplete, or told a difference to one that was."""
        self.is_lost = False
        """One was dropped, and no whole tick has come since: all has to be told anew."""
        self._kind = b""
        self._pieces: list[bytes] = []
        self._number = 0
        """Of the last tick: what the next one is a difference to, and whose outcomes come."""
        self._names: dict[int, list[Any]] = {}
        self._groups: dict[int, Group] = {}
        self._by_path: dict[str, Group] = {}
        self._order: Sequence[int] = ()
        self._held: Tick | None = None
        self._outcomes: list[Outcome] = []

    def take(self, datagram: bytes) -> list[Message]:
        """What is complete with this one: a tick only when it is known that all of its outcomes
        have come.
        """
        try:
            kind, part, is_last, number = PART.unpack_from(datagram)
            if not self._is_whole(datagram, kind, part, is_last):
                return []
            whole = b"".join(self._pieces)
            self._pieces = []
            return self._whole(kind, number, whole)
        except (ValueError, LookupError, TypeError, struct.error, RecursionError):
            self._pieces = []
            self.dropped += 1
            self.is_lost = True
            return []

    def flush(self) -> list[Message]:
        """The tick whose outcomes were waited for: the guard has nothing more to say now."""
        held, self._held = self._held, None
        if held is None:
            return []
        outcomes, self._outcomes = tuple(self._outcomes), []
        return [held._replace(outcomes=outcomes)]

    def _is_whole(self, datagram: bytes, kind: bytes, part: int, is_last: int) -> bool:
        if part == 0 and self._pieces:
            self._pieces = []
            self.dropped += 1  # the rest of that one never came
        if part != len(self._pieces) or (part and kind != self._kind):
            raise ValueError("a part is missing")
        if part >= PARTS_MOST:
            raise ValueError("so many parts")
        self._kind = kind
        self._pieces.append(datagram[PART.size :])
        return bool(is_last)

    def _whole(self, kind: bytes, number: int, whole: bytes) -> list[Message]:
        if kind == b"T":
            tick = self._tick(number, whole)
            done = self.flush()
            self._held, self._number = tick, number
            return done
        if kind == b"L":
            return [*self.flush(), JournalLine(number, whole.decode("ascii"))]
        if kind != b"J":
            raise ValueError("a kind")
        told = json.loads(whole)
        if told["t"] == "outcome":
            if self._held is None or number != self._number:
                raise ValueError("an outcome of no tick")
            self._outcomes.append(_outcome(told["outcome"]))
            return []
        return [*self.flush(), *self._said(told)]

    def _said(self, told: dict[str, Any]) -> list[Message]:
        match told["t"]:
            case "start":
                return [_start(told)]
            case "bye":
                return [GuardBye()]
            case "names":
                self._take_names(told["rows"])
                return []
        raise ValueError("nobody knows that")

    # --- objects ------------------------------------------------------------------------------

    def _take_names(self, rows: list[Any]) -> None:
        for index, *names in rows:
            path, inode, *words = names
            if not isinstance(path, str) or not isinstance(inode, int) or len(words) != 5:
                raise ValueError("a row of names")
            self._names[index] = names
            if (was := self._groups.get(index)) is not None:
                self._groups[index] = _renamed(was, names)
                self._by_path = {}

    # --- ticks --------------------------------------------------------------------------------

    def _tick(self, number: int, whole: bytes) -> Tick:
        state, unix, base, rows, ordered = TICK.unpack_from(whole)
        if base and base != self._number:
            raise ValueError("a difference to another tick")
        order_at = TICK.size + rows * ROW.size
        node = Node(*json.loads(whole[order_at + ordered * INDEX.size :]))
        for row in ROW.iter_unpack(whole[TICK.size : order_at]):
            self._groups[row[0]] = _group(row, self._names[row[0]])
        if ordered or not base:
            self._settle(struct.unpack_from(f"<{ordered}I", whole, order_at))
        if rows or ordered or not base or not self._by_path:
            # Another dictionary, never that of a tick that was handed out.
            found = (self._groups[index] for index in self._order)
            self._by_path = {group.path: group for group in found}
        self.is_lost = self.is_lost and base != 0
        return Tick(number, unix, STATES[state], node, self._by_path, ())

    def _settle(self, order: Sequence[int]) -> None:
        """Who is there; all others are forgotten."""
        self._order = order
        self._groups = {index: self._groups[index] for index in order}
        self._names = {index: self._names[index] for index in order}


def _start(told: dict[str, Any]) -> GuardStart:
    mind = told["mind"]
    if mind is not None and not isinstance(mind, dict):
        raise ValueError("a mind")
    return GuardStart(from_json(json.dumps(told["settings"])), str(told["last_decision"]), mind)


def _group(row: tuple[Any, ...], names: list[Any]) -> Group:
    """A new group from its row of numbers in a tick and its row of names."""
    path, inode, name, pod, protected_by, hopeless_why, sources = names
    group = Group(path, inode, name)
    (
        _, group.charge_bytes, swapped, group.swap_cached_bytes, group.charge_slope, limit,
        request, gives_back, certain, likely, most, group.outside_slope, adj, group.class_rank,
        processes, group.started_seconds, group.at_limit_seconds, group.events_max, group.stall,
        is_known, progress,
    ) = row  # fmt: skip
    group.name, group.pod = name, pod
    group.protected_by, group.hopeless_why = protected_by, hopeless_why
    group.outside = Outside(certain, likely, most, sources)
    group.limit_bytes, group.request_bytes = _known(limit), _known(request)
    group.gives_back_bytes, group.swapped_bytes = _known(gives_back), _known(swapped)
    group.adj, group.processes = _known(adj), _known(processes)
    group.progress_per_second = progress if is_known else None
    return group


def _renamed(was: Group, names: list[Any]) -> Group:
    """The same figures under other names."""
    path, inode, name, pod, protected_by, hopeless_why, sources = names
    group = Group(path, inode, name)
    for field in Group.__slots__:
        setattr(group, field, getattr(was, field))
    group.path, group.inode, group.name, group.pod = path, inode, name, pod
    group.protected_by, group.hopeless_why = protected_by, hopeless_why
    group.outside = Outside(*was.outside[:3], sources)
    return group


def _known(value: int) -> int | None:
    return None if value == NONE else value


def _outcome(told: list[Any]) -> Outcome:
    order, *rest = told
    decision, step, target, *more = order
    return Outcome(Order(decision, step, Target(*target), *more), *rest)
