# SPDX-License-Identifier: Apache-2.0
"""The probe ``page_trace``: who took pages that no cgroup counts, and what is still held.

Not a topic: asking it takes as long as it traces.  From kmem:mm_page_alloc and mm_page_free
through tracefs (Linux 4.18 and later, root), and /proc/kpageflags.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

from seawall.host.host import JSON, Host, Unread, Why

PROBE: Final = "page_trace"
_PAGES_MOST: Final = 1 << 44
_ROWS_MOST: Final = 1 << 17
_FRAMES_MOST: Final = 32
_TEXT_MOST: Final = 4096
_NOTES_MOST: Final = 64
_LINES_MOST: Final = 64
_PAGE_SIZES: Final = frozenset({4096, 8192, 16384, 32768, 65536})

KnownBy = Literal["proc", "fork", "attach"]
T = TypeVar("T")


class _MalformedError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class TracedTask:
    """A thread as it was when it allocated, whatever became of it."""

    tid: int
    tgid: int
    comm: str
    start_ticks: int | None
    """Of the process, in ticks since boot; None when it was gone before it could be seen."""
    is_kernel_thread: bool
    cgroups: tuple[str, ...]
    """Lines as in /proc/PID/cgroup; empty when not known."""
    cgroup_inode: int | None
    """Of its cgroup in the tree that counts memory."""
    known_by: KnownBy | None
    alive: bool


@dataclass(frozen=True, slots=True)
class HeldPages:
    """Pages that ``task`` took through ``stack`` (both by number) and that are still held."""

    task: int
    stack: int
    pages: int
    least_pages: int
    most_pages: int
    mapped_pages: int
    """Of ``pages``: mapped into a process."""


@dataclass(frozen=True, slots=True)
class GrossPages:
    """All that a task took, whether held or given back long ago."""

    task: int
    pages: int


@dataclass(frozen=True, slots=True)
class DriverPages:
    """What a known driver's own allocator gave to a task, by kprobes."""

    driver: str
    task: int
    pages: int
    freed_pages: int


@dataclass(frozen=True, slots=True)
class PageTrace:
    """Sums are in pages of ``page_size``."""

    seconds: float
    page_size: int
    mechanism: str
    """``ring`` or ``ring+hist``."""
    events: int
    lost_events: int
    sampled_one_in: int
    """Every so many page frames one was followed and stands for the others."""
    notes: tuple[str, ...]
    """What could not be seen, a sentence each."""
    free_list_pages: int
    """How many of those held may lie on per-CPU lists of free pages."""
    buffer_bytes: int
    """What the tracer's own buffers took, uncounted too."""
    stacks: tuple[tuple[str, ...], ...]
    """Innermost first; empty when there is none."""
    tasks: tuple[TracedTask, ...]
    held: tuple[HeldPages, ...]
    gross: tuple[GrossPages, ...]
    kprobes: tuple[DriverPages, ...]


def trace(host: Host, seconds: float) -> PageTrace | Unread:
    """Trace for so long; Unread with the reason when that cannot be."""
    return parse_answer(host.ask(PROBE, json.dumps({"seconds": seconds})))


def parse_answer(answer: JSON | Unread) -> PageTrace | Unread:
    """The probe's answer, every part of it checked: it may come from a bundle."""
    if isinstance(answer, Unread):
        return answer
    try:
        values = _dict(answer)
        if "problem" in values:
            return _problem(values)
        return _trace(values)
    except _MalformedError as error:
        return Unread(PROBE, "malformed", f"expected {error}")


def _problem(values: dict[str, JSON]) -> Unread:
    whys: tuple[Why, ...] = get_args(Why)
    why: Why = next((one for one in whys if one == values.get("why")), "failed")
    return Unread(PROBE, why, _text(values["problem"]))


