# SPDX-License-Identifier: Apache-2.0
"""The HTML report from its page: the verdict first, the evidence folded, how it was made last."""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from seawall.accounts.claim import Claim
from seawall.accounts.pods.pod_danger import attention_of
from seawall.accounts.pods.pod_table import PodRow
from seawall.findings.causes import Cause, causes
from seawall.findings.finding import Evidence, Judged
from seawall.host.host import Unread
from seawall.views.blackbox_page import BoxEvent, thinned
from seawall.views.document import taken_at
from seawall.views.html_report.html_elements import (
    Child,
    element,
    folded,
    preformatted,
)
from seawall.views.html_report.incident_page import (
    DecisionStory,
    IncidentHistory,
    IncidentPage,
)
from seawall.views.html_report.line_chart import ChartMark, ChartSeries, line_chart
from seawall.views.html_report.page_elements import (
    html_page,
    html_section,
    html_table,
    verdict_box,
)
from seawall.views.oom_explain_text import lines as oom_lines
from seawall.views.pods_text import danger_words
from seawall.views.terminal import Console
from seawall.views.why_screen import holder_words
from seawall.views.why_text import age_words, nothing_fires, shown_value
from seawall.words import counted, duration, percent, size

_POINTS_MOST: Final = 240
_MARKS_MOST: Final = 40
_WORKLOADS_MOST: Final = 25
_EVENTS_MOST: Final = 60
_EFFECTS_MOST: Final = 12
_DECISIONS_MOST: Final = 20
_CONSIDERED_MOST: Final = 12
_CLAIMS_MOST: Final = 12
_LINE_LEAST_BYTES: Final = 1 << 20
_BAR_WIDTH: Final = 1000
_TERMS: Final = {
    "headroom": "what programs can still have before the kernel has to take memory from others",
    "uncounted memory": "memory that the kernel has handed out and that no counter and no "
    "container's limit covers; mostly of drivers",
    "charge": "what the kernel counts for a workload's cgroup; its limit is held against that",
    "stall": "the share of time in which tasks stood still because they waited for memory",
    "OOM kill": "the kernel ends a process because memory ran out, on the node or in a limit",
    "guard": "seawall's own process that ends or holds the culprit before the node dies; in mode "
    "observe it only writes down what it would have done",
    "SW103": "the number of a rule: seawall rules show SW103 says what it looks at",
}


def incident_html(page: IncidentPage) -> bytes:
    """The whole file."""
    title = f"Seawall report: {page.node}, {page.taken_at}"
    body = element(
        "body", element("header", element("h1", f"What happened on {page.node}"), _machine(page)),
        element("main", _verdict(page), _history(page), _happened(page), _decisions(page),
                _ledger(page), _workloads(page), _unseen(page), _evidence(page), _terms()),
        _origin(page),
    )  # fmt: skip
    return html_page(title, body)


def _machine(page: IncidentPage) -> Element:
    return element("p", page.heading, class_="soft")


# --- the verdict ---------------------------------------------------------------------------


def _verdict(page: IncidentPage) -> Element:
    found = causes(page.answer.judged)
    section = html_section("What is wrong, and what to do")
    if page.answer.cut:
        section.append(element("p", page.answer.cut, class_="level warning"))
    if not found:
        section.append(element("p", nothing_fires(page.answer.judged)))
    for cause in found:
        section.append(_cause(cause, page))
    if page.answer.guard:
        section.append(element("p", f"The guard of this node {page.answer.guard}."))
    return section


def _cause(cause: Cause, page: IncidentPage) -> Element:
    item = cause.item
    finding = item.finding
    headline = finding.brief.headline or finding.headline
    rows: list[tuple[str, Child | list[Element]]] = []
    if who := holder_words(item, page.answer):
        rows.append(("who", who))
    if why := finding.brief.why or finding.outlook:
        rows.append(("why", why))
    if steps := item.steps or item.remedy:
        rows.append(("what to do", [element("ol", (element("li", step) for step in steps))]))
    if cause.effects:
        effects = [
            element("li", f"{one.finding.brief.headline or one.finding.headline} [{one.id}]")
            for one in cause.effects[:_EFFECTS_MOST]
        ]
        rows.append(("follows from it", [element("ul", effects)]))
    return verdict_box(cause.severity, f"{headline} [{item.id}]", rows)


# --- the last minutes ----------------------------------------------------------------------


