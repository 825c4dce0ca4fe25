# SPDX-License-Identifier: Apache-2.0
"""The kernel's badness: how many points a process has when the OOM killer looks for a victim.

Kernel source: mm/oom_kill.c oom_badness (badness before 2.6.36).  The formulas, one for each
age, are in ``badness_ages``; here is which kernel has which, distributions' mixes included.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seawall.accounts.oom.badness_ages import AGES, EL6, Candidate, Formula, Unit
from seawall.problems import UsageProblem

if TYPE_CHECKING:  # the guard's watcher predicts, and reads no reports
    from seawall.readings.oom_log.oom_report import OomReport

__all__ = ["NAMES", "Candidate", "Formula", "Unit", "formula_named", "formula_of"]

_BY_NAME: Final = {formula.name: formula for formula in (EL6, *(age for _, age in AGES))}
NAMES: Final = tuple(_BY_NAME)
"""What ``formula_named`` calls the ages itself, oldest first."""

_RELEASE: Final = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,4}))?")
_RHEL: Final = re.compile(r"(?:-(\d{1,6})[^ ]*?)?[-.]el(\d{1,2})(?![0-9])")
_RHEL_7: Final = re.compile(r"3\.10\.0-\d{3}")  # also without its .el7

# RHEL 8 says 4.18 and took from 5.3 with 8.3 (build 240), from 5.9 with 8.5 (build 348).
_EL8_BUILDS: Final = ((348, "5.9"), (240, "5.3"), (0, "4.17"))
# Long-term releases took later fixes: 3.10.30 the root bonus of 3.14, which RHEL 7's 3.10.0
# has too, and 3.0 the 64 bits of 3.2 (3.0.8 has not, 3.0.86 has).  One named without its third
# number is the newest of its line.
_TOOK: Final = {(3, 10): (30, "3.14"), (3, 0): (16, "3.2")}


def formula_named(kernel: str) -> Formula:
    """The formula of a release such as ``2.6.32-754.el6``, ``4.18.0-305.el8`` or ``6.1``.

    UsageProblem, with the names that are known, for one that is not.
    """
    kernel = kernel.strip()
    if kernel in _BY_NAME:
        return _BY_NAME[kernel]
    match = _RELEASE.match(kernel)
    if match is None:
        raise UsageProblem(f"kernel {kernel[:60]!r}: not a release; expected {_known()}")
    major, minor, third = int(match[1]), int(match[2]), int(match[3]) if match[3] else None
    rhel = _RHEL.search(kernel)
    if rhel is not None and (name := _rhel_age(int(rhel[2]), rhel[1], (major, minor))):
        return _BY_NAME[name]
    if _RHEL_7.match(kernel):
        return _BY_NAME["3.14"]
    formula = _mainline(major, minor, third)
    if formula is None:
        words = "its badness went by address space and run time and is not recomputed"
        raise UsageProblem(f"kernel {kernel[:60]}: {words}; expected {_known()}")
    return formula


def _known() -> str:
    return f"a release such as 6.1, 4.18.0-305.el8 or 2.6.32-el6, or an age: {', '.join(NAMES)}"


def _rhel_age(rhel: int, build: str | None, version: tuple[int, int]) -> str | None:
    """The age of a RHEL kernel whose version alone would mislead; None for the others."""
    if rhel == 6 and version == (2, 6):
        return "2.6.32-el6"
    if rhel == 7 and version == (3, 10):
        return "3.14"
    if rhel == 8 and version == (4, 18):
        number = int(build) if build else _EL8_BUILDS[0][0]  # none said: the newest of them
        return next(name for least, name in _EL8_BUILDS if number >= least)
    return None


def _mainline(major: int, minor: int, third: int | None) -> Formula | None:
    took = _TOOK.get((major, minor))
    if took is not None and (third is None or third >= took[0]):
        return _BY_NAME[took[1]]
    if (major, minor) == (2, 6):
        minor = 600 + (third or 0)
    found: Formula | None = None
    for since, formula in AGES:
        if (major, minor) >= since:
            found = formula
    return found


def formula_of(report: "OomReport") -> Formula | None:
    """The formula of the kernel that wrote a report: by its release, and by what the report
    looks like where it names none.  None when it is older than is recomputed.

    One that goes by looks says so in its name, with the releases that look like this.
    """
    if report.kernel is not None and _RELEASE.match(report.kernel):
        try:
            return formula_named(report.kernel)
        except UsageProblem:
            return None
    found = _by_looks(report)
    if found is None:
        return None
    name, like = found
    return replace(_BY_NAME[name], name=f"{name} (names no release; looks like {like})")


def _by_looks(report: "OomReport") -> tuple[str, str] | None:
    """(age, the releases that print such a report); the age is the most common of them."""
    task = report.tasks[0] if report.tasks else None
    if task is None:
        return _by_lines(report)
    if task.rss_anon_pages is not None:
        return "5.9", "6.8 or later"
    if task.pgtables_bytes is not None:
        return _since_4_15(report)
    if task.nr_pmds is not None:
        return "4.0", "4.0 to 4.14"
    if task.nr_ptes is not None:
        return "3.14", "3.9 to 3.19 or RHEL 7"
    if task.oom_score_adj is not None:
        if task.oom_adj is not None or task.cpu is not None:
            return "2.6.32-el6", "2.6.36 to 3.8 or RHEL 6"
        return "3.5", "3.7 to 3.8"
    return None


def _since_4_15(report: "OomReport") -> tuple[str, str]:
    if report.choice is not None and report.choice.score is not None:
        return "4.17", "4.15 to 5.0"
    if any(kill.oom_score_adj is not None for kill in report.kills):
        return "5.9", "5.4 to 6.7 or RHEL 8"
    if report.constraint is not None or report.swap is not None:
        return "4.17", "5.0 to 5.3"
    return "4.17", "4.15 to 4.20"


def _by_lines(report: "OomReport") -> tuple[str, str] | None:
    """Without a task table: by the lines of the kill."""
    if any(kill.oom_score_adj is not None for kill in report.kills):
        return "5.9", "5.4 or later"
    if report.choice is not None and report.choice.score is not None and report.gfp_flags:
        return "4.0", "4.6 to 5.0"
    return None
