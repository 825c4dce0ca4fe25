# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster report --html``: who kills nodes, deaths on a time axis, evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from seawall.cluster.objects.action_levers import ActionLever, ActionResult
from seawall.cluster.objects.node_death_object import NodeDeathObject
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    WorkloadQuarantineObject,
)
from seawall.cluster.pages.cluster_reading import (
    ClusterReading,
    culprit_name,
    is_death,
    is_killer,
    moved_seconds,
    who,
    workload_name,
)
from seawall.cluster.pages.cluster_why_page import ClusterWhyPage, cluster_why
from seawall.cluster.pages.cluster_words import (
    both,
    cause_words,
    chance_words,
    evidence_words,
    heading,
    held_words,
    key_words,
    score_words,
    state_word,
    watch_words,
)
from seawall.cluster.pages.lane_chart import (
    LANES_MOST,
    LaneMark,
    LaneSpan,
    NodeLane,
    SpanKind,
    lane_chart,
)
from seawall.cluster.pages.quarantine_words import HOLD_SECONDS, IN_FORCE
from seawall.views.document import taken_at
from seawall.views.html_report.html_elements import Child, element, folded
from seawall.views.html_report.page_elements import (
    html_page,
    html_section,
    html_table,
    verdict_box,
)
from seawall.words import counted, first

SUSPECTS_MOST: Final = 10
DEATHS_MOST: Final = 200
_WORKLOADS_SHOWN: Final = 12
_MADE: Final = (ActionResult.DONE.value, ActionResult.UNDONE.value, ActionResult.REVERTED.value)
_EDGE_SHARE: Final = 0.06
_EDGE_LEAST_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class ClusterReportOrigin:
    """How the page was made."""

    command: str
    version: str


def cluster_html(reading: ClusterReading, origin: ClusterReportOrigin) -> bytes:
    """The whole file."""
    whole = cluster_why(reading, "")
    title = f"Seawall cluster report: {reading.source}, {taken_at(reading.as_of_unix_seconds)}"
    is_blind = reading.watch.state != "watching"
    watch = element("p", watch_words(reading), class_="level warning" if is_blind else "soft")
    body = element(
        "body",
        element("header", element("h1", whole.headline[0].upper() + whole.headline[1:]),
                element("p", heading(reading), class_="soft"), watch),
        element("main", _suspects(reading), _deaths(reading), _acts(reading), _table_of(reading),
                _unseen(whole)),
        element("footer", element("p", f"{origin.command}, seawall {origin.version}")),
    )  # fmt: skip
    return html_page(title, body)


# --- who -----------------------------------------------------------------------------------


def _suspects(reading: ClusterReading) -> Element:
    title = "Which workload"
    if not reading.suspects:
        words = "No workload is suspected."
        if reading.watch.state == "nobody":
            words = "Not known: nobody watches."
        return html_section(title, element("p", words))
    shown = reading.suspects[:SUSPECTS_MOST]
    part = html_section(title)
    for one in shown:
        part.append(_suspect(reading, one))
        chart = _way_chart(reading, one)
        if chart is not None:
            part.append(element("div", chart, class_="wide"))
    if more := len(reading.suspects) - len(shown):
        words = f"{more} more: seawall cluster suspects --whole"
        part.append(element("p", words, class_="soft"))
    return part


def _suspect(reading: ClusterReading, one: WorkloadQuarantineObject) -> Element:
    page = cluster_why(reading, one.name)
    level = "critical" if is_killer(one) else "warning"
    if one.state is QuarantineState.RELEASED:
        level = "info"
    rows: list[tuple[str, Child | list[Element]]] = [
        ("state", f"{state_word(one)}, score {score_words(one)} (powers of ten)"),
        ("known by", key_words(one.key.level)),
        ("by hand", chance_words(one)),
    ]
    if one.status and one.status.why_not:
        rows.append(("but", one.status.why_not))
    if statements := list(_statements(page.deaths)):
        rows.append(("evidence", [element("ul", (element("li", text) for text in statements))]))
    rows.append(("done", page.done))
    if page.outlook:
        rows.append(("next", [element("ul", (element("li", text) for text in page.outlook))]))
    if page.commands:
        rows.append(("to end it", [element("code", text) for text in page.commands]))
    return verdict_box(level, page.headline, rows)


