# SPDX-License-Identifier: Apache-2.0
"""Many lines of one kind at once: rows of tasks, rows of slab, memory.stat, call traces.

Most lines of a report are of these.  Where they follow each other, all with a prefix as the line
before had, one expression takes them out of the block; a line that is odd in any way ends the run
and is read by itself.  The result is the same, which a test holds.
"""

import re
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from seawall.readings.oom_log.draft import ReportDraft
from seawall.readings.oom_log.memcg_block import KEYS_MOST
from seawall.readings.oom_log.oom_report import ReportSlabCache, Task
from seawall.readings.oom_log.parts import LISTED_MOST, TWICE_WITHIN
from seawall.readings.oom_log.task_table import FIELDS, LAYOUTS, ROWS_MOST

Flush = Callable[[], None]
Run = Callable[[ReportDraft, bytes, int, int, Flush], tuple[int, int]]
"""Given (draft, block, where, number of the next line): how many lines it took, where it ends.

``Flush`` gives the line before to the draft; it is called when it is sure that a run follows.
"""

_new: Final = tuple.__new__
# A name without what web pages, rsyslog or terminals put into text: those are read by themselves.
_CHARS: Final = rb"[!-\"$-%'-~]"
_NAME: Final = _CHARS + rb"(?:[ !-\"$-%'-~]{0,62}" + _CHARS + rb")?"
_PREFIX_MOST: Final = 200
_ANY: Final = re.compile(rb"[\d ]")
_TRACE: Final = (
    rb"(?: {0,2}(?:\[<[0-9a-f]{1,16}>\][^\n]{0,200}|(?:\? )?[\w.]{1,120}\+0x[^\n]{1,120}|</?TASK>)"
    rb"|Call Trace:|Workqueue: [^\n]{1,120}|R[A-Z0-9]{1,2}: [^\n]{1,120}"
    rb"|Hardware name: [^\n]{1,200}|Code: [^\n]{1,300})\n"
)
# What follows a row in a log without prefixes; anything else may be the rest of a broken row.
_AFTER_ROW: Final = rb"\[ *\d|oom-kill:|Out of mem|Memory cgroup out"
_AFTER_SLAB: Final = rb"[^\n]{1,120}\dKB\n|Tasks state"
_AFTER_STAT: Final = rb" *[a-z][a-z0-9_]{1,40} \d{1,20}\n|Tasks state|\["


def run_for(shape: str | None, raw: bytes, text: str, host: str | None) -> Run | None:
    """The run that may follow a line of that shape; None where lines are read one by one."""
    make = BY_RUNS.get(shape or "")
    if make is None or not text.isascii() or not raw.endswith(text.encode()):
        return None
    prefix = raw[: len(raw) - len(text)]
    if len(prefix) > _PREFIX_MOST:
        return None
    # Digits and blanks change from line to line, e.g. in times, but not in the host's name.
    before, name, after = prefix.partition(f" {host} ".encode()) if host else (prefix, b"", b"")
    return make(_ANY.sub(b"\0", before) + name + _ANY.sub(b"\0", after))


def _expression(shape: bytes) -> bytes:
    parts = re.split(rb"(\0+)", shape)
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [rb"[ \d]{%d}" % len(zeros) for zeros in parts[1::2]]
    return b"".join(parts)


@lru_cache(maxsize=64)
def _row_pattern(shape: bytes, columns: int) -> re.Pattern[bytes]:
    prefix = _expression(shape)
    return re.compile(
        prefix + rb"\[ *(\d{1,10})\]" + rb" +(-?\d{1,19})" * columns
        + rb" (" + _NAME + rb")\n(?=" + (prefix or _AFTER_ROW) + rb")"
    )  # fmt: skip


