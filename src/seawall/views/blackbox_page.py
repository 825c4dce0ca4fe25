# SPDX-License-Identifier: Apache-2.0
"""What the views of a black box show, as values."""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from seawall.blackbox.overview import BootSummary

ROWS_SHOWN: Final = 40


class BoxEvent(NamedTuple):
    """Something that was decided or said; it stands between the rows."""

    unix_seconds: float
    boot_id: str
    tick: int
    """Number of the guard's tick, as its datagrams and its journal have it."""
    kind: str
    """verdict, outcome, told, event: of the guard; kernel: its log; kill: the kernel's count."""
    decision: str
    """Its id; empty: none."""
    words: str

    @property
    def speaker(self) -> str:
        """``kernel``, or ``guard`` with the id of its decision."""
        return "kernel" if self.kind in ("kernel", "kill") else f"guard {self.decision}".rstrip()


class BoxRow(NamedTuple):
    """The node at one of the guard's ticks."""

    unix_seconds: float
    tick: int
    """Number of the guard's tick."""
    state: str
    """Peace, near, blind, short or holding."""
    headroom_bytes: int
    """What programs can still have before reclaim hurts."""
    residual_bytes: int | None
    """Uncounted memory."""
    growth_bytes_per_second: float
    """Of uncounted memory."""
    stall: float
    """0 to 1, of the workload that is protected and stands still most."""
    leader: str
    """Who has most, its uncounted memory included; empty: nobody is known."""
    leader_bytes: int
    leader_outside_bytes: int
    """Of them, what no cgroup counts."""


class BoxPage(NamedTuple):
    """What ``seawall blackbox list`` shows: the file, its boots, its events."""

    path: str
    size_bytes: int
    """Of the file."""
    torn: int
    """Frames whose checksum is wrong."""
    missing_bytes: int
    """So much shorter is the file than it was made: a copy that was cut."""
    boots: Sequence[BootSummary]
    """In the order in which they were written."""
    events: Sequence[BoxEvent]
    """Decisions and kills."""


class ShowPage(NamedTuple):
    """What ``seawall blackbox show`` shows of a stretch of time: ticks, events, notes."""

    path: str
    first_unix_seconds: float
    last_unix_seconds: float
    rows: Sequence[BoxRow]
    """Each tick that the box holds of this time."""
    events: Sequence[BoxEvent]
    notes: Sequence[str]
    """What has to be known before a number is believed."""


class NodeMoment(Protocol):
    """The node at one moment."""

    @property
    def unix_seconds(self) -> float:
        """When it was looked at."""

    @property
    def headroom_bytes(self) -> int | None:
        """What programs could still have; None: it was not seen then."""


Moment = TypeVar("Moment", bound=NodeMoment)


def thinned(rows: Sequence[Moment], most: int = ROWS_SHOWN) -> list[Moment]:
    """At most so many, spread over the time: of each part the one with the least headroom, and
    always the first and the last.
    """
    if len(rows) <= most:
        return list(rows)
    first, last = rows[0].unix_seconds, rows[-1].unix_seconds
    step = max((last - first) / (most - 2), 1e-9)
    worst: dict[int, Moment] = {}
    for row in rows[1:-1]:
        part = max(0, min(int((row.unix_seconds - first) / step), most - 3))
        if part not in worst or _headroom(row) < _headroom(worst[part]):
            worst[part] = row
    return [rows[0], *(worst[part] for part in sorted(worst)), rows[-1]]


def _headroom(row: NodeMoment) -> float:
    return math.inf if row.headroom_bytes is None else row.headroom_bytes


def woven(rows: Iterable[BoxRow], events: Iterable[BoxEvent]) -> list[BoxRow | BoxEvent]:
    """Both by time; of the same moment the row comes first."""
    marked: list[tuple[float, int, BoxRow | BoxEvent]] = [
        (row.unix_seconds, 0, row) for row in rows
    ]
    marked += [(event.unix_seconds, 1, event) for event in events]
    return [item for _, _, item in sorted(marked, key=lambda entry: entry[:2])]
