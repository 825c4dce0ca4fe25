# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain`` as text: the verdict, then the details, the table, what is wrong."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.oom.explanation import Explanation, Section
from seawall.accounts.oom.guard_rows import is_of_guard
from seawall.accounts.oom.oom_episode import OomEpisode
from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.scores import Score
from seawall.views.document import taken_at
from seawall.views.terminal import Console, plain, shorten
from seawall.views.why_text import shortened
from seawall.words import count, counted, duration, size

ROWS_SHOWN: Final = 10
EPISODES_SHOWN: Final = 5
_BY_WORTH: Final = ("short", "whose", "given back", "asked", "chosen")
"""Where not all details fit, these first."""
_LABEL: Final = 12
_WHERE_LEAST: Final = 16
_NUMBER_MOST: Final = 14
_NUMBER_LEAST: Final = 8
"""Where a damaged log's numbers would make the table wider than the paper."""
_TOP: Final = "              "


def lines(explanation: Explanation, paper: Console, of: int | None = None) -> Iterator[str]:
    """One report; ``of``: how many there are in its log."""
    yield from _top(explanation, paper, of)
    yield ""
    for section in explanation.sections:
        yield from _section(section, paper)
    yield from _table(explanation.facts, paper)
    yield from _anomalies(explanation, paper)


def page(
    explanation: Explanation, paper: Console, most: int, of: int | None = None
) -> Iterator[str]:
    """One report in at most ``most`` lines: the verdict and what to do, then as many of the
    details as there is room for, and how to see the rest.
    """
    head = list(lines(explanation, paper, of))
    if len(head) <= most:
        yield from head
        return
    top = [line for line in _top(explanation, paper, of) if line]
    yield from top
    room = most - len(top) - 1
    sections = {section.title: section for section in explanation.sections}
    for title in _BY_WORTH:
        section = sections.get(title)
        rows = list(_section(section, paper)) if section else []
        if rows and len(rows) <= room:
            room -= len(rows)
            yield from rows
    for anomaly in explanation.anomalies:
        rows = list(_wrap(paper, anomaly.text, " " * (_LABEL + 1), "  beside".ljust(_LABEL + 1)))
        if anomaly.id != "cut-report" and len(rows) <= room:
            room -= len(rows)
            yield from rows
    if of in (2, 3):
        return  # said once, below all of them
    yield from _wrap(
        paper, f"all of it, with the table: --report {explanation.number}",
        " " * (_LABEL + 1), "  more".ljust(_LABEL + 1),
    )  # fmt: skip


def _top(explanation: Explanation, paper: Console, of: int | None) -> Iterator[str]:
    yield ""
    yield from _wrap(paper, _heading(explanation, of), "  ")
    for line in _wrap(paper, explanation.verdict):
        yield paper.paint(line, "critical")
    if explanation.facts.chosen_pid is not None:
        yield from _wrap(paper, explanation.why, _TOP, "Why this one: ")
    for line in _wrap(paper, explanation.advice, _TOP, "What to do:   "):
        yield paper.paint(line, "bold")


def _section(section: Section, paper: Console) -> Iterator[str]:
    label = f"  {section.title}".ljust(_LABEL) + " "
    return _wrap(paper, " ".join(section.sentences), " " * (_LABEL + 1), label)


def episode_lines(
    episodes: Sequence[OomEpisode], found: int, kills: int, reports: int, paper: Console
) -> Iterator[str]:
    """What happened in the whole log, an episode a line; the last EPISODES_SHOWN of them."""
    shown = episodes[-EPISODES_SHOWN:]
    calls = f"{count(reports)} calls of the OOM killer"
    killed = f"{count(kills)} killed" if kills else "nobody shown to be killed"
    yield paper.paint(f"{calls}, {killed}, in {counted(found, 'episode')}", "bold")
    if found > len(shown):
        yield f"  the last {len(shown)} of them:"
    for episode in shown:
        yield shortened("  " + plain(episode_words(episode, paper.width - 2)), paper)