@lru_cache(maxsize=64)
def _task_maker(columns: tuple[str, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Puts (pid, numbers ..., name, line, None) into the order of a Task's fields."""
    given = {FIELDS[name]: place for place, name in enumerate(columns, start=1) if name in FIELDS}
    given |= {"pid": 0, "comm": len(columns) + 1, "line": len(columns) + 2}
    return itemgetter(*(given.get(field, len(columns) + 3) for field in Task._fields))


@lru_cache(maxsize=64)
def _rows(shape: bytes) -> Run:
    def run(draft: ReportDraft, data: bytes, at: int, number: int, flush: Flush) -> tuple[int, int]:
        columns, rows = draft.table.columns, draft.table.rows
        if columns not in LAYOUTS or not draft.table.has_header:
            return 0, at
        match = _row_pattern(shape, len(columns)).match
        if not match(data, at):
            return 0, at
        flush()
        if not rows or rows[-1].line != number - 1:  # the row before was not one of this table
            return 0, at
        order, first = _task_maker(columns), number
        recent = deque((row.pid for row in rows[-TWICE_WITHIN:]), maxlen=TWICE_WITHIN)
        while (found := match(data, at)) and len(rows) < ROWS_MOST:
            *texts, name = found.groups()
            pid, *numbers = map(int, texts)
            if pid in recent:
                break  # perhaps the same line twice
            recent.append(pid)
            values = order((pid, *numbers, name.decode("ascii"), number, None))
            rows.append(_new(Task, values))  # Task._make, in half of its time
            number += 1
            at = found.end()
        return number - first, at

    return run


@lru_cache(maxsize=64)
def _slab_rows(shape: bytes) -> Run:
    prefix = _expression(shape)
    match = re.compile(
        prefix + rb"([!-~]{1,80}) +(\d{1,17})KB +(\d{1,17})KB\n"
        rb"(?=" + (prefix or _AFTER_SLAB) + rb")"
    ).match

    def run(draft: ReportDraft, data: bytes, at: int, _: int, flush: Flush) -> tuple[int, int]:
        count, slab = 0, draft.kernel.slab
        known = len(slab)
        if match(data, at):
            flush()
        while len(slab) > known and (found := match(data, at)) and len(slab) < LISTED_MOST:
            name, used, total = found.groups()
            slab.append(ReportSlabCache(name.decode("ascii"), int(used) << 10, int(total) << 10))
            count += 1
            at = found.end()
        return count, at

    return run


@lru_cache(maxsize=64)
def _stats(shape: bytes) -> Run:
    prefix = _expression(shape)
    match = re.compile(
        prefix + rb" *([a-z][a-z0-9_]{1,40}) (\d{1,20})\n(?=" + (prefix or _AFTER_STAT) + rb")"
    ).match

    def run(draft: ReportDraft, data: bytes, at: int, _: int, flush: Flush) -> tuple[int, int]:
        count, values = 0, draft.memcg.values
        if values is None or not match(data, at):
            return 0, at
        known = len(values)
        flush()
        while len(values) > known and (found := match(data, at)) and len(values) < KEYS_MOST:
            values.setdefault(found[1].decode("ascii"), int(found[2]))
            count += 1
            at = found.end()
        return count, at

    return run


@lru_cache(maxsize=64)
def _trace(shape: bytes) -> Run:
    match = re.compile(b"(?:" + _expression(shape) + _TRACE + b")+").match

    def run(draft: ReportDraft, data: bytes, at: int, _: int, flush: Flush) -> tuple[int, int]:
        found = match(data, at) if draft.stage <= 1 else None
        if not found:
            return 0, at
        flush()
        draft.head.trace(found[0])
        return data.count(b"\n", at, found.end()), found.end()

    return run


def _mem_run(shape: str, line: bytes, after: bytes) -> Callable[[bytes], Run]:
    """For lines of Mem-Info that are read by themselves but come in a row."""

    @lru_cache(maxsize=64)
    def make(prefix_shape: bytes) -> Run:
        prefix = _expression(prefix_shape)
        match = re.compile(prefix + line + rb"\n(?=" + (prefix or after) + rb")").match

        def run(draft: ReportDraft, data: bytes, at: int, _: int, flush: Flush) -> tuple[int, int]:
            count = 0
            if not match(data, at):
                return 0, at
            flush()
            mem = draft.mem
            while mem and draft.is_in_mem and (found := match(data, at)):
                mem.take(shape, found[1].decode("ascii"))
                count += 1
                at = found.end()
            return count, at

        return run

    return make


BY_RUNS: Final[dict[str | None, Callable[[bytes], Run]]] = {
    "row": _rows, "slab_row": _slab_rows, "stat": _stats, "cpu": _trace,
    "totals": _mem_run(
        "totals", rb" ?((?:[a-z_]{3,30}:\d{1,20} ?)+)", rb" ?[a-z_]{3,30}:\d{1,20} |Node \d"
    ),
    "pages": _mem_run(
        "pages", rb"(\d{1,20} pages [A-Za-z/ ]{2,40})", rb"\d{1,20} pages |Free |Swap |Tasks"
    ),
}  # fmt: skip
