# SPDX-License-Identifier: Apache-2.0
"""Pages of the ring buffer as happenings: page taken, page freed, task made, task moved.

A happening is a tuple that begins with its time and its kind; which fields follow is said at the
kinds.  Stacks come as records of their own, right after the event that they belong to.
"""

import struct
from typing import Any, Final

from seawall.host.page_trace.event_format import EventField, EventFormat
from seawall.host.page_trace.ring_pages import Walked, uniform, walk
from seawall.problems import ParseProblem

Happening = tuple[Any, ...]
TAKEN: Final = 0  # tid, frame, order, is compound, number of the stack
FREED: Final = 1  # frame, order
FORKED: Final = 2  # parent, child, name, flags of clone(2)
MOVED: Final = 3  # pid, hierarchy, path, inode or None
PROBED: Final = 4  # tid, number of the event, value
STACKS_MOST: Final = 1 << 15
NO_STACK: Final = 0
_CODES: Final = {(1, 0): "B", (1, 1): "b", (2, 0): "H", (2, 1): "h", (4, 0): "I", (4, 1): "i",
                 (8, 0): "Q", (8, 1): "q"}  # fmt: skip
_ENDS: Final = (0, (1 << 64) - 1)


def layout(fields: list[EventField]) -> struct.Struct:
    """Reads those fields of a record, which must come in the order in which they lie."""
    code, at = "<", 0
    for field in fields:
        if field.offset < at or (field.size, field.is_signed) not in _CODES:
            raise ParseProblem(0, f"a number of 1 to 8 bytes at offset {field.offset}")
        code += f"{field.offset - at}x{_CODES[field.size, field.is_signed]}"
        at = field.offset + field.size
    return struct.Struct(code)


class TakenPages:
    """mm_page_alloc and its stacks, of all CPUs."""

    def __init__(self, event: EventFormat, stack: EventFormat, compound: int) -> None:
        names = ("common_pid", "pfn", "order", "gfp_flags")
        self._number = event.number
        self._layout = layout([event.field(name) for name in names])
        self._stack_number = stack.number
        self._callers = stack.field("caller").offset
        self._compound = compound
        self._open: dict[int, Happening] = {}
        self.stacks: dict[bytes, int] = {b"": NO_STACK}
        self.is_cut = False
        """More stacks than are remembered."""

    def decode(self, cpu: int, page: bytes, into: list[Happening]) -> Walked:
        """Add what the page tells; ParseProblem for one that is not as documented."""
        walked = walk(page)
        before = None if walked.is_missing else self._open.pop(cpu, None)
        layout_, number, stack = self._layout, self._number, self._stack_number
        size, compound = self._layout.size, self._compound
        if walked.is_missing and (lost := self._open.pop(cpu, None)):
            into.append(lost)
        for time, start, end in walked.records:
            kind = page[start] | page[start + 1] << 8
            if kind == number and end - start >= size:
                if before:
                    into.append(before)
                tid, frame, order, flags = layout_.unpack_from(page, start)
                is_compound = order > 0 and flags & compound != 0
                before = (time, TAKEN, tid, frame, order, is_compound, NO_STACK)
            elif kind == stack and before:
                into.append((*before[:6], self._stack(page[start + self._callers : end])))
                before = None
        if before:
            self._open[cpu] = before
        return walked

    def keep_stacks(self, used: set[int]) -> dict[int, int]:
        """Forget all other stacks; the new number of each that stays."""
        kept = sorted(used - {NO_STACK})
        numbers = {NO_STACK: NO_STACK, **{old: new for new, old in enumerate(kept, 1)}}
        self.stacks = {
            callers: numbers[number] for callers, number in self.stacks.items() if number in numbers
        }
        self.is_cut = False
        return numbers

    def oldest_open(self) -> int | None:
        """When the oldest event was whose stack has not been read yet."""
        return min((happening[0] for happening in self._open.values()), default=None)

    def give_up(self, before: int, into: list[Happening]) -> None:
        """Take those that are older for ones without a stack: theirs was lost."""
        old = [cpu for cpu, happening in self._open.items() if happening[0] < before]
        into += [self._open.pop(cpu) for cpu in old]

    def _stack(self, callers: bytes) -> int:
        number = self.stacks.get(callers)
        if number is None:
            if len(self.stacks) >= STACKS_MOST:
                self.is_cut = True
                return NO_STACK
            number = self.stacks[callers] = len(self.stacks)
        return number


