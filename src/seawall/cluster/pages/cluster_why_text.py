# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why`` as text: one screen of 24 lines, the cause first."""

from collections.abc import Iterator
from typing import Final

from seawall.cluster.objects.node_death_object import CauseClass, NodeDeathObject
from seawall.cluster.objects.workload_quarantine_object import WorkloadQuarantineObject
from seawall.cluster.pages.cluster_reading import culprit_name, is_death, who
from seawall.cluster.pages.cluster_why_page import ClusterWhyPage
from seawall.cluster.pages.cluster_words import (
    NOBODY_WATCHES,
    ago,
    cause_words,
    chance_words,
    clock,
    evidence_words,
    heading,
    held_words,
    key_words,
    label,
    labelled,
    score_words,
    state_word,
    strongest,
    watch_words,
)
from seawall.cluster.pages.quarantine_words import IN_FORCE
from seawall.views.terminal import Console, plain, shorten
from seawall.words import counted, size

LINES_MOST: Final = 23
"""A screen of 24 with the prompt."""
_DEATHS_LEAST: Final = 3
_DEATHS_SHOWN: Final = 5
_UNSEEN_SHOWN: Final = 2
_OTHERS_SHOWN: Final = 2
_NODE_WIDTH: Final = 22
_LEVELS: Final = {"killer": "critical", "suspect": "warning", "deaths": "warning"}


def why_lines(page: ClusterWhyPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: every death, statement and thing unseen, however many lines that takes."""
    top = list(_top(page, paper))
    statements = list(_evidence(page))
    below = list(_below(page, paper, whole=whole))
    rows = len(page.deaths) if whole else min(len(page.deaths), _DEATHS_SHOWN)
    room = LINES_MOST - len(top) - len(below)
    evidence: list[str] = []
    for number, text in enumerate(statements):
        lines = list(labelled(paper, "evidence" if not number else "", [text]))
        if not whole and len(evidence) + len(lines) + rows > room:
            break
        evidence += lines
    yield from top
    yield from _deaths(page, paper, len(page.deaths) if whole else room - len(evidence))
    yield from evidence
    yield from below


def _top(page: ClusterWhyPage, paper: Console) -> Iterator[str]:
    yield paper.paint(shorten(plain(heading(page.reading)), paper.width), "dim")
    watch = watch_words(page.reading)
    is_blind = watch.startswith(NOBODY_WATCHES)
    for line in paper.wrap(watch):
        yield paper.paint(line, "critical" if is_blind else "dim")
    yield ""
    level = _LEVELS.get(page.answer, "bold")
    word = state_word(page.suspect).upper() if page.suspect and not page.subject else ""
    for line in paper.wrap(f"{word}: {page.headline}" if word else page.headline):
        yield paper.paint(line, level)


def _deaths(page: ClusterWhyPage, paper: Console, room: int) -> Iterator[str]:
    if not page.deaths:
        return
    now = page.as_of_unix_seconds
    room = max(room, _DEATHS_LEAST)
    is_cut = len(page.deaths) > room
    shown = page.deaths[1 - room :] if is_cut else page.deaths
    if is_cut:
        before = counted(len(page.deaths) - len(shown), "death")
        yield f"{label('died')}{before} before these: --whole"
    width = min(max(len(plain(one.node)) for one in shown), _NODE_WIDTH)
    for number, death in enumerate(shown):
        at = death.heartbeat_seconds
        node = shorten(plain(death.node), width).ljust(width)
        words = (
            f"{node}  {clock(at, now)}  {ago(at, now):>10}  {death.kind.value}, "
            f"{_death_words(death)}"
        )
        head = label("died" if not number and not is_cut else "")
        yield shorten(head + plain(words), paper.width)


def _death_words(death: NodeDeathObject) -> str:
    if not is_death(death):
        return death.phase.value
    if death.record is None:
        return "no record came" if death.awaited_until_seconds is None else "record awaited"
    return evidence_words(death) if death.cause is CauseClass.UNKNOWN else cause_words(death)


def _below(page: ClusterWhyPage, paper: Console, *, whole: bool) -> Iterator[str]:
    one = page.suspect
    if one is not None and one.status is not None:
        yield from labelled(paper, "by hand", [chance_words(one)])
        yield from labelled(paper, "score", [_odds_words(one)])
        if one.status.why_not:
            yield from labelled(paper, "but", [one.status.why_not])
    if page.report is not None:
        yield from labelled(paper, "agent", [_report_words(page)])
    if page.done:
        yield from labelled(paper, "done", [page.done])
    yield from labelled(paper, "next", page.outlook)
    is_in_force = page.suspect is not None and page.suspect.state in IN_FORCE
    end = "take back" if is_in_force else "to end it"
    for number, line in enumerate(page.commands):
        yield label(end if not number else "") + plain(line)
    yield from _others(page, paper, whole=whole)
    yield from _unseen(page, paper, whole=whole)


def _evidence(page: ClusterWhyPage) -> Iterator[str]:
    """The strongest statement of each death that has one, newest first."""
    for death in reversed(page.deaths):
        line = strongest(death.record or ())
        if line is not None:
            held = held_words(death)
            said = f"{culprit_name(death)} held {held}" if held else ""
            yield f"{death.node}: {evidence_words(death)}: {line.text or said}".rstrip(": ")


def _odds_words(one: WorkloadQuarantineObject) -> str:
    known = f"known by {key_words(one.key.level)}"
    status = one.status
    if status is None or status.score_log10 is None:
        return f"no score; {known}"
    return (
        f"10^{status.score_log10:.1f}, mark 10^{status.threshold_log10:.1f} "
        f"({status.false_per_thousand_node_years:g} wrong in 1,000 node-years); {known}"
    )


def _report_words(page: ClusterWhyPage) -> str:
    report, now = page.report, page.as_of_unix_seconds
    if report is None:
        return ""
    hand = "can kill" if report.guard.can_kill else "cannot kill"
    words = f"said {ago(report.at_seconds, now)}: guard in mode "
    words += f"{report.guard.mode or 'unknown'}, {hand}"
    distress = report.distress
    if distress is not None and distress.headroom_bytes is not None:
        words += f"; memory short {ago(distress.at_seconds, now)}, headroom "
        words += size(distress.headroom_bytes)
    return f"{words}; {distress.decision}" if distress and distress.decision else words


def _others(page: ClusterWhyPage, paper: Console, *, whole: bool) -> Iterator[str]:
    if not page.others:
        return
    shown = page.others if whole else page.others[:_OTHERS_SHOWN]
    words = [f"{who(one)} is {state_word(one)}, {score_words(one)}" for one in shown]
    more = len(page.others) - len(shown)
    last = f"{'; '.join(words)}{f' and {more} more' if more else ''}: seawall cluster suspects"
    yield from labelled(paper, "also", [last])


def _unseen(page: ClusterWhyPage, paper: Console, *, whole: bool) -> Iterator[str]:
    rows = page.unseen
    if not rows:
        return
    shown = rows if whole else rows[:_UNSEEN_SHOWN]
    more = len(rows) - len(shown)
    words = [f"{row.what}: {row.why}" for row in shown]
    if more:
        words[-1] += f" (and {more} more: --whole)"
    elif not whole and rows[0].provide and len(rows) == 1:
        words[0] += f"; needs {rows[0].provide}"
    yield from labelled(paper, "unseen", words)
