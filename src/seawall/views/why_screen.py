# SPDX-License-Identifier: Apache-2.0
"""``seawall why`` on one screen: 24 lines with the prompt, one cause first, its effects below it.

What is left out here stands in ``seawall why --whole`` and ``seawall why SW103``.  Every section
has a most; where all together are too long they give lines away in a fixed order, the second
cause before the first.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from seawall.accounts.log_episodes.recent_events import RecentEvent, RecentEvents
from seawall.findings.blindness import NotSeen, changeable
from seawall.findings.causes import Cause, causes
from seawall.findings.finding import SEVERITIES, Judged
from seawall.host.host import Unread
from seawall.views.terminal import Console, plain, shorten
from seawall.views.why_text import age_words, nothing_fires, rules_that_looked, shown_value
from seawall.words import counted, duration, first

LINES: Final = 23
"""A terminal has 24; the last one is the prompt's."""
CAUSES_SHOWN: Final = 2
EVENTS_SHOWN: Final = 3
EFFECT_IDS_SHOWN: Final = 3
EVIDENCE_SHOWN: Final = 3
INTERIM_LINES: Final = 3
"""With the lines above and below them and an answer of 17 they fit on one screen."""
_CUTS_TRIED: Final = 8
_INDENT: Final = " " * 10
_AGE_WIDTH: Final = 11
_LONG_ID: Final = re.compile(r"\b[0-9a-f]{12}[0-9a-f]{20,}\b")
_CGROUP: Final = re.compile(r"(?:/sys/fs/cgroup)?(?:/[^\s/,;]+){2,}")
_CLAUSE_END: Final = (
    r"; | \((?=[^()]{0,200}(?:\([^()]{0,99}\)[^()]{0,99})?\)(?:[.;:,]|$))"
    r"|: (?!//)|, (?:for|since|because|so|when) "
)
_CGROUP_FOLDER: Final = re.compile(r"/sys/fs/cgroup|/kubepods|\.slice|/docker/|\.scope")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one answer shows of one machine."""

    judged: Sequence[Judged]
    unseen: Sequence[NotSeen] = ()
    heading: str = ""
    """Machine, kernel and memory; empty where it is on the screen already."""
    recent: RecentEvents | Unread | None = None
    """None where the past was not asked for."""
    suspects: Sequence[str] = ()
    """Who may hold uncounted memory, with the reason; nothing of it is proved."""
    largest: str = ""
    """``shop/web-0/app, 12.3 GiB``: who holds most of what is counted, where that is much."""
    is_live: bool = True
    """Of this very machine: what a trace shows can be had."""
    guard: str = ""
    notes: int = 0
    """How many lines whoever made the bundle wrote down with it."""
    cut: str = ""
    """Where the bundle breaks off; empty: it is whole, or none."""
    about: Sequence[str] = ()
    """Lines about the one workload that was named."""
    others: int = 0
    """Findings about other workloads that were left out."""


@dataclass(slots=True)
class _Most:
    """How many lines each section may have."""

    headline: int = 2
    who: int = 2
    why: list[int] = field(default_factory=lambda: [2, 1])
    steps: list[int] = field(default_factory=lambda: [3, 2])
    effects: list[int] = field(default_factory=lambda: [2, 1])
    events: int = EVENTS_SHOWN
    unseen: int = 2
    guard: int = 2
    causes: int = CAUSES_SHOWN


def lines(answer: Answer, paper: Console) -> list[str]:
    """The screen: at most LINES lines, none wider than the paper."""
    most = _Most()
    for shrink in (None, *_SHRINKING):
        if shrink is not None:
            shrink(most)
        told = list(_lines(answer, paper, most))
        if len(told) <= LINES:
            return told
    return [*told[: LINES - 1], _row(paper, "", "all of it: seawall why --whole")]


def interim_lines(answer: Answer, paper: Console) -> list[str]:
    """What can be said before the answer is ready: the first cause, whose it is, what to do; none
    where nothing fires yet.
    """
    found = causes(answer.judged)
    if not found:
        return []
    item = found[0].item
    told = list(_headline(found[0], paper, 1))
    if who := holder_words(item, answer):
        told += _section(paper, "  who", who, 1)
    return [*told, *_steps(item, paper, INTERIM_LINES - len(told))]


def _fewer_guard(most: _Most) -> None:
    most.guard, most.unseen = 1, 1


def _fewer_second(most: _Most) -> None:
    most.why[1], most.steps[1], most.effects[1] = 1, 1, 1


def _fewer_events(most: _Most) -> None:
    most.events, most.who = 2, 1


def _fewer_first(most: _Most) -> None:
    most.why[0], most.steps[0], most.effects[0], most.events = 2, 2, 1, 1


def _one_cause(most: _Most) -> None:
    most.causes = 1


def _least(most: _Most) -> None:
    most.headline, most.why[0], most.steps[0] = 1, 1, 1


_SHRINKING: Final = (
    _fewer_guard, _fewer_second, _fewer_events, _fewer_first, _one_cause, _least,
)  # fmt: skip


def _lines(answer: Answer, paper: Console, most: _Most) -> Iterator[str]:
    if answer.heading:
        yield paper.paint(_heading(answer.heading, paper), "bold")
    if answer.cut:
        for line in _section(paper, "cut", answer.cut, 2):
            yield paper.paint(line, "warning")
    for line in answer.about:
        yield from clipped(line, paper, most=1)
    found = causes(answer.judged)
    if not found:
        yield from _nothing(answer, paper)
    for place, cause in enumerate(found[: most.causes]):
        yield from _cause_lines(cause, place, answer, paper, most)
    yield from _rest_lines(found[most.causes :], answer, paper)
    yield from _recent_lines(answer.recent, paper, most.events)
    if answer.guard:
        yield from _section(paper, "guard", answer.guard, most.guard)
    yield from _unseen_lines(answer, paper, most.unseen)
    yield from _pointer_lines(found, answer, paper)


# --- one cause -------------------------------------------------------------------------


def _cause_lines(
    cause: Cause, place: int, answer: Answer, paper: Console, most: _Most
) -> Iterator[str]:
    item = cause.item
    yield from _headline(cause, paper, most.headline)
    if who := holder_words(item, answer):
        yield from _section(paper, "  who", who, most.who)
    yield from _why_lines(item, paper, most.why[place])
    yield from _steps(item, paper, most.steps[place])
    yield from _effects(cause, paper, most.effects[place])


def _headline(cause: Cause, paper: Console, most: int) -> Iterator[str]:
    finding = cause.item.finding
    mark, text = f"{cause.severity.upper():<9} ", named(finding.brief.headline or finding.headline)
    for line in _whole(text, paper, mark, most, end=f"[{cause.item.id}]"):
        yield paper.paint(line, cause.severity)


def holder_words(item: Judged, answer: Answer) -> str:
    """Whose it is; where nobody can be named that is said too."""
    finding = item.finding
    if finding.workload or finding.brief.who:
        name = named(finding.workload or "")
        return ": ".join(filter(None, (name, named(finding.brief.who))))
    if not item.has_holder:
        return ""
    if answer.largest and item.is_of_node_memory:
        return f"nobody is to blame for certain; largest: {named(answer.largest)}"
    if answer.suspects:
        return f"suspected, not proved: {first([named(s) for s in answer.suspects], 2)}"
    files = "counters" if answer.is_live else "these files"
    return f"nobody can be named from {files}: seawall memory --who"


def _why_lines(item: Judged, paper: Console, most: int) -> Iterator[str]:
    """What follows, then as many numbers as there is room for."""
    finding = item.finding
    text = named(finding.brief.why or _first_sentence(finding.outlook))
    if not finding.brief.why:
        rows = [named(f"{shown_value(e)} {e.name}") for e in finding.evidence[:EVIDENCE_SHOWN]]
        for number in range(len(rows), 0, -1):
            numbers = ", ".join(rows[:number])
            longer = f"{text.rstrip('.')}: {numbers}" if text else numbers
            if len(clipped(longer, paper, _INDENT, _INDENT, most + 1)) <= most:
                text = longer
                break
    if text:
        yield from _whole(text, paper, f"{'  why':<10}", most)


def _steps(item: Judged, paper: Console, most: int) -> Iterator[str]:
    """Whole steps as long as there is room; of the first one that is too long, whole sentences."""
    left, label = most, "  do"
    for step in item.steps or item.remedy:
        if _CGROUP_FOLDER.search(step):
            continue
        told: list[str] = []
        for text in _shorter(named(step)):
            told = clipped(text, paper, _INDENT, f"{label:<10}", most + 1)
            if len(told) <= left or not label:
                break
        if len(told) > left:
            break
        yield from told
        left, label = left - len(told), ""
    if label:
        yield _row(paper, "  do", f"seawall why {item.id}: what to do, step by step")


def _whole(text: str, paper: Console, start: str, most: int, end: str = "") -> list[str]:
    """As much of it as fits in whole sentences and clauses; clipped only where none fits."""
    for shorter in _shorter(text):
        told = clipped(shorter, paper, _INDENT, start, most + 1, end=end)
        if len(told) <= most:
            return told
    return clipped(text, paper, _INDENT, start, most, end=end)


def _shorter(text: str) -> Iterator[str]:
    """The text, then less and less of it, in whole sentences and clauses."""
    yield text
    for ends in (r"(?<=\w)\. (?=[A-Z])", _CLAUSE_END):
        places = [match.start() for match in re.finditer(ends, text)]
        for place in reversed(places[:_CUTS_TRIED]):
            if text.count("(", 0, place) == text.count(")", 0, place):
                yield text[:place]


def _effects(cause: Cause, paper: Console, most: int) -> Iterator[str]:
    """What follows from it, in as many words as fit, with the ids of all."""
    if not cause.effects:
        return
    ids = list(dict.fromkeys(item.id for item in cause.effects))
    more = f" +{len(ids) - EFFECT_IDS_SHOWN}" if len(ids) > EFFECT_IDS_SHOWN else ""
    end = f"[{' '.join(ids[:EFFECT_IDS_SHOWN])}{more}]"
    words = list(dict.fromkeys(named(_effect_words(item)) for item in cause.effects))
    for number in range(len(words), 0, -1):
        told = clipped("; ".join(words[:number]), paper, _INDENT, "  so      ", most + 1, end=end)
        if len(told) <= most:
            yield from told
            return
    yield from clipped(words[0], paper, _INDENT, "  so      ", most, end=end)


def _effect_words(item: Judged) -> str:
    if item.finding.brief.effect:
        return item.finding.brief.effect
    title = item.title
    return title[0].lower() + title[1:] if title[1:2].islower() else title


# --- below the causes ------------------------------------------------------------------


def _nothing(answer: Answer, paper: Console) -> Iterator[str]:
    looked, rules = rules_that_looked(answer.judged)
    for line in clipped(nothing_fires(answer.judged), paper, most=2):
        yield paper.paint(line, "good") if looked == rules else line


def _rest_lines(rest: Sequence[Cause], answer: Answer, paper: Console) -> Iterator[str]:
    """What fires beside the causes shown, by severity."""
    if rest:
        counts = [(sum(c.severity == name for c in rest), name) for name in SEVERITIES]
        words = ", ".join(f"{number} {name}" for number, name in counts if number)
        ids = first(list(dict.fromkeys(cause.item.id for cause in rest)), 4)
        yield _row(paper, "also", f"{words} more: {ids}")
    if answer.others:
        yield _row(paper, "also", f"{counted(answer.others, 'finding')} about others: seawall why")


def _recent_lines(recent: RecentEvents | Unread | None, paper: Console, most: int) -> Iterator[str]:
    if recent is None:
        return
    if isinstance(recent, Unread):
        yield from _section(paper, "lately", f"not known: {recent.path}: {_reason(recent)}", 1)
        return
    label = "lately"
    for event in recent.events[:most]:
        yield _event_line(event, recent.now_unix_seconds, label, paper)
        label = ""
    left = recent.events[most:]
    unread = [f"not read: {one.path}: {_reason(one)}" for one in recent.unread[:1]]
    if left:
        verb = next((event.more for event in left if event.more), "seawall why --whole")
        yield _row(paper, label, f"and {counted(len(left), 'event')} more: {verb}")
    elif not recent.events:
        span = duration(recent.since_seconds)
        nothing = f"nothing known of the last {span}" if unread else f"nothing in the last {span}"
        words = "; ".join([nothing, *unread])
        yield from _whole(words, paper, f"{label:<10}", 1)
    elif unread and most > 1:
        yield _row(paper, label, unread[0])


def _event_line(event: RecentEvent, now: float | None, label: str, paper: Console) -> str:
    age = age_words(event, now)
    text = named(event.sentence)
    longer = f"{text}: {event.more}" if event.more else text
    age = shorten(plain(age), paper.width // (3 if age.isascii() else 6)) + " "
    start = f"{label:<10}{age:<{_AGE_WIDTH}}"
    fits = len(clipped(longer, paper, " " * columns(start), start, 2)) == 1
    return clipped(longer if fits else text, paper, " " * columns(start), start, 1)[0]


def _reason(unread: Unread) -> str:
    return unread.detail or unread.why


def _unseen_lines(answer: Answer, paper: Console, most: int) -> Iterator[str]:
    """Only what somebody can change, and what is evidence by itself: a file that hangs."""
    rows = changeable(answer.unseen)
    hanging = [row for row in rows if row.is_hanging or row.kind == "bug"]
    looked, rules = rules_that_looked(answer.judged)
    words = [
        f"this is a bug in seawall, please report it: {row.why}" if row.kind == "bug"
        else f"{row.what}: {row.why}"
        for row in hanging[:1]
    ]  # fmt: skip
    if len(hanging) > 1:
        words[0] += f", and {len(hanging) - 1} more like it"
    others = [row for row in rows if row not in hanging]
    if others:
        counts: dict[str, int] = {}
        for row in others:
            counts[row.provide] = counts.get(row.provide, 0) + max(1, row.rules)
        needs = max(counts, key=lambda name: counts[name])
        what = f"{rules - looked} of {rules} rules" if looked < rules else others[0].what
        words.append(f"{what}; needs: {needs}")
    if words:
        yield from _section(paper, "not seen", named("; ".join(words)), most)


def _pointer_lines(found: Sequence[Cause], answer: Answer, paper: Console) -> Iterator[str]:
    if found:
        shown = found[0].item.id
        words = f"its evidence: seawall why {shown}; everything: seawall why --whole"
        yield paper.paint(_row(paper, "more", words), "dim")
    if answer.notes:
        words = f"{counted(answer.notes, 'note')} with the record: seawall why --whole"
        yield paper.paint(_row(paper, "noted", words), "dim")


# --- characters ------------------------------------------------------------------------


def named(text: str) -> str:
    """Names without what nobody can read on one screen: long ids, the folders of a cgroup."""
    text = _LONG_ID.sub(lambda match: match[0][:12], text)
    return _CGROUP.sub(_without_folders, text)


def _without_folders(match: re.Match[str]) -> str:
    path = match[0]
    if not _CGROUP_FOLDER.search(path) or len(path) < 40:
        return path
    return f".../{path.rpartition('/')[2]}"


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[a-z0-9)])\. (?=[A-Z0-9])", text, maxsplit=1)[0]


def _heading(text: str, paper: Console) -> str:
    """As it is, spaces and all; cut at the paper's edge."""
    text = plain(text)
    while columns(text) > paper.width:
        text = text[: min(len(text) - 3, paper.width - 2)] + ".."
    return text


