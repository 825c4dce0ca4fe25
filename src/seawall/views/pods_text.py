# SPDX-License-Identifier: Apache-2.0
"""``seawall pods`` as text: what needs a look first, then one line a workload."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from seawall.accounts.entitlements import Entitlement
from seawall.accounts.pods.pod_danger import Danger, attention_of, danger_of
from seawall.accounts.pods.pod_kills import coverage_of
from seawall.accounts.pods.pod_table import PodKills, PodRow, PodTable, Room
from seawall.accounts.workloads import Workload
from seawall.readings.reading import Unlimited
from seawall.views.pods_choice import PodRows
from seawall.views.pods_columns import (
    COLUMNS,
    HEX_ID,
    Column,
    Value,
    has_no_name,
    holding_of,
    is_pods,
)
from seawall.views.pods_columns import column as column_of
from seawall.views.terminal import Console, plain, shorten
from seawall.words import brief, duration, percent, size

ENDANGERED_SHOWN: Final = 5
NAME_LEAST: Final = 30
BAR_WIDTH: Final = 8
_BLANK: Final = "   "
_HEX_SHOWN: Final = 12
_GAP: Final = 2
_PARENTS_NAMED: Final = 3
_NOTABLE_BYTES: Final = 1 << 20
_MARKS: Final = {"critical": "!! ", "warning": "!  "}
_MEANINGS: Final = {
    "distance": "LEFT to the tightest limit, its own or one above (max: no limit)",
    "uncounted": "UNCOUNTED held by it, in no cgroup's charge (seawall memory: by what)",
    "really": "REALLY CHARGE and UNCOUNTED",
    "working_set": "WSET what the kubelet ranks by",
    "cache": "CACHE file pages without shmem",
    "reclaimable": "CLEAN cache that can be dropped at once",
    "dirty": "DIRTY waits to be written",
    "pressure": "STALL of the last 10 s waiting for memory",
    "oom_kills": "KILLS by the OOM killer since it began, in it and below",
    "limit_hits": "HITS at its limit since it began",
}


def lines(
    table: PodTable, chosen: PodRows, paper: Console,
    asked: Mapping[str, Entitlement] | None = None,
    processes: Mapping[str, str] | None = None,
) -> Iterator[str]:  # fmt: skip
    """Everything between the heading and "Could not see"; every column and the requests with
    ``asked``.  ``processes``: by cgroup, the name of its largest one, for cgroups that have none.
    """
    yield from _headline(table, chosen, paper)
    yield ""
    if not chosen.rows:
        yield "No workload whose memory is counted."
        return
    used = [
        column for column in COLUMNS
        if _has_news(column, chosen) or (asked is not None and column.is_always_wide)
    ]  # fmt: skip
    names = [row_name(row.workload, processes or {}) for row in chosen.rows]
    has_bar = paper.colour and any(_shares(row) for row in chosen.rows)
    columns = used if asked is not None else _fitting(used, chosen, paper, names, has_bar=has_bar)
    page = paper if asked is None else Console(width=1 << 20, colour=paper.colour)
    requests = [request((asked or {}).get(row.workload.cgroup)) for row in chosen.rows]
    last = requests if any(requests) else []
    yield from _table(columns, chosen, page, names, last, has_bar=has_bar)
    if chosen.left_out:
        yield f"   and {chosen.left_out} more: --limit 0"
    yield ""
    yield from _legend(used, columns, table, chosen, paper, has_bar=has_bar)


def _headline(table: PodTable, chosen: PodRows, paper: Console) -> Iterator[str]:
    """Before the table: a reader at three in the morning reads one line."""
    looked = chosen.looked_at()
    restarted = set(map(id, chosen.restarted))
    found = [
        (row, danger) for row in looked
        if (danger := danger_of(row) if id(row) in restarted else attention_of(row))
    ]  # fmt: skip
    found.sort(key=lambda pair: (pair[1].level != "critical", -(pair[0].own.charge or 0)))
    if found:
        verb = "needs" if len(found) == 1 else "need"
        head = f"{len(found)} of {_workloads(len(looked))} {verb} a look:"
        yield paper.paint(head, found[0][1].level)
    elif looked:
        yield f"None of {_workloads(len(looked))} needs a look."
    for row, danger in found[:ENDANGERED_SHOWN]:
        words = danger_words(row, danger)
        name = shorten(plain(row.workload.name), max(paper.width - 7 - len(words), 20))
        yield paper.paint(f"  {_MARKS[danger.level]}{name}: {words}", danger.level)
    if len(found) > ENDANGERED_SHOWN:
        yield f"     and {len(found) - ENDANGERED_SHOWN} more, marked below"
    if looked:
        yield from (paper.paint(line, "dim") for line in paper.wrap(_looked_at(table, looked)))
    elsewhere = table.elsewhere
    if elsewhere is not None and elsewhere.gone and not chosen.is_part:
        yield from paper.wrap(
            f"Beside these, {_kills(elsewhere.gone)} in cgroups that are gone{_last(elsewhere)}: "
            "seawall oom explain"
        )


def _looked_at(table: PodTable, rows: Sequence[PodRow]) -> str:
    """Nothing is said to be well that was not measured."""
    known = coverage_of(rows)
    of = f"of {known.workloads}"
    parts = [f"limits {known.limits} {of}"]
    if known.kills:
        gone = ""
        if known.gone < known.workloads:
            gone = " (not in cgroups that are gone: the kernel log could not be read)"
        elif table.version == 1:
            gone = " (in cgroups that are gone: at least those of the kernel log)"
        parts.append(f"OOM kills {known.kills} {of}{gone}")
    else:
        parts.append("OOM kills: not counted by this kernel (Linux 4.13 and later do)")
    if known.stalls:
        parts.append(f"stalls {known.stalls} {of}")
    else:
        why = "on cgroup v1" if table.version == 1 else "here (PSI is off, or Linux before 4.20)"
        parts.append(f"stalls: not measured {why}")
    return f"Looked at: {'; '.join(parts)}."


def _workloads(number: int) -> str:
    return "1 workload" if number == 1 else f"{number} workloads"


def _kills(number: int) -> str:
    return f"{number:,} OOM kill{'s' if number != 1 else ''}"


def _last(kills: PodKills) -> str:
    ago = kills.last_seconds_ago
    return "" if ago is None else f", the last {duration(ago)} ago"


def danger_words(row: PodRow, danger: Danger) -> str:
    """``12.0 MiB left of 512 MiB``: why this row needs a look."""
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
    return kill_words(row)


def kill_words(row: PodRow) -> str:
    """How many, now and since it began; those of cgroups below that are gone by the log."""
    kills = row.kills or PodKills(counted=row.memcg.oom_kill)
    total = kills.total or 0
    # The kernel names the cgroup in ten reports in 5 s at most, and its log is overwritten.
    words = f"at least {_kills(total)}" if kills.gone else f"{_kills(total)} since it began"
    if kills.in_window:
        seconds = kills.window_seconds
        span = "while looked at" if seconds is None else f"in the last {seconds:.1f} s"
        return f"{words}, {kills.in_window:,} {span}"
    return words + _last(kills)


def row_name(workload: Workload, processes: Mapping[str, str]) -> str:
    """What a row is called: an address; an id of hex digits says less than what runs there."""
    name = HEX_ID.sub(lambda match: match[0][:_HEX_SHOWN], workload.name)
    largest = processes.get(workload.cgroup)
    if not largest or not has_no_name(workload):
        return name
    short = name.removeprefix("container:")
    return f"{largest} in {'..' if short.count('/') > 1 else ''}{short[max(0, short.rfind('/')) :]}"


def _shares(row: PodRow) -> tuple[float, float] | None:
    """Of its own limit: what cannot be dropped, and what can."""
    limit, charge = row.limit, row.whole.charge
    if not isinstance(limit, int) or not limit or charge is None:
        return None
    clean = min(row.whole.reclaimable or 0, charge)
    return (charge - clean) / limit, clean / limit


def _bar(row: PodRow) -> str:
    shares = _shares(row)
    if shares is None:
        return ""
    full = min(BAR_WIDTH, round(shares[0] * BAR_WIDTH) or (shares[0] > 0))
    both = min(BAR_WIDTH, max(full, round(sum(shares) * BAR_WIDTH)))
    return "#" * full + "=" * (both - full) + "." * (BAR_WIDTH - both)


def _has_news(column: Column, chosen: PodRows) -> bool:
    if not column.is_quiet:
        return True
    if column.news:
        column = column_of(column.news)
    return any(column.of(row, holding_of(row, whole=chosen.whole)) for row in chosen.rows)


def _fitting(
    columns: Sequence[Column],
    chosen: PodRows,
    paper: Console,
    names: Sequence[str],
    *,
    has_bar: bool,
) -> list[Column]:
    """As many as leave room for names; the highest rank goes first."""
    kept = list(columns)
    titles = [title for title, _ in _totals(chosen)]
    longest = max(len(plain(name)) + len(_BLANK) for name in (*names, *titles))
    need = min(longest, NAME_LEAST) + (BAR_WIDTH + _GAP if has_bar else 0)
    while len(kept) > 1:
        widths = (max(map(len, _cells_of(column, chosen))) + _GAP for column in kept)
        if paper.width - sum(widths) >= need:
            break
        kept.remove(max(kept, key=lambda column: column.rank))
    return kept


def _cells_of(column: Column, chosen: PodRows) -> list[str]:
    cells = [
        cell(column, column.of(row, holding_of(row, whole=chosen.whole))) for row in chosen.rows
    ]
    totals = [_total(column, chosen, of_pods=of_pods) for _, of_pods in _totals(chosen)]
    return [column.title, *cells, *totals]


def _total(column: Column, chosen: PodRows, *, of_pods: bool | None) -> str:
    return cell(column, chosen.total(column, of_pods=of_pods)) if column.is_summed else ""


def cell(column: Column, value: Value) -> str:
    """``?`` is unknown, ``max`` no limit."""
    if value is None:
        return "?"
    if isinstance(value, Unlimited):
        return "max"
    if column.unit == "bytes":
        return brief(int(value))
    return percent(value).replace(" ", "") if column.unit == "fraction" else f"{value:,}"


def request(asked: Entitlement | None) -> str:
    """``1.9G``, or ``1.9G-2.1G`` where it is known no better; empty where it is unknown."""
    if asked is None or asked.memory_request is None:
        return ""
    least, most = map(brief, asked.memory_request)
    return least if least == most else f"{least}-{most}"


def _table(
    columns: Sequence[Column], chosen: PodRows, paper: Console, names: Sequence[str],
    requests: Sequence[str], *, has_bar: bool,
) -> Iterator[str]:  # fmt: skip
    dangers = [danger_of(row) for row in chosen.rows]
    body = [
        [
            (_MARKS[danger.level] if danger else _BLANK) + name,
            *(cell(c, c.of(row, holding_of(row, whole=chosen.whole))) for c in columns),
        ]
        for row, danger, name in zip(chosen.rows, dangers, names, strict=True)
    ]
    totals = [
        [f"{_BLANK}{title}", *(_total(c, chosen, of_pods=of_pods) for c in columns)]
        for title, of_pods in _totals(chosen)
    ]
    head = [f"{_BLANK}WORKLOAD", *(column.title for column in columns)]
    blanks = [""] * len(totals)
    if requests:
        for cells, last_cell in zip(
            [head, *body, *totals], ["REQ", *requests, *blanks], strict=True
        ):
            cells.append(last_cell or "?")
        for total in totals:
            total[-1] = ""
    if has_bar:
        bars = [f"{_bar(row):{BAR_WIDTH}}" for row in chosen.rows]
        for cells, bar in zip([head, *body, *totals], ["OF LIMIT", *bars, *blanks], strict=True):
            cells.append(bar)
    first, *rest = paper.table(head, [*body, *totals])
    yield paper.paint(first, "dim")
    for line, danger in zip(rest, [*dangers, *([None] * len(totals))], strict=False):
        yield paper.paint(line, danger.level) if danger else line


def _totals(chosen: PodRows) -> list[tuple[str, bool | None]]:
    """Pods and the host's own are never one sum."""
    pods = sum(map(is_pods, chosen.leaves))
    rest = len(chosen.leaves) - pods
    if not pods or not rest:
        return [(f"TOTAL of {len(chosen.leaves)}", None)]
    return [(f"TOTAL of {pods} in pods", True), (f"TOTAL of {rest} of the host", False)]


