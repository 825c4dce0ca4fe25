# SPDX-License-Identifier: Apache-2.0
"""A group as a row of plain values, and back: what a tick frame counts differences in."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from seawall.guard.tick_facts import NOTHING_OUTSIDE, Group, Outside
from seawall.host.host import JSON
from seawall.replay.typed_codec import INT_MOST, codec_of, short_repr, write_float

Row: TypeAlias = tuple[Any, ...]
_TEXT: Final = codec_of(str).read
_FLOAT: Final = codec_of(float).read
_INT: Final = codec_of(int).read
_INT_OR_NONE: Final = codec_of(int | None).read
_FLOAT_OR_NONE: Final = codec_of(float | None).read
_READERS: Final[dict[str, Callable[[JSON], Any]]] = {
    "path": _TEXT, "inode": _INT, "name": _TEXT, "pod": _TEXT, "charge_bytes": _INT,
    "swapped_bytes": _INT_OR_NONE, "swap_cached_bytes": _INT,
    "charge_slope": _FLOAT, "limit_bytes": _INT_OR_NONE, "request_bytes": _INT_OR_NONE,
    "gives_back_bytes": _INT_OR_NONE, "certain_bytes": _INT, "likely_bytes": _INT,
    "most_bytes": _INT, "sources": _TEXT, "outside_slope": _FLOAT, "adj": _INT_OR_NONE,
    "class_rank": _INT, "protected_by": _TEXT, "processes": _INT_OR_NONE,
    "started_seconds": _FLOAT, "at_limit_seconds": _FLOAT, "events_max": _FLOAT,
    "stall": _FLOAT, "progress_per_second": _FLOAT_OR_NONE, "hopeless_why": _TEXT,
}  # fmt: skip
COLUMNS: Final = tuple(_READERS)
READERS: Final = tuple(_READERS.values())
PATH: Final = COLUMNS.index("path")
WHOLE: Final = frozenset(
    at for at, read in enumerate(READERS) if read in (_INT, _INT_OR_NONE)
)  # fmt: skip
"""Columns of whole numbers: written as what they differ by."""
_SLOPES: Final = frozenset(
    COLUMNS.index(name)
    for name in ("charge_slope", "outside_slope", "at_limit_seconds", "events_max", "stall",
                 "progress_per_second")
)  # fmt: skip
_DIGITS: Final = 6


def row_of(group: Group) -> Row:
    """In the order of COLUMNS."""
    outside = group.outside
    return (
        group.path, group.inode, group.name, group.pod, group.charge_bytes, group.swapped_bytes,
        group.swap_cached_bytes, group.charge_slope, group.limit_bytes, group.request_bytes,
        group.gives_back_bytes, outside.certain_bytes, outside.likely_bytes, outside.most_bytes,
        outside.sources, group.outside_slope, group.adj, group.class_rank, group.protected_by,
        group.processes, group.started_seconds, group.at_limit_seconds, group.events_max,
        group.stall, group.progress_per_second, group.hopeless_why,
    )  # fmt: skip


def group_of(row: Sequence[Any]) -> Group:
    """The same again; without uncounted memory, ``NOTHING_OUTSIDE`` itself saves memory."""
    made: Group = Group.__new__(Group)
    (
        made.path, made.inode, made.name, made.pod, made.charge_bytes, made.swapped_bytes,
        made.swap_cached_bytes, made.charge_slope, made.limit_bytes, made.request_bytes,
        made.gives_back_bytes, certain, likely, most, sources, made.outside_slope, made.adj,
        made.class_rank, made.protected_by, made.processes, made.started_seconds,
        made.at_limit_seconds, made.events_max, made.stall, made.progress_per_second,
        made.hopeless_why,
    ) = row  # fmt: skip
    is_nothing = not (certain or likely or most or sources)
    made.outside = NOTHING_OUTSIDE if is_nothing else Outside(certain, likely, most, sources)
    return made


def rounded(row: Row) -> Row:
    """Slopes and shares to six digits: for peace, where they decide nothing."""
    return tuple([round_off(v) if at in _SLOPES else v for at, v in enumerate(row)])


def round_off(value: float | None) -> float | None:
    """The number rounded to six significant digits; None and infinities stay."""
    if value is None or not math.isfinite(value):
        return value
    return float(f"{value:.{_DIGITS}g}")


def row_json(row: Row) -> list[JSON]:
    """The row for JSON: floats as ``write_float`` has them, infinities as words."""
    return [write_float(value) if isinstance(value, float) else value for value in row]


def read_row(values: JSON) -> list[Any]:
    """ValueError unless each column is what it has to be."""
    if not isinstance(values, list) or len(values) != len(READERS):
        raise ValueError(f"expected {len(READERS)} values of a group, found {short_repr(values)}")
    return [read(value) for read, value in zip(READERS, values, strict=True)]


def change_json(at: int, was: Any, now: Any) -> JSON:
    """Of column ``at``: whole numbers as their difference, or in a list what there is now."""
    if at in WHOLE:
        return [now] if was is None or now is None else now - was
    return write_float(now) if isinstance(now, float) else now


def apply_change(at: int, was: Any, change: JSON) -> Any:
    """What ``change_json`` meant; ValueError."""
    if at not in WHOLE:
        return READERS[at](change)
    if isinstance(change, list):
        if len(change) != 1:
            raise ValueError(f"expected one value in a list, found {len(change)}")
        return READERS[at](change[0])
    if type(change) is not int or type(was) is not int or abs(was + change) > INT_MOST:
        raise ValueError(f"expected a difference to {short_repr(was)}, found {short_repr(change)}")
    return was + change
