# SPDX-License-Identifier: Apache-2.0
"""One value over the last minutes as inline SVG: axes with units, a line, marks for events."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from xml.etree.ElementTree import Element

from seawall.views.html_report.html_elements import element
from seawall.words import percent, size

_WIDTH: Final = 720
_HEIGHT: Final = 190
_LEFT: Final = 84
_RIGHT: Final = 12
_TOP: Final = 14
_BOTTOM: Final = 30
_GAP_TIMES: Final = 6.0
"""So many usual steps without a value: the line is broken, nothing was recorded there."""
_CLOCK_STEPS_SECONDS: Final = (1, 2, 5, 10, 15, 60, 120, 300, 600, 900, 1800, 3600)
_LABEL_WIDTH: Final = 62
_MARK_WIDTH: Final = 26
_TICKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """Something that happened: a vertical line with a number below the curve."""

    unix_seconds: float
    number: int
    """Its place in the table of events below the charts."""
    kind: str
    """``kill`` or ``decision``: its colour, and the word in its title."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSeries:
    """What is drawn."""

    title: str
    unit: str
    """``bytes`` or ``fraction``."""
    points: Sequence[tuple[float, float]]
    """Unix seconds and value, by time; values that were not seen are left out, not zero."""
    from_zero: bool = True


def line_chart(
    series: ChartSeries, marks: Sequence[ChartMark], first: float, last: float, end: str
) -> Element:
    """The chart of the time from ``first`` to ``last``, Unix seconds; ``end``: what the right edge
    is called, for the axis counts back from it.
    """
    values = [value for _, value in series.points]
    top = _round_top(max(values, default=0.0), series.unit)
    frame = _Frame(first, max(last, first + 1.0), top)
    label = _label(series, end)
    return element(
        "svg", element("title", label), _grid(frame, series.unit), _clock(frame, end),
        _marks(frame, marks), _line(frame, series.points),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label, class_="chart",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Frame:
    first: float
    last: float
    top: float

    def x(self, seconds: float) -> float:
        share = (seconds - self.first) / (self.last - self.first)
        return round(_LEFT + min(max(share, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = min(max(value / self.top, 0.0), 1.0)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)


def shown_amount(value: float, unit: str) -> str:
    """With its unit, as on an axis."""
    return size(value) if unit == "bytes" else percent(value)


def _label(series: ChartSeries, end: str) -> str:
    if not series.points:
        return f"{series.title}: nothing recorded"
    values = [value for _, value in series.points]
    low, high, now = (shown_amount(v, series.unit) for v in (min(values), max(values), values[-1]))
    return f"{series.title}: {low} at least, {high} at most, {now} at {end}"


def _round_top(most: float, unit: str) -> float:
    """The least round number above all values."""
    if unit == "fraction":
        return next((step for step in (0.05, 0.1, 0.25, 0.5) if most <= step), 1.0)
    if not math.isfinite(most) or most <= 1024:
        return 1024.0
    scale = 1024.0 ** int(math.log(most, 1024))
    for step in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        if most <= step * scale:
            return step * scale
    return most


def _grid(frame: _Frame, unit: str) -> Element:
    group = element("g", class_="axis")
    for place in range(_TICKS):
        value = frame.top * place / (_TICKS - 1)
        y = frame.y(value)
        group.append(element("line", x1=str(_LEFT), x2=str(_WIDTH - _RIGHT), y1=str(y), y2=str(y)))
        words = shown_amount(value, unit)
        group.append(element("text", words, x=str(_LEFT - 8), y=str(y + 4), text_anchor="end"))
    return group


def _clock(frame: _Frame, end: str) -> Element:
    """Counted back from the end, as one thinks at night: 60 s before it."""
    group = element("g", class_="axis")
    span = frame.last - frame.first
    step = next((s for s in _CLOCK_STEPS_SECONDS if span / s <= 8), span / 8)
    back = 0.0
    while back <= span:
        x = frame.x(frame.last - back)
        words = end if not back else _back_words(back)
        anchor = "end" if not back else "middle"
        if not back or x < frame.x(frame.last) - _LABEL_WIDTH:
            group.append(element("text", words, x=str(x), y=str(_HEIGHT - 10), text_anchor=anchor))
        bottom = _HEIGHT - _BOTTOM
        group.append(element("line", x1=str(x), x2=str(x), y1=str(bottom), y2=str(bottom + 5)))
        back += step
    return group


def _back_words(seconds: float) -> str:
    if seconds < 120:
        return f"-{seconds:.0f} s"
    return f"-{seconds / 60:.0f} min"


def _marks(frame: _Frame, marks: Sequence[ChartMark]) -> Iterator[Element]:
    """A line each; numbers that would lie on one another are one label: ``1-3``."""
    shown = [mark for mark in marks if frame.first <= mark.unix_seconds <= frame.last]
    label_x, begin = -math.inf, 0
    label: Element | None = None
    for mark in shown:
        x = frame.x(mark.unix_seconds)
        group = element(
            "g", element("title", f"{mark.number}: {mark.words}"),
            element("line", x1=str(x), x2=str(x), y1=str(_TOP), y2=str(_HEIGHT - _BOTTOM)),
            class_=f"mark {mark.kind}",
        )  # fmt: skip
        if label is not None and x - label_x < _MARK_WIDTH:
            label.text = f"{begin}-{mark.number}"
        else:
            label_x, begin = x, mark.number
            label = element("text", str(mark.number), x=str(x + 3), y=str(_TOP + 8))
            group.append(label)
        yield group


def _line(frame: _Frame, points: Sequence[tuple[float, float]]) -> Iterator[Element]:
    """Broken where nothing was recorded; a single point is a dot."""
    for run in _runs(points):
        if len(run) == 1:
            seconds, value = run[0]
            yield element("circle", cx=str(frame.x(seconds)), cy=str(frame.y(value)), r="2.5",
                          class_="dot")  # fmt: skip
            continue
        path = " ".join(f"{frame.x(seconds)},{frame.y(value)}" for seconds, value in run)
        yield element("polyline", points=path, class_="curve")


def _runs(points: Sequence[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    steps = sorted(b[0] - a[0] for a, b in pairwise(points))
    # In peace there is a value every 10 s, in trouble ten a second: the wider step is usual too.
    usual = max(steps[int(len(steps) * 0.9)], 2.0) if steps else 2.0
    run: list[tuple[float, float]] = []
    for point in points:
        if run and point[0] - run[-1][0] > _GAP_TIMES * usual:
            yield run
            run = []
        run.append(point)
    if run:
        yield run
