# SPDX-License-Identifier: Apache-2.0
"""OOM reports out of a log of any kind, in one pass and in bounded memory.

The kernel's version is never asked: what a line says decides what it is.  Few reports are held
at a time: the one that is read, those of other hosts that are open in the same log, and two that
wait for what the reaper says of them.
Any bytes may come in; nothing is raised, and text that is no report gives none.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from seawall.readings.oom_log.blocks import BEFORE, Blocks, blocks_of
from seawall.readings.oom_log.characters import Recoder
from seawall.readings.oom_log.draft import MEM_SHAPES, ReportDraft
from seawall.readings.oom_log.kill_lines import can_open
from seawall.readings.oom_log.lines import Line, LineReader
from seawall.readings.oom_log.oom_report import OomReport
from seawall.readings.oom_log.runs import BY_RUNS, Run, run_for
from seawall.readings.oom_log.shapes import Shape
from seawall.readings.oom_log.tally import LogTally, is_suspect
from seawall.readings.oom_log.task_table import is_row
from seawall.readings.oom_log.waiting import Waiting
from seawall.readings.oom_log.wraps import Joiner, Message

# A report without its first line can begin with one of these.
_STARTS: Final = frozenset(
    {
        "task_in", "limit_reached", "counter", "stats", "mem_info", "tasks", "table", "oom_kill",
        "choice", "killed", "nobody", "panic",
    }
)  # fmt: skip
# So can one whose head is cut within ``Mem-Info``: with these where the prefix is the kernel's.
_INSIDE_MEM: Final = MEM_SHAPES - {"mem_info", "per_cpu"}
_INSIDE_MEM_UNMARKED: Final = frozenset({"node", "zone"})
# What a failed allocation prints too (mm/page_alloc.c warn_alloc).
_OF_FAILURES: Final = MEM_SHAPES | {"cpu", "cpuset", "allocs", "alloc", "slab", "slab_row"}
# How many lines that mean nothing may follow before we look for the next word again: within a
# report (a call trace, other programs' lines), after a find, and after the last line of one.
_PATIENCE: Final = 400
_PATIENCE_FIRST: Final = BEFORE + 6
_PATIENCE_OVER: Final = 8
# Lines that may stand in a log twice.
_SAID_TWICE: Final = frozenset({"header", "choice", "killed", "oom_kill"})
# How far behind its report a line of the reaper may stand.
_WAIT_BYTES: Final = 512 << 10
# Hosts whose reports are open besides the one whose lines come, and for how many lines.
_PARKED_MOST: Final = 3
_PARKED_LINES: Final = 1000
_SUSPECTS_MOST: Final = 64
# Messages that another program repeats, so many lines apart, are of one report.
_QUOTE_LINES: Final = 3


class _Open(NamedTuple):
    """The state of reading one host's lines."""

    draft: ReportDraft | None
    between: int
    is_foreign: bool
    has_foreign_mem: bool


