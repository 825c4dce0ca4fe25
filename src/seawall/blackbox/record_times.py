# SPDX-License-Identifier: Apache-2.0
"""What people write behind ``--at``, as a moment of a record: of a black box or an export of it.

A moment is Unix seconds.  A time without a zone is UTC, as everything is printed.
"""

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Final, NamedTuple

from seawall.formats.iso_time import iso_datetime
from seawall.problems import UsageProblem

DAY_SECONDS: Final = 86_400.0
EXPECTED: Final = (
    "a time (2026-11-23T10:00:31Z, 10:00:31, @1795428031, or -90s before the end), a decision "
    "(1a2b3c4d-0007) or the number of a frame (#4711)"
)
_TEXT_MOST: Final = 64
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?\Z", re.ASCII)
_BEFORE: Final = re.compile(r"-(\d{1,9}(?:\.\d{1,6})?)(s|min|m|h|d)?\Z", re.ASCII)
_UNIX: Final = re.compile(r"@(\d{1,11}(?:\.\d{1,9})?)\Z", re.ASCII)
_FRAME: Final = re.compile(r"#(\d{1,19})\Z", re.ASCII)
_DECISION: Final = re.compile(r"([0-9a-f]{8})-(\d{1,9})\Z", re.ASCII)
_UNIT_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": DAY_SECONDS}
_SAME_SECOND: Final = 1.0
"""What is printed is cut to the second: the last moment, copied, lies just before itself."""


class Span(NamedTuple):
    """From the first to the last moment that can be asked for."""

    first_unix_seconds: float
    last_unix_seconds: float
    written_last: float | None = None
    """The moment that was written last, where a clock was set back since the latest one."""

    @property
    def end_unix_seconds(self) -> float:
        """Of what was written last: when the record ended."""
        return self.last_unix_seconds if self.written_last is None else self.written_last


class MomentNames(NamedTuple):
    """Finds moments that have a name; each gives None where there is none such."""

    decision: Callable[[str], float | None]
    frame: Callable[[int], float | None]
    ago: Callable[[float], float | None] = lambda _seconds: None
    """So many seconds before the end, by a clock that nobody sets; None: in another boot."""


def moment_of(text: str, span: Span, numbered: MomentNames | None, where: str) -> float:
    """The moment that ``text`` means, within ``span``; UsageProblem with what is accepted."""
    words = text.strip()[:_TEXT_MOST]
    if match := _FRAME.match(words):
        return _named(words, numbered and numbered.frame(int(match[1])), numbered, span, where)
    if name := decision_of(words):
        return _named(words, numbered and numbered.decision(name), numbered, span, where)
    moment = _time_of(words, span, numbered)
    if moment is None:
        raise UsageProblem(f"--at {words!r}: expected {EXPECTED}; {where} holds {span_words(span)}")
    if not span.first_unix_seconds - _SAME_SECOND < moment < span.last_unix_seconds + _SAME_SECOND:
        raise UsageProblem(
            f"--at {words!r}: {where} does not reach that far; it holds {span_words(span)}"
        )
    return min(max(moment, span.first_unix_seconds), span.last_unix_seconds)


def decision_of(text: str) -> str:
    """The decision that ``text`` names, whose zeros need not be typed; empty: it names none."""
    match = _DECISION.match(text.strip()[:_TEXT_MOST])
    return f"{match[1]}-{int(match[2]):04d}" if match else ""


def span_words(span: Span) -> str:
    """The span in words: ``2026-11-23T09:00:00Z to 2026-11-23T10:00:31Z``."""
    return f"{rfc3339_of(span.first_unix_seconds)} to {rfc3339_of(span.last_unix_seconds)}"


def rfc3339_of(unix_seconds: float) -> str:
    """RFC 3339 in UTC, to the second; ``@SECONDS`` where no calendar reaches."""
    try:
        moment = datetime.fromtimestamp(unix_seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return f"@{unix_seconds:.0f}"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _named(
    words: str, found: float | None, numbered: MomentNames | None, span: Span, where: str
) -> float:  # fmt: skip
    if found is not None:
        return min(max(found, span.first_unix_seconds), span.last_unix_seconds)
    why = "holds no such number" if numbered else "tells times only: numbers are in a black box"
    raise UsageProblem(f"--at {words!r}: {where} {why}; it holds {span_words(span)}")


def _time_of(words: str, span: Span, numbered: MomentNames | None) -> float | None:
    """None: none of the forms."""
    if match := _UNIX.match(words):
        return float(match[1])
    if match := _BEFORE.match(words):
        seconds = float(match[1]) * _UNIT_SECONDS[match[2] or ""]
        found = numbered and numbered.ago(seconds)
        return span.end_unix_seconds - seconds if found is None else found
    if match := _CLOCK.match(words):
        return _of_newest_day(int(match[1]), int(match[2]), float(match[3] or 0), span)
    try:
        moment = iso_datetime(words)
    except ValueError:
        return None
    try:
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (OverflowError, ValueError):
        return None
    return seconds if math.isfinite(seconds) else None


def _of_newest_day(hour: int, minute: int, second: float, span: Span) -> float | None:
    """The last time that a clock showed this before the record ended."""
    try:
        end = datetime.fromtimestamp(span.end_unix_seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
    midnight = end.replace(hour=0, minute=0, second=0, microsecond=0)
    moment = (midnight + timedelta(hours=hour, minutes=minute, seconds=second)).timestamp()
    is_later = moment >= span.end_unix_seconds + _SAME_SECOND
    day_before = moment - DAY_SECONDS
    return day_before if is_later and day_before > span.first_unix_seconds - 1 else moment
