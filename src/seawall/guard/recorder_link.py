# SPDX-License-Identifier: Apache-2.0
"""The guard's end of the channel to the recorder (``guard/recorder_wire.py``): never waits.

Each tick is told as what has changed since the one before.  What does not go out at once is lost
and counted; then the recorder is told everything anew as soon as it listens again, with what the
judge remembers, so that a replay is exact from there on.
"""

import errno
import json
import select
import socket
import time
from _operator import attrgetter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import error as WrongRange  # noqa: N812 - of a number that fits into no field
from typing import Any, Final

from seawall.actions.orders import Outcome
from seawall.guard.handover import to_json
from seawall.guard.recorder_wire import (
    INDEX,
    LATE_MOST_SECONDS,
    NONE,
    PART,
    PART_MOST_BYTES,
    ROW,
    STATES,
    TICK,
)
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node
from seawall.guard.watcher_link import WatcherLink

AGAIN_SECONDS: Final = 5.0
"""Between two tries to tell everything anew."""
_NUMBER_MOST: Final = 1 << 62
_NOW: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
_SEND_BUFFER_BYTES: Final = 1 << 20
"""The kernel takes twice as much: more than five seconds of 250 groups that all change."""
_SO_SNDBUFFORCE: Final = 32
"""socket(7); with CAP_NET_ADMIN over net.core.wmem_max."""
_HEARD_BYTES: Final = 4096
_GROUPS: Final = 64
_NAMES_MOST: Final = 32
"""In one message: what it takes for a moment stays small."""
_NODE_MOST_BYTES: Final = 2048
_STREAMED_BYTES: Final = 16 << 10


class _Kept:
    """What the recorder knows of one group."""

    __slots__ = ("group", "index", "row")

    def __init__(self, index: int, group: Group) -> None:
        self.index, self.group = index, group
        self.row: tuple[Any, ...] = ()


