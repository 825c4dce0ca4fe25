# SPDX-License-Identifier: Apache-2.0
"""A report while it is read: which line may still belong to it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from seawall.readings.oom_log import kill_lines
from seawall.readings.oom_log.ending import Ending
from seawall.readings.oom_log.lines import Line
from seawall.readings.oom_log.mem_info import MemInfoDraft
from seawall.readings.oom_log.parts import KernelMemoryPart, MemcgPart, ReportHead, Table
from seawall.readings.oom_log.shapes import Shape
from seawall.readings.oom_log.wraps import Message

# The order in which the kernel prints; a line of an earlier part belongs to another report.
_STAGES: Final[dict[str, int]] = {
    "header": 0, "cpuset": 1, "cpu": 1, "task_in": 2, "limit_reached": 2, "counter": 3,
    "stats": 3, "stat": 3, "protection": 3, "mem_info": 4, "totals": 4, "node": 4, "zone": 4,
    "reserve": 4, "buddy": 4, "hugepages": 4, "pages": 4, "swap": 4, "per_cpu": 4, "allocs": 5,
    "alloc": 5, "slab": 5, "slab_row": 5, "tasks": 6, "table": 6, "row": 6, "oom_kill": 7,
    "choice": 8, "killed": 9, "sharing": 9, "nobody": 9, "group": 10, "panic": 11,
}  # fmt: skip
MEM_SHAPES: Final = frozenset(shape for shape, stage in _STAGES.items() if stage == 4)
SLUB_SHAPES: Final = frozenset({"slub", "slub_cache", "slub_node"})
# What the kernel prints only when memory is out; Mem-Info and call sites come at other times too.
_OF_OOM: Final = frozenset(
    {
        "header", "task_in", "limit_reached", "counter", "stats", "tasks", "table", "row",
        "oom_kill", "choice", "killed", "sharing", "group", "nobody", "panic",
    }
)  # fmt: skip
_LETTERS: Final = re.compile(r"[^\W\d]+")
_DIGITS: Final = re.compile(r"[\s\d]+")
_RECORD_LINES: Final = 20
# Two lines of one report are not further apart, however slow the console that it goes to.
_PAUSE_SECONDS_MOST: Final = 120.0

_TAKES: Final[dict[str, Callable[["ReportDraft", Message], bool]]] = {
    "header": lambda draft, message: draft.head.header(message),
    "cpuset": lambda draft, message: draft.head.cpuset_of(message),
    "cpu": lambda draft, message: draft.head.cpu(message),
    "task_in": lambda draft, message: draft.memcg.task_in(message),
    "limit_reached": lambda draft, message: draft.memcg.limit_reached(message),
    "counter": lambda draft, message: draft.memcg.counter(message),
    "stats": lambda draft, message: draft.memcg.stats_of(message),
    "stat": lambda draft, message: draft.memcg.stat(message),
    "protection": lambda draft, message: draft.memcg.protection(message),
    "allocs": lambda draft, message: draft.kernel.allocs(message),
    "alloc": lambda draft, message: draft.kernel.alloc(message),
    "slab": lambda draft, message: draft.kernel.slab_info(message),
    "slab_row": lambda draft, message: draft.kernel.slab_row(message),
    "slub": lambda draft, message: draft.kernel.slub_line(message),
    "slub_cache": lambda draft, message: draft.kernel.slub_line(message),
    "slub_node": lambda draft, message: draft.kernel.slub_line(message),
    "tasks": lambda draft, message: draft.table.tasks(message),
    "table": lambda draft, message: draft.table.table(message),
    "row": lambda draft, message: draft.table.row(message, draft.release),
    "oom_kill": lambda draft, message: draft.ending.oom_kill(message),
    "choice": lambda draft, message: draft.ending.choice(message),
    "killed": lambda draft, message: draft.ending.killed(message),
    "sharing": lambda draft, message: draft.ending.sharing(message),
    "nobody": lambda draft, message: draft.ending.nobody(message),
    "group": lambda draft, message: draft.ending.group(message),
    "panic": lambda draft, message: draft.ending.panic(message),
    "elision": lambda draft, _: draft.cut(),
    **dict.fromkeys(MEM_SHAPES, lambda draft, message: draft.take_mem(message)),
}


@dataclass(slots=True)
class ReportDraft:
    """One report; the caller asks ``accepts`` before it gives a line to ``take``."""

    first_line: int
    at: str | None
    stage: int = 0
    last_line: int = 0
    raw_lines: int = 0
    last_offset: int = 0
    """Where in the log its last line stands, for whoever decides that it is over."""
    log: tuple[str, bool] | None = None
    """How its lines write the time, and whether they have the kernel's clock."""
    seconds: float | None = None
    """Of the kernel's clock in its last line that had one."""
    host: str | None = None
    """Whose kernel speaks, where the log names it."""
    head: ReportHead = field(default_factory=ReportHead)
    memcg: MemcgPart = field(default_factory=MemcgPart)
    mem: MemInfoDraft | None = None
    kernel: KernelMemoryPart = field(default_factory=KernelMemoryPart)
    table: Table = field(default_factory=Table)
    ending: Ending = field(default_factory=Ending)
    is_cut: bool = False
    is_of_oom: bool = False
    """Not only a ``Mem-Info:``, which other reports of the kernel have too."""

    @property
    def release(self) -> str | None:
        """The kernel's release as the report's header names it; None where no line tells."""
        return self.head.invoker.kernel if self.head.invoker else None

    @property
    def is_of_memcg(self) -> bool:
        """Whether a line said so; the summary aside."""
        return self.memcg.is_there or self.ending.says_memcg

    @property
    def is_over(self) -> bool:
        """Only kills of its group and the reaper may follow."""
        return self.ending.is_there

    @property
    def is_ended(self) -> bool:
        """Nothing but the reaper's lines may follow."""
        return self.is_over and self.ending.group_path is None

    @property
    def is_in_mem(self) -> bool:
        """Whether the part about the node's memory is being read."""
        return self.stage == _STAGES["mem_info"]

    def is_near(self, message: Message) -> bool:
        """Whether the kernel's clock and the kind of log allow that the line is of this report."""
        seconds = message.line.seconds
        if self.stage <= 1 and _STAGES.get(message.shape, 0) > 1 and not self.is_same_log(message):
            return False  # a report that was cut after its header, then one of another log
        if seconds is None or self.seconds is None:
            return True
        return abs(seconds - self.seconds) <= _PAUSE_SECONDS_MOST

    def is_near_line(self, number: int) -> bool:
        """Whether a line of the log stands just behind the last one of this report."""
        return number - self.last_line <= _RECORD_LINES

    def says(self, message: Message) -> bool:
        """Whether a line says only what this report has."""
        if message.shape == "header":
            return self.head.text == message.text
        named = kill_lines.read_killed(message.text, 0) or kill_lines.read_choice(message.text, 0)
        pids = {kill.pid for kill in self.ending.kills}
        if self.ending.chosen:
            pids.add(self.ending.chosen.pid)
        return named is not None and named.pid in pids

    def note_run(self, last: Line, count: int, offset: int) -> None:
        """Count in lines that were taken at once."""
        self.raw_lines += count
        self.last_line = last.number
        self.last_offset = offset
        if last.seconds is not None:
            self.seconds = last.seconds

    def is_same_log(self, message: Message) -> bool:
        """Whether the line is written as the first one was."""
        is_step = (message.line.at or "").startswith("+")  # dmesg --human
        return is_step or self.log is None or self.log == _kind_of(message)

    def accepts(self, shape: Shape, text: str) -> bool:
        """Whether a line can be of this report, after what has been read of it."""
        stage = _STAGES.get(shape)
        if stage is None:
            return (shape == "elision" and not self.is_over) or shape in SLUB_SHAPES
        if shape == "killed":
            return self.ending.accepts_kill(
                text, of_memcg=self.is_of_memcg, of_node=self.mem is not None
            )
        if shape == "choice":
            return self.ending.accepts_choice(text)
        if shape in ("group", "panic", "sharing"):
            return self.ending.group_path is None or shape != "group"
        if self.is_over or stage < self.stage:
            return False
        if shape == "oom_kill":
            return self.ending.summary is None
        if shape == "counter":
            return text.split(":", 1)[0] not in self.memcg.counters
        return shape != "table" or not self.table.rows

    def take(self, message: Message) -> bool:
        """Read the line; False for one that only began like one of a report."""
        shape = message.shape
        take = _TAKES.get(shape)
        if take is None or not take(self, message):
            return False
        self.stage = max(self.stage, _STAGES.get(shape, 0))
        self.is_of_oom = self.is_of_oom or shape in _OF_OOM
        return True

    def take_mem(self, message: Message) -> bool:
        self.mem = self.mem or MemInfoDraft()
        if message.shape in ("mem_info", "per_cpu"):
            return True
        return self.mem.take(message.shape, message.text)

    def cut(self) -> bool:
        """Whoever gave us the log left something out."""
        self.is_cut = True
        return True

    def completes(self, other: "ReportDraft") -> bool:
        """Take over whose limit it was from lines that somebody put behind the kill: of the same
        moment and host, and of no kill of their own.
        """
        if (
            self.head.request or other.head.request or self.memcg.is_there
            or not self.ending.says_memcg or len(self.ending.kills) != 1
            or not other.memcg.path or other.stage > _STAGES["stat"]
            or self.at is None or self.at != other.at or self.host != other.host
            or not self.is_near_line(other.first_line)
        ):  # fmt: skip
            return False
        self.memcg = other.memcg
        self.raw_lines += other.raw_lines
        self.last_line = max(self.last_line, other.last_line)
        self.last_offset = max(self.last_offset, other.last_offset)
        return True

    def note(self, message: Message, between: int, offset: int) -> None:
        """Count a line in; ``between`` ones before it were not understood, e.g. a call trace."""
        if message.line.number > self.last_line:  # one line of a log may hold several
            room = message.line.number - self.last_line - 1 if self.last_line else 0
            self.raw_lines += message.lines + max(min(between, room), 0)
            self.last_line = message.line.number + message.lines - 1
        self.last_offset = offset
        self.log = self.log or _kind_of(message)
        if message.line.seconds is not None:
            self.seconds = message.line.seconds


def _kind_of(message: Message) -> tuple[str, bool]:
    line = message.line
    written = _LETTERS.sub("a", _DIGITS.sub("9", line.at or ""))
    return written, line.seconds is not None