def _statements(deaths: Sequence[NodeDeathObject]) -> Iterator[str]:
    for death in deaths:
        for line in death.record or ():
            yield f"{death.node}: {line.text or evidence_words(death)} ({line.source or 'record'})"


def _way_chart(reading: ClusterReading, one: WorkloadQuarantineObject) -> Element | None:
    deaths = reading.deaths_of(one)[-LANES_MOST:]
    if len(deaths) < 2:
        return None
    moments = [death.heartbeat_seconds for death in deaths]
    return _chart(reading, f"Nodes that died with {who(one)} on them", deaths, moments)


# --- when ----------------------------------------------------------------------------------


def _deaths(reading: ClusterReading) -> Element:
    title = "Deaths on a time axis"
    if not reading.deaths:
        return html_section(title, element("p", "No death is recorded."))
    nodes = list(dict.fromkeys(death.node for death in reversed(reading.deaths)))[:LANES_MOST]
    shown = [death for death in reading.deaths if death.node in nodes]
    acted = [lane for one in reading.suspects if (lane := quarantine_lane(one, reading)).spans]
    words = "All nodes that died, and what was done" if acted else "All nodes that died"
    chart = _chart(reading, words, shown, quarantines=acted[:SUSPECTS_MOST])
    section = html_section(title, element("div", chart, class_="wide"))
    if more := len({death.node for death in reading.deaths}) - len(nodes):
        words = f"The {len(nodes)} nodes that died last; {counted(more, 'node')} left out."
        section.append(element("p", words, class_="soft"))
    return section


def _chart(
    reading: ClusterReading, title: str, deaths: Sequence[NodeDeathObject],
    way: Sequence[float] = (), quarantines: Sequence[NodeLane] = (),
) -> Element:  # fmt: skip
    lanes = [*quarantines, *_lanes(reading, deaths)]
    moments = [mark.unix_seconds for lane in lanes for mark in lane.marks]
    moments += [at for lane in lanes for span in lane.spans for at in (span.first, span.last)]
    begin, end = min(moments), max(moments)
    edge = max((end - begin) * _EDGE_SHARE, _EDGE_LEAST_SECONDS)
    return lane_chart(title, lanes, begin - edge, end + edge, way)


def _lanes(reading: ClusterReading, deaths: Sequence[NodeDeathObject]) -> Iterator[NodeLane]:
    """In the order in which they died first."""
    first_seconds = min(death.heartbeat_seconds for death in deaths)
    for node in dict.fromkeys(death.node for death in deaths):
        marks = [mark for death in deaths if death.node == node
                 for mark in _marks(death, reading.as_of_unix_seconds)]  # fmt: skip
        for report in reading.reports:
            distress = report.distress
            if report.node == node and distress and distress.at_seconds >= first_seconds - 3600.0:
                words = f"{node}: memory short; {distress.decision}".rstrip("; ")
                marks.append(LaneMark(distress.at_seconds, "distress", words))
        yield NodeLane(node, tuple(sorted(marks, key=lambda mark: mark.unix_seconds)))


def _marks(death: NodeDeathObject, now: float) -> Iterator[LaneMark]:
    at = death.heartbeat_seconds
    if not is_death(death):
        yield LaneMark(at, "planned", f"{death.node}: {death.phase.value}, {both(at, now)}")
        return
    words = f"{death.node}: last sign of life {both(at, now)}; {cause_words(death)}"
    yield LaneMark(at, "death", words)
    moved = moved_seconds(death)
    if moved is not None:
        yield LaneMark(moved, "moved", f"{death.node}: its pods are moved {both(moved, now)}")


