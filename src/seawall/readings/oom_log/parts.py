# SPDX-License-Identifier: Apache-2.0
"""The parts of a report while it is read: each takes its own lines and keeps what they say.

A method is named after the shape that it takes.  It gives False for a line that only began like
one of a report, and notes in ``is_damaged`` what it had to leave out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from seawall.readings.oom_log import cut_lines, header, memcg_block, slab_block, task_table
from seawall.readings.oom_log.oom_report import (
    CallSite,
    Counter,
    MemcgStat,
    ReportSlabCache,
    SlubFailure,
    Task,
    TraceFrame,
)
from seawall.readings.oom_log.wraps import Message

TWICE_WITHIN: Final = 4
"""How far back a line is looked for that came twice."""
SLUB_MOST: Final = 64
"""Failures of SLUB that are kept of one report."""
# A number that is left where the name should begin.
_LEFT_OVER: Final = re.compile(r"-?\d+\s")
LISTED_MOST: Final = 10_000
"""Cgroups, caches, call sites, kills of one report."""


@dataclass(slots=True)
class ReportHead:
    """Who asked for what, up to the call trace."""

    request: header.Header | None = None
    text: str = ""
    invoker: header.Invoker | None = None
    cpuset: str | None = None
    mems_allowed: str | None = None
    frames: list[TraceFrame] = field(default_factory=list)
    cut_text: dict[str, str] = field(default_factory=dict)
    """The first line's end, where that is cut, under ``order``."""

    def trace(self, lines: bytes) -> None:
        """Keep the frames in lines of the call trace."""
        room = FRAMES_MOST - len(self.frames)
        if room > 0:
            self.frames += islice(frames_in(lines), room)

    def header(self, message: Message) -> bool:
        self.request = header.read_header(message.text, is_marked=message.line.is_marked)
        self.text = message.text
        if self.request is not None and self.request.order is None:
            text, _ = cut_lines.before_mark(message.text)
            self.cut_text["order"] = text[text.find("gfp_mask=") :][:200]
        return self.request is not None

    def cpuset_of(self, message: Message) -> bool:
        found = header.read_cpuset(message.text)
        if found and self.mems_allowed is None:
            self.cpuset, self.mems_allowed = found[1] or None, found[2] or None
        return found is not None

    def cpu(self, message: Message) -> bool:
        found = header.read_invoker(message.text)
        if found is None or self.invoker:
            return False
        comm = self.request.comm if self.request else None
        if comm and not header.is_same_name(comm, found.comm):
            return False  # of an oops on another CPU
        self.invoker = found
        return True


@dataclass(slots=True)
class MemcgPart:
    """The cgroup whose limit was hit."""

    is_there: bool = False
    is_damaged: bool = False
    task_path: str | None = None
    path: str | None = None
    has_no_victim: bool = False
    counters: dict[str, Counter] = field(default_factory=dict)
    stats: list[MemcgStat] = field(default_factory=list)
    protection_bytes: tuple[int, int] | None = None
    values: dict[str, int] | None = None
    """Of the cgroup whose lines of memory.stat come now."""
    cut_text: dict[str, str] = field(default_factory=dict)

    def task_in(self, message: Message) -> bool:
        found = memcg_block.read_task_in(message.text)
        if found:
            self.task_path, self.path, is_cut = found
            if is_cut:
                self.cut_text["oom_memcg"], self.path = self.path, None
            self.is_there = True
        return found is not None

    def limit_reached(self, message: Message) -> bool:
        self.path = memcg_block.read_limit_reached(message.text)
        self.is_there = self.has_no_victim = self.path is not None
        return self.is_there

    def counter(self, message: Message) -> bool:
        found = memcg_block.read_counter(message.text)
        if found:
            self.counters[found[0]] = found[1]
            self.is_there = True
        else:
            self.is_damaged = True
            self.cut_text.update([cut] if (cut := memcg_block.cut_counter(message.text)) else [])
        return found is not None

    def protection(self, message: Message) -> bool:
        self.protection_bytes = memcg_block.read_protection(message.text)
        return self.protection_bytes is not None

    def stats_of(self, message: Message) -> bool:
        found = memcg_block.read_stats(message.text)
        if found is None or len(self.stats) >= LISTED_MOST:
            self.is_damaged = True
            return False
        path, values = found
        self.values = None if values else values
        self.stats.append(MemcgStat(path, values))
        self.is_there = True
        return True

    def stat(self, message: Message) -> bool:
        if self.values is None or len(self.values) >= memcg_block.KEYS_MOST:
            return False
        name, value = memcg_block.read_stat(message.text)
        self.values.setdefault(name, value)
        return True


