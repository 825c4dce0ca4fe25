# SPDX-License-Identifier: Apache-2.0
"""The probe ``event_log``: lines of kernel log, journal and guard that tell of an event.

Which lines those are: host/event_log/event_line_filter.py.  Lines are what programs and their
users wrote, and a bundle may hold anything.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.readings.probe_answer import each, reason, seconds

PROBE: Final = "event_log"
CAPTURED_SECONDS: Final = 86_400
"""So far back a bundle is filled."""
_LINES_MOST: Final = 5000
_SOURCES_MOST: Final = 16


class EventSource(NamedTuple):
    """One log and its lines that tell of an event."""

    name: str
    """``/dev/kmsg``, ``journal``, ``guard`` (its decisions), a file's path."""
    lines: tuple[bytes, ...]
    """Oldest first."""
    problem: Unread | None
    """Why it, or its rest, could not be read."""


@dataclass(frozen=True, slots=True)
class EventLines:
    """The topic: lines of kernel log, journal and guard that tell of an event."""

    unix_seconds: float
    """When it was read."""
    boot_unix_seconds: float
    """When the clock of the kernel's log stood at zero."""
    sources: tuple[EventSource, ...]


def read(host: Host) -> EventLines | Unread:
    """Of the last day: what a bundle holds."""
    return lines_told(host.ask(PROBE, str(CAPTURED_SECONDS)))


def lines_told(answer: JSON | Unread) -> EventLines | Unread:
    """From the probe's answer; Unread (``malformed``) for anything else."""
    if isinstance(answer, Unread):
        return answer
    values = answer if isinstance(answer, dict) else {}
    now, boot = seconds(values.get("unix_seconds")), seconds(values.get("boot_unix_seconds"))
    sources = each(values.get("sources"), _source)
    if now is None or boot is None or sources is None or len(sources) > _SOURCES_MOST:
        return Unread(PROBE, "malformed", "expected unix_seconds, boot_unix_seconds and sources")
    return EventLines(now, boot, sources)


def _source(value: JSON) -> EventSource | None:
    match value:
        case [str(name), list(lines), problem] if len(lines) <= _LINES_MOST:
            pass
        case _:
            return None
    if not all(isinstance(line, str) for line in lines):
        return None
    raw = tuple(str(line).encode("utf-8", "backslashreplace") for line in lines)
    return EventSource(name[:4096], raw, reason(name, problem))
