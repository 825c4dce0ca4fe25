# SPDX-License-Identifier: Apache-2.0
"""In words: who was chosen, why this one, and who would have returned more."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.scores import Score, log_score
from seawall.words import count, size

_FULL: Final = 1000
_NEAR_FULL: Final = 900
_SCORE_MOST: Final = 2200
"""Resident pages run a little ahead of what is charged."""
BETTER_FACTOR: Final = 2
"""A better choice returns at least twice as much."""


def choice_sentences(facts: ReportFacts) -> Iterator[str]:
    """Sentences about the choice; what is not known is said."""
    if facts.chosen_pid is None:
        yield from _nobody(facts)
        return
    who = f"{facts.chosen_comm} (pid {facts.chosen_pid})"
    yield from _not_in_table(facts, who)
    scores = facts.scores
    if not scores.is_computed:
        yield from _not_computed(facts, who)
        yield from _adj_by_score(facts)
    else:
        yield from _computed(facts, who)
    yield from _group(facts)
    yield from _better_words(facts)


def _not_in_table(facts: ReportFacts, who: str) -> Iterator[str]:
    other = facts.stand_in
    if other is not None and other.kin == "thread":
        killed = f"{other.kill.comm} (pid {other.kill.pid})"
        yield f"The pid chosen, {other.choice.pid}, is a thread of {killed}, which was killed."
    elif facts.chosen is None and facts.report.tasks:
        yield f"{who} was chosen; it is not in the table, which may be cut."
    if other is not None and other.kin == "either":
        yield f"{other.kill.comm} (pid {other.kill.pid}) is a child or a thread of it."


def _nobody(facts: ReportFacts) -> Iterator[str]:
    if facts.report.no_killable:
        rows = facts.scores.rows
        never = sum(not row.is_killable for row in rows)
        who = "The only process has" if never == 1 else f"All {never} have"
        words = f" {who} oom_score_adj -1000." if never and never == len(rows) else ""
        yield f"Nobody: there was no process that may be killed.{words}"
    elif facts.report.panic:
        yield "Nobody: the kernel stopped the whole machine (panic) instead."
    else:
        yield "Who was chosen is not in the log: its end is missing."


def _not_computed(facts: ReportFacts, who: str) -> Iterator[str]:
    scores = facts.scores
    yield f"{who}: points not recomputed, for {scores.why_not}."
    chosen = facts.chosen
    if chosen is None or not is_most_by_size(facts):
        return
    adj = chosen.task.oom_score_adj
    adj_words = f" of {adj}" if adj is not None else ""
    yield (
        f"All that may be killed have the same oom_score_adj{adj_words}, and {who} holds the "
        f"most, {facts.holds(chosen)}: size alone decides."
    )


def _adj_by_score(facts: ReportFacts) -> Iterator[str]:
    """2.6.36 to 5.0: ``score`` is thousandths of the memory, at most some 1000, plus the adj."""
    choice, owner = facts.report.choice, facts.task_owner
    if choice is None or choice.score is None or not _FULL < choice.score <= _SCORE_MOST:
        return
    if facts.formula is not None and facts.formula.unit == "pages":
        return
    least = min(choice.score - _FULL, _FULL)
    words = f"at least {least}"
    if least == _FULL or (least >= _NEAR_FULL and owner and owner.place.qos == "BestEffort"):
        words = f"{_FULL}, the highest there is"
    by = (
        ", as the kubelet gives BestEffort pods"
        if owner and owner.place.qos == "BestEffort"
        else ""
    )
    yield f"Its score of {choice.score} tells that its oom_score_adj is {words}{by}."


def is_most_by_size(facts: ReportFacts) -> bool:
    """Whether the chosen one follows without any total: equal adj, and it holds the most."""
    rows = [row for row in facts.scores.rows if row.is_killable]
    chosen = facts.chosen
    if chosen is None or not rows or (facts.formula and facts.formula.favours_root):
        return False
    if len({row.task.oom_score_adj for row in rows}) != 1:
        return False
    return chosen.held_pages == max(row.held_pages for row in rows)


def _computed(facts: ReportFacts, who: str) -> Iterator[str]:
    scores = facts.scores
    formula, chosen = facts.formula, facts.chosen
    if formula is not None:
        total = facts.domain.total_pages
        of = f"its total is not known, for {facts.domain.words}"
        if total is not None:
            of = f"total: {facts.domain.words}, {count(total)} pages"
        yield f"Points by the formula of Linux {formula.name}: {formula.text}; {of}."
    if chosen is None or chosen.points is None:
        yield from _outside(facts, who)
        return
    ties = scores.top()
    eligible = sum(row.is_killable for row in scores.rows)
    if chosen in ties and len(ties) > 1:
        yield (
            f"{who} has {count(chosen.points)}, the most; so {have_others(len(ties) - 1)} of "
            f"{eligible} that may be killed: {_place(ties, chosen)}."
        )
    elif chosen in ties:
        yield f"{who} has {count(chosen.points)}, the most of {eligible} that may be killed."
    elif ties:
        yield from _differs(facts, who, ties[0])
    yield from _compared(facts)
    yield from _limits_of_it(facts)


def have_others(number: int) -> str:
    """``has 1 other``, ``have 3 others``."""
    return f"has {number} other" if number == 1 else f"have {number} others"


def _outside(facts: ReportFacts, who: str) -> Iterator[str]:
    top = facts.scores.top()
    if top:
        most = top[0]
        yield (
            f"In the table {most.task.comm} (pid {most.task.pid}) has the most, "
            f"{count(most.points or 0)}; what {who} has cannot be told."
        )


def _place(ties: tuple[Score, ...], chosen: Score) -> str:
    if chosen is ties[0]:
        return "it is the first of them in the list"
    return "it is the last of them in the list" if chosen is ties[-1] else "the kernel's order"


def _differs(facts: ReportFacts, who: str, most: Score) -> Iterator[str]:
    chosen = facts.chosen
    points = chosen.points if chosen else None
    yield (
        f"By these points {most.task.comm} (pid {most.task.pid}) should have been chosen, with "
        f"{count(most.points or 0)}; {who} has {count(points or 0)}."
    )
    if facts.report.invoker_pid == facts.chosen_pid:
        yield "The chosen one is the one that asked: vm.oom_kill_allocating_task=1 does that."


def _compared(facts: ReportFacts) -> Iterator[str]:
    """Against ``score N`` of the log."""
    choice, total, formula = facts.report.choice, facts.domain.total_pages, facts.formula
    chosen = facts.chosen
    if choice is None or choice.score is None or chosen is None or formula is None:
        return
    if total is None:
        yield (
            f"But the log's own score for it is {choice.score}, the least there is: so nobody "
            "had more."
        )
        return
    ours = log_score(formula, chosen.points, total)
    same = "as recomputed" if ours == choice.score else f"recomputed: {ours}"
    yield f"The log says score {choice.score}, {same}."


def _limits_of_it(facts: ReportFacts) -> Iterator[str]:
    scores = facts.scores
    if scores.root_matters:
        how = "with" if scores.with_bonus else "without"
        yield (
            "Root's bonus (uid 0 taken for CAP_SYS_ADMIN) changes who has the most; the points "
            f"here are {how} it, as fits the log best."
        )
    if scores.rival is not None:
        swap = size(facts.domain.unsure_pages * (facts.page_bytes or 0))
        yield (
            f"With the {swap} of swap that may be allowed {scores.rival.comm} (pid "
            f"{scores.rival.pid}) has the most: whether the node has that swap is not in the log."
        )
    if not scores.is_exact and facts.domain.total_pages is not None:
        yield "This table prints no swap or no page tables: the points are the least they can be."


def _group(facts: ReportFacts) -> Iterator[str]:
    report = facts.report
    if report.group_kill is not None:
        yield f"memory.oom.group is set on {report.group_kill}: all in it were killed together."


def better(facts: ReportFacts) -> Score | None:
    """Who would have returned at least twice as much as all that were killed."""
    largest = facts.scores.largest()
    chosen = facts.chosen
    if largest is None or chosen is None or facts.report.group_kill is not None:
        return None
    killed = {kill.pid for kill in facts.report.kills} or {chosen.task.pid}
    if largest.task.pid in killed or largest.task.pid == facts.chosen_pid:
        return None
    rows = [row for row in facts.scores.rows if row.task.pid in killed]
    returned = sum(row.returns_pages for row in rows) or chosen.returns_pages
    return largest if largest.returns_pages >= BETTER_FACTOR * max(returned, 1) else None


def _better_words(facts: ReportFacts) -> Iterator[str]:
    found = better(facts)
    if found is None:
        return
    yield (
        f"{found.task.comm} (pid {found.task.pid}) would have returned more: up to "
        f"{facts.size_of(found.returns_pages)}. {_why_not_it(facts, found)}"
    )


def _why_not_it(facts: ReportFacts, found: Score) -> str:
    chosen = facts.chosen
    if chosen is None or found.points is None or chosen.points is None:
        return "Why the kernel did not take it cannot be told from this log."
    if found.points == chosen.points:
        return f"It was not taken, for it has no more points: {found.points}."
    if found.points > chosen.points:
        return (
            "Why the kernel did not take it is not in the log: it may have been dying already, "
            "or have been given up on by the OOM reaper."
        )
    adj, other = found.task.oom_score_adj, chosen.task.oom_score_adj
    if adj is not None and other is not None and adj < other:
        return f"Its oom_score_adj of {adj} (against {other}) protects it."
    if facts.scores.with_bonus and found.task.uid == 0:
        return "Root's bonus protects it."
    return "The other has more points all the same."