def episode_words(episode: OomEpisode, width: int) -> str:
    """``61 kills in 4.3 s in ml/llm-0/server, 754 MiB came back, no relief``: the place is
    shortened to what the width leaves.
    """
    at = ""
    if episode.first_at:
        stamp = episode.first_at.strip()
        at = (re.sub(r"(?<=\d\.\d)\d+\Z", "", stamp)) + "  "
    many = counted(episode.kills, "kill")
    if not episode.kills:
        many = counted(episode.reports, "call") + ", no kill shown"
    span = "" if not episode.seconds else f" in {_span(episode.seconds)}"
    back = "" if episode.returned_bytes is None else f", {size(episode.returned_bytes)} came back"
    relief = {"none": ", no relief", "not lasting": ", no relief"}.get(episode.relief, "")
    name = next((f": {name}" for name, _ in episode.names.most_common(1)), "")
    if len(episode.names) > 1:
        name += f" and {len(episode.names) - 1} more"
    if episode.where:
        room = width - len(f"{at}{many}{span} in {back}{relief}")
        where = f" in {shorten(episode.where, max(room, _WHERE_LEAST))}"
    else:
        where = {None: ", of what is not told", "memcg": " at a limit"}.get(
            episode.kind, " of the machine"
        )
    words = f"{at}{many}{span}{where}{back}{relief}"
    return words + name if len(words + name) <= width else words


