# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox show`` as text: what the node was like, row by row, and what was decided."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, Final

from seawall.blackbox.record_times import rfc3339_of
from seawall.views.blackbox_page import BoxEvent, BoxRow, ShowPage, thinned, woven
from seawall.views.terminal import Console, plain
from seawall.views.why_text import heading
from seawall.words import count, duration, percent, size

_HEAD: Final = ("time", "state", "headroom", "uncounted", "growth/s", "stall", "most memory")
_WIDTHS: Final = (8, 7, 8, 9, 9, 5)
_LEFT: Final = 2
_GAP: Final = "  "
_EVENT_INDENT: Final = "          "
_EVENTS_SHOWN: Final = 30
_STYLES: Final = {"short": "critical", "holding": "warning", "near": "warning", "blind": "warning"}
_LEADER_LEAST: Final = 8
_MARKS: Final = {"kernel": "kernel:", "kill": "kernel:", "event": "guard:"}


def lines(top: dict[str, Any], page: ShowPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """The lines of ``seawall blackbox show``; ``whole``: every tick and event, not a selection."""
    yield from heading(top, paper)
    yield from paper.wrap(_span_words(page), "  ")
    for note in page.notes:
        yield from paper.wrap(f"note: {note}", "      ", "")
    yield ""
    rows = list(page.rows) if whole else thinned(page.rows)
    events = list(page.events) if whole else list(page.events)[-_EVENTS_SHOWN:]
    if not rows and not events:
        yield "Nothing was recorded in this time."
        return
    head = (_HEAD[0].ljust(len("10:00:31.4")) if whole else _HEAD[0], *_HEAD[1:-1])
    yield paper.paint(_cells(head) + _HEAD[-1], "bold")
    for item in woven(rows, events):
        if isinstance(item, BoxRow):
            yield paper.paint(_row(item, paper, whole=whole), _STYLES.get(item.state, "dim"))
        else:
            yield from _event(item, paper)
    yield ""
    yield from paper.wrap(_end_words(page, rows, len(page.events) - len(events)))


def clock(unix_seconds: float, *, tenths: bool = False) -> str:
    """``10:00:31`` in UTC; with tenths ``10:00:31.4``."""
    moment = datetime.fromtimestamp(unix_seconds, timezone.utc)
    return moment.strftime("%H:%M:%S") + (f".{moment.microsecond // 100_000}" if tenths else "")


def _span_words(page: ShowPage) -> str:
    first, last = rfc3339_of(page.first_unix_seconds), rfc3339_of(page.last_unix_seconds)
    day = last[:10]
    if first.startswith(day):
        times = f"{clock(page.first_unix_seconds)} to {clock(page.last_unix_seconds)}"
        return f"{times} of {day} (UTC), from {page.path}"
    return f"{first} to {last}, from {page.path}"


def _row(row: BoxRow, paper: Console, *, whole: bool) -> str:
    residual = "?" if row.residual_bytes is None else size(row.residual_bytes)
    growth = size(row.growth_bytes_per_second)
    cells = (
        clock(row.unix_seconds, tenths=whole), plain(row.state)[: _WIDTHS[1]],
        size(row.headroom_bytes), residual,
        f"+{growth}" if row.growth_bytes_per_second > 0 else growth, percent(row.stall),
    )  # fmt: skip
    begin = _cells(cells)
    return begin + _leader(row, paper.width - len(begin))


def _leader(row: BoxRow, width: int) -> str:
    if not row.leader:
        return "?"
    told = f" {size(row.leader_bytes)}"
    if row.leader_outside_bytes >= row.leader_bytes // 2 and row.leader_outside_bytes:
        told += "*"
    return _short_name(plain(row.leader), max(_LEADER_LEAST, width - len(told))) + told


def _short_name(name: str, width: int) -> str:
    """What tells it from others: of a unit its name, of a pod's container the pod, of a cgroup
    path its end; what is still too long is cut at its end.
    """
    name = name.removeprefix("unit:").removesuffix(".service")
    parts = name.split("/")
    if len(name) > width and len(parts) > 1:
        is_container = len(parts) == 3 and all(parts)  # namespace/pod/container
        pod = "/".join(parts[1:])
        name = (pod if len(pod) <= width else parts[1]) if is_container else parts[-1] or name
    return name if len(name) <= width else name[: width - 2] + ".."


def _cells(cells: tuple[str, ...]) -> str:
    """All but the last column, which is as wide as there is room."""
    parts = [
        cell.ljust(width) if at < _LEFT else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    ]
    return _GAP.join([*parts, ""])


def _event(event: BoxEvent, paper: Console) -> Iterator[str]:
    mark = _MARKS.get(event.kind) or f"guard {event.decision}:"
    style = "critical" if event.kind in ("verdict", "kill", "kernel") else "bold"
    first = f"{clock(event.unix_seconds)}  "
    for line in paper.wrap(f"> {mark} {event.words}", _EVENT_INDENT, first):
        yield paper.paint(line, style)


def _end_words(page: ShowPage, rows: list[BoxRow], left_out: int) -> str:
    ticks = len(page.rows)
    words = [f"{count(ticks)} tick{'s' if ticks != 1 else ''} of the guard"]
    if len(rows) < len(page.rows):
        seconds = (rows[-1].unix_seconds - rows[0].unix_seconds) / len(rows)
        words[0] += (
            f", of each {duration(max(1.0, seconds))} the one with the least headroom; all: --whole"
        )
    if left_out:
        words.append(f"{count(left_out)} lines before these are left out")
    if any(row.leader_outside_bytes >= max(1, row.leader_bytes // 2) for row in rows):
        words.append("*: half of it or more in no cgroup")
    return ". ".join(words) + "."
