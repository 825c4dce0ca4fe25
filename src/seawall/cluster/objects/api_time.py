# SPDX-License-Identifier: Apache-2.0
"""Times of the API: RFC 3339 with microseconds and Z; inside, seconds since 1970 as a float.

A float of today's seconds is exact to a quarter of a microsecond, so a time that was written and
read again is the same float: a judge that reads deaths back says the same to the last digit.
"""

import math
from datetime import datetime, timedelta, timezone
from typing import Final

from seawall.formats.iso_time import iso_datetime

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOST_SECONDS: Final = 4_102_444_800.0
"""The year 2100: what claims to be later is no time of a node."""


def time_words(seconds: float) -> str:
    """``2026-11-28T01:02:03.000004Z``.  ValueError: before 1970, after 2100."""
    if not (math.isfinite(seconds) and 0.0 <= seconds <= _MOST_SECONDS):
        raise ValueError(f"no time: {seconds!r} s since 1970")
    moment = _EPOCH + timedelta(microseconds=round(seconds * 1e6))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_seconds(words: str) -> float:
    """Seconds since 1970.  ValueError: no time, one without a zone, before 1970, after 2100."""
    moment = iso_datetime(words)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {words!r}")
    try:
        microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
    except OverflowError as problem:
        raise ValueError(f"no time: {words!r}") from problem
    seconds = microseconds / 1e6
    if not 0.0 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"a time before 1970 or after 2100: {words!r}")
    return seconds


def microsecond_of(seconds: float) -> float:
    """The float that ``time_words`` and ``time_seconds`` make of it."""
    return round(seconds * 1e6) / 1e6