def _span(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def summary(explanation: Explanation, paper: Console) -> str:
    """One line for one report of many: when, who died, what it held, where."""
    facts = explanation.facts
    report = facts.report
    who = "nobody" if facts.chosen_pid is None else f"{facts.chosen_comm} ({facts.chosen_pid})"
    if report.kills:
        more = f" +{len(report.kills) - 1}" if len(report.kills) > 1 else ""
        who = f"{report.kills[0].comm} ({report.kills[0].pid}){more}"
    back = facts.returned_bytes
    held = "" if back is None else f" {size(back)}"
    at = f" [{report.at.strip()}]" if report.at else ""
    kind = report.kind if facts.is_domain_known else "unknown"
    head = plain(f"{explanation.number:>4}{at} {kind}  {who}{held}  ")
    if facts.limit_owner is None:
        return shortened(head.rstrip(), paper)
    where = shorten(plain(facts.limit_owner.name), max(_WHERE_LEAST, paper.width - len(head)))
    return shortened(head + where, paper)


def ending(
    found: int, lines_read: int, paper: Console, *, is_readable: bool = True
) -> Iterator[str]:
    """How many reports there were; without any, what was looked for."""
    if found:
        yield ""
        yield f"{count(found)} OOM report{'s' if found > 1 else ''} in {count(lines_read)} lines."
        return
    if not lines_read and not is_readable:
        yield "No log could be read, so nothing is known of any OOM kill."
        return
    yield from _wrap(
        paper,
        f"No OOM report in {count(lines_read)} lines. Looked for 'invoked oom-killer', "
        "'Kill process ... score', 'Killed process ...', 'oom-kill:constraint=' and the task "
        "table that belongs to them.",
    )


def _wrap(paper: Console, text: str, indent: str = "", first: str | None = None) -> Iterator[str]:
    """Lines no wider than the paper: what is longer, a cgroup's path, is broken after a ``/``."""
    room = paper.width - max(len(indent), len(first or ""))
    words = (piece for word in plain(text).split() for piece in _pieces(word, room))
    return paper.wrap(" ".join(words), indent, first)


def _pieces(word: str, room: int) -> Iterator[str]:
    while len(word) > room:
        at = word.rfind("/", 0, room) + 1 or room
        yield word[:at]
        word = word[at:]
    if word:
        yield word


def _heading(explanation: Explanation, of: int | None) -> str:
    facts = explanation.facts
    report = facts.report
    many = f" of {of}" if of is not None else ""
    at = f" at {report.at.strip()}" if report.at else ""
    if at.endswith(" ago"):  # an event's row of kubectl
        at = f", {at[4:]} by kubectl's clock"
    when = taken_at(facts.at_unix_seconds)
    at += f" ({when})" if when else ""
    page = "page size not known" if facts.page_bytes is None else f"{size(facts.page_bytes)} pages"
    kind = report.kind if facts.is_domain_known else "machine or limit not known"
    kernel = f"Linux {facts.kernel}" if facts.kernel else "kernel not named"
    return (
        f"OOM report {explanation.number}{many}{at}: {kind}, {kernel}, {page}, "
        f"log lines {report.first_line}-{report.last_line}"
    )


def _table(facts: ReportFacts, paper: Console) -> Iterator[str]:
    rows = facts.scores.rows
    if not rows:
        return
    shown, marked = _shown(facts)
    has_swap = any(row.task.swapents_pages for row in rows)
    has_points = facts.scores.is_computed
    head = ["  PROCESS", "PID", "UID", "ADJ"]
    head += ["POINTS"] * has_points + ["HOLDS", "IN RAM"] + ["IN SWAP"] * has_swap
    yield ""
    has = (has_points, has_swap)
    for most in (_NUMBER_MOST, _NUMBER_LEAST):
        table = paper.table(head, [_cells(row, facts, marked, has, most) for row in shown])
        if max(map(len, table)) <= paper.width:
            break
    for number, line in enumerate(table):
        yield paper.paint(line, "dim") if not number else line
    words = _notes(facts, shown, marked)
    if words:
        yield from _wrap(paper, "; ".join(words), "  ", "  ")


def _notes(facts: ReportFacts, shown: Sequence[Score], marked: frozenset[int]) -> list[str]:
    """What the table leaves out, and what its marks mean."""
    rows, has_points = facts.scores.rows, facts.scores.is_computed
    words = []
    if len(rows) > len(shown):
        words.append(f"{len(shown)} of {len(rows)} processes in the table")
    if facts.report.tasks_left_out:
        words.append(f"{facts.report.tasks_left_out:,} more rows were counted and not kept")
    if marked:
        words.append("> was chosen or killed")
    if has_points and any(not row.is_killable for row in shown):
        words.append("- may not be killed")
    if any(is_of_guard(row.task) for row in shown):
        words.append("(guard): Seawall's own, by their oom_score_adj of -999")
    return words


def _shown(facts: ReportFacts) -> tuple[Sequence[Score], frozenset[int]]:
    """The first ten by points, else by what they hold, and whoever was chosen or killed."""
    marked = {kill.pid for kill in facts.report.kills} | {facts.chosen_pid}
    rows = sorted(facts.scores.rows, key=_rank)
    shown = rows[:ROWS_SHOWN]
    late = [row for row in rows[ROWS_SHOWN:] if row.task.pid in marked][:3]
    present = frozenset(row.task.pid for row in (*shown, *late) if row.task.pid in marked)
    return [*shown, *late], present


def _rank(row: Score) -> tuple[bool, int, int]:
    """Highest points first; of equals, and without points, whoever holds most."""
    return (not row.is_killable, -(row.points or 0), -row.held_pages)


def _cells(
    row: Score, facts: ReportFacts, marked: frozenset[int], has: tuple[bool, bool], most: int
) -> list[str]:
    task = row.task
    has_points, has_swap = has
    adj = task.oom_score_adj if task.oom_score_adj is not None else task.oom_adj
    mark = "> " if task.pid in marked else "  "
    points = _narrow(row.points, most) if row.points is not None else "-"
    own = " (guard)" if is_of_guard(task) else ""
    cells = [mark + task.comm + own, _bare(task.pid, 10), _bare(task.uid, 10)]
    cells.append("?" if adj is None else _bare(adj, 6))
    cells += [points] * has_points
    sizes = [row.held_pages, task.rss_pages, *[task.swapents_pages or 0] * has_swap]
    return cells + [_sized(pages, facts, most) for pages in sizes]


def _bare(number: int, most: int) -> str:
    words = str(number)
    return words if len(words) <= most else f"{number:.0e}"


def _narrow(number: int, most: int) -> str:
    """A number that no machine has, from a damaged log, takes no more room than one that is."""
    words = count(number)
    return words if len(words) <= most else f"{number:.1e}"


def _sized(pages: int, facts: ReportFacts, most: int) -> str:
    words = facts.size_of(pages)
    if len(words) <= most:
        return words
    return f"{_narrow(pages, most)}p" if facts.page_bytes is None else "> 1 EiB"


def _anomalies(explanation: Explanation, paper: Console) -> Iterator[str]:
    if not explanation.anomalies:
        return
    yield ""
    yield paper.paint("What is wrong here", "bold")
    for anomaly in explanation.anomalies:
        yield from _wrap(paper, f"{anomaly.text} [{anomaly.id}]", "    ", "  - ")