def _history(page: IncidentPage) -> Element:
    history = page.history
    if isinstance(history, Unread):
        return html_section("The last minutes", element("p", history.detail or history.why))
    end = _clock(history.last_unix_seconds)
    span = history.last_unix_seconds - history.first_unix_seconds
    section = html_section("The last minutes", element(
        "p", f"{duration(span)} until {end}, from {history.source}. Dashed lines are the numbered "
        "events of the table below."))  # fmt: skip
    marks = _marks(history.events)
    for series in _series(history):
        section.append(element("h3", series.title))
        if not series.points:
            section.append(element("p", "Not recorded.", class_="soft"))
            continue
        chart = line_chart(
            series, marks, history.first_unix_seconds, history.last_unix_seconds,
            end.partition("T")[2],
        )  # fmt: skip
        section.append(element("div", chart, class_="wide"))
    if marks:
        rows = [(str(mark.number), _clock(mark.unix_seconds), mark.words) for mark in marks]
        section.append(html_table((("no.", False), ("when", False), ("what", False)), rows))
    left = len(history.events) - len(marks)
    if left > 0:
        section.append(element("p", f"{counted(left, 'earlier event')} left out.", class_="soft"))
    return section


def _series(history: IncidentHistory) -> Iterator[ChartSeries]:
    points = thinned(history.points, _POINTS_MOST)
    yield ChartSeries(title="Headroom: what programs can still have", unit="bytes", points=[
        (one.unix_seconds, one.headroom_bytes) for one in points
        if one.headroom_bytes is not None])  # fmt: skip
    yield ChartSeries(title="Uncounted memory", unit="bytes", points=[
        (one.unix_seconds, max(one.residual_bytes, 0)) for one in points
        if one.residual_bytes is not None])  # fmt: skip
    yield ChartSeries(title=f"Stall: {history.stall_words}", unit="fraction", points=[
        (one.unix_seconds, one.stall) for one in points if one.stall is not None])  # fmt: skip


def _marks(events: Sequence[BoxEvent]) -> list[ChartMark]:
    return [
        ChartMark(
            unix_seconds=event.unix_seconds, number=number, words=f"{event.speaker}: {event.words}",
            kind="kill" if event.kind in ("kill", "kernel") else "decision",
        )
        for number, event in enumerate(events[-_MARKS_MOST:], start=1)
    ]  # fmt: skip


def _clock(unix_seconds: float) -> str:
    return taken_at(unix_seconds) or "an unknown time"


# --- what happened, and what the guard decided ---------------------------------------------


def _happened(page: IncidentPage) -> Element:
    recent = page.recent
    section = html_section(f"What happened in the last {duration(recent.since_seconds)}")
    if recent.events:
        rows = [
            (age_words(event, recent.now_unix_seconds), event.sentence, event.source)
            for event in recent.events[:_EVENTS_MOST]
        ]
        section.append(html_table((("when", False), ("what", False), ("read in", False)), rows))
    else:
        words = "Nothing known." if recent.unread else "Nothing: every log was read."
        section.append(element("p", words))
    if recent.unread:
        section.append(element("p", "Not read:"))
        unread = (element("li", f"{one.path}: {one.detail or one.why}") for one in recent.unread)
        section.append(element("ul", unread))
    if page.oom_kills:
        section.append(element("h3", "OOM kills, each explained"))
        if page.oom_left_out:
            words = f"The last {len(page.oom_kills)}; {page.oom_left_out} earlier ones left out."
            section.append(element("p", words, class_="soft"))
    for kill in page.oom_kills:
        text = oom_lines(kill, Console(width=100))
        section.append(folded(kill.verdict, preformatted(text)))
    return section


def _decisions(page: IncidentPage) -> Element:
    found = page.decisions
    title = "What the guard decided"
    if isinstance(found, Unread):
        return html_section(title, element("p", f"Not known: {found.detail or found.why}."))
    if not found.stories:
        words = "No decision that can be read." if found.unread else "Nothing in this time."
        section = html_section(title, element("p", words))
    else:
        section = html_section(title)
    if found.unread:
        words = f"{counted(found.unread, 'line')} of the journal could not be read."
        section.append(element("p", words, class_="soft"))
    shown = found.stories[-_DECISIONS_MOST:]
    if len(shown) < len(found.stories):
        words = f"The last {len(shown)}; {len(found.stories) - len(shown)} earlier ones left out."
        section.append(element("p", words, class_="soft"))
    section.extend(map(_decision, shown))
    return section


