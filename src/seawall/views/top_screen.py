# SPDX-License-Identifier: Apache-2.0
"""The screen of ``seawall top``: how long memory lasts, then workloads.  80 columns first.

Everything from the machine is written out in ASCII; only the sparkline may be drawn in blocks.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from seawall.accounts.cgroup_memory.danger_thresholds import (
    CLOSE_FRACTION,
    NEAR_FRACTION,
    STALL_FRACTION,
)
from seawall.accounts.live_view.live_history import LiveRow, UncountedSource
from seawall.accounts.live_view.live_sample import NodeSample
from seawall.readings.reading import Unlimited
from seawall.views.screen_cells import Segment, ascii_only
from seawall.views.terminal import plain, shorten
from seawall.views.top_state import SORTS, TopState
from seawall.words import brief, counted, duration, percent, size

WIDTH_LEAST: Final = 20
HEIGHT_LEAST: Final = 6
_SPARK_MOST: Final = 60
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_MARKS: Final = " _.-:=+*#"
_NAME_LEAST: Final = 16
_NAME_ENOUGH: Final = 30
_WIDE: Final = 60
"""Columns; on less a name is cut before numbers are left out."""
_BEFORE_NAME: Final = 4
"""What points at the chosen row, a mark of two, a space."""
_BAR: Final = "OF LIMIT"
_BAR_LEAST: Final = 8
_BAR_MOST: Final = 30
_SOON_SECONDS: Final = 60.0
_LONG_SECONDS: Final = 300.0
"""The pace of ten seconds foretells no more."""
_NOTABLE_GROWTH: Final = 4096.0

HELP: Final = (
    "Keys",
    "  c u g s k n   sort by charge, uncounted, growth, stall, kills, name",
    "  r             the other way round",
    "  / TEXT Enter  only workloads with TEXT in their name; Esc: all again",
    "  arrows, PgUp, PgDn, Home, End   choose a workload; Esc: none",
    "  Enter         seawall why for the chosen one; q comes back",
    "  p, Space      pause: the screen stands still, the minute goes on",
    "  Ctrl-L        draw all of it again",
    "  q, Ctrl-C     end",
    "Columns",
    "  CHARGE     what its cgroup counts, without the rows inside it",
    "  OF LIMIT   # cannot be dropped, = page cache that can, . free",
    "  GROWTH/S   of the charge, over the last 5 s",
    "  UNCOUNTED  held by it and in no cgroup's charge (seawall memory --who)",
    "  STALL      of the last 10 s in which it waited for memory (cgroup v2)",
    "  KILLS      by the OOM killer since it began; ! some in the last minute",
    "  ?          could not be seen",
)


class UncountedLook(NamedTuple):
    """What is known of uncounted memory, and since when."""

    node_bytes: int | None = None
    """Of the whole node, in no line of the ledger; None: not known."""
    age_seconds: float | None = None
    """None: nobody has looked yet."""
    source: UncountedSource | None = None
    """Who looked; None: nobody has yet."""
    is_whole: bool = True
    """False: some could not be seen."""
    problem: str = ""
    """Why the last look brought nothing."""


class TopPage(NamedTuple):
    """Everything that the screen is made of."""

    heading: str
    """As the first line of ``why``."""
    clock: str
    node: NodeSample
    minute: Sequence[int | None]
    """Bytes left, the newest last."""
    pace: float | None
    seconds_left: float | None
    new_kills: int | None
    watched_seconds: float
    uncounted: UncountedLook
    guard: str
    """A sentence of the guard's state; empty without one."""
    rows: Sequence[LiveRow]
    """All of them."""
    unseen: Sequence[str] = ()
    is_live: bool = True
    """False: files that somebody collected."""
    has_workloads: bool = True
    """False: nobody has looked for them yet."""
    message: str = ""
    """Said once, at the bottom."""


