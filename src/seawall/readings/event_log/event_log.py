# SPDX-License-Identifier: Apache-2.0
"""A log of any kind read for events: the lines that tell of them, in bounded memory.

``EventLogReader`` looks at lines as they pass to another reader.  It keeps the newest
``LINES_MOST`` lines that may tell of something, and the first and the last line that has a time.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from seawall.host.event_log.kept_lines import BEGINS_BOOT, HINT, LINE_MOST_BYTES, NEEDLES
from seawall.readings.event_log.kernel_signs import KERNEL_PATTERNS
from seawall.readings.event_log.killer_signs import KILLER_PATTERNS
from seawall.readings.event_log.log_line import NO_MOMENT, LogClock, LogLine, Moment, line_of
from seawall.readings.event_log.node_signs import (
    KUBELET_PATTERNS,
    RUNTIME_PATTERNS,
    SLURM_PATTERNS,
)
from seawall.readings.event_log.sign import Pattern, Sign

LINES_MOST: Final = 20_000
_BLOCK_BYTES: Final = 256 << 10
_BEFORE: Final = 4
"""Lines before the first one of a boot that are looked at for a time: one may be wrapped."""
_WORD_MOST: Final = 1000
_PATTERNS: Final[tuple[Pattern, ...]] = (
    *KERNEL_PATTERNS, *KILLER_PATTERNS, *KUBELET_PATTERNS, *RUNTIME_PATTERNS, *SLURM_PATTERNS,
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
    """``passing`` gives lines on as they are; ``end`` says what was in them."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=LINES_MOST)
        self._before: dict[int, list[tuple[int, bytes]]] = {}
        self._last_lines: deque[bytes] = deque(maxlen=_BEFORE)
        self._number = 0
        self._seen = 0

    def passing(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The same lines; a needle is looked for in many of them at once."""
        held: list[bytes] = []
        size = 0
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= _BLOCK_BYTES:
                self._look(held)
                held, size = [], 0
            yield line
        self._look(held)

    def _look(self, lines: Sequence[bytes]) -> None:
        block = b"".join(lines)
        if any(needle in block for needle in NEEDLES):
            for place, line in enumerate(lines):
                if HINT.search(line, 0, LINE_MOST_BYTES) or b"  " in line or b"earlyoom" in line:
                    self._keep(self._number + place + 1, line, lines, place)
        self._number += len(lines)
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