class ReportReader:
    """Takes a log part by part; gives the reports that are complete.

    A report is complete when nothing can follow any more: the reaper's line may come seconds
    later.  Who follows a log calls ``settle`` when it has been quiet for a while.
    """

    def __init__(self, tally: LogTally | None = None) -> None:
        """``tally``: takes what was looked at besides the reports."""
        self._tally = tally or LogTally()
        self._suspects: dict[int, bytes] = {}
        self._quote: ReportDraft | None = None
        self._blocks = Blocks(self._take_line, self._rest)
        self._lines = LineReader()
        self._recoder = Recoder()
        self._joiner = Joiner(self._is_row)
        self._open: ReportDraft | None = None
        self._waiting = Waiting()
        self._patience = _PATIENCE  # a log may begin within a report
        self._between = 0
        self._is_foreign = False
        self._has_foreign_mem = False
        self._run: Run | None = None
        self._host: str | None = None
        self._parked: dict[str | None, _Open] = {}

    def feed(self, block: bytes) -> list[OomReport]:
        """The next bytes of the log, cut anywhere; the reports that are complete now."""
        self._blocks.feed(self._recoder.feed(block))
        self._expire()
        return self._waiting.take_ready()

    def settle(self) -> list[OomReport]:
        """Every report as it stands, the last line of the log included."""
        self._blocks.finish()
        self._note_unread()
        self._close_quote()
        self._close()
        while self._parked:
            self._close_parked(next(iter(self._parked)))
        self._waiting.finish_all()
        return self._waiting.take_ready()

    def _take_line(self, raw: bytes, number: int, offset: int) -> bool:
        """One line of the log; False when the next lines need not be read."""
        self._patience -= 1
        self._run = self._blocks.run_over = None
        if is_suspect(raw):
            self._suspect(raw, number)
        lines = self._lines.read(raw, number)
        late = self._lines.late_time
        if late and self._open and not self._open.at and self._open.is_near_line(number):
            self._open.at = late
        for line in lines:
            message = self._joiner.put(line)
            if message:
                self._take(message, offset)
            if self._open and self._open.stage <= 1 and "+0x" in line.text:
                self._open.head.trace(line.text.encode("utf-8", "replace"))
        if len(lines) == 1:
            self._begin_run(raw, lines[0])
        elif not lines:
            self._flush(offset)
        self._between += bool(lines)
        if self._patience <= 0:
            self._flush(offset)  # which may be the first line of a report
        return self._patience > 0 or self._lines.is_waiting

    def _suspect(self, raw: bytes, number: int) -> None:
        """Remember a line with words of an OOM kill until it is of a report, or not."""
        self._suspects[number] = raw
        if len(self._suspects) > _SUSPECTS_MOST:
            for old in [old for old in self._suspects if old < number - _SUSPECTS_MOST // 2]:
                self._tally.note_unread(old, self._suspects.pop(old))

    def _note_unread(self) -> None:
        """What was not taken until now will not be."""
        for number, raw in self._suspects.items():
            self._tally.note_unread(number, raw)
        self._suspects = {}

    def _begin_run(self, raw: bytes, line: Line) -> None:
        """Lines of the same kind may follow, which are taken at once."""
        shape: str | None = self._joiner.shape
        if shape is None and self._open and self._open.stage <= 1:
            shape = "cpu"  # its call trace goes on
        if shape in BY_RUNS and line.host == self._host:
            self._run = run_for(shape, raw, line.text, line.host)
            self._blocks.run_over = self._run_over if self._run else None

    def _run_over(self, data: bytes, at: int, number: int) -> tuple[int, int]:
        """Lines of the kind of the last one, taken at once."""
        draft, run = self._open, self._run
        self._run = self._blocks.run_over = None
        if run is None or draft is None or draft.is_over or self._is_foreign:
            return 0, at
        count, stop = run(draft, data, at, number, lambda: self._flush(self._blocks.offset))
        if draft.stage <= 1:  # a call trace, which is counted when something follows it
            self._between += count
        elif count:
            start = data.rfind(b"\n", at, stop - 1) + 1 or at
            for line in self._lines.read(data[start : stop - 1], number + count - 1):
                draft.note_run(line, count, self._blocks.offset + stop - at)
            self._between = 0
        if count:
            self._patience = _PATIENCE
        return count, stop

    def _rest(self) -> None:
        """What comes next does not follow what came before."""
        self._flush(self._blocks.offset)
        self._joiner.restart()
        self._put_held()
        self._note_unread()
        self._patience = _PATIENCE_FIRST
        self._between = 0

    def _put_held(self) -> None:
        """Messages that waited for the end of their record, which is not read any more."""
        held = self._lines.restart()
        for line in held:
            message = self._joiner.put(line)
            if message:
                self._take(message, self._blocks.offset)
        if held:
            self._flush(self._blocks.offset)
            self._joiner.restart()

    def _flush(self, offset: int) -> None:
        message = self._joiner.take()
        if message:
            self._take(message, offset)

    def _is_row(self, text: str) -> bool:
        columns = self._open.table.columns if self._open else None
        return columns is not None and is_row(text, columns)

    def _take(self, message: Message, offset: int) -> None:
        """Give a message to the report that it belongs to, or begin one with it."""
        if message.line.is_quote:
            self._take_quote(message, offset)
            return
        if message.line.host != self._host:
            self._turn_to(message.line.host)
        draft = self._open
        if message.shape in MEM_SHAPES and draft and draft.is_in_mem and not self._is_foreign:
            draft = draft if draft.take(message) else None
        elif message.shape in ("reaped", "unreaped"):
            draft = self._waiting.reaper_of(message, draft)
        else:
            draft = self._taker_of(message)
        if draft is None:
            if message.shape in _SAID_TWICE and self._open and self._open.says(message):
                self._understood(message)
            return
        self._understood(message)
        draft.host = draft.host or message.line.host
        draft.note(message, self._between - message.lines if draft is self._open else 0, offset)
        self._between = 0
        self._patience = _PATIENCE_OVER if draft.is_over else _PATIENCE

    def _understood(self, message: Message) -> None:
        if self._suspects:
            first = message.line.number
            for number in range(first, first + message.lines):
                self._suspects.pop(number, None)

    def _take_quote(self, message: Message, offset: int) -> None:
        """A report of its own, which is a repeat if the kernel's lines are in the log too."""
        draft = self._quote
        is_near = draft and message.line.number - draft.last_line <= _QUOTE_LINES
        if draft is None or not is_near or not draft.accepts(message.shape, message.text):
            self._close_quote()
            draft = ReportDraft(first_line=message.line.number, at=message.line.at)
        if draft.take(message):
            draft.note(message, 0, offset)
            self._quote = draft
            self._understood(message)

    def _close_quote(self) -> None:
        draft, self._quote = self._quote, None
        self._waiting.put(draft, self._oldest())

    def _taker_of(self, message: Message) -> ReportDraft | None:
        """The report that took the message, which may have begun with it."""
        shape = message.shape
        if self._is_of_failure(shape):
            return None
        draft = self._open
        if shape == "header":
            is_same = draft is not None and draft.says(message) and not draft.stage
            if is_same and draft and message.line.at == draft.at:
                return None  # the same line twice; at another time it is the next call
            return self._begin(message)
        is_near = draft is not None and (shape not in _STARTS or draft.is_near(message))
        if draft and is_near and draft.accepts(shape, message.text):
            return draft if draft.take(message) else None
        starts_inside = shape in (_INSIDE_MEM if message.line.is_marked else _INSIDE_MEM_UNMARKED)
        if starts_inside or shape == "mem_info":
            return None if draft and not draft.is_over else self._begin(message)
        return self._begin(message) if shape in _STARTS else None

    def _is_of_failure(self, shape: Shape) -> bool:
        """Whether a line is of a failed allocation, which prints Mem-Info as well."""
        if shape == "failure":
            self._is_foreign, self._has_foreign_mem = True, False
        elif shape not in _OF_FAILURES:
            self._is_foreign = self._is_foreign and shape == "elision"
            return False
        elif shape == "mem_info" and self._is_foreign:
            # The second one is that of the report itself, if it has none yet.
            awaited = self._open is not None and self._open.mem is None
            self._is_foreign = not (self._has_foreign_mem and awaited)
            self._has_foreign_mem = True
        return self._is_foreign

    def _begin(self, message: Message) -> ReportDraft | None:
        """A new report, if the line really is one of a report."""
        line, shape = message.line, message.shape
        if shape in ("choice", "killed") and not line.is_marked and not can_open(message.text):
            return None
        draft = ReportDraft(first_line=line.number, at=line.at, host=line.host)
        if not draft.take(message):
            return None
        for host, parked in list(self._parked.items()):
            old = parked.draft
            if old and (old.is_ended or line.number - old.last_line > _PARKED_LINES):
                self._close_parked(host)
        self._close()
        self._open = draft
        self._between = message.lines
        return draft

    def _close(self) -> None:
        """The open report is read; only the reaper may still speak of it."""
        draft, self._open = self._open, None
        self._waiting.put(draft, self._oldest())
        if self._waiting.is_full and self._parked:
            self._close_parked(next(iter(self._parked)))

    def _oldest(self) -> int | None:
        """The first line of the oldest report that is open."""
        drafts = (self._open, *(parked.draft for parked in self._parked.values()))
        return min((draft.first_line for draft in drafts if draft), default=None)

    def _turn_to(self, host: str | None) -> None:
        """Lines of another host come; what was open of the last one waits for its next line."""
        if host is None:
            return
        # A log may name its host in some lines only.
        is_of_any = self._open is not None and self._open.host is None and host not in self._parked
        if self._host is not None and not is_of_any:
            self._parked[self._host] = _Open(
                self._open, self._between, self._is_foreign, self._has_foreign_mem
            )
            self._open, self._between, self._is_foreign, self._has_foreign_mem = self._parked.pop(
                host, _Open(None, 0, False, False)
            )
            if len(self._parked) > _PARKED_MOST:
                self._close_parked(next(iter(self._parked)))  # silent for the longest
        self._host = host

    def _close_parked(self, host: str | None) -> None:
        draft = self._parked.pop(host).draft
        self._waiting.put(draft, self._oldest())
        while self._waiting.is_full and self._parked:
            self._close_parked(next(iter(self._parked)))

    def _expire(self) -> None:
        """Reports that lie far behind are complete."""
        before = self._blocks.offset - _WAIT_BYTES
        if self._quote and self._quote.last_offset < before:
            self._close_quote()
        if self._open and self._open.last_offset < before:
            self._close()
        for host, parked in list(self._parked.items()):
            if parked.draft and parked.draft.last_offset < before:
                self._close_parked(host)
        self._waiting.expire(before, self._oldest())


def read_reports(lines: Iterable[bytes], tally: LogTally | None = None) -> Iterator[OomReport]:
    """The reports of a log, in its order; each line with its newline or without.

    With ``tally`` a report that repeats an earlier one is counted there and left out.
    """
    return read_reports_in(blocks_of(lines), tally)


def read_reports_in(blocks: Iterable[bytes], tally: LogTally | None = None) -> Iterator[OomReport]:
    """The same from blocks of any size, cut anywhere; much faster than lines."""
    reader = ReportReader(tally)
    for block in blocks:
        yield from _once(reader.feed(block), tally)
    yield from _once(reader.settle(), tally)


def _once(reports: Iterable[OomReport], tally: LogTally | None) -> Iterator[OomReport]:
    for report in reports:
        if tally is not None:
            if report.repeats_line is not None:
                tally.repeats += 1
                continue
            tally.uncertain += report.may_continue_line is not None
        yield report
