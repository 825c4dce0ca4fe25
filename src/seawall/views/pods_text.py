# SPDX-License-Identifier: Apache-2.0
"""``seawall pods`` as text: the endangered first, then one line a workload, largest first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from seawall.accounts.entitlements import Entitlement
from seawall.accounts.pod_danger import Danger, danger_of
from seawall.accounts.pod_table import PodRow, PodTable, Room
from seawall.readings.reading import Unlimited
from seawall.views.pods_choice import Chosen
from seawall.views.pods_columns import COLUMNS, Column, Value, holding_of
from seawall.views.pods_columns import column as column_of
from seawall.views.terminal import Paper, plain, shorten
from seawall.words import percent, size

ENDANGERED_SHOWN: Final = 10
NAME_LEAST: Final = 24
_GAP: Final = 2
_PARENTS_NAMED: Final = 3
_MARKS: Final = {"critical": "!! ", "warning": "!  "}
_UNITS: Final = "KMGTPE"
_MEANINGS: Final = {
    "limit": "LIMIT its own (max: none)",
    "distance": "LEFT to the tightest limit, its own or one above",
    "outside": "OUTSIDE held by it and charged to no cgroup (seawall memory: by what)",
    "really": "REALLY the sum of CHARGE and OUTSIDE",
    "working_set": "WSET charge less inactive file, what the kubelet ranks by",
    "cache": "CACHE file pages without shmem",
    "reclaimable": "CLEAN cache that can be dropped at once",
    "dirty": "DIRTY waits to be written",
    "pressure": "STALL of the last 10 s waiting for memory",
    "oom_kills": "KILLS by the kernel since it began",
    "limit_hits": "HITS at its limit since it began",
}


def lines(
    table: PodTable, chosen: Chosen, paper: Paper, asked: Mapping[str, Entitlement] | None = None
) -> Iterator[str]:
    """Everything between the heading and "Could not see"; every column and the requests with
    ``asked``.
    """
    yield from _endangered(chosen, paper)
    yield ""
    if not chosen.rows:
        yield "No workload whose memory is counted."
        return
    used = [
        column for column in COLUMNS
        if _has_news(column, chosen) or (asked is not None and column.is_always_wide)
    ]  # fmt: skip
    columns = _fitting(used, chosen, paper) if asked is None else used
    page = paper if asked is None else Paper(width=1 << 20, colour=paper.colour)
    requests = [request((asked or {}).get(row.workload.cgroup)) for row in chosen.rows]
    yield from _table(columns, chosen, page, requests if any(requests) else [])
    if chosen.left_out:
        yield f"{chosen.left_out} more rows (--limit N); the total counts them."
    yield ""
    yield from _legend(used, columns, table, chosen, paper)


def _endangered(chosen: Chosen, paper: Paper) -> Iterator[str]:
    """Before the table: a reader at three in the morning reads one line."""
    looked = (*chosen.leaves, *chosen.undivided)
    found = [
        (row, danger) for row in looked
        if (danger := danger_of(row)) and (row.is_leaf or danger.what == "over_outside")
    ]  # fmt: skip
    found.sort(key=lambda pair: (pair[1].level != "critical", -(pair[0].own.charge or 0)))
    if not found:
        # Not "near its limit": one that is full of cache to be dropped is near it and well.
        count = _workloads(len(looked))
        yield f"None of {count} is short of memory that it needs, stalled or killed."
        return
    worst = found[0][1].level
    verb = "needs" if len(found) == 1 else "need"
    head = f"{len(found)} of {_workloads(len(looked))} {verb} a look:"
    yield paper.paint(head, worst)
    for row, danger in found[:ENDANGERED_SHOWN]:
        words = _words(row, danger)
        name = shorten(plain(row.workload.name), max(paper.width - 7 - len(words), 20))
        yield paper.paint(f"  {_MARKS[danger.level]}{name}: {words}", danger.level)
    if len(found) > ENDANGERED_SHOWN:
        yield f"     and {len(found) - ENDANGERED_SHOWN} more, marked below"


def _workloads(number: int) -> str:
    return "1 workload" if number == 1 else f"{number} workloads"


def _words(row: PodRow, danger: Danger) -> str:
    match danger.what:
        case "under_oom":
            off = row.memcg.oom_kill_disable
            return "at its limit, " + ("and waits: OOM killer off" if off else "in an OOM kill")
        case "near_limit" if isinstance(row.room, Room):
            left = f"{size(max(row.room.grows, 0))} left of {size(row.room.limit)}"
            return left if row.room.cgroup == row.workload.cgroup else f"{left} (parent's)"
        case "over_outside":
            really, outside = row.whole.shadow_charge or 0, row.whole.uncounted or 0
            limit = row.limit if isinstance(row.limit, int) else 0
            return f"really {size(really)} of {size(limit)}, {size(outside)} uncounted"
        case "stalled":
            return f"waits for memory {percent(row.pressure or 0)} of the time"
    kills = row.memcg.oom_kill or 0
    return f"{kills} OOM kill{'s' if kills != 1 else ''} since it began"


def _has_news(column: Column, chosen: Chosen) -> bool:
    if not column.is_quiet:
        return True
    if column.news:
        column = column_of(column.news)
    return any(column.of(row, holding_of(row, whole=chosen.whole)) for row in chosen.rows)


def _fitting(columns: Sequence[Column], chosen: Chosen, paper: Paper) -> list[Column]:
    """As many as leave room for names; the highest rank goes first."""
    kept = list(columns)
    longest = max(len(plain(row.workload.name)) + 3 for row in chosen.rows)
    need = min(longest, NAME_LEAST)
    while len(kept) > 1:
        widths = (max(map(len, _cells_of(column, chosen))) + _GAP for column in kept)
        if paper.width - sum(widths) >= need:
            break
        kept.remove(max(kept, key=lambda column: column.rank))
    return kept


def _cells_of(column: Column, chosen: Chosen) -> list[str]:
    cells = [
        cell(column, column.of(row, holding_of(row, whole=chosen.whole))) for row in chosen.rows
    ]
    return [column.title, *cells, _total(column, chosen)]


def _total(column: Column, chosen: Chosen) -> str:
    return cell(column, chosen.total(column)) if column.is_summed else ""


def cell(column: Column, value: Value) -> str:
    """``?`` is unknown, ``max`` no limit."""
    if value is None:
        return "?"
    if isinstance(value, Unlimited):
        return "max"
    if column.unit == "bytes":
        return brief(int(value))
    return percent(value).replace(" ", "") if column.unit == "fraction" else f"{value:,}"


def brief(count: int) -> str:
    """Bytes in at most five characters: ``980``, ``12K``, ``3.4G``; binary units."""
    value = float(abs(count))
    sign = "-" if count < 0 else ""
    if value < 1000:
        return f"{count}"
    for unit in _UNITS:
        value /= 1024
        if value < 9.95:
            return f"{sign}{value:.1f}{unit}"
        if value < 999.5:
            return f"{sign}{value:.0f}{unit}"
    return f"{sign}{value:.0f}E"


def request(asked: Entitlement | None) -> str:
    """``1.9G``, or ``1.9G-2.1G`` where it is known no better; empty where it is unknown."""
    if asked is None or asked.memory_request is None:
        return ""
    least, most = map(brief, asked.memory_request)
    return least if least == most else f"{least}-{most}"


def _table(
    columns: Sequence[Column], chosen: Chosen, paper: Paper, requests: Sequence[str]
) -> Iterator[str]:
    dangers = [danger_of(row) for row in chosen.rows]
    body = [
        [
            (_MARKS[danger.level] if danger else "   ") + row.workload.name,
            *(cell(c, c.of(row, holding_of(row, whole=chosen.whole))) for c in columns),
        ]
        for row, danger in zip(chosen.rows, dangers, strict=True)
    ]
    total = [f"   TOTAL of {len(chosen.leaves)}", *(_total(c, chosen) for c in columns)]
    head = ["   WORKLOAD", *(column.title for column in columns)]
    if requests:
        for cells, last_cell in zip([head, *body, total], ["REQ", *requests, ""], strict=True):
            cells.append(last_cell or "?")
        total[-1] = ""
    first, *rest, last = paper.table(head, [*body, total])
    yield paper.paint(first, "dim")
    for line, danger in zip(rest, dangers, strict=True):
        yield paper.paint(line, danger.level) if danger else line
    yield paper.paint(last, "bold")


def _legend(
    used: Sequence[Column], shown: Sequence[Column], table: PodTable, chosen: Chosen, paper: Paper
) -> Iterator[str]:
    if chosen.whole:
        yield from paper.wrap("Parents hold their children; the total counts each byte once.")
    nested = sum(bool(row.nested) for row in chosen.rows if row.is_leaf)
    if nested and not chosen.whole:
        yield from paper.wrap(f"{nested} of them without the workloads inside them.")
    if chosen.undivided and not chosen.whole:
        names = ", ".join(plain(row.workload.name) for row in chosen.undivided[:_PARENTS_NAMED])
        more = len(chosen.undivided) - _PARENTS_NAMED
        yield from paper.wrap(
            f"With all that is in them, for whose in it OUTSIDE is cannot be told: {names}"
            f"{f' and {more} more' if more > 0 else ''}. Their CHARGE is in the rows of those."
        )
    if not chosen.is_part and table.parents_own is not None and table.parents_own >= 1 << 20:
        yield from paper.wrap(
            f"{size(table.parents_own)} more are charged to parents alone: removed cgroups, and "
            "what is shared."
        )
    if not chosen.is_part and table.root_own is not None and table.root_own >= 1 << 20:
        yield from paper.wrap(
            f"{size(table.root_own)} more belong to processes in no cgroup but the root."
        )
    missing = [column.title for column in used if column not in shown]
    words = "; ".join(_MEANINGS[c.key] for c in shown if c.key in _MEANINGS)
    yield from (paper.paint(line, "dim") for line in paper.wrap(words + "."))
    if missing:
        yield from paper.wrap(f"No room for {', '.join(missing)}: --wide or --json shows them.")
