"""The page of ``seawall report --html``: well formed, quiet towards the network, and deaf to names
that are markup.
"""

import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree.ElementTree import Element

import pytest
from tests.views.incident_pages import page_of

from seawall.views.blackbox_page import BoxEvent, thinned
from seawall.views.html_report.html_elements import element, html_bytes, style_sheet
from seawall.views.html_report.incident_html import _history, incident_html
from seawall.views.html_report.incident_page import HistoryPoint, IncidentHistory, IncidentPage
from seawall.views.html_report.line_chart import ChartMark, ChartSeries, line_chart

HOSTILE = "<script>alert(1)</script>\"'&amp;\x1b[2J\u202e\n\x00"
VOID = ("meta", "link", "br", "img", "input", "hr")


class Outline(HTMLParser):
    """Elements, each closed by its own end, attributes, text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(data: bytes) -> Outline:
    parser = Outline()
    parser.feed(data.decode())
    parser.close()
    assert not parser.open
    return parser


@pytest.fixture(scope="module")
def hostile_page() -> IncidentPage:
    return page_of(HOSTILE)


def test_a_name_that_is_markup_is_text(hostile_page: IncidentPage) -> None:
    parser = outline(incident_html(hostile_page))
    assert "script" not in parser.tags
    assert "<script>alert(1)</script>" in parser.text
    assert not any(name.startswith("on") for name, _ in parser.attributes)
    for steering in ("\x1b", "\u202e", "\x00"):
        assert steering not in parser.text
        assert not any(steering in (value or "") for _, value in parser.attributes)


def test_no_value_gets_into_the_style(hostile_page: IncidentPage) -> None:
    styles = re.findall(rb"<style>(.*?)</style>", incident_html(hostile_page), re.DOTALL)
    assert len(styles) == 1
    assert b"alert" not in styles[0]
    assert not any(name == "style" for name, _ in outline(incident_html(hostile_page)).attributes)


def test_nothing_is_loaded_from_anywhere(hostile_page: IncidentPage) -> None:
    parser = outline(incident_html(hostile_page))
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(parser.tags)
    assert not {"src", "href", "action", "xlink:href"} & {name for name, _ in parser.attributes}
    style = incident_html(hostile_page).partition(b"<style>")[2].partition(b"</style>")[0]
    assert b"url(" not in style
    assert b"@import" not in style
    policy = dict(parser.attributes)["content"]
    assert ("http-equiv", "Content-Security-Policy") in parser.attributes
    assert any("default-src 'none'" in (value or "") for _, value in parser.attributes), policy


def test_who_cannot_see_it_can_hear_it(hostile_page: IncidentPage) -> None:
    """Language, one first heading, headings without a gap, names for pictures and columns."""
    data = incident_html(hostile_page)
    parser = outline(data)
    assert b'<html lang="en">' in data
    levels = [int(tag[1]) for tag in parser.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    for svg in re.findall(rb"<svg[^>]*>", data):
        assert b"aria-label=" in svg or b"aria-hidden=" in svg
    assert data.count(b"<th") == data.count(b'<th scope="col"') + data.count(b"<thead")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(place: int) -> None:
    """WCAG 2.1, 1.4.3: 4.5 to 1."""
    from seawall.views.html_report.page_style import STYLE

    block = re.findall(r":root \{([^}]*)\}", STYLE)[place]
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    for ground in ("ground", "panel"):
        for ink in ("ink", "soft", "critical", "warning", "info", "good"):
            pair = sorted((luminance(colours[ground]), luminance(colours[ink])))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (ground, ink)


# --- charts --------------------------------------------------------------------------------


def chart(points: list[tuple[float, float]], marks: list[ChartMark] | None = None) -> Element:
    series = ChartSeries(title="Headroom", unit="bytes", points=points)
    return line_chart(series, marks or [], 1000.0, 1060.0, "10:00:31Z")


def curves(svg: Element) -> Iterator[list[tuple[float, float]]]:
    for line in svg.iter("polyline"):
        yield [tuple(map(float, p.split(","))) for p in line.get("points", "").split()]  # type: ignore[misc]


def test_more_is_higher_and_later_is_further_right() -> None:
    (curve,) = curves(chart([(1000, 0), (1010, 1 << 30), (1020, 1 << 29)]))
    xs, ys = zip(*curve, strict=True)
    assert list(xs) == sorted(xs)
    assert ys[1] < ys[2] < ys[0]


def test_where_nothing_was_recorded_there_is_no_line() -> None:
    points = [(1000.0 + n, 1e9) for n in range(10)] + [(1050.0 + n, 1e9) for n in range(10)]
    assert [len(curve) for curve in curves(chart(points))] == [10, 10]


def test_the_axis_has_units_and_counts_back_from_the_end() -> None:
    words = [text.text or "" for text in chart([(1000, 1 << 30), (1060, 3 << 30)]).iter("text")]
    assert {"0 B", "4.0 GiB", "10:00:31Z", "-30 s"} <= set(words)


def test_the_words_of_a_chart_say_what_it_shows() -> None:
    label = chart([(1000, 2 << 30), (1030, 1 << 30)]).get("aria-label")
    assert label == "Headroom: 1.0 GiB at least, 2.0 GiB at most, 1.0 GiB at 10:00:31Z"


def test_marks_on_one_another_have_one_label() -> None:
    marks = [ChartMark(unix_seconds=at, number=n, kind="kill", words="x")
             for n, at in enumerate((1010.0, 1010.1, 1010.2, 1050.0), start=1)]  # fmt: skip
    svg = chart([(1000, 1), (1060, 1)], marks)
    labels = [text.text for group in svg.iter("g") if "mark" in (group.get("class") or "")
              for text in group.iter("text")]  # fmt: skip
    assert labels == ["1-3", "4"]


@pytest.mark.parametrize("value", [0.0, 1.0, float(1 << 62), 1e300])
def test_absurd_values_stay_within_the_picture(value: float) -> None:
    for curve in curves(chart([(1000, value), (1060, value)])):
        assert all(math.isfinite(y) and 0 <= y <= 200 for _, y in curve)


def test_thinning_keeps_the_worst_moment_and_both_ends() -> None:
    points = [
        HistoryPoint(unix_seconds=float(n), headroom_bytes=5 if n == 1777 else 1000,
                     residual_bytes=None, stall=None)
        for n in range(5000)
    ]  # fmt: skip
    kept = thinned(points, 240)
    assert len(kept) <= 240
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert points[1777] in kept


def test_what_was_not_recorded_is_said_and_not_drawn(hostile_page: IncidentPage) -> None:
    from dataclasses import replace

    point = HistoryPoint(unix_seconds=1.0, headroom_bytes=7, residual_bytes=None, stall=None)
    later = replace(point, unix_seconds=9.0)
    history = IncidentHistory(
        source="a box", first_unix_seconds=1.0, last_unix_seconds=9.0, points=[point, later],
        stall_words="of one", events=[BoxEvent(5.0, "b", 1, "kill", "", "it killed 1")],
    )  # fmt: skip
    section = _history(replace(hostile_page, history=history))
    assert [p.text for p in section.iter("p")].count("Not recorded.") == 2
    assert len(list(section.iter("svg"))) == 1


def test_text_between_elements_is_text_too() -> None:
    made = element("p", "a", element("b", "<i>"), "<u>", class_="soft", aria_label='"')
    data = html_bytes(element("head", style_sheet("p > b {}")), element("body", made))
    assert b'<p class="soft" aria-label="&quot;">a<b>&lt;i&gt;</b>&lt;u&gt;</p>' in data
    assert b"<style>p > b {}</style>" in data