def quarantine_lane(one: WorkloadQuarantineObject, reading: ClusterReading) -> NodeLane:
    """Of a workload: while its quarantine was in force, and while pods of it were held."""
    now = reading.as_of_unix_seconds
    actions = one.actor_status.actions
    spans = []
    began = min((each.at_seconds for each in actions if each.result in _MADE), default=None)
    if began is not None and one.state in (*IN_FORCE, QuarantineState.RELEASED):
        ended = max((each.undone_seconds or 0.0 for each in actions), default=0.0)
        is_over = one.state is QuarantineState.RELEASED
        last = max(ended if is_over and ended else now, began)
        words = f"{who(one)}: {state_word(one)}, mode {one.mode.value}, since {both(began, now)}"
        kind: SpanKind = "canary" if one.state is QuarantineState.CANARY else "active"
        spans.append(LaneSpan(began, last, kind, words))
    for each in actions:
        if each.lever != ActionLever.HOLD.value or each.result not in _MADE:
            continue
        last = min(each.at_seconds + HOLD_SECONDS, each.undone_seconds or now, now)
        words = f"{each.namespace}/{each.name}: held since {both(each.at_seconds, now)}"
        spans.append(LaneSpan(each.at_seconds, max(last, each.at_seconds), "held", words))
    return NodeLane(who(one), (), tuple(spans))


def _acts(reading: ClusterReading) -> Element | None:
    """Each write, newest first; None: nobody did anything."""
    rows = [(one, each) for one in reading.suspects for each in one.actor_status.actions]
    if not rows:
        return None
    now = reading.as_of_unix_seconds
    rows.sort(key=lambda row: row[1].at_seconds, reverse=True)
    head = (("when", False), ("workload", False), ("lever", False), ("on", False),
            ("result", False), ("why not", False))  # fmt: skip
    table = [
        (both(each.at_seconds, now), who(one), each.lever,
         f"{each.kind} {each.namespace}/{each.name}".strip(" /"),
         each.result, each.problem or "-")
        for one, each in rows[:DEATHS_MOST]
    ]  # fmt: skip
    return html_section("What was done", html_table(head, table))


def _table_of(reading: ClusterReading) -> Element:
    title = "Each death"
    if not reading.deaths:
        return html_section(title, element("p", "None."))
    now = reading.as_of_unix_seconds
    head = (("node", False), ("last sign of life", False), ("cause", False), ("culprit", False),
            ("phase", False), ("evidence", False), ("what ran there", False))  # fmt: skip
    shown = reading.deaths[-DEATHS_MOST:]
    rows = []
    for death in reversed(shown):
        named = list(dict.fromkeys(map(workload_name, death.workloads)))
        ran = element("span", "not looked at", class_="soft")
        if named:
            ran = folded(counted(len(named), "workload"), first(named, _WORKLOADS_SHOWN))
        who_words = " ".join(filter(None, (culprit_name(death), held_words(death)))) or "-"
        phase = f"{death.phase.value}: {death.reason}" if death.reason else death.phase.value
        rows.append((
            death.node, both(death.heartbeat_seconds, now), cause_words(death), who_words, phase,
            evidence_words(death), ran,
        ))  # fmt: skip
    section = html_section(title, html_table(head, rows))
    if more := len(reading.deaths) - len(shown):
        section.append(element("p", f"{counted(more, 'earlier death')} left out.", class_="soft"))
    return section


def _unseen(page: ClusterWhyPage) -> Element:
    title = "Could not see"
    if not page.unseen:
        return html_section(title, element("p", "Nothing that was asked for was missing."))
    head = (("what", False), ("why", False), ("needs", False))
    rows = [(row.what, row.why, row.provide) for row in page.unseen]
    return html_section(title, html_table(head, rows))
