# SPDX-License-Identifier: Apache-2.0
"""A log of any kind read for events: the lines that tell of them, in bounded memory.

``EventLogReader`` looks at lines that pass to another reader: at the last ``TAIL_BYTES`` of them,
of which the newest ``LINES_MOST`` that may tell of something are kept.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from seawall.host.event_log.event_line_filter import BEGINS_BOOT, LINE_MOST_BYTES, hinted_lines
from seawall.readings.event_log.kernel_signs import KERNEL_PATTERNS
from seawall.readings.event_log.killer_signs import KILLER_PATTERNS
from seawall.readings.event_log.log_line import NO_MOMENT, LogClock, LogLine, LogTime, line_of
from seawall.readings.event_log.node_signs import (
    KUBELET_PATTERNS,
    POD_PATTERNS,
    RUNTIME_PATTERNS,
    SLURM_PATTERNS,
)
from seawall.readings.event_log.sign import Pattern, Sign
from seawall.readings.oom_log.blocks import blocks_of

LINES_MOST: Final = 20_000
TAIL_BYTES: Final = 8 << 20
"""Of a log its end is looked at: what happened last stands there."""
_BEFORE: Final = 4
"""Lines before the first one of a boot that are looked at for a time: one may be wrapped."""
_WORD_MOST: Final = 1000
_OF_KILL: Final = re.compile(
    rb"invoked oom-killer|oom-kill:constraint|oom_reaper: |memory: usage \d"
    rb"| cpuset=\S{1,200} mems_allowed|(?:Memory cgroup out of memory|Out of memory): Kill"
)
PATTERNS: Final[tuple[Pattern, ...]] = (
    *KERNEL_PATTERNS, *KILLER_PATTERNS, *KUBELET_PATTERNS, *RUNTIME_PATTERNS, *POD_PATTERNS,
    *SLURM_PATTERNS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EventLog:
    """What one log tells of events, in its own order."""

    signs: tuple[Sign, ...]
    before_boot: dict[int, LogLine]
    """By the number of a line that begins a boot: the last line before it that has a time."""
    raw: tuple[tuple[int, bytes], ...]
    """The lines that are kept, for the reader of OOM reports."""
    moments: dict[int, LogTime]
    """Of each of them."""
    last: LogTime
    """Of the last line that has one."""


class EventLogReader:
    """``passing`` gives a log on as it is; ``end`` says what was in the last of it.

    Nothing is looked at before the end: a log of gigabytes passes as fast as without it.
    ``is_beside_reports``: the kernel's own lines of its kills are left to another reader.
    """

    def __init__(self, *, is_beside_reports: bool = False) -> None:
        self._is_beside_reports = is_beside_reports
        self._blocks: deque[bytes] = deque()
        self._held_bytes = 0
        self.left_out_lines = 0
        """Lines before those that are looked at; known at the end."""

    def passing(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, each of whole lines."""
        for block in blocks:
            self._blocks.append(block)
            self._held_bytes += len(block)
            while self._held_bytes - len(self._blocks[0]) >= TAIL_BYTES:
                self._held_bytes -= len(self._blocks[0])
                self.left_out_lines += self._blocks.popleft().count(b"\n")
            yield block

    def _tail(self) -> bytes:
        data = b"".join(self._blocks)
        self._blocks.clear()
        if len(data) <= TAIL_BYTES:
            return data
        cut = data.find(b"\n", len(data) - TAIL_BYTES) + 1
        self.left_out_lines += data.count(b"\n", 0, cut)
        return data[cut:]

    def end(self, clock: LogClock) -> EventLog:
        """The log that was taken line by line; call it once, after the last one."""
        data = self._tail()
        raw: list[tuple[int, bytes]] = []
        before: dict[int, LogLine] = {}
        number, at = self.left_out_lines + 1, 0
        for start, text in hinted_lines(data, LINES_MOST):
            if self._is_beside_reports and _OF_KILL.search(text):
                continue
            number += data.count(b"\n", at, start)
            at = start
            raw.append((number, text))
            if BEGINS_BOOT.search(text):
                dated = _last_dated(data, start, number, clock)
                if dated is not None:
                    before[number] = dated
        last = _last_dated(data, len(data), 0, clock)
        signs: list[Sign] = []
        moments: dict[int, LogTime] = {}
        for number, text in raw:
            line = line_of(text, number, clock)
            moments[number] = line.moment
            if sign := sign_of(line):
                signs.append(sign)
        return EventLog(
            signs=tuple(signs), before_boot=before, raw=tuple(raw), moments=moments,
            last=NO_MOMENT if last is None else last.moment,
        )  # fmt: skip


def _last_dated(data: bytes, end: int, number: int, clock: LogClock) -> LogLine | None:
    """The last line with a time of the _BEFORE ones before ``number``, which begins at ``end``."""
    for back in range(1, _BEFORE + 1):
        if not end:
            break
        start = data.rfind(b"\n", 0, end - 1) + 1
        line = line_of(data[start : min(end, start + LINE_MOST_BYTES)], number - back, clock)
        if line.moment != NO_MOMENT:
            return line
        end = start
    return None


def read_events(lines: Iterable[bytes], clock: LogClock) -> EventLog:
    """All of a log at once."""
    reader = EventLogReader()
    for _ in reader.passing(blocks_of(lines)):
        pass
    return reader.end(clock)


def sign_of(line: LogLine) -> Sign | None:
    """What a line says; None where no pattern knows it, or another program quotes it."""
    text = line.text
    for one in PATTERNS:
        if one.needle not in text or not _may_say(line.program, one.programs):
            continue
        found = one.match(text)
        if found:
            words = {name: (word or "")[:_WORD_MOST] for name, word in found.groupdict().items()}
            return Sign(one.what, line, words)
    return None


def _may_say(program: str, programs: frozenset[str]) -> bool:
    if not programs:
        return True
    name = program.rpartition("/")[2]
    if not name:
        return "systemd-shutdown" not in programs and "systemd-modules-load" not in programs
    return name in programs