def _decision(story: DecisionStory) -> Element:
    mode = "" if story.mode == "enforce" else " (observing only: nothing was done)"
    made = element("div", element("h3", f"{_clock(story.unix_seconds)}, {story.decision}{mode}"),
                   element("p", story.sentence))  # fmt: skip
    if story.outcomes:
        made.append(element("ul", (element("li", words) for words in story.outcomes)))
    if story.considered:
        head = (("rank", False), ("workload", False), ("charge", True),
                ("uncounted, at least", True), ("why", False))  # fmt: skip
        rows = [
            ("-" if one.place is None else str(one.place), one.name, size(one.charge_bytes),
             size(one.uncounted_bytes), one.why)
            for one in story.considered[:_CONSIDERED_MOST]
        ]  # fmt: skip
        left = story.left_out + len(story.considered) - len(rows)
        more = f", the first {len(rows)}; {left} more in the journal" if left else ""
        made.append(folded(f"who else was considered{more}", html_table(head, rows)))
    return made


# --- memory --------------------------------------------------------------------------------


def _ledger(page: IncidentPage) -> Element:
    ledger = page.memory.ledger
    title = "Where the memory is"
    if isinstance(ledger, Unread):
        return html_section(
            title, element("p", f"Not known: {ledger.path}: {ledger.detail or ledger.why}")
        )
    parts = [(line.name, line.bytes, line.source) for line in ledger.lines]
    if not ledger.missing:
        parts.append(("uncounted memory", ledger.residual_bytes, "MemTotal less all lines"))
    parts.sort(key=lambda part: (part[0] == "free", -part[1]))
    shown = [part for part in parts if abs(part[1]) >= _LINE_LEAST_BYTES]
    total = max(ledger.total_bytes, 1)
    styles = _styles([name for name, _, _ in shown])
    rows = [
        (element("span", _swatch(styles[name]), f" {name}"), size(amount), percent(amount / total),
         source)
        for name, amount, source in shown
    ]  # fmt: skip
    head = (("use", False), ("amount", True), ("share", True), ("read in", False))
    section = html_section(title)
    if ledger.missing:
        words = f"Uncounted memory cannot be said: {', '.join(ledger.missing)} not seen."
    else:
        words = (
            f"{size(ledger.residual_bytes)} of {size(ledger.total_bytes)} is uncounted memory "
            f"(+- {size(ledger.residual_error_bytes)})."
        )
    section.extend((element("p", words), _stacked(shown, total, styles), html_table(head, rows)))
    claimed = page.memory.claimed
    claims = [] if isinstance(claimed, Unread) else claimed.of_residual()
    if claims:
        section.append(element("h3", "Who holds uncounted memory"))
        section.append(_claims(claims))
    elif page.memory.suspects:
        words = "; ".join(f"{one.workload or 'a process of the host'} ({one.why})"
                          for one in page.memory.suspects[:_CLAIMS_MOST])  # fmt: skip
        section.append(element("p", f"Suspected, not proved: {words}."))
    return section


def _claims(claims: Sequence[Claim]) -> Element:
    head = (("who", False), ("amount", True), ("of what kind", False), ("source", False),
            ("how it comes back", False))  # fmt: skip
    rows = [
        (claim.workload or claim.driver or "unknown", _range(claim), claim.kind,
         f"{claim.source} ({claim.confidence})", claim.give_back)
        for claim in claims[:_CLAIMS_MOST]
    ]  # fmt: skip
    return html_table(head, rows)


def _range(claim: Claim) -> str:
    if claim.least_bytes == claim.most_bytes:
        return size(claim.bytes)
    return f"{size(claim.least_bytes)} to {size(claim.most_bytes)}"


def _styles(names: Sequence[str]) -> dict[str, str]:
    styles = {"free": "free", "uncounted memory": "uncounted"}
    colours = [name for name in names if name not in styles]
    return styles | {name: f"a{min(place, 7)}" for place, name in enumerate(colours)}


def _swatch(style: str) -> Element:
    return element("svg", element("rect", width="10", height="10", class_=style),
                   viewBox="0 0 10 10", class_="swatch", aria_hidden="true")  # fmt: skip


def _stacked(
    parts: Sequence[tuple[str, int, str]], total: int, styles: dict[str, str]
) -> Element:  # fmt: skip
    """One bar for the whole memory; the table below it says the same."""
    bar = element("svg", viewBox=f"0 0 {_BAR_WIDTH} 24", preserveAspectRatio="none", role="img",
                  class_="bar", aria_label="The memory by use, as in the table below")  # fmt: skip
    reached = 0.0
    for name, amount, _ in parts:
        width = max(amount, 0) / total * _BAR_WIDTH
        bar.append(element(
            "rect", element("title", f"{name}: {size(amount)}"), x=f"{reached:.1f}", y="0",
            width=f"{width:.1f}", height="24", class_=styles[name]))  # fmt: skip
        reached += width
    return bar