class Shown(NamedTuple):
    """What ``screen`` drew, for the keys."""

    lines: list[list[Segment]]
    rows: list[LiveRow]
    """In their order, all that the filter leaves."""
    height: int
    """Rows of the table that fit."""


def screen(page: TopPage, state: TopState, width: int, height: int, *, has_blocks: bool) -> Shown:
    """``height`` lines of at most ``width`` characters, or fewer where there is less to say."""
    rows = state.ordered(page.rows)
    head = list(_head(page, state, rows, width, has_blocks=has_blocks))
    room = max(1, height - 1)
    head = head[: max(1, room - 3)]
    table = max(1, room - len(head) - 1)
    at = state.settle(rows, table)
    if state.mode == "help":
        lines: list[list[Segment]] = [*head[:1], *([(text, _help_style(text))] for text in HELP)]
    else:
        columns = _columns(page, state, width)
        lines = [*head, *([_titles(columns, state, width)] if page.has_workloads else ())]
        for number, row in enumerate(rows[state.first : state.first + table], state.first):
            lines.append(_row(row, columns, width, is_chosen=number == at))
        if not rows:
            lines.append([(_nothing(page, state), "dim")])
    lines = lines[:room]
    lines += [[] for _ in range(room - len(lines))]
    lines.append(_foot(page, state, len(rows), table, width))
    return Shown(lines[:height], rows, table)


def _help_style(text: str) -> str:
    return "" if text.startswith(" ") else "bold"


def _nothing(page: TopPage, state: TopState) -> str:
    if not page.has_workloads:
        return "Workloads are being looked for."
    if page.rows and state.filter:
        return f"No workload has {state.filter!r} in its name; Esc in the table: all."
    return "No workload whose memory is counted."


# --- above the table ------------------------------------------------------------------------


def _head(
    page: TopPage, state: TopState, rows: Sequence[LiveRow], width: int, *, has_blocks: bool
) -> Iterator[list[Segment]]:
    heading = ascii_only(plain(page.heading))
    gap = width - len(heading) - len(page.clock)
    yield [(heading, "bold"), (" " * gap + page.clock if gap >= 2 else "", "dim")]
    yield _headroom_line(page, width, has_blocks=has_blocks)
    yield _stall_line(page)
    yield [("uncounted  ", "dim"), *_uncounted_words(page)]
    if page.guard:
        yield [("guard      ", "dim"), (ascii_only(plain(page.guard)), "")]
    yield _attention_line(page, state, rows, width)


def _headroom_line(page: TopPage, width: int, *, has_blocks: bool) -> list[Segment]:
    words, style = _pace_words(page)
    label = "headroom   "
    if page.node.left is None:
        return [(label, "dim"), ("could not be read: /proc/meminfo", "warning")]
    title = " last minute "
    room = width - len(label) - len(words) - len(title) - 2
    line: list[Segment] = [(label, "dim"), (words, style)]
    if room >= 10:
        spark = sparkline(page.minute, min(room, _SPARK_MOST), has_blocks=has_blocks)
        title = title.rjust(width - len(label) - len(words) - len(spark) - 2)
        line += [(title, "dim"), ("|", "dim"), (spark, style), ("|", "dim")]
    return line


def _pace_words(page: TopPage) -> tuple[str, str]:
    if not page.is_live:
        return "not told by files that stand still", "dim"
    if page.pace is None:
        return "being measured", "dim"
    rate = f"{brief(abs(page.pace))}/s"
    if page.pace == 0:
        return "steady", "good"
    if page.pace > 0:
        return f"grows {rate}", "good"
    seconds = page.seconds_left
    if seconds is None or seconds > _LONG_SECONDS:
        return f"shrinks {rate}", ""
    level = "critical" if seconds <= _SOON_SECONDS else "warning"
    return f"gone in {duration(seconds)}, at {rate}", level


