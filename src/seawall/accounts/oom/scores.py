# SPDX-License-Identifier: Apache-2.0
"""Points of every process in a report's table, as the kernel that wrote it would give them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from seawall.accounts.oom.badness import Candidate, Formula
from seawall.accounts.oom.domain import Domain
from seawall.accounts.oom.guard_rows import is_of_guard
from seawall.readings.oom_log.oom_report import OomReport, Task

ADJ_NEVER: Final = -1000


class Score(NamedTuple):
    """One row of the table, judged."""

    task: Task
    points: int | None
    """None: not recomputed, or never looked at (``is_killable`` tells)."""
    is_killable: bool
    held_pages: int
    """Resident, swapped and page tables, as far as the table prints them."""
    returns_pages: int
    """What its end gives back at most, in RAM and in swap: all that it holds but what is known
    to be shared memory."""


class Scores(NamedTuple):
    """The whole table, in the log's order."""

    rows: tuple[Score, ...]
    is_computed: bool
    why_not: str
    """Empty when it is computed."""
    is_exact: bool
    """Every term that the formula uses is printed by this kernel."""
    root_matters: bool
    """Whether the bonus for root changes who has the most points."""
    with_bonus: bool
    """The points shown are with the bonus for uid 0."""
    rival: Task | None = None
    """Who would have the most if the swap counted that the node may have or not."""

    def of(self, pid: int | None) -> Score | None:
        """The row of a process (or of the process that a thread belongs to)."""
        for row in self.rows:
            if row.task.pid == pid:
                return row
        return next((row for row in self.rows if row.task.tgid == pid), None)

    def top(self) -> tuple[Score, ...]:
        """All that share the highest points, in the log's order; empty when not computed."""
        known = [row for row in self.rows if row.points is not None]
        most = max((row.points for row in known if row.points is not None), default=None)
        return tuple(row for row in known if row.points == most)

    def largest(self) -> Score | None:
        """Of those that may be killed, the guard's aside, the one whose end returns most."""
        rows = [row for row in self.rows if row.is_killable and not is_of_guard(row.task)]
        return max(rows, key=lambda row: row.returns_pages, default=None)


def score(
    report: OomReport, formula: Formula | None, domain: Domain, page_bytes: int | None
) -> Scores:
    """Every row judged; where the formula or the domain is not known, held memory alone."""
    bare = tuple(_bare(task, page_bytes) for task in report.tasks)
    exact = bool(bare) and _prints_all(report.tasks[0], formula)
    empty = Scores(bare, False, "", exact, False, False)
    why = _why_not(report, formula, domain, page_bytes)
    if formula is None:
        return empty._replace(why_not=why)
    if not why and domain.total_pages is not None:
        found = _both(report, formula, domain.total_pages, empty, page_bytes)
        other = _rival(report, formula, domain, page_bytes, bonus=found.with_bonus)
        return found._replace(rival=other)
    points = _deduced(report, formula, bare)
    if points is None:
        return empty._replace(why_not=why)
    return empty._replace(rows=_with(bare, points), is_computed=True)


def _both(
    report: OomReport, formula: Formula, total: int, empty: Scores, page_bytes: int | None
) -> Scores:
    """With and without the bonus for root; the log itself says which it was, if it does."""
    ways = {
        bonus: [_points(task, formula, total, page_bytes, bonus=bonus) for task in report.tasks]
        for bonus in (True, False)
    }
    chosen = {bonus: _most(points) for bonus, points in ways.items()}
    matters = formula.favours_root and chosen[True] != chosen[False]
    bonus = formula.favours_root and _fits(report, formula, total, ways)
    rows = _with(empty.rows, ways[bonus])
    return empty._replace(rows=rows, is_computed=True, root_matters=matters, with_bonus=bonus)


def _rival(
    report: OomReport, formula: Formula, domain: Domain, page_bytes: int | None, *, bonus: bool
) -> Task | None:
    """Whoever has the most points with all the swap that is allowed, where another has it
    without.
    """
    total = domain.total_pages
    if total is None or not domain.unsure_pages:
        return None
    least, most = (
        _most([_points(task, formula, pages, page_bytes, bonus=bonus) for task in report.tasks])
        for pages in (total, total + domain.unsure_pages)
    )
    return None if least & most or not most else report.tasks[min(most)]


