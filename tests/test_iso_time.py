"""ISO 8601: alike on every Python, checked against 3.11's own parser where that is here."""

import contextlib
import sys
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.formats.iso_time import iso_datetime

UTC = timezone.utc
MIDNIGHT = datetime(2026, 11, 23, tzinfo=UTC).replace(tzinfo=None)
DAY = MIDNIGHT.replace(hour=10, second=31)
RIGHT = {
    "2026-11-23": MIDNIGHT,
    "20261123": MIDNIGHT,
    "2026-11-23T10": DAY.replace(second=0),
    "2026-11-23 10:00": DAY.replace(second=0),
    "2026-11-23T10:00:31": DAY,
    "2026-11-23T10:00:31Z": DAY.replace(tzinfo=UTC),
    "20261123T100031Z": DAY.replace(tzinfo=UTC),
    "2026-11-23T10:00:31.5Z": DAY.replace(microsecond=500_000, tzinfo=UTC),
    "2026-11-23T10:00:31,25+00:00": DAY.replace(microsecond=250_000, tzinfo=UTC),
    "2026-11-23T10:00:31.123456789+01:00": DAY.replace(
        microsecond=123_456, tzinfo=timezone(timedelta(hours=1))
    ),
    "2026-11-23T10:00:31-0530": DAY.replace(tzinfo=timezone(-timedelta(hours=5, minutes=30))),
    "2026-11-23T10:00:31+02": DAY.replace(tzinfo=timezone(timedelta(hours=2))),
}
WRONG = (
    "", "yesterday", "2026", "2026-13-01", "2026-11-31", "2026-1123", "2026-11-23T",
    "2026-11-23T25:00", "2026-11-23T10:0031", "2026-11-23T10:00:31.", "2026-11-23T10:00:31z",
    "2026-11-23Z",
    "2026-11-23T10:00:31+25:00", "2026-11-23T10:00:31 UTC", " 2026-11-23", "2026-11-23\n",
    "٢٠٢٦-11-23",
)  # fmt: skip


@pytest.mark.parametrize("words", RIGHT)
def test_what_is_a_time(words: str) -> None:
    found = iso_datetime(words)
    assert (found, found.tzinfo) == (RIGHT[words], RIGHT[words].tzinfo)
    if sys.version_info >= (3, 11):
        assert datetime.fromisoformat(words) == found


@pytest.mark.parametrize("words", WRONG)
def test_what_is_none(words: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        iso_datetime(words)


@given(st.datetimes(timezones=st.just(UTC) | st.none()))
def test_what_isoformat_writes_comes_back(moment: datetime) -> None:
    assert iso_datetime(moment.isoformat()) == moment


@given(st.text("0123456789-:.,TZ+ ", max_size=40))
def test_nothing_but_value_error_escapes(words: str) -> None:
    with contextlib.suppress(ValueError):
        iso_datetime(words)
