# SPDX-License-Identifier: Apache-2.0
"""Logs whose newest line stands first (``journalctl -r``, Grafana's and CloudWatch's exports),
turned round; told by their times alone.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
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
_TIMES_MORE: Final = 10
"""A log in order has few steps back, of clocks that were set and of two sources."""
# Milliseconds, microseconds or nanoseconds since 1970, first in the line or as a field of JSON.
_EPOCH: Final = re.compile(
    rb'(?:\A"?|"(?:__REALTIME_TIMESTAMP|timestamp|ts|time)" ?: ?"?)(\d{10})(\d{3}(?:\d{3}){0,2})(?!\d)'
)
_TAC: Final = "tac FILE | seawall oom explain -, if it is"


def oldest_first(lines: Iterable[bytes], log: "Log") -> Iterator[bytes]:
    """The same lines, in the order of time where their times tell it; ``log`` gets what was done
    or could not be told.
    """
    rest = iter(lines)
    held: list[bytes] = []
    for line in rest:
        held.append(line)
        if len(held) >= _LOOKED_AT:
            break
    times = [_seconds(line) for line in held]
    known = [time for time in times if time is not None]
    pairs = list(pairwise(known))
    back = sum(later < first for first, later in pairs)
    on = sum(later > first for first, later in pairs)
    if back < _STEPS_LEAST or back <= _TIMES_MORE * on:
        if not on and (back or _ends_first(held)):
            why = "its times do not tell: they hardly differ" if known else "it has no times"
            log.add([NotSeen("whether the newest line stands first", why, _TAC)])
        return chain(held, rest)
    size = sum(map(len, held))
    for line in rest:
        held.append(line)
        times.append(_seconds(line))
        size += len(line)
        if size > TURNED_MOST_BYTES:
            why = f"newest first, and of more than {TURNED_MOST_BYTES >> 20} MiB: not turned"
            log.add([NotSeen("the order of the log", why, "tac FILE | seawall oom explain -")])
            return chain(held, rest)
    log.add(
        [NotSeen("line numbers", "the newest line stands first: counted from its end", "nothing")]
    )
    return _turned(held, times)


def _turned(lines: list[bytes], times: list[float | None]) -> Iterator[bytes]:
    """Last line first; what has no time goes on the line before it, and stays behind that."""
    end = len(lines)
    for place in range(len(lines) - 1, -1, -1):
        if times[place] is None and place:
            continue
        for line in lines[place:end]:
            yield line if line.endswith(b"\n") else line + b"\n"
        end = place


def _ends_first(lines: list[bytes]) -> bool:
    """Whether a kill stands before the first line of any report."""
    kill = next((i for i, line in enumerate(lines) if b"Killed process" in line), None)
    head = next((i for i, line in enumerate(lines) if b"invoked oom-killer" in line), None)
    return kill is not None and head is not None and kill < head


def _seconds(line: bytes) -> float | None:
    """By whatever clock the line has; only for comparison with its neighbours."""
    from seawall.readings.event_log.log_line import LogClock, line_of  # noqa: PLC0415 - a FILE's

    epoch = _EPOCH.search(line, 0, 1 << 16 if line[:1] == b"{" else 400)
    if epoch:
        return int(epoch[1]) + float(b"0." + epoch[2])
    looked_at = line if line[:1] == b"{" else line[:400]
    moment = line_of(looked_at, 0, LogClock()).moment
    for seconds in (moment.unix_seconds, moment.wall_seconds, moment.boot_seconds):
        if seconds is not None:
            return seconds
    return None