def _fits(
    report: OomReport, formula: Formula, total: int, ways: dict[bool, list[int | None]]
) -> bool:
    """Whether the bonus is in the score that the log prints; True when it does not tell."""
    pids = [task.pid for task in report.tasks]
    pid = report.choice.pid if report.choice else None
    if pid not in pids:
        return True
    at = pids.index(pid)
    if report.choice is not None and report.choice.score is not None:
        off = {
            bonus: abs(log_score(formula, points[at], total) - report.choice.score)
            for bonus, points in ways.items()
        }
        return off[True] <= off[False]
    return at in _most(ways[True]) or at not in _most(ways[False])


def log_score(formula: Formula, points: int | None, total: int) -> int:
    """``score N`` of a ``Kill process`` line."""
    return formula.oom_score(points, total)


def _most(points: Sequence[int | None]) -> frozenset[int]:
    most = max((value for value in points if value is not None), default=None)
    return frozenset(i for i, value in enumerate(points) if value is not None and value == most)


def _points(
    task: Task, formula: Formula, total: int, page_bytes: int | None, *, bonus: bool
) -> int | None:
    adj = task.oom_score_adj
    if adj is None:
        return None
    tables = page_table_pages(task, page_bytes) if formula.counts_page_tables else 0
    candidate = Candidate(
        task.rss_pages, task.swapents_pages or 0, tables, adj, bonus and task.uid == 0
    )
    return formula.points(candidate, total)


def page_table_pages(task: Task, page_bytes: int | None) -> int:
    """As the formula of this age counts them; 0 where the table does not print them."""
    if task.pgtables_bytes is not None:
        return task.pgtables_bytes // page_bytes if page_bytes else 0
    return (task.nr_ptes or 0) + (task.nr_pmds or 0)


def _bare(task: Task, page_bytes: int | None) -> Score:
    tables = page_table_pages(task, page_bytes)
    held = task.rss_pages + (task.swapents_pages or 0) + tables
    back = held - (task.rss_shmem_pages or 0)
    return Score(task, None, not _is_never(task), held, max(0, back))


def _is_never(task: Task) -> bool:
    if task.oom_score_adj is not None:
        return task.oom_score_adj == ADJ_NEVER
    return task.oom_adj == -17  # OOM_DISABLE of the older scale


def _with(rows: Sequence[Score], points: Sequence[int | None]) -> tuple[Score, ...]:
    return tuple(row._replace(points=p) for row, p in zip(rows, points, strict=True))


def _deduced(report: OomReport, formula: Formula, rows: Sequence[Score]) -> list[int | None] | None:
    """Points that follow from the log alone: the chosen one has the most, so if its score is
    the floor, everybody's is.  None when nothing follows.
    """
    choice = report.choice
    if choice is None or choice.score is None or formula.unit != "per_mille":
        return None
    if formula.floor is None or choice.score != formula.floor:
        return None
    return [formula.floor if row.is_killable else None for row in rows]


def _prints_all(task: Task, formula: Formula | None) -> bool:
    has_tables = task.pgtables_bytes is not None or task.nr_ptes is not None
    needs_tables = formula is None or formula.counts_page_tables
    return task.swapents_pages is not None and (has_tables or not needs_tables)


def _why_not(
    report: OomReport, formula: Formula | None, domain: Domain, page_bytes: int | None
) -> str:
    if not report.tasks:
        return "the report has no table of processes"
    if formula is None:
        if report.kernel is None:
            return "the log does not name its kernel, and its form does not tell either"
        return f"Linux {report.kernel[:60]} ranked by address space and run time"
    if report.tasks[0].oom_score_adj is None:
        return "the table has no oom_score_adj"
    if page_bytes is None and report.tasks[0].pgtables_bytes is not None:
        return "the page size is not known (--page-size gives it)"
    return "" if domain.total_pages is not None else domain.words
