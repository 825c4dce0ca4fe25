# SPDX-License-Identifier: Apache-2.0
"""Which rows of the table are shown, and what they sum to."""

from dataclasses import dataclass
from typing import Final

from seawall.accounts.pod_table import PodRow, PodTable
from seawall.accounts.workloads import Workload
from seawall.views.pods_columns import COLUMNS, Column, ordered

_NOTABLE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The verb's options."""

    sort: str = "charge"
    limit: int | None = None
    """Rows at most."""
    everything: bool = False
    """Parents too, each with all that is in it."""
    within: Workload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What there is to show."""

    rows: tuple[PodRow, ...]
    whole: bool
    """Rows are shown with everything below them."""
    left_out: int
    """Rows beyond ``limit``."""
    leaves: tuple[PodRow, ...]
    """All that count in the total, shown or not."""
    undivided: tuple[PodRow, ...] = ()
    """Parents that hold something outside charges of which no leaf's share is known."""
    is_part: bool
    """Only what is in one workload was asked for."""

    def total(self, column: Column) -> int | None:
        """The leaves' sum; None when a part of it is unknown."""
        values = [column.of(row, row.own) for row in self.leaves]
        if column.key in ("outside", "really"):
            values += [row.undivided for row in self.undivided]
        numbers = [value for value in values if isinstance(value, int)]
        return sum(numbers) if len(numbers) == len(values) else None


def choose(table: PodTable, choice: Choice) -> Chosen:
    """Filter, order and cut."""
    inside = [row for row in table.rows if _is_within(row, choice.within)]
    leaves = tuple(row for row in inside if row.is_leaf)
    shown = inside if choice.everything else list(leaves)
    if choice.within is not None and not choice.everything:
        shown += [r for r in inside if not r.is_leaf and r.workload == choice.within]
    undivided = tuple(r for r in inside if not r.is_leaf and r.undivided >= _NOTABLE_BYTES)
    shown += [row for row in undivided if row not in shown]
    rows = ordered(shown, choice.sort, whole=choice.everything)
    most = len(rows) if choice.limit is None else choice.limit
    return Chosen(
        rows=tuple(rows[:most]), whole=choice.everything, left_out=max(0, len(rows) - most),
        leaves=leaves, undivided=undivided, is_part=choice.within is not None,
    )  # fmt: skip


def _is_within(row: PodRow, within: Workload | None) -> bool:
    if within is None or within.kind == "root":
        return True
    path = row.workload.cgroup
    return path == within.cgroup or path.startswith(within.cgroup + "/")


def summed() -> tuple[Column, ...]:
    """The columns that have a total."""
    return tuple(column for column in COLUMNS if column.is_summed)
