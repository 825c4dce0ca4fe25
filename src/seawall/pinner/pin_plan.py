# SPDX-License-Identifier: Apache-2.0
"""Who gets how much of the budget.  Pure: files and what is resident in, ranges to lock out.

Code of programs first, in the order of their importance; then code of libraries, the small ones
first, then read-only data in the same order.  What is not in memory now is not read in.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from mmap import PAGESIZE
from typing import Final

from seawall.pinner.intervals import Range, common, first_bytes, total, union, without

PIECES_MOST: Final = 16_384
"""Each range is a mapping, of which a process may have 65,530."""
OVER_BUDGET: Final = "the budget is used up"
TOO_MANY: Final = "in too many pieces"
SHARED: Final = "(shared libraries)"


@dataclass(slots=True)
class File:
    """One file of the set: what of it is text, and what of that is in memory."""

    device: str
    inode: int
    name: str
    programs: set[str] = field(default_factory=set)
    rank: int = 0
    is_program: bool = False
    must_be_roots: bool = False
    pids: set[int] = field(default_factory=set)
    ways: list[str] = field(default_factory=list)
    """Where it can be opened."""
    probes: list[tuple[int, int, int, int]] = field(default_factory=list)
    """pid, address, start and end of mappings of code: what is opened has to have their pages."""
    code: list[Range] = field(default_factory=list)
    data: list[Range] = field(default_factory=list)
    resident: list[Range] = field(default_factory=list)
    size: int = 0
    why: str = ""
    """Why it is not looked at; empty: it is."""
    is_silent: bool = False
    """Whether that is because nobody answered: it says nothing against the file."""

    @property
    def key(self) -> tuple[str, int]:
        """Who it is to the kernel."""
        return self.device, self.inode

    @property
    def row(self) -> str:
        """The row of the table that it counts in: its only program's name, or SHARED."""
        return next(iter(self.programs)) if len(self.programs) == 1 else SHARED

    @property
    def mapped(self) -> list[Range]:
        """All of its text, as far as the file goes."""
        whole = [(0, self.size)] if self.size else []
        return common(union([*self.code, *self.data]), whole)


@dataclass(slots=True)
class PinPlan:
    """Ranges to lock by file, and what was left out."""

    ranges: dict[tuple[str, int], list[Range]] = field(default_factory=dict)
    refused: dict[tuple[str, int], list[tuple[str, int]]] = field(default_factory=dict)
    """By file: reason and bytes."""
    bytes: int = 0


def budget(most_bytes: int, total_bytes: int) -> int:
    """``pin_at_most``, and never over 5 % of the memory; whole pages."""
    return min(most_bytes, total_bytes // 20) // PAGESIZE * PAGESIZE


def plan(files: Iterable[File], most_bytes: int) -> PinPlan:
    """Which ranges of which files to lock, never more than ``most_bytes`` in all."""
    found, left, pieces = PinPlan(), most_bytes, PIECES_MOST
    for file, ranges in _turns(files):
        given = first_bytes(ranges, left)[:pieces]
        size, whole = total(given), total(ranges)
        if given:
            found.ranges[file.key] = union([*found.ranges.get(file.key, []), *given])
        if size < whole:
            why = TOO_MANY if len(given) == pieces else OVER_BUDGET
            found.refused.setdefault(file.key, []).append((why, whole - size))
        left -= size
        pieces -= len(given)
        found.bytes += size
    return found


def _turns(files: Iterable[File]) -> list[tuple[File, list[Range]]]:
    """Files with the part of them whose turn it is."""
    turns = []
    for file in files:
        code = common(union(file.code), file.resident)
        data = without(common(union(file.data), file.resident), code)
        for is_data, ranges in enumerate((code, data)):
            if ranges:
                rank = file.rank if file.is_program else 0
                order = (is_data * 2 + (not file.is_program), rank, total(ranges), file.key)
                turns.append((order, file, ranges))
    return [(file, ranges) for _, file, ranges in sorted(turns, key=lambda turn: turn[0])]