@dataclass(slots=True)
class KernelMemoryPart:
    """Where the kernel's own memory went: unreclaimable slab, and call sites."""

    slab: list[ReportSlabCache] = field(default_factory=list)
    sites: list[CallSite] = field(default_factory=list)
    is_in_slab: bool = False
    is_in_sites: bool = False
    slub: list[SlubFailure] = field(default_factory=list)

    def slub_line(self, message: Message) -> bool:
        """What SLUB could not allocate, in three kinds of lines."""
        if message.shape == "slub":
            found = slab_block.read_slub(message.text, message.line.number)
            if found is None:
                return False
            twice = any(other[:-1] == found[:-1] for other in self.slub[-TWICE_WITHIN:])
            if len(self.slub) < SLUB_MOST and not twice:
                self.slub.append(found)
            return True
        if self.slub:
            self.slub[-1] = slab_block.with_details(self.slub[-1], message.text)
        return bool(self.slub)

    def allocs(self, _: Message) -> bool:
        self.is_in_sites, self.is_in_slab = True, False
        return True

    def alloc(self, message: Message) -> bool:
        found = slab_block.read_site(message.text) if self.is_in_sites else None
        if found and len(self.sites) < LISTED_MOST:
            self.sites.append(found)
        return found is not None

    def slab_info(self, _: Message) -> bool:
        self.is_in_sites, self.is_in_slab = False, True
        return True

    def slab_row(self, message: Message) -> bool:
        found = slab_block.read_cache(message.text) if self.is_in_slab else None
        if found and len(self.slab) < LISTED_MOST:
            self.slab.append(found)
        return found is not None


@dataclass(slots=True)
class Table:
    """The table of tasks in a report: its columns, its rows, and whether lines are damaged."""

    has_header: bool = False
    is_damaged: bool = False
    columns: tuple[str, ...] | None = None
    rows: list[Task] = field(default_factory=list)
    left_out: int = 0
    """Rows beyond ROWS_MOST."""
    _is_sure: bool = False

    def tasks(self, _: Message) -> bool:
        return True

    def table(self, message: Message) -> bool:
        self.columns = task_table.read_columns(message.text)
        self.has_header = self.columns is not None
        self._is_sure = task_table.is_known(message.text)
        self.is_damaged = self.is_damaged or not self.has_header
        return True

    def row(self, message: Message, kernel: str | None) -> bool:
        row = self._read(message.text, message.line.number, kernel)
        if row is None:
            self.is_damaged = True
            return False
        if len(self.rows) >= task_table.ROWS_MOST:
            self.left_out += 1
            return True
        for other in self.rows[-TWICE_WITHIN:]:
            if other.pid == row.pid and other[:-1] == row[:-1]:
                return True  # the same line twice
        self.rows.append(row)
        return True

    def _read(self, text: str, number: int, kernel: str | None) -> Task | None:
        if self.columns and self.has_header:
            row = task_table.read_row(text, self.columns, number)
            if self._is_sure or (row and not _LEFT_OVER.match(row.comm)):
                return row
            self.has_header = False  # columns of its own or damaged ones, which do not fit
        # By itself: the row before may have been damaged.
        self.columns = task_table.guess_columns(text, kernel)
        return task_table.read_row(text, self.columns, number) if self.columns else None


# The call trace of an OOM report: through which functions the kernel came to its OOM killer.
#
# Kernel source: lib/dump_stack.c and arch/*/kernel/dumpstack.c.  A frame is
# ``name+0x1f/0x80 [module]`` with an address before it up to 4.x, with ``?`` where it may be a
# leftover; on ARM ``caller from name+0x1f/0x80`` or ``(caller) from [<address>] (name+0x1f/0x80)``.

FRAMES_MOST: Final = 128
"""Frames of one report; the kernel's stack has 16 KiB."""
_FRAME: Final = re.compile(
    rb"(\? ?)?(?<![\w.+])\.?([A-Za-z_]\w{0,99})(?:\.[a-z]\w{0,20}(?:\.\d{1,6})?){0,4}"
    rb"\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}\)?(?: \[([\w-]{1,64})[^\]\n]{0,60}\])?"
)


def frames_in(lines: bytes) -> Iterator[TraceFrame]:
    """The frames in some lines of a log, in their order."""
    for found in _FRAME.finditer(lines):
        module = found[3].decode("ascii") if found[3] else None
        yield TraceFrame(found[2].decode("ascii"), module, found[1] is not None)
