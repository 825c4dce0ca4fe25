# SPDX-License-Identifier: Apache-2.0
"""Our points against the kernel's own /proc/PID/oom_score, for every process.

The sizes are read one process after the other, and the kernel counts resident memory per
processor before it adds it up: one point of difference is such drift (it is 0.15 % of RAM and
swap since 5.9, 0.1 % before), more is not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.oom.badness_ages import Formula
from seawall.accounts.oom.contenders import Contender

DRIFT_MOST: Final = 1
_KEPT: Final = 10


class Off(NamedTuple):
    """One process about which we and the kernel differ."""

    pid: int
    comm: str
    ours: int
    kernels: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Over all processes whose oom_score was read."""

    compared: int
    off: tuple[Off, ...]
    """The first of those that differ by more than DRIFT_MOST."""
    off_count: int
    """By more than one point."""
    order_agrees: bool
    """Sorted by our points, the kernel's scores fall too, up to DRIFT_MOST."""


def agree(everybody: Iterable[Contender], formula: Formula, node_pages: int) -> Agreement | None:
    """Compare; None when no oom_score was read.  ``formula``: of the kernel that ran there."""
    rows = []
    for one in everybody:
        if one.kernel_score is None:
            continue
        points = None if one.immune else formula.points(one.candidate, node_pages)
        rows.append((points, formula.oom_score(points, node_pages), one))
    if not rows:
        return None
    off = [
        Off(one.pid, one.comm, score, one.kernel_score)
        for _, score, one in rows
        if one.kernel_score is not None and abs(score - one.kernel_score) > DRIFT_MOST
    ]
    rated = [(points, one.kernel_score or 0) for points, _, one in rows if points is not None]
    rated.sort(key=lambda row: -row[0])
    return Agreement(len(rows), tuple(off[:_KEPT]), len(off), _falls([s for _, s in rated]))


def _falls(scores: list[int]) -> bool:
    """No score is more than DRIFT_MOST above any one before it."""
    least: int | None = None
    for score in scores:
        if least is not None and score > least + DRIFT_MOST:
            return False
        least = score if least is None else min(least, score)
    return True
