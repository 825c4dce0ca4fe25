# SPDX-License-Identifier: Apache-2.0
"""Process ids in order, four bytes each; a set takes a hundred for each.

Of a thousand small processes that are killed at once those would be pages that the guard has never
touched, on a node that is full.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Final, Literal

FEW: Final = 16
"""Of so many times more they are looked for one by one."""
PID_BYTES: Final = 4
"""pid_t is an int; the kernel hands out less than 2^22 (include/linux/threads.h)."""


class Gathered:
    """Numbers one after the other, in the order in which they came."""

    __slots__ = ("_bytes", "_code", "_width")

    def __init__(self, code: Literal["I", "Q"] = "I") -> None:
        """``code``: of a struct, I or Q."""
        self._bytes = bytearray()
        self._code, self._width = code, 8 if code == "Q" else PID_BYTES

    def add(self, number: int) -> None:
        """Append a number; OverflowError for one that does not fit."""
        self._bytes += number.to_bytes(self._width, sys.byteorder)

    def __len__(self) -> int:
        return len(self._bytes) // self._width

    def numbers(self) -> "memoryview[int]":
        """All of them; none can be added as long as that is held."""
        return memoryview(self._bytes).cast(self._code)


class Pids:
    """Compares as a set, and is never changed."""

    __slots__ = ("_ids",)

    def __init__(self, pids: Iterable[int] = ()) -> None:
        """In whatever order, and twice if need be."""
        found, last, is_ordered = Gathered(), -1, True
        for pid in pids:
            is_ordered = is_ordered and pid > last
            last = pid
            found.add(pid)
        ids = found.numbers()
        if not is_ordered:
            again, last = Gathered(), -1
            for pid in sorted(ids):
                if pid != last:
                    again.add(pid)
                last = pid
            ids = again.numbers()
        self._ids = ids

    def place(self, pid: int) -> int:
        """Of the first that is not smaller; ``len`` when there is none."""
        ids, low, high = self._ids, 0, len(self._ids)
        while low < high:
            middle = (low + high) // 2
            if ids[middle] < pid:
                low = middle + 1
            else:
                high = middle
        return low

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def __getitem__(self, place: int) -> int:
        return self._ids[place]

    def __contains__(self, pid: object) -> bool:
        if not isinstance(pid, int):
            return False
        place = self.place(pid)
        return place < len(self._ids) and self._ids[place] == pid

    def __and__(self, other: "Pids") -> "Pids":
        return Pids(pid for pid, is_there in _looked_up(self, other) if is_there)

    def __sub__(self, other: "Pids") -> "Pids":
        return Pids(pid for pid, is_there in _looked_up(self, other) if not is_there)

    def __or__(self, other: "Pids") -> "Pids":
        return Pids(_merged(self, other))

    def __le__(self, other: "Pids") -> bool:
        return all(is_there for _, is_there in _looked_up(self, other))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pids):
            return self._ids == other._ids
        return {*self._ids} == other if isinstance(other, set | frozenset) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Pids({[*self._ids]})"


def _looked_up(one: Pids, other: Pids) -> Iterator[tuple[int, bool]]:
    """Each of ``one``, and whether it is in ``other``: both once from end to end, or few by
    themselves.
    """
    if one == other:  # two looks mostly find the same
        for pid in one:
            yield pid, True
        return
    if len(one) * FEW < len(other):
        for pid in one:
            yield pid, pid in other
        return
    at, end = 0, len(other)
    for pid in one:
        while at < end and other[at] < pid:
            at += 1
        yield pid, at < end and other[at] == pid


def _merged(one: Pids, other: Pids) -> Iterator[int]:
    """Of both, in order, each once."""
    at = 0
    for pid in one:
        while at < len(other) and other[at] <= pid:
            if other[at] < pid:
                yield other[at]
            at += 1
        yield pid
    for place in range(at, len(other)):
        yield other[place]
