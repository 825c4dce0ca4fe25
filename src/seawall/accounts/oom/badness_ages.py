# SPDX-License-Identifier: Apache-2.0
"""Every age of oom_badness since it looks at real memory, in the kernel's own integers.

Kernel sources: mm/oom_kill.c oom_badness and select_bad_process, fs/proc/base.c
proc_oom_score.  C divides towards zero; where a value is an ``int`` it wraps at 32 bits.
The ages and their borders, RHEL's own among them, are listed in ``AGES``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Unit: TypeAlias = Literal["pages", "per_mille"]

ADJ_NEVER: Final = -1000
"""OOM_SCORE_ADJ_MIN: the kernel does not look at such a process."""
_BONUS_PER_MILLE: Final = 30  # what CAP_SYS_ADMIN was worth


class Candidate(NamedTuple):
    """What the formula looks at; pages of the kernel that judges."""

    rss_pages: int
    swap_pages: int
    page_table_pages: int
    """nr_ptes (+ nr_pmds, or all page tables) as that age counts them."""
    oom_score_adj: int
    is_root: bool
    """Has CAP_SYS_ADMIN in the initial user namespace; ages before 4.17 favour it."""


@dataclass(frozen=True, slots=True)
class Formula:
    """One age of the kernel's oom_badness: how it counts points and a score."""

    name: str
    """As ``--kernel`` takes it and as a person reads it, e.g. ``2.6.32-el6`` or ``5.9``."""
    unit: Unit
    badness: Callable[[Candidate, int], int]
    """The points of an eligible process; ``points`` is what to call."""
    score: Callable[[int, int], int]
    """From points to /proc/PID/oom_score; ``oom_score`` is what to call."""
    text: str
    """The formula as one would write it down."""
    floor: int | None
    """No eligible process has fewer points: all that would have, tie.  None: no floor."""
    takes_last: bool
    """Of equals the kernel takes the last one that it meets (5.3+), not the first."""
    favours_root: bool
    """CAP_SYS_ADMIN lowers the points."""
    holds_for: str
    """The kernels that count like this, in words."""
    counts_page_tables: bool = True

    def points(self, candidate: Candidate, total_pages: int) -> int | None:
        """The badness in ``unit``; None when the kernel would not look at it (adj -1000).

        ``total_pages``: RAM and swap of the node, or of the limit that was hit.
        """
        if candidate.oom_score_adj == ADJ_NEVER:
            return None
        return self.badness(candidate, max(total_pages, 1))

    def choose(self, points: Sequence[int | None]) -> int | None:
        """The index that the kernel takes, candidates in the order in which it meets them.

        That is the order in which the processes were made (for a cgroup since 3.6: in which
        they joined it), which is the order of the log's task table for a global kill and,
        since 5.3, for a cgroup's.
        """
        chosen: int | None = None
        most = 0
        for index, value in enumerate(points):
            if value is None:
                continue
            if chosen is None or value > most or (self.takes_last and value == most):
                chosen, most = index, value
        return chosen

    def oom_score(self, points: int | None, total_pages: int) -> int:
        """What /proc/PID/oom_score of that kernel shows for these points.

        There ``total_pages`` is the node's RAM and swap.  With the total of a cgroup's limit
        it is the ``score N`` of the log's ``Kill process`` line, up to 5.0.
        """
        return 0 if points is None else self.score(points, max(total_pages, 1))