def _row(paper: Console, label: str, text: str) -> str:
    return clipped(text, paper, _INDENT, f"{label:<10}", 1)[0]


def _section(paper: Console, label: str, text: str, most: int) -> Iterator[str]:
    yield from clipped(text, paper, _INDENT, f"{label:<10}", most)


def clipped(
    text: str, paper: Console, indent: str = "", first_indent: str | None = None, most: int = 2,
    end: str = "",
) -> list[str]:  # fmt: skip
    """At most ``most`` lines, none wider than the paper; what does not fit ends in ``..`` between
    two words.  ``end`` stands behind the last one, whatever was left out.
    """
    room = paper.width - len(indent)
    text = plain(text[: 4 * most * paper.width])  # what is cut off here fits on no line
    words = [part for word in text.split() for part in _fitted(word, room)]
    start = indent if first_indent is None else first_indent
    told = _wrapped(words, paper.width, indent, start, end)
    fits, too_many = 1, len(words)
    while len(told) > most and fits < too_many - 1:
        middle = (fits + too_many) // 2
        if len(_wrapped([*words[:middle], ".."], paper.width, indent, start, end)) > most:
            too_many = middle
        else:
            fits = middle
    if len(told) > most:
        told = _wrapped([*words[:fits], ".."], paper.width, indent, start, end)
    return told[:most]


def _wrapped(words: Sequence[str], width: int, indent: str, start: str, end: str) -> list[str]:
    told: list[str] = []
    line, is_empty = start, True
    for word in (*words, *filter(None, [end])):
        if not is_empty and columns(line) + 1 + columns(word) > width:
            told.append(line)
            line, is_empty = indent, True
        line += word if is_empty else " " + word
        is_empty = False
    told.append(line.rstrip())
    return told


def _fitted(word: str, room: int) -> Iterator[str]:
    """A word that no line can hold: a name of parts between two of them, else cut in its middle,
    where names differ least.
    """
    while columns(word) > room:
        place = word.rfind("/", 1, room // (1 if word.isascii() else 2)) + 1
        if place < 2:
            yield shorten(word, room if word.isascii() else room // 2)
            return
        yield word[:place]
        word = word[place:]
    yield word


def columns(text: str) -> int:
    """On a terminal, at most: a character beyond ASCII may be two columns wide."""
    return len(text) if text.isascii() else len(text) + sum(not char.isascii() for char in text)
