# SPDX-License-Identifier: Apache-2.0
"""Which rows of the table are shown, and what they sum to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.pods.pod_table import PodRow, PodTable
from seawall.accounts.workloads import Workload
from seawall.views.pods_columns import ATTENTION, COLUMNS, Column, is_pods, ordered

_NOTABLE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChoice:
    """Which rows ``seawall pods`` shows, and in which order, as its options say."""

    sort: str = ATTENTION
    limit: int | None = None
    """Rows at most."""
    everything: bool = False
    """Parents too, each with all that is in it."""
    within: Workload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRows:
    """What there is to show."""

    rows: tuple[PodRow, ...]
    whole: bool
    """Rows are shown with everything below them."""
    left_out: int
    """Rows beyond ``limit``."""
    leaves: tuple[PodRow, ...]
    """All that count in the total, shown or not."""
    undivided: tuple[PodRow, ...] = ()
    """Parents with uncounted memory of which no leaf's share is known."""
    restarted: tuple[PodRow, ...] = ()
    """Pods with OOM kills that no container of theirs counts: those are gone."""
    is_part: bool
    """Only what is in one workload was asked for."""

    def total(self, column: Column, *, of_pods: bool | None = None) -> int | None:
        """The leaves' sum, with ``of_pods`` of pods or of all others; None when a part of it is
        unknown.
        """
        values = [column.of(row, row.own) for row in _those(self.leaves, of_pods=of_pods)]
        if column.key in ("uncounted", "really"):
            values += [row.undivided for row in _those(self.undivided, of_pods=of_pods)]
        numbers = [value for value in values if isinstance(value, int)]
        return sum(numbers) if len(numbers) == len(values) else None

    def looked_at(self) -> tuple[PodRow, ...]:
        """What the headline is about."""
        known = (*self.leaves, *self.undivided)
        return (*known, *(row for row in self.restarted if row not in known))


def _those(rows: tuple[PodRow, ...], *, of_pods: bool | None) -> tuple[PodRow, ...]:
    if of_pods is None:
        return rows
    return tuple(row for row in rows if is_pods(row) is of_pods)


def choose(table: PodTable, choice: PodChoice) -> PodRows:
    """The rows of the table that ``choice`` asks for, sorted and cut to its limit."""
    inside = [row for row in table.rows if _is_within(row, choice.within)]
    leaves = tuple(row for row in inside if row.is_leaf)
    shown = inside if choice.everything else list(leaves)
    if choice.within is not None and not choice.everything:
        shown += [r for r in inside if not r.is_leaf and r.workload == choice.within]
    undivided = tuple(r for r in inside if not r.is_leaf and r.undivided >= _NOTABLE_BYTES)
    shown += [row for row in undivided if row not in shown]
    rows = ordered(shown, choice.sort, whole=choice.everything)
    most = len(rows) if choice.limit is None else choice.limit
    return PodRows(
        rows=tuple(rows[:most]), whole=choice.everything, left_out=max(0, len(rows) - most),
        leaves=leaves, undivided=undivided, restarted=tuple(_restarted(inside)),
        is_part=choice.within is not None,
    )  # fmt: skip


def _restarted(rows: list[PodRow]) -> Iterator[PodRow]:
    for pod in rows:
        if pod.workload.kind != "pod" or not pod.oom_kills or pod.is_leaf:
            continue
        within = pod.workload.cgroup + "/"
        inner = [r for r in rows if r.is_leaf and r.workload.cgroup.startswith(within)]
        if pod.oom_kills > sum(row.oom_kills or 0 for row in inner):
            yield pod


def _is_within(row: PodRow, within: Workload | None) -> bool:
    if within is None or within.kind == "root":
        return True
    path = row.workload.cgroup
    return path == within.cgroup or path.startswith(within.cgroup + "/")


def summed() -> tuple[Column, ...]:
    """The columns that have a total."""
    return tuple(column for column in COLUMNS if column.is_summed)
