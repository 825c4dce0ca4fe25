# SPDX-License-Identifier: Apache-2.0
"""A log of any kind read for events: the lines that tell of them, in bounded memory.

``EventLogReader`` looks at lines that pass to another reader: at the last ``TAIL_BYTES`` of them,
of which the newest ``LINES_MOST`` that may tell of something are kept.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from seawall.host.event_log.kept_lines import BEGINS_BOOT, HINT, LINE_MOST_BYTES, may_hold_one
from seawall.readings.event_log.kernel_signs import KERNEL_PATTERNS
from seawall.readings.event_log.killer_signs import KILLER_PATTERNS
from seawall.readings.event_log.log_line import NO_MOMENT, LogClock, LogLine, Moment, line_of
from seawall.readings.event_log.node_signs import (
    KUBELET_PATTERNS,
    POD_PATTERNS,
    RUNTIME_PATTERNS,
    SLURM_PATTERNS,
)
from seawall.readings.event_log.sign import Pattern, Sign

LINES_MOST: Final = 20_000
TAIL_BYTES: Final = 8 << 20
"""Of a log its end is looked at: what happened last stands there."""
_BLOCK_BYTES: Final = 256 << 10
_BEFORE: Final = 4
"""Lines before the first one of a boot that are looked at for a time: one may be wrapped."""
_WORD_MOST: Final = 1000
_PATTERNS: Final[tuple[Pattern, ...]] = (
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
    moments: dict[int, Moment]
    """Of each of them."""
    last: Moment
    """Of the last line that has one."""
    left_out: int
    """Older lines that were too many."""


class EventLogReader:
    """``passing`` gives lines on as they are; ``end`` says what was in the last of them.

    Nothing is looked at before the end: a log of gigabytes passes as fast as without it.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=LINES_MOST)
        self._before: dict[int, list[tuple[int, bytes]]] = {}
        self._last_lines: deque[bytes] = deque(maxlen=_BEFORE)
        self._blocks: deque[tuple[int, int, list[bytes]]] = deque()
        self._held = 0
        self._seen = 0
        self.left_out_lines = 0
        """Lines before those that are looked at."""

    def passing(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The same lines; those of the last ``TAIL_BYTES`` are kept for the end."""
        block: list[bytes] = []
        size = number = 0
        for line in lines:
            block.append(line)
            size += len(line)
            if size >= _BLOCK_BYTES:
                self._hold(number, size, block)
                number += len(block)
                block, size = [], 0
            yield line
        self._hold(number, size, block)

    def _hold(self, number: int, size: int, block: list[bytes]) -> None:
        self._blocks.append((number, size, block))
        self._held += size
        while self._held > TAIL_BYTES and len(self._blocks) > 1:
            first, old, lines = self._blocks.popleft()
            self._held -= old
            self.left_out_lines = first + len(lines)

    def _look(self, first: int, lines: Sequence[bytes]) -> None:
        if may_hold_one(b"".join(lines)):
            for place, line in enumerate(lines):
                self._keep(first + place + 1, line, lines, place)
        self._last_lines.extend(lines[-_BEFORE:])

    def _keep(self, number: int, line: bytes, lines: Sequence[bytes], place: int) -> None:
        if not HINT.search(line, 0, LINE_MOST_BYTES):
            return
        self._seen += 1
        self._kept.append((number, line[:LINE_MOST_BYTES]))
        if BEGINS_BOOT.search(line, 0, LINE_MOST_BYTES) and len(self._before) < LINES_MOST:
            before = [*self._last_lines, *lines[max(0, place - _BEFORE) : place]][-_BEFORE:]
            first = number - len(before)
            self._before[number] = [(first + i, b[:LINE_MOST_BYTES]) for i, b in enumerate(before)]

    def end(self, clock: LogClock) -> EventLog:
        """After the last line."""
        while self._blocks:
            first, _, block = self._blocks.popleft()
            self._look(first, block)
        lines = [line_of(raw, number, clock) for number, raw in self._kept]
        before = {}
        for number, rows in self._before.items():
            dated = (line_of(raw, n, clock) for n, raw in reversed(rows))
            found = next((line for line in dated if line.moment != NO_MOMENT), None)
            if found is not None:
                before[number] = found
        last = next(
            (moment for raw in reversed(self._last_lines)
             if (moment := line_of(raw, 0, clock).moment) != NO_MOMENT), NO_MOMENT,
        )  # fmt: skip
        return EventLog(
            signs=tuple(sign for line in lines if (sign := sign_of(line)) is not None),
            before_boot=before, raw=tuple(self._kept),
            moments={line.number: line.moment for line in lines}, last=last,
            left_out=self._seen - len(self._kept),
        )  # fmt: skip


def read_events(lines: Iterable[bytes], clock: LogClock) -> EventLog:
    """All of a log at once."""
    reader = EventLogReader()
    for _ in reader.passing(lines):
        pass
    return reader.end(clock)


def sign_of(line: LogLine) -> Sign | None:
    """What a line says; None where no pattern knows it, or another program quotes it."""
    text = line.text
    for what, needle, regex, programs in _PATTERNS:
        if needle not in text or not _may_say(line.program, programs):
            continue
        found = regex.match(text)
        if found:
            words = {name: (word or "")[:_WORD_MOST] for name, word in found.groupdict().items()}
            return Sign(what, line, words)
    return None


def _may_say(program: str, programs: frozenset[str]) -> bool:
    if not programs:
        return True
    name = program.rpartition("/")[2]
    if not name:
        return "systemd-shutdown" not in programs and "systemd-modules-load" not in programs
    return name in programs