def _divide(numerator: int, denominator: int) -> int:
    """C's division: towards zero."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _held(candidate: Candidate) -> int:
    return candidate.rss_pages + candidate.swap_pages + candidate.page_table_pages


def _end_per_mille(share: int, candidate: Candidate) -> int:
    points = share - (_BONUS_PER_MILLE if candidate.is_root else 0) + candidate.oom_score_adj
    return min(max(points, 1), 1000)


def _per_mille_no_tables(candidate: Candidate, total: int) -> int:
    share = (candidate.rss_pages + candidate.swap_pages) * 1000 // total
    return _end_per_mille(_int32(share), candidate)


def _per_mille_int(candidate: Candidate, total: int) -> int:
    """``points`` is an int: 1000 times more than 2.1 million pages wraps.

    total is an unsigned long, so a negative value is divided as a very large one.
    """
    wrapped = _int32(_held(candidate) * 1000)
    return _end_per_mille(_int32((wrapped % 2**64) // total), candidate)


def _per_mille_long(candidate: Candidate, total: int) -> int:
    return _end_per_mille(_held(candidate) * 1000 // total, candidate)


def _pages_root_of_total(candidate: Candidate, total: int) -> int:
    adj = candidate.oom_score_adj - (_BONUS_PER_MILLE if candidate.is_root else 0)
    return max(_held(candidate) + adj * (total // 1000), 1)


def _pages_root_of_own(candidate: Candidate, total: int) -> int:
    held = _held(candidate)
    if candidate.is_root:
        held -= held * 3 // 100
    return max(held + candidate.oom_score_adj * (total // 1000), 1)


def _pages_no_floor(candidate: Candidate, total: int) -> int:
    return _held(candidate) + candidate.oom_score_adj * (total // 1000)


def _pages(candidate: Candidate, total: int) -> int:
    return max(_pages_no_floor(candidate, total), 1)


def _score_is_points(points: int, total: int) -> int:  # noqa: ARG001 - one shape for all
    return points


def _score_per_mille(points: int, total: int) -> int:
    return points * 1000 // total


def _score_two_thirds(points: int, total: int) -> int:
    return _divide((1000 + _divide(points * 1000, total)) * 2, 3)


_PER_MILLE_TEXT: Final = "(rss + swap + page tables) x 1000 / total - 30 if root + oom_score_adj"
_OWN_TEXT: Final = "rss + swap + page tables, - 3 % of it if root, + oom_score_adj x total / 1000"
_TEXT: Final = "rss + swap + page tables + oom_score_adj x total / 1000"

EL6: Final = Formula(
    "2.6.32-el6", "per_mille", _per_mille_long, _score_is_points,
    f"{_PER_MILLE_TEXT}, from 1 to 1000", 1,
    takes_last=False, favours_root=True, holds_for="RHEL 6",
)  # fmt: skip
AGES: Final[tuple[tuple[tuple[int, int], Formula], ...]] = (
    ((2, 636), Formula(
        "2.6.36", "per_mille", _per_mille_no_tables, _score_is_points,
        "(rss + swap) x 1000 / total - 30 if root + oom_score_adj, from 1 to 1000", 1,
        takes_last=False, favours_root=True, holds_for="2.6.36 to 2.6.38",
        counts_page_tables=False)),
    ((2, 639), Formula(
        "2.6.39", "per_mille", _per_mille_int, _score_is_points,
        f"{_PER_MILLE_TEXT}, from 1 to 1000, in 32 bits", 1,
        takes_last=False, favours_root=True, holds_for="2.6.39 to 3.1")),
    ((3, 2), Formula(
        "3.2", "per_mille", _per_mille_long, _score_is_points,
        f"{_PER_MILLE_TEXT}, from 1 to 1000", 1,
        takes_last=False, favours_root=True, holds_for="3.2 to 3.4")),
    ((3, 5), Formula(
        "3.5", "pages", _pages_root_of_total, _score_per_mille,
        "rss + swap + page tables + (oom_score_adj - 30 if root) x total / 1000, at least 1",
        1, takes_last=False, favours_root=True, holds_for="3.5 to 3.13")),
    ((3, 14), Formula(
        "3.14", "pages", _pages_root_of_own, _score_per_mille, f"{_OWN_TEXT}, at least 1",
        1, takes_last=False, favours_root=True, holds_for="3.14 to 3.19, RHEL 7")),
    ((4, 0), Formula(
        "4.0", "pages", _pages_root_of_own, _score_per_mille, f"{_OWN_TEXT}, at least 1",
        1, takes_last=False, favours_root=True, holds_for="4.0 to 4.14")),
    ((4, 15), Formula(
        "4.15", "pages", _pages_root_of_own, _score_per_mille, f"{_OWN_TEXT}, at least 1",
        1, takes_last=False, favours_root=True, holds_for="4.15 and 4.16")),
    ((4, 17), Formula(
        "4.17", "pages", _pages, _score_per_mille, f"{_TEXT}, at least 1",
        1, takes_last=False, favours_root=False, holds_for="4.17 to 5.2, RHEL 8.0 to 8.2")),
    ((5, 3), Formula(
        "5.3", "pages", _pages, _score_per_mille, f"{_TEXT}, at least 1",
        1, takes_last=True, favours_root=False, holds_for="5.3 to 5.8, RHEL 8.3 and 8.4")),
    ((5, 9), Formula(
        "5.9", "pages", _pages_no_floor, _score_two_thirds, _TEXT,
        None, takes_last=True, favours_root=False, holds_for="5.9 and later, RHEL 8.5 and later")),
)  # fmt: skip
"""From which release on each holds, as (major, minor); 2.6.N is (2, 600 + N)."""
