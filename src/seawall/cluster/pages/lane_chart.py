# SPDX-License-Identifier: Apache-2.0
"""Deaths of nodes on a time axis as inline SVG, one lane a node: a staircase is one killer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from xml.etree.ElementTree import Element

from seawall.views.document import taken_at
from seawall.views.html_report.html_elements import element
from seawall.views.terminal import shorten

LANES_MOST: Final = 40
_WIDTH: Final = 860
_LEFT: Final = 170
_RIGHT: Final = 16
_TOP: Final = 10
_LANE: Final = 22
_BOTTOM: Final = 44
_NAME_LETTERS: Final = 25
_TICKS_MOST: Final = 7
_LABEL_WIDTH: Final = 70
_DAY_SECONDS: Final = 86400.0
_STEPS_SECONDS: Final = (
    1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 432000,
)  # fmt: skip
MarkKind = Literal["distress", "death", "planned", "moved"]
SpanKind = Literal["held", "active", "canary"]


@dataclass(frozen=True, slots=True)
class LaneMark:
    """Something that happened to a node."""

    unix_seconds: float
    kind: MarkKind
    words: str


@dataclass(frozen=True, slots=True)
class LaneSpan:
    """What held from one moment to another."""

    first: float
    last: float
    kind: SpanKind
    words: str


@dataclass(frozen=True, slots=True)
class NodeLane:
    """One node and what happened to it, or a workload and what was done about it."""

    node: str
    marks: tuple[LaneMark, ...]
    """By time."""
    spans: tuple[LaneSpan, ...] = ()


def lane_chart(
    title: str, lanes: Sequence[NodeLane], first: float, last: float, way: Sequence[float] = ()
) -> Element:
    """Lanes from the top; ``way``: the moments of deaths that one line joins, each on the lane of
    the node that died then.
    """
    frame = _Frame(first, max(last, first + 1.0), len(lanes))
    has_spans = any(lane.spans for lane in lanes)
    return element(
        "svg", element("title", title), _axis(frame),
        (_lane(frame, number, lane) for number, lane in enumerate(lanes)),
        _way(frame, lanes, way), _legend(frame, has_spans=has_spans),
        viewBox=f"0 0 {_WIDTH} {frame.height + (_SPAN_ROW if has_spans else 0)}",
        role="img", aria_label=title, class_="chart",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Frame:
    first: float
    last: float
    lanes: int

    @property
    def height(self) -> int:
        return _TOP + self.lanes * _LANE + _BOTTOM

    @property
    def floor(self) -> int:
        return _TOP + self.lanes * _LANE

    def x(self, seconds: float) -> float:
        share = (seconds - self.first) / (self.last - self.first)
        return round(_LEFT + min(max(share, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, lane: int) -> float:
        return _TOP + lane * _LANE + _LANE / 2


def _lane(frame: _Frame, number: int, lane: NodeLane) -> Element:
    y = frame.y(number)
    group = element(
        "g", element("title", lane.node),
        element("text", shorten(lane.node, _NAME_LETTERS), x=str(_LEFT - 10), y=str(y + 4),
                text_anchor="end"),
        class_="lane",
    )  # fmt: skip
    begin = frame.first
    group.extend(_span(frame, y, span) for span in lane.spans)
    for mark in lane.marks:
        if mark.kind == "death":
            group.append(_line(frame, y, begin, mark.unix_seconds, "alive"))
            end = next(
                (
                    one.unix_seconds
                    for one in lane.marks
                    if one.kind == "moved" and one.unix_seconds > mark.unix_seconds
                ),
                mark.unix_seconds,
            )
            group.append(_line(frame, y, mark.unix_seconds, end, "silent"))
            begin = end
    group.extend(_sign(frame, y, mark) for mark in lane.marks)
    return group


def _line(frame: _Frame, y: float, begin: float, end: float, style: str) -> Element:
    x1, x2 = (str(frame.x(seconds)) for seconds in (begin, end))
    return element("line", x1=x1, x2=x2, y1=str(y), y2=str(y), class_=style)


def _span(frame: _Frame, y: float, span: LaneSpan) -> Element:
    x1, x2 = frame.x(span.first), frame.x(span.last)
    height = 12 if span.kind == "held" else 6
    return element(
        "rect", element("title", span.words), x=str(x1), y=str(y - height / 2),
        width=str(round(max(x2 - x1, 3.0), 1)), height=str(height), class_=span.kind,
    )  # fmt: skip


def _sign(frame: _Frame, y: float, mark: LaneMark) -> Element:
    x, words = frame.x(mark.unix_seconds), element("title", mark.words)
    if mark.kind == "distress":
        points = f"{x - 5},{y + 4} {x + 5},{y + 4} {x},{y - 5}"
        return element("polygon", words, points=points, class_="distress")
    if mark.kind == "moved":
        return element("rect", words, x=str(x - 3.5), y=str(y - 3.5), width="7", height="7",
                       class_="moved")  # fmt: skip
    return element("circle", words, cx=str(x), cy=str(y), r="5", class_=mark.kind)


def _way(frame: _Frame, lanes: Sequence[NodeLane], moments: Sequence[float]) -> Element | None:
    """Through the deaths, in the order in which they came."""
    places = {
        mark.unix_seconds: number
        for number, lane in enumerate(lanes)
        for mark in lane.marks
        if mark.kind == "death"
    }
    points = [
        f"{frame.x(seconds)},{frame.y(places[seconds])}" for seconds in moments if seconds in places
    ]
    return element("polyline", points=" ".join(points), class_="way") if len(points) > 1 else None


def _axis(frame: _Frame) -> Element:
    group = element("g", class_="axis")
    span = frame.last - frame.first
    step = next((one for one in _STEPS_SECONDS if span / one <= _TICKS_MOST), span / _TICKS_MOST)
    for seconds in _ticks(frame, step):
        x = str(frame.x(seconds))
        group.append(element("line", x1=x, x2=x, y1=str(_TOP), y2=str(frame.floor)))
        words = _clock(seconds, step)
        group.append(element("text", words, x=x, y=str(frame.floor + 16), text_anchor="middle"))
    day = element("text", (taken_at(frame.first) or "")[:10], x=str(_LEFT - 10),
                  y=str(frame.floor + 16), text_anchor="end")  # fmt: skip
    group.append(day)
    return group


def _ticks(frame: _Frame, step: float) -> Iterator[float]:
    """Round moments, none so near the edge that its label would stick out."""
    moment = frame.first - frame.first % step + step
    while moment <= frame.last:
        if frame.x(moment) < _WIDTH - _LABEL_WIDTH / 2:
            yield moment
        moment += step


def _clock(seconds: float, step: float) -> str:
    words = taken_at(seconds) or ""
    if step >= _DAY_SECONDS:
        return words[5:10]
    if step >= 43200:
        return f"{words[5:10]} {words[11:13]}h"
    return words[11:16] if step >= 60 else words[11:19]


_SPAN_ROW: Final = 16
_SPANS: Final[tuple[tuple[SpanKind, str], ...]] = (
    ("held", "its pods are held"), ("active", "its quarantine is in force"),
    ("canary", "one pod of it is let through"),
)  # fmt: skip


def _legend(frame: _Frame, *, has_spans: bool) -> Element:
    """What each sign means."""
    group = element("g", class_="lane")
    x, y = float(_LEFT), frame.floor + 33.0
    signs: tuple[tuple[MarkKind, str], ...] = (
        ("death", "last sign of life"), ("moved", "its pods are moved"),
        ("distress", "memory short, says the node"), ("planned", "planned, or taken back"),
    )  # fmt: skip
    plain_frame = _Frame(0.0, 1.0, 0)
    for kind, words in signs:
        share = (x - _LEFT) / (_WIDTH - _LEFT - _RIGHT)
        group.append(_sign(plain_frame, y, LaneMark(share, kind, words)))
        group.append(element("text", words, x=str(x + 10), y=str(y + 4)))
        x += 30 + 5.6 * len(words)
    if not has_spans:
        return group
    y += _SPAN_ROW
    x = float(_LEFT)
    for kind_, words in _SPANS:
        share = (x - _LEFT) / (_WIDTH - _LEFT - _RIGHT)
        span = LaneSpan(share, share, kind_, words)
        group.append(_span(plain_frame, y, span))
        group.append(element("text", words, x=str(x + 10), y=str(y + 4)))
        x += 30 + 5.6 * len(words)
    return group