def _beside_rows(table: PodTable) -> str:
    """Charges of no row; empty when there are none worth a word."""
    parents, root = table.parents_own or 0, table.root_own or 0
    parts = []
    if parents >= _NOTABLE_BYTES:
        parts.append(f"{size(parents)} to parents alone (removed cgroups, what is shared)")
    if root >= _NOTABLE_BYTES:
        parts.append(f"{size(root)} to the root, by processes in no other cgroup")
    return f"Charged beside these: {', '.join(parts)}." if parts else ""


def _legend(
    used: Sequence[Column], shown: Sequence[Column], table: PodTable, chosen: PodRows,
    paper: Console, *, has_bar: bool,
) -> Iterator[str]:  # fmt: skip
    if chosen.whole:
        yield from paper.wrap("Parents hold their children; the total counts each byte once.")
    nested = sum(bool(row.nested) for row in chosen.rows if row.is_leaf)
    if nested and not chosen.whole:
        yield from paper.wrap(f"{nested} of them without the workloads inside them.")
    if chosen.undivided and not chosen.whole:
        names = ", ".join(plain(row.workload.name) for row in chosen.undivided[:_PARENTS_NAMED])
        more = len(chosen.undivided) - _PARENTS_NAMED
        yield from paper.wrap(
            f"With all that is in them, for whose in it UNCOUNTED is cannot be told: {names}"
            f"{f' and {more} more' if more > 0 else ''}. Their CHARGE is in the rows of those."
        )
    if not chosen.is_part:
        beside = _beside_rows(table)
        yield from paper.wrap(beside) if beside else ()
    words = [_MEANINGS[c.key] for c in shown if c.key in _MEANINGS]
    if has_bar:
        words.append("bar: # of the limit cannot be dropped, = can")
    missing = [column.title for column in used if column not in shown]
    if missing:
        words.append(f"--wide: {', '.join(missing)}")
    yield from (paper.paint(line, "dim") for line in paper.wrap("; ".join(words) + "."))