class RecorderLink(WatcherLink):
    """``start`` when it ``is_due``, ``tick`` each tick, ``line`` in between."""

    def __init__(
        self, end: socket.socket | None, pid: int = 0, spares: list[socket.socket] | None = None
    ) -> None:
        super().__init__(end, pid, spares, _HEARD_BYTES)
        self.number = 0
        """Of the last tick; 0: no recorder has told yet where the black box goes on."""
        self.lost = 0
        """Ticks and lines that were not taken."""
        self.state: dict[str, Any] = {}
        """As it told last."""
        self._is_numbered = self._listens = False
        self._is_behind = True
        """All has to be told anew; until then ticks are only counted."""
        self._due = 0.0
        self._base = self._last_index = 0
        self._kept: dict[str, _Kept] = {}
        self._named: list[str] = []
        # Filled, so that every page of it is there before memory is locked.
        self._told = bytearray(b"\1" * _room_of(_GROUPS))
        self._widen()

    @property
    def frame(self) -> int | None:
        """The number of the last tick, for whoever tells of it elsewhere."""
        return self.number or None

    # --- what it says -------------------------------------------------------------------------

    def messages(self, now: float) -> Iterator[dict[str, Any]]:
        """What has come since the last call; hello and state are understood here."""
        for message in super().messages(now):
            kind, following = message.get("t"), message.get("next")
            if self.is_other:
                self._listens, self._is_behind = False, True
            elif kind == "hello" and type(following) is int and 0 < following < _NUMBER_MOST:
                # Never the same number twice, though a box that was lost begins at 1.
                self.number = max(self.number, following - 1)
                self._is_numbered = self._listens = self._is_behind = True
                self._due = now
            if kind == "state":
                self.state = message
            yield message

    def is_due(self, now: float) -> bool:
        """Whether ``start`` is wanted, and would find room."""
        if not (self._is_behind and self._listens) or now < self._due or self._end is None:
            return False
        poll = select.poll()
        poll.register(self._end, select.POLLOUT)
        return bool(poll.poll(0))

    def take_spare(self) -> int | None:
        """The number of the pair that the next recorder gets; None: there is none left."""
        number = super().take_spare()
        self._listens, self._is_behind, self.state = False, True, {}
        self._widen()
        return number

    # --- what it is told ----------------------------------------------------------------------

    def start(
        self, settings: Settings, last_decision: str, mind: Iterable[str], now: float
    ) -> None:
        """Between two ticks: what holds from the next one on.  ``mind``: the
        policy state's JSON in pieces.
        """
        if not self._send_pieces(_head(settings, last_decision), mind):
            self.fall_behind(now)
            return
        self._kept.clear()
        self._base = self._last_index = 0
        self._is_behind = False

    def change(self, settings: Settings, last_decision: str, now: float) -> None:
        """Between two ticks: the same judge goes on, with other settings."""
        told = f"{_head(settings, last_decision)}null}}".encode()
        # One that is behind will be told with the rest.
        if not self._is_behind and not self._send(b"J", told):
            self.fall_behind(now)

    def tick(
        self, node: Node, groups: Mapping[str, Group], state: str, outcomes: Sequence[Outcome]
    ) -> None:
        """What the judge has seen, its state after it, and what it then learned."""
        if not self._is_numbered:
            return
        self.number += 1
        if self._is_behind:
            self.lost += 1
            return
        try:
            is_told = self._tell(node, groups, state)
            for outcome in outcomes:
                is_told = is_told and self._send(b"J", _outcome(outcome))
        except (ValueError, TypeError, OverflowError, WrongRange):
            is_told = False  # figures that nobody can have
        if is_told:
            self._base = self.number
        else:
            self.lost += 1
            self.fall_behind(node.seconds)

    def line(self, line: bytes) -> None:
        """Of the decision journal, with its newline."""
        if self._end is not None and not self.is_other and not self._send(b"L", line[:-1]):
            self.lost += 1

    def bye(self) -> None:
        """Tell the recorder that the guard ends."""
        self._send(b"J", b'{"t":"bye"}')

    def fall_behind(self, now: float) -> None:
        """Something was not told: it is told everything anew before the next tick."""
        self._is_behind, self._due = True, now + AGAIN_SECONDS
        self._named.clear()

    # --- datagrams ----------------------------------------------------------------------------

    def _tell(self, node: Node, groups: Mapping[str, Group], state: str) -> bool:
        base = self._base if groups else 0
        if len(self._told) < _room_of(len(groups)):
            self._told = bytearray(b"\1" * _room_of(len(groups) * 5 // 4))
        rows, is_other = self._put_rows(groups)
        if not self._send_names():
            return False
        at, told = TICK.size + rows * ROW.size, self._told
        ordered = len(groups) if is_other or not base else 0
        if ordered:
            for path in groups:
                INDEX.pack_into(told, at, self._kept[path].index)
                at += INDEX.size
        text = json.dumps(node).encode()
        looked = _unix_seconds(node.seconds)
        TICK.pack_into(told, 0, STATES.index(state), looked, base, rows, ordered)
        end = at + len(text)
        if end > len(told):
            raise ValueError("a node of absurd length")
        told[at:end] = text
        with memoryview(told) as view, view[:end] as whole:
            return self._send(b"T", whole)

    def _put_rows(self, groups: Mapping[str, Group]) -> tuple[int, bool]:
        """How many have changed, and whether others are there than before, or in another order."""
        kept, told, at = self._kept, self._told, TICK.size
        rows, is_other = 0, False
        for path, group in groups.items():
            row, one = _ROW_FIELDS(group), kept.get(path)
            if one is None or one.group is not group:
                is_other = True
                self._last_index += 1
                one = kept[path] = _Kept(self._last_index, group)
            elif row == one.row:
                continue
            if not one.row or _row_names(row) != _row_names(one.row):
                self._named.append(_names_line(one.index, group))
                if len(self._named) == _NAMES_MOST and not self._send_names():
                    raise ValueError("no room for names")
            one.row = row
            _put_row(told, at, one.index, row)
            at += ROW.size
            rows += 1
        if len(kept) != len(groups):
            is_other = True
            for path in [path for path in kept if path not in groups]:
                del kept[path]
        return rows, is_other

    def _send(self, kind: bytes, whole: bytes | memoryview) -> bool:
        """In parts; False: it has no room for it now, or is gone."""
        last = max(0, len(whole) - 1) // PART_MOST_BYTES
        for part in range(last + 1):
            at = part * PART_MOST_BYTES
            piece = whole[at : at + PART_MOST_BYTES]
            if not self._send_part(kind, part, piece, is_last=part == last):
                return False
        return True

    def _send_pieces(self, head: str, mind: Iterable[str]) -> bool:
        """In parts, of which none is kept."""
        told, part = bytearray(head.encode()), 0
        for piece in mind:
            told += piece.encode()
            if len(told) >= _STREAMED_BYTES:
                if not self._send_part(b"J", part, told, is_last=False):
                    return False
                told.clear()
                part += 1
        told += b"}"
        return self._send_part(b"J", part, told, is_last=True)

    def _send_names(self) -> bool:
        if not self._named:
            return True
        names = f'{{"t":"names","rows":[{",".join(self._named)}]}}'
        self._named.clear()
        return self._send(b"J", names.encode())

    def _send_part(
        self, kind: bytes, part: int, piece: bytes | bytearray | memoryview, *, is_last: bool
    ) -> bool:
        if self._end is None:
            return False
        try:
            self._end.sendmsg((PART.pack(kind, part, is_last, self.number), piece), (), _NOW)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as refused:
            if refused.errno != errno.ENOBUFS:
                self.close()
            return False
        return True

    def _widen(self) -> None:
        """As much as a recorder may leave unread for some seconds."""
        if self._end is None:
            return
        for option in (_SO_SNDBUFFORCE, socket.SO_SNDBUF):
            try:
                self._end.setsockopt(socket.SOL_SOCKET, option, _SEND_BUFFER_BYTES)
            except OSError:
                continue
            return


def _room_of(groups: int) -> int:
    return TICK.size + groups * (ROW.size + INDEX.size) + _NODE_MOST_BYTES


def _unix_seconds(looked: float) -> float:
    """Of a look: what followed from it was done before it is told, and a kill takes a while."""
    late = time.monotonic() - looked
    return time.time() - (late if 0.0 <= late <= LATE_MOST_SECONDS else 0.0)


def _head(settings: Settings, last_decision: str) -> str:
    """Of ``start``, up to the policy state."""
    last = json.dumps(last_decision)
    return f'{{"t":"start","settings":{to_json(settings)},"last_decision":{last},"mind":'


def _outcome(outcome: Outcome) -> bytes:
    return f'{{"t":"outcome","outcome":{json.dumps(outcome)}}}'.encode()


# One group as the recorder is told of it: its figures in a row, its names as JSON.

_ROW_FIGURES: Final = 17
_ROW_OUTSIDE: Final = 7
_ROW_FIELDS: Final = attrgetter(
    "charge_bytes", "swapped_bytes", "swap_cached_bytes", "charge_slope", "limit_bytes",
    "request_bytes", "gives_back_bytes", "outside", "outside_slope", "adj", "class_rank",
    "processes", "started_seconds", "at_limit_seconds", "events_max", "stall",
    "progress_per_second", "name", "pod", "protected_by", "hopeless_why",
)  # fmt: skip
"""Of a group: first the figures, then the names."""


def _put_row(told: bytearray, at: int, index: int, row: tuple[Any, ...]) -> None:
    """A ROW of what ``FIELDS`` gave."""
    (
        charge, swapped, swap_cached, charge_slope, limit, request, gives_back, outside,
        outside_slope, adj, rank, processes, started, at_limit, events, stall, progress, *_
    ) = row  # fmt: skip
    ROW.pack_into(
        told, at, index, charge, NONE if swapped is None else swapped, swap_cached, charge_slope,
        NONE if limit is None else limit,
        NONE if request is None else request,
        NONE if gives_back is None else gives_back,
        outside[0], outside[1], outside[2], outside_slope,
        NONE if adj is None else adj, rank,
        NONE if processes is None else processes,
        started, at_limit, events, stall,
        progress is not None, 0.0 if progress is None else progress,
    )  # fmt: skip


def _row_names(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of what ``FIELDS`` gave, what is no figure."""
    return (*row[_ROW_FIGURES:], row[_ROW_OUTSIDE][3])


def _names_line(index: int, group: Group) -> str:
    """What an index means from here on, as JSON."""
    return json.dumps(
        (index, group.path, group.inode, group.name, group.pod, group.protected_by,
         group.hopeless_why, group.outside.sources)
    )  # fmt: skip