def addresses(callers: bytes) -> tuple[int, ...]:
    """A stack as it lies in the ring; older kernels fill its end with all ones."""
    whole = callers[: len(callers) & ~7]
    return tuple(at for at in struct.unpack(f"<{len(whole) // 8}Q", whole) if at not in _ENDS)


class FreedPages:
    """mm_page_free: most of them are whole pages of nothing else."""

    def __init__(self, event: EventFormat) -> None:
        pfn, order = event.field("pfn"), event.field("order")
        self._number = event.number
        self._layout = layout([pfn, order])
        self._at = (pfn.offset // 4 + 1, order.offset // 4 + 1)  # words, the header's too
        self._payload_words = -(-(order.offset + order.size) // 8) * 2
        self._is_plain = (pfn.offset, pfn.size, order.offset % 4, order.size) == (8, 8, 0, 4)

    def decode(self, page: bytes, into: list[Happening]) -> Walked:
        """Add what the page tells; ParseProblem for one that is not as documented."""
        plain = uniform(page, self._number, self._payload_words) if self._is_plain else None
        if plain and not any(plain.words[self._at[0] + 1 :: plain.stride]):
            frames = plain.words[self._at[0] :: plain.stride]
            orders = plain.words[self._at[1] :: plain.stride]
            into += [
                (time, FREED, frame, order)
                for time, frame, order in zip(plain.times, frames, orders, strict=True)
            ]
            return Walked([], is_missing=False, missed=0)
        walked = walk(page)
        size = self._layout.size
        for time, start, end in walked.records:
            if page[start] | page[start + 1] << 8 == self._number and end - start >= size:
                into.append((time, FREED, *self._layout.unpack_from(page, start)))
        return walked


class TaskEvents:
    """task_newtask and cgroup_attach_task, and kprobes of ours."""

    def __init__(self, forked: EventFormat, moved: EventFormat | None) -> None:
        self._forked = forked
        self._fork_layout = layout(
            [forked.field(name) for name in ("common_pid", "pid", "clone_flags")]
        )
        self._comm = forked.field("comm")
        self._moved = moved
        if moved:
            self._root, self._pid = moved.field("dst_root"), moved.field("pid")
            self._id, self._path = moved.field("dst_id"), moved.field("dst_path")
        self._probes: dict[int, struct.Struct] = {}

    def add_probe(self, event: EventFormat) -> None:
        """A kprobe with one value."""
        self._probes[event.number] = layout([event.field("common_pid"), event.field("value")])

    def decode(self, page: bytes, into: list[Happening]) -> Walked:
        """Add what the page tells; ParseProblem for one that is not as documented."""
        walked = walk(page)
        for time, start, end in walked.records:
            number = page[start] | page[start + 1] << 8
            record = page[start:end]
            try:
                if number == self._forked.number:
                    parent, child, flags = self._fork_layout.unpack_from(record)
                    into.append((time, FORKED, parent, child, _text(record, self._comm), flags))
                elif self._moved and number == self._moved.number:
                    into.append((time, MOVED, *self._move(record)))
                elif number in self._probes:
                    tid, value = self._probes[number].unpack_from(record)
                    into.append((time, PROBED, tid, number, value))
            except struct.error:
                raise ParseProblem(0, f"a whole record of event {number}") from None
        return walked

    def _move(self, record: bytes) -> tuple[int, int, str, int | None]:
        values = [layout([field]).unpack_from(record)[0] for field in (self._pid, self._root)]
        # Before 5.5 the number was a count of its own and no inode.
        inode = layout([self._id]).unpack_from(record)[0] if self._id.size == 8 else None
        return values[0], values[1], _text(record, self._path), inode


def _text(record: bytes, field: EventField) -> str:
    """A text of the record, up to its NUL."""
    raw = record[field.offset : field.offset + field.size]
    if field.is_located:
        (where,) = struct.unpack("<I", raw)
        raw = record[where & 0xFFFF : (where & 0xFFFF) + (where >> 16)]
    return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")