def _trace(values: dict[str, JSON]) -> PageTrace:
    tasks = _rows(values, "tasks", _task)
    stacks = _rows(values, "stacks", _stack)
    step = _count(values, "sampled_one_in")
    page_size = _count(values, "page_size")
    if page_size not in _PAGE_SIZES or not step:
        raise _MalformedError("a page size and a step")
    held = _rows(values, "held", lambda row: _held(row, len(tasks), len(stacks)))
    return PageTrace(
        seconds=_seconds(values.get("seconds")),
        page_size=page_size,
        mechanism=_text(values.get("mechanism")),
        events=_count(values, "events"),
        lost_events=_count(values, "lost_events"),
        sampled_one_in=step,
        notes=_texts(values.get("notes"), _NOTES_MOST),
        free_list_pages=_count(values, "free_list_pages"),
        buffer_bytes=_count(values, "buffer_bytes") if "buffer_bytes" in values else 0,
        stacks=stacks,
        tasks=tasks,
        held=held,
        gross=_rows(
            values,
            "gross",
            lambda row: GrossPages(_index(row, "task", len(tasks)), _count(row, "pages")),
        ),
        kprobes=_rows(values, "kprobes", lambda row: _driver(row, len(tasks))),
    )


def _task(value: JSON) -> TracedTask:
    row = _dict(value)
    known = row.get("known_by")
    if known not in (None, "proc", "fork", "attach"):
        raise _MalformedError("known_by: proc, fork, attach or null")
    return TracedTask(
        tid=_count(row, "tid"),
        tgid=_count(row, "tgid"),
        comm=_text(row.get("comm")),
        start_ticks=_count_or_none(row, "start_ticks"),
        is_kernel_thread=_truth(row.get("is_kernel_thread")),
        cgroups=_texts(row.get("cgroups"), _LINES_MOST),
        cgroup_inode=_count_or_none(row, "cgroup_inode"),
        known_by=known,  # type: ignore[arg-type]
        alive=_truth(row.get("alive")),
    )


def _held(value: JSON, tasks: int, stacks: int) -> HeldPages:
    row = _dict(value)
    held = HeldPages(
        task=_index(row, "task", tasks),
        stack=_index(row, "stack", stacks),
        pages=_count(row, "pages"),
        least_pages=_count(row, "least_pages"),
        most_pages=_count(row, "most_pages"),
        mapped_pages=_count(row, "mapped_pages"),
    )
    if not held.least_pages <= held.pages <= held.most_pages:
        raise _MalformedError("least_pages <= pages <= most_pages")
    if held.mapped_pages > held.pages:
        raise _MalformedError("mapped_pages <= pages")
    return held


def _driver(value: JSON, tasks: int) -> DriverPages:
    row = _dict(value)
    return DriverPages(
        driver=_text(row.get("driver")),
        task=_index(row, "task", tasks),
        pages=_count(row, "pages"),
        freed_pages=_count(row, "freed_pages"),
    )


def _stack(value: JSON) -> tuple[str, ...]:
    return _texts(value, _FRAMES_MOST)


def _rows(values: dict[str, JSON], name: str, parse: Callable[[Any], T]) -> tuple[T, ...]:
    rows = values.get(name)
    if not isinstance(rows, list) or len(rows) > _ROWS_MOST:
        raise _MalformedError(f"{name}: at most {_ROWS_MOST} rows")
    return tuple(parse(row) for row in rows)


def _dict(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise _MalformedError("an object")
    return value


def _text(value: JSON) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_MOST:
        raise _MalformedError(f"a text of at most {_TEXT_MOST} characters")
    return value


def _texts(value: JSON, most: int) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > most:
        raise _MalformedError(f"at most {most} texts")
    return tuple(_text(one) for one in value)


def _truth(value: JSON) -> bool:
    if not isinstance(value, bool):
        raise _MalformedError("true or false")
    return value


def _count(row: JSON, name: str) -> int:
    value = _dict(row).get(name)
    if type(value) is not int or not 0 <= value < _PAGES_MOST:
        raise _MalformedError(f"{name}: a count below {_PAGES_MOST}")
    return value


def _count_or_none(row: dict[str, JSON], name: str) -> int | None:
    if row.get(name) is None:
        return None
    value = row[name]
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise _MalformedError(f"{name}: a 64-bit number")
    return value


def _index(row: JSON, name: str, length: int) -> int:
    number = _count(row, name)
    if number >= length:
        raise _MalformedError(f"{name}: a number below {length}")
    return number


def _seconds(value: JSON) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise _MalformedError("seconds")
    return float(value)