def sparkline(values: Sequence[int | None], columns: int, *, has_blocks: bool) -> str:
    """From 0 to the largest of them; nothing where nobody looked.

    >>> sparkline([None, 8, 4, 0], 4, has_blocks=False)
    ' #=_'
    """
    marks = _BLOCKS if has_blocks else _MARKS
    parts = _parts(values, columns)
    top = max((value for value in parts if value is not None), default=0)
    return "".join(
        " " if value is None else marks[1 + min(7, value * 8 // (top or 1))] for value in parts
    )


def _parts(values: Sequence[int | None], columns: int) -> list[int | None]:
    """The least of each of so many parts."""
    parts: list[int | None] = []
    for at in range(columns):
        start, end = at * len(values) // columns, (at + 1) * len(values) // columns
        known = [value for value in values[start : max(end, start + 1)] if value is not None]
        parts.append(min(known) if known else None)
    return parts


def _stall_line(page: TopPage) -> list[Segment]:
    node = page.node
    line: list[Segment] = [("stalls     ", "dim")]
    if not node.stalls:
        line.append(("not measured here (no PSI)", "dim"))
    for name, share in node.stalls.items():
        style = "critical" if share >= 0.5 else "warning" if share >= STALL_FRACTION else ""
        line += [(f"{name} ", "dim"), (f"{percent(share)}  ", style if name != "cpu" else "")]
    if node.swap_total_bytes:
        used = node.swap_total_bytes - (node.swap_free_bytes or 0)
        line += [("swap ", "dim"), (f"{brief(used)} of {brief(node.swap_total_bytes)}  ", "")]
    if page.new_kills is not None:
        span = "last minute" if page.watched_seconds >= 58 else f"{page.watched_seconds:.0f} s"
        style = "critical" if page.new_kills else ""
        line += [("OOM kills ", "dim"), (f"{page.new_kills:,}", style), (f" in {span}", "dim")]
    return line


def _uncounted_words(page: TopPage) -> Iterator[Segment]:
    look = page.uncounted
    if look.age_seconds is None:
        problem = ascii_only(plain(look.problem))
        yield (f"could not be seen: {problem}", "warning") if problem else ("asked for", "dim")
        return
    held = [row.uncounted_bytes for row in page.rows if row.uncounted_bytes]
    node = "of the node not known" if look.node_bytes is None else brief(max(look.node_bytes, 0))
    if not page.has_workloads:
        yield node, ""
    else:
        yield (
            (f"{node}, {brief(sum(held))} of it held by {counted(len(held), 'workload')}", "")
            if held
            else (f"{node}, none of it held by anybody known", "")
        )
    by = "the guard" if look.source == "guard" else "a look of its own"
    yield f"; {duration(look.age_seconds)} ago by {by}", "dim"
    if look.problem:
        yield f"; since then: {ascii_only(plain(look.problem))}", "warning"
    elif not look.is_whole:
        yield "; some could not be seen", "warning"


def _attention_line(
    page: TopPage, state: TopState, rows: Sequence[LiveRow], width: int
) -> list[Segment]:
    if not page.has_workloads:
        return [("workloads  ", "dim"), ("being looked for", "dim")]
    head = f"{len(page.rows)} workloads"
    if state.filter or state.mode == "filter":
        head = f"{len(rows)} of {head} match"
    line: list[Segment] = [(head, "bold")]
    found = [(row, danger) for row in page.rows if (danger := danger_of(row)) is not None]
    found.sort(key=lambda pair: (pair[1][0] != "critical", -(pair[0].charge_bytes or 0)))
    if page.unseen:
        line.append((f"; could not see: {ascii_only(plain(page.unseen[0]))}", "warning"))
    elif found:
        row, (level, words) = found[0]
        more = f" (+{len(found) - 1})" if len(found) > 1 else ""
        room = width - len(head) - len(words) - len(more) - 7
        name = shorten(shown_name(row), max(room, 12))
        line.append((f"  !! {name}: {words}{more}" if level == "critical"
                     else f"  ! {name}: {words}{more}", level))  # fmt: skip
    return line


def danger_of(row: LiveRow) -> tuple[str, str] | None:
    """How bad, and in words why a row must jump to the eye: as in ``pods``, and by its growth."""
    limit, held = row.limit_bytes, row.held_bytes
    if row.new_kills:
        return "critical", f"{counted(row.new_kills, 'OOM kill')} in the last minute"
    if isinstance(limit, int) and limit > 0 and held is not None:
        left = limit - held
        really = held + (row.uncounted_bytes or 0)
        if left < NEAR_FRACTION * limit:
            return "critical", f"{size(max(left, 0))} left of {size(limit)}"
        if really > limit:
            return "critical", f"really {size(really)} of {size(limit)}"
        if row.growth is not None and row.growth > 0 and left / row.growth < _SOON_SECONDS:
            return "warning", f"at its limit in {duration(left / row.growth)}"
        if left < CLOSE_FRACTION * limit:
            return "warning", f"{size(left)} left of {size(limit)}"
    if row.stall is not None and row.stall >= STALL_FRACTION:
        return "warning", f"waits for memory {percent(row.stall)} of the time"
    return None


# --- the table ------------------------------------------------------------------------------


class _Column(NamedTuple):
    title: str
    width: int
    rank: int
    """The highest leaves first where there is no room."""
    cell: Callable[[LiveRow], str]
    sort: str = ""
    has_news: Callable[[LiveRow], bool] | None = None
    """Not shown until this is true of any row, once; None: it always is."""


def _columns(page: TopPage, state: TopState, width: int) -> list[_Column]:
    """Those that have something to tell and fit beside a name."""
    columns = [
        _Column("CHARGE", 6, 0, lambda row: _bytes(row.charge_bytes), "charge"),
        _Column("LIMIT", 6, 6, lambda row: _limit(row.limit_bytes), "", _is_limited),
        _bar_column(_BAR_LEAST),
        _Column("GROWTH/S", 8, 3, lambda row: _growth(row.growth), "growth"),
        _Column("UNCOUNTED", 9, 1, lambda row: _bytes(row.uncounted_bytes), "uncounted",
                lambda row: bool(row.uncounted_bytes)),
        _Column("STALL", 5, 2, lambda row: _share(row.stall), "stall",
                lambda row: bool(row.stall)),
        _Column("KILLS", 6, 4, _kills, "kills", lambda row: bool(row.kills)),
    ]  # fmt: skip
    for column in columns:
        if column.title in state.news:
            continue
        if column.has_news is None or any(map(column.has_news, page.rows)):
            state.news.add(column.title)
    columns = [one for one in columns if one.title in state.news or one.sort == state.sort]
    longest = _longest(page.rows)
    need = min(_NAME_ENOUGH, longest) if width >= _WIDE else _NAME_LEAST
    while len(columns) > 1 and _rest(columns, width) < need:
        columns.remove(max(columns, key=lambda one: (one.sort != state.sort, one.rank)))
    spare = _rest(columns, width) - longest
    for at, column in enumerate(columns):
        if column.title == _BAR and spare > 0:
            columns[at] = _bar_column(min(_BAR_MOST, column.width + spare))
    return columns


def _bar_column(width: int) -> _Column:
    return _Column(_BAR, width, 5, lambda row: bar(row, width), "", _is_limited)


def _is_limited(row: LiveRow) -> bool:
    return isinstance(row.limit_bytes, int)


def _longest(rows: Sequence[LiveRow]) -> int:
    return max([_NAME_LEAST, *(len(shown_name(row)) for row in rows)])


def _rest(columns: Sequence[_Column], width: int) -> int:
    """What is left for names."""
    return width - _BEFORE_NAME - sum(column.width + 1 for column in columns)


def _titles(columns: Sequence[_Column], state: TopState, width: int) -> list[Segment]:
    arrow = "^" if state.is_reversed else "v"
    name = f"    WORKLOAD{arrow if state.sort == 'name' else ''}"
    line: list[Segment] = [(name.ljust(_BEFORE_NAME + _rest(columns, width)), "head")]
    for column in columns:
        is_sorted = column.sort == state.sort and column.sort
        title = f"{column.title}{arrow}" if is_sorted else column.title
        line.append((" " + title.rjust(column.width)[-column.width - 1 :], "head"))
        if len(title) > column.width:
            line[-1] = (title.rjust(column.width + 1), "head")
    return line


def _row(row: LiveRow, columns: Sequence[_Column], width: int, *, is_chosen: bool) -> list[Segment]:
    danger = danger_of(row)
    mark = "" if danger is None else "!!" if danger[0] == "critical" else "!"
    room = max(1, _rest(columns, width))
    name = shorten(shown_name(row), room)
    pointer = ">" if is_chosen else " "
    style = "chosen" if is_chosen else danger[0] if danger is not None else ""
    line: list[Segment] = [(f"{pointer}{mark:2} {name:{room}}", style)]
    line += [(" " + column.cell(row).rjust(column.width)[: column.width], style)
             for column in columns]  # fmt: skip
    return line


def shown_name(row: LiveRow) -> str:
    """Nothing in it steers a terminal, and each character takes one cell."""
    return _one_cell_each(row.name)


@lru_cache(maxsize=4096)
def _one_cell_each(name: str) -> str:
    return ascii_only(plain(name))


def bar(row: LiveRow, width: int) -> str:
    """``####==..`` of its limit; empty without one."""
    charge, limit, held = row.charge_bytes, row.limit_bytes, row.held_bytes
    if charge is None or held is None or not isinstance(limit, int) or limit <= 0:
        return ""
    full = max(0, min(width, round(held * width / limit) or (held > 0)))
    both = max(full, min(width, round(charge * width / limit)))
    return "#" * full + "=" * (both - full) + "." * (width - both)


def _kills(row: LiveRow) -> str:
    if row.kills is None:
        return "?"
    return f"{row.kills}!" if row.new_kills else f"{row.kills} "


def _share(share: float | None) -> str:
    return "?" if share is None else f"{share * 100:.0f}%"


def _growth(growth: float | None) -> str:
    if growth is None:
        return ""
    if abs(growth) < _NOTABLE_GROWTH:
        return "0"
    return f"{'+' if growth > 0 else '-'}{brief(abs(growth))}"


def _limit(limit: int | Unlimited | None) -> str:
    return "max" if isinstance(limit, Unlimited) else _bytes(limit)


def _bytes(count: float | None) -> str:
    return "?" if count is None else brief(count)


# --- below it -------------------------------------------------------------------------------


def _foot(page: TopPage, state: TopState, rows: int, height: int, width: int) -> list[Segment]:
    if state.mode == "filter":
        return [("filter: ", "bold"), (state.filter, ""), ("_", "bold"),
                ("   Enter keeps it, Esc drops it", "dim")]  # fmt: skip
    if state.mode == "help":
        return [("any key: back", "dim")]
    if page.message:
        return [(ascii_only(plain(page.message)), "warning")]
    keys = " ".join(SORTS)
    text = f"q quit  Enter why  / filter  {keys} sort  p pause  ? help"
    if width < len(text) + 12:
        text = "q quit  Enter why  ? help"
    line: list[Segment] = [(text, "dim")]
    if state.is_paused:
        line.insert(0, ("PAUSED (p goes on)  ", "warning"))
    if state.filter:
        line.insert(0, (f"filter {state.filter!r}  ", "info"))
    used = sum(len(part) for part, _ in line)
    last = min(rows, state.first + height)
    place = f"{state.first + 1}-{last} of {rows}" if rows > height else ""
    if place and used + len(place) + 2 <= width:
        line.append((place.rjust(width - used), "dim"))
    return line
