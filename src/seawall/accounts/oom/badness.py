# SPDX-License-Identifier: Apache-2.0
"""The kernel's badness: how many points a process has when the OOM killer looks for a victim.

Kernel source: mm/oom_kill.c oom_badness (badness before 2.6.36).  One formula for each age of
it, pure and in the kernel's own integer arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from seawall.readings.oom_log.report import OomReport

Unit: TypeAlias = Literal["pages", "per_mille"]


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
    """One age of oom_badness."""

    name: str
    """As ``--kernel`` takes it and as a person reads it, e.g. ``2.6.32-el6`` or ``5.9``."""
    unit: Unit

    def points(self, candidate: Candidate, total_pages: int) -> int | None:
        """The badness in ``unit``; None when the kernel would not look at it (adj -1000)."""
        raise NotImplementedError

    def choose(self, points: Sequence[int | None]) -> int | None:
        """The index that the kernel takes, candidates in the order in which it meets them."""
        raise NotImplementedError

    def oom_score(self, points: int | None, total_pages: int) -> int:
        """What /proc/PID/oom_score of that kernel shows for these points."""
        raise NotImplementedError


def formula_named(kernel: str) -> Formula:
    """The formula of a release such as ``2.6.32-754.el6``, ``4.18.0-305.el8`` or ``6.1``.

    UsageProblem, with the names that are known, for one that is not.
    """
    raise NotImplementedError


def formula_of(report: OomReport) -> Formula | None:
    """The formula of the kernel that wrote a report: by its release, and by what the report
    looks like where it names none.  None when it is older than is recomputed."""
    raise NotImplementedError