def _workloads(page: IncidentPage) -> Element:
    rows = page.workloads.rows[:_WORKLOADS_MOST]
    title = "Workloads"
    if not rows:
        return html_section(title, element("p", "No workload whose memory is counted."))
    head = (("workload", False), ("charge", True), ("of its limit", False), ("limit", True),
            ("uncounted", True), ("OOM kills", True), ("needs a look", False))  # fmt: skip
    section = html_section(title, html_table(head, map(_workload, rows)))
    left = len(page.workloads.rows) - len(rows) + page.workloads.left_out
    if left:
        words = f"{counted(left, 'workload')} more: seawall pods --limit 0"
        section.append(element("p", words, class_="soft"))
    return section


def _workload(row: PodRow) -> Sequence[Child]:
    charge, limit = row.own.charge, row.limit
    danger = attention_of(row)
    words: Child = None
    if danger is not None:
        words = element("span", danger_words(row, danger), class_=f"level {danger.level}")
    share = None
    if isinstance(limit, int) and charge is not None:
        share = _share_bar(charge / max(limit, 1))
    kills = row.oom_kills
    return (
        row.workload.name, _bytes(charge), share, _limit(limit), _bytes(row.own.uncounted),
        "not known" if kills is None else f"{kills:,}", words,
    )  # fmt: skip


def _limit(limit: object) -> str:
    if limit is None:
        return "not known"
    return size(limit) if isinstance(limit, int) else "none"


def _bytes(amount: int | None) -> str:
    return "not known" if amount is None else size(amount)


def _share_bar(share: float) -> Element:
    width = min(max(share, 0.0), 1.0) * 100
    return element(
        "svg", element("rect", x="0", y="0", width="100", height="8", class_="free"),
        element("rect", x="0", y="0", width=f"{width:.1f}", height="8", class_="used"),
        viewBox="0 0 100 8", preserveAspectRatio="none", role="img",
        aria_label=percent(share), class_="bar small",
    )  # fmt: skip


# --- what could not be seen, evidence, origin ----------------------------------------------


def _unseen(page: IncidentPage) -> Element:
    rows, title = page.unseen, "What could not be seen"
    if not rows:
        return html_section(title, element("p", "Nothing that was asked for was missing."))
    shown = [(row.what, row.why, row.provide) for row in rows]
    head = (("what", False), ("why", False), ("what would show it", False))
    summary = f"{counted(len(rows), 'thing')} could not be seen; nothing above is said of them"
    return html_section(title, folded(summary, html_table(head, shown)))


def _evidence(page: IncidentPage) -> Element:
    firing = [i for i in page.answer.judged if i.finding.verdict == "fires" and i.muted is None]
    title = "Evidence"
    if not firing:
        return html_section(title, element("p", "No rule fired, so there is none to show."))
    return html_section(title, (_evidence_of(item) for item in firing))


def _evidence_of(item: Judged) -> Element:
    finding = item.finding
    made = folded(f"{item.id} {item.title}: {finding.headline}")
    if finding.workload:
        made.append(element("p", f"In {finding.workload}."))
    if finding.outlook:
        made.append(element("p", finding.outlook))
    if finding.evidence:
        head = (("what", False), ("value", True), ("read in", False))
        made.append(html_table(head, map(_evidence_row, finding.evidence)))
    if item.confirm:
        made.append(element("p", "To see it by hand:"))
        made.append(preformatted(item.confirm))
    if item.remedy:
        made.append(element("p", "What to do:"))
        made.append(element("ol", (element("li", step) for step in item.remedy)))
    return made


def _evidence_row(item: Evidence) -> Sequence[Child]:
    return item.name, shown_value(item), element("code", item.source)


def _terms() -> Element:
    rows = (part for name, words in _TERMS.items()
            for part in (element("dt", name), element("dd", words)))  # fmt: skip
    return html_section("Words on this page", element("dl", rows))


def _origin(page: IncidentPage) -> Element:
    origin = page.origin
    rules = f"{origin.rules_that_looked} of {origin.rules} rules could look"
    made = element("footer", element("h2", "How this page was made"), element(
        "p", "By seawall ", origin.version, " with ", element("code", origin.command),
        f", from {origin.source}, in {origin.took_seconds:.1f} s; {rules}. Seawall only reads. "
        "Sizes are binary: 1 GiB is 1,073,741,824 bytes. The page loads nothing from anywhere.",
    ))  # fmt: skip
    if origin.notes:
        made.append(element("p", "Noted with the record:"))
        made.append(element("ul", (element("li", note) for note in origin.notes)))
    return made
