"""What may stand behind --at, and what is said of the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.blackbox.record_times import MomentNames, Span, moment_of, span_words
from seawall.problems import UsageProblem

END = 1_795_428_031.4
"""2026-11-23T10:00:31.4Z."""
SPAN = Span(END - 7200, END)
NAMED = MomentNames({"1a2b3c4d-0007": END - 20}.get, {4711: END - 30}.get)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-23T10:00:11Z", END - 20.4),
        ("2026-11-23T11:00:11+01:00", END - 20.4),
        ("2026-11-23 10:00:11", END - 20.4),
        ("10:00:11", END - 20.4),
        ("10:00", END - 31.4),
        ("9:30", END - 1831.4),
        ("-90s", END - 90),
        ("-90", END - 90),
        ("-5m", END - 300),
        ("-1.5h", END - 5400),
        ("@1795428000", 1_795_428_000.0),
        ("1a2b3c4d-0007", END - 20),
        ("1a2b3c4d-7", END - 20),
        ("#4711", END - 30),
        ("2026-11-23T10:00:32Z", END),  # within a second of the end: what is printed is cut
    ],
)
def test_a_moment(text: str, moment: float) -> None:
    assert moment_of(text, SPAN, NAMED, "box") == pytest.approx(moment, abs=1e-3)


def test_a_clock_after_the_end_was_of_the_day_before() -> None:
    midnight = Span(1_795_392_000.0 - 3600, 1_795_392_000.0 + 60)
    assert moment_of("23:59:50", midnight, None, "box") == 1_795_392_000.0 - 10


@pytest.mark.parametrize(
    "text", ["", "yesterday", "25:00:00", "10:61", "-5y", "--5s", "@", "#", "#x", "1e9", "-", "T",
             "2026-13-01", "9999-99-99T00:00:00Z", "x" * 5000]
)  # fmt: skip
def test_what_is_none_is_told_what_is_accepted(text: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        moment_of(text, SPAN, NAMED, "the black box /x")
    words = str(caught.value)
    assert "10:00:31" in words
    assert "-90s" in words
    assert span_words(SPAN) in words
    assert len(words) < 500


@pytest.mark.parametrize("text", ["11:00", "-3h", "@5", "2020-01-01", "2026-11-24T00:00:00Z"])
def test_outside_is_refused_with_the_span(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"does not reach that far.*2026-11-23T08:00:31Z to"):
        moment_of(text, SPAN, NAMED, "box")


@pytest.mark.parametrize("text", ["1a2b3c4d-0008", "#4712"])
def test_a_name_that_nobody_has(text: str) -> None:
    with pytest.raises(UsageProblem, match="holds no such number"):
        moment_of(text, SPAN, NAMED, "box")
    with pytest.raises(UsageProblem, match="numbers are in a black box"):
        moment_of(text, SPAN, None, "an export")


@given(st.one_of(st.text(max_size=30), st.from_regex(r"[-@#]?[0-9:.TZ+-]{1,25}", fullmatch=True)))
def test_nothing_else_escapes(text: str) -> None:
    try:
        moment = moment_of(text, SPAN, NAMED, "box")
    except UsageProblem:
        return
    assert SPAN.first_unix_seconds <= moment <= SPAN.last_unix_seconds
