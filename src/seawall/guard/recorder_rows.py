# SPDX-License-Identifier: Apache-2.0
"""One group as the recorder is told of it: its figures in a row, its names as JSON."""

import json
from _operator import attrgetter
from typing import Any, Final

from seawall.guard.recorder_wire import NONE, ROW
from seawall.guard.tick_facts import Group

_FIGURES: Final = 17
_OUTSIDE: Final = 7
FIELDS: Final = attrgetter(
    "charge_bytes", "swapped_bytes", "swap_cached_bytes", "charge_slope", "limit_bytes",
    "request_bytes", "gives_back_bytes", "outside", "outside_slope", "adj", "class_rank",
    "processes", "started_seconds", "at_limit_seconds", "events_max", "stall",
    "progress_per_second", "name", "pod", "protected_by", "hopeless_why",
)  # fmt: skip
"""Of a group: first the figures, then the names."""


def put(told: bytearray, at: int, index: int, row: tuple[Any, ...]) -> None:
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


def names_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of what ``FIELDS`` gave, what is no figure."""
    return (*row[_FIGURES:], row[_OUTSIDE][3])


def named(index: int, group: Group) -> str:
    """What an index means from here on, as JSON."""
    return json.dumps(
        (index, group.path, group.inode, group.name, group.pod, group.protected_by,
         group.hopeless_why, group.outside.sources)
    )  # fmt: skip
