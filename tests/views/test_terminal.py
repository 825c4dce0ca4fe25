import string

from hypothesis import given
from hypothesis import strategies as st

from seawall.findings.finding import Evidence
from seawall.views.document import render, taken_at, with_unread
from seawall.views.terminal import Console, plain, shorten, shorten_path
from seawall.views.why_text import shown_value
from seawall.words import duration, percent, size

RISKY = "a\x1b[31mb\nc\rd\u202ee\u2028f\x9b1m\udcffg\u200bh\x00"


@given(st.text(alphabet=st.characters()) | st.just(RISKY))
def test_nothing_that_steers_a_terminal_survives(text: str) -> None:
    shown = plain(text)
    shown.encode("utf-8")  # no lone surrogate either
    assert all(char.isprintable() for char in shown)


def test_names_stay_recognisable() -> None:
    assert plain(RISKY) == ("a\\x1b[31mb\\x0ac\\x0dd\\u202ee\\u2028f\\x9b1m\\xffg\\u200bh\\x00")
    assert plain("web/über-pod") == "web/über-pod"


@given(
    st.text(alphabet=string.ascii_letters + " -", max_size=600),
    st.integers(min_value=20, max_value=120),
)
def test_wrapped_lines_fit_and_lose_no_word(text: str, width: int) -> None:
    lines = list(Console(width=width).wrap(text, "    ", "  do  "))
    words = text.split()
    for line in lines:
        assert len(line) <= max(width, 6 + max(map(len, words), default=0))
    assert " ".join(lines).split()[1:] == words


def test_sizes_are_binary_and_round_once() -> None:
    assert size(0) == "0 B"
    assert size(1023) == "1023 B"
    assert size(33_770_000_000 * 1.0737418) == "33.8 GiB"
    assert size((1 << 30) - 1) == "1.0 GiB"
    assert size(-3 << 20) == "-3.0 MiB"
    assert size(150 << 30) == "150 GiB"
    assert percent(0.004) == "0.4 %"
    assert percent(0.42) == "42 %"
    assert [duration(s) for s in (45, 600, 36000, 500_000)] == ["45 s", "10 min", "10 h", "6 days"]


def test_values_are_shown_with_their_unit() -> None:
    assert shown_value(Evidence("x", 1 << 30, "bytes", "/p")) == "1.0 GiB"
    assert shown_value(Evidence("x", None, "bytes", "/p")) == "no limit"
    assert shown_value(Evidence("x", 8650926, "count", "/p")) == "8,650,926"
    assert shown_value(Evidence("x", "a\x1bb", "text", "/p")) == "a\\x1bb"


def test_table_cuts_names_in_the_middle_and_fits() -> None:
    name = "a-very-long-namespace/a-very-long-pod-name-5d4f8c7b9-x2x4z/container"
    lines = Console(width=40).table(("workload", "limit"), [(name, "40.0 GiB"), ("b", "1")])
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].startswith("a-very")
    assert "container  40.0 GiB" in lines[1]
    assert shorten("abc", 3) == "abc"
    assert len(shorten(name, 20)) == 20


def test_bar_shows_any_share_above_zero() -> None:
    paper = Console()
    assert paper.bar(0.0, 10) == "." * 10
    assert paper.bar(0.0001, 10) == "#" + "." * 9
    assert paper.bar(1.7, 10) == "#" * 10


def test_documents_hold_no_surrogate_and_no_nan() -> None:
    text = render({"name\udcff": ["a\x1b\udc80", 1, None]})
    assert "\\\\x80" in text
    assert "\\u001b" in text
    assert with_unread({"a": 1, "b": None})["unread"] == ["b"]
    assert taken_at(0.0) == "1970-01-01T00:00:00Z"
    assert taken_at(1e300) is None
    assert taken_at(None) is None


def test_path_keeps_the_name_of_its_file() -> None:
    path = "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so"
    assert shorten_path(path, 40).endswith("../_multiarray_umath.so")
    assert len(shorten_path(path, 40)) == 40
    assert shorten_path(path, 100) == path
    assert len(shorten_path("/a/" + "x" * 90, 40)) == 40
