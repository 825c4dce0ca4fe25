# SPDX-License-Identifier: Apache-2.0
"""Logs whose newest line stands first (``journalctl -r``, Grafana's and CloudWatch's exports, what
Loki's API answers), turned round; told by their times alone.  Of JSON in one line its records are
the lines.
"""

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Final

from seawall.findings.blindness import NotSeen

if TYPE_CHECKING:
    from seawall.cli.oom_log_source import Log

TURNED_MOST_BYTES: Final = 64 << 20
"""A log must be held whole to be turned."""
_LOOKED_AT: Final = 300
"""Lines by which the order is told."""
_STEPS_LEAST: Final = 2
"""Steps back in time; two logs in one file make one."""
_TOGETHER: Final = 10_000
"""Turned lines in a block."""
_TIMES_MORE: Final = 10
"""A log in order has few steps back, of clocks that were set and of two sources."""
# Milliseconds, microseconds or nanoseconds since 1970, first in the line or as a field of JSON.
_EPOCH: Final = re.compile(
    rb'(?:\A\[?\s{0,9}"?|"(?:__REALTIME_TIMESTAMP|timestamp|ts|time)" ?: ?"?)'
    rb"(\d{10})(\d{3}(?:\d{3}){0,2})(?!\d)"
)
# In JSON of one line.  In the text of a message the quote would have a backslash before it.
_RECORD: Final = re.compile(rb'(?:[}\]]\s{0,80},|\[)\s{0,80}(?=[{\[]\s{0,80}")')
_TAC: Final = "tac FILE | seawall oom explain -, if it is"


def oldest_first(blocks: Iterable[bytes], log: "Log") -> Iterator[bytes]:
    """The same blocks of whole lines, in the order of time where their times tell it; ``log``
    gets what was done or could not be told.
    """
    rest = iter(blocks)
    held: list[bytes] = []
    head: list[bytes] = []
    for block in rest:
        held.append(block)
        head += islice(_records(block), _LOOKED_AT - len(head))
        if len(head) >= _LOOKED_AT:
            break
    known = [time for time in map(_seconds, head) if time is not None]
    pairs = [(one, two) for one, two in pairwise(known) if one[0] == two[0]]  # of one clock
    back = sum(two < one for one, two in pairs)
    on = sum(two > one for one, two in pairs)
    if back < _STEPS_LEAST or back <= _TIMES_MORE * on:
        if not on and (back or _ends_first(head)):
            why = "its times do not tell: they hardly differ" if known else "it has no times"
            log.add([NotSeen("whether the newest line stands first", why, _TAC)])
        return chain(held, rest)
    size = sum(map(len, held))
    for block in rest:
        held.append(block)
        size += len(block)
        if size > TURNED_MOST_BYTES:
            why = f"newest first, and of more than {TURNED_MOST_BYTES >> 20} MiB: not turned"
            log.add([NotSeen("the order of the log", why, "tac FILE | seawall oom explain -")])
            return chain(held, rest)
    log.add(
        [NotSeen("line numbers", "the newest line stands first: counted from its end", "nothing")]
    )
    return _turned(list(_records(b"".join(held))))


def _records(data: bytes) -> Iterator[bytes]:
    """Its lines, and those that are JSON record by record."""
    for line in BytesIO(data):
        at = 0
        if line[:1] in b"{[":
            for record in _RECORD.finditer(line):
                yield line[at : record.end()]
                at = record.end()
        yield line[at:]


def _turned(lines: list[bytes]) -> Iterator[bytes]:
    """Last line first; what has no time goes on the line before it, and stays behind that."""
    end, turned = len(lines), list[bytes]()
    for place in range(len(lines) - 1, -1, -1):
        if place and _seconds(lines[place]) is None:
            continue
        turned += (line if line.endswith(b"\n") else line + b"\n" for line in lines[place:end])
        end = place
        if len(turned) >= _TOGETHER:
            yield b"".join(turned)
            turned = []
    yield b"".join(turned)


def _ends_first(lines: list[bytes]) -> bool:
    """Whether a kill stands before the first line of any report."""
    kill = next((i for i, line in enumerate(lines) if b"Killed process" in line), None)
    head = next((i for i, line in enumerate(lines) if b"invoked oom-killer" in line), None)
    return kill is not None and head is not None and kill < head


def _seconds(line: bytes) -> tuple[int, float] | None:
    """Which clock the line has, and its time by that."""
    from seawall.readings.event_log.log_line import LogClock, line_of  # noqa: PLC0415 - a FILE's

    epoch = _EPOCH.search(line, 0, 1 << 16 if line[:1] == b"{" else 400)
    if epoch:
        return 0, int(epoch[1]) + float(b"0." + epoch[2])
    looked_at = line if line[:1] == b"{" else line[:400]
    moment = line_of(looked_at, 0, LogClock()).moment
    clocks = (moment.unix_seconds, moment.wall_seconds, moment.boot_seconds)
    return next(((i, time) for i, time in enumerate(clocks) if time is not None), None)
