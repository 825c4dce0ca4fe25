# SPDX-License-Identifier: Apache-2.0
"""What was followed and what the frames say, as the answer of the probe ``page_trace``."""

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, Final

from seawall.host.page_trace.decode import STACKS_MOST, addresses
from seawall.host.page_trace.follower import FollowerStatistics
from seawall.host.page_trace.frame_flags import FrameFlags
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.hist import Sums
from seawall.host.page_trace.options import TracedDriver
from seawall.host.page_trace.symbols import Symbols
from seawall.host.page_trace.tasks import TracerTask, comm_of, is_alive
from seawall.host.page_trace.tracer_pace import PACE_STEP_MOST

HELD_MOST: Final = 4096
GROSS_MOST: Final = 256
_PAGESET: Final = re.compile(rb"^\s+count:\s+(\d{1,12})$", re.MULTILINE)
_GHOST_MARGIN = _LOSS_MARGIN = 3  # losses come in bursts, and hit who is busiest
_SAMPLING_MARGIN: Final = 4
_RECORDS_OF_ONE: Final = 2  # a block and its stack
_LIST_ORDERS: Final = 8  # frames of the largest block, 2**3, that lies on per-CPU lists


@dataclass(slots=True)
class TraceRow:
    """Frames of one task and stack."""

    kept: int = 0
    """Held when the settling began and at its end."""
    young: int = 0
    doubtful: int = 0
    """Of ``kept``: taken before events were lost."""
    unfollowed: int = 0
    """Of ``kept``: taken before a pause."""
    by_chance: int = 0
    """Of ``kept``: of blocks smaller than the step, so that which were followed was chance."""
    mapped: int = 0


@dataclass(slots=True)
class Material:
    """All that a report is made of."""

    ledger: FrameLedger
    statistics: FollowerStatistics
    flags: dict[int, FrameFlags]
    settled_before: int
    """Stretches before this one are old enough."""
    stacks: dict[bytes, int]
    symbols: Symbols
    drivers: tuple[TracedDriver, ...]
    sums: Sums | None = None
    buffer_bytes: int = 0
    tells_gross: bool = True
    """Also who took what is long given back: hundreds of threads, each looked up."""
    notes: list[str] = field(default_factory=list)


def report(material: Material) -> dict[str, Any]:
    """The answer, in plain JSON."""
    rows = rows_of(material)
    tasks = NumberTable()
    stacks = NumberTable()
    listed = _on_free_lists(rows.values(), material.ledger.frames.step)
    ghosts = _ghosts(material, rows)
    held = [
        {
            "task": tasks.number(key[0]),
            "stack": stacks.number(key[1]),
            **_held(material, key, row, ghosts),
        }
        for key, row in sorted(rows.items(), key=lambda item: -item[1].kept - item[1].young)
    ][:HELD_MOST]
    ledger = material.ledger
    gross: list[tuple[int, int]] = []
    if material.tells_gross:
        gross = sorted(ledger.gross.items(), key=lambda item: -item[1])[:GROSS_MOST]
    told_gross = [{"task": tasks.number(task), "pages": pages} for task, pages in gross if pages]
    kprobes = _driver_rows(material, tasks)
    named = _named(material, stacks)  # before the notes, which tell that there are no names
    return {
        "seconds": round(time.monotonic() - material.statistics.since, 3),
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "mechanism": "ring+hist" if material.sums else "ring",
        "events": material.statistics.events,
        # How many it were while somebody else had switched us off is not known: some.
        "lost_events": material.statistics.lost_events + material.statistics.stops,
        "sampled_one_in": ledger.frames.step,
        "notes": [*material.notes, *_notes(material, list(rows.values()))],
        "free_list_pages": listed,
        "buffer_bytes": material.buffer_bytes,
        "stacks": named,
        "tasks": [_task(ledger.tasks.rows[row]) for row in tasks.values],
        "held": held,
        "gross": told_gross,
        "kprobes": kprobes,
    }


class NumberTable:
    """Things by the number under which the answer lists them."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._numbers: dict[int, int] = {}

    def number(self, value: int) -> int:
        """The same number for the same thing."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


def rows_of(material: Material) -> dict[tuple[int, int], TraceRow]:
    """Frames by task and stack."""
    rows: defaultdict[tuple[int, int], TraceRow] = defaultdict(TraceRow)
    ledger = material.ledger
    for number, found in material.flags.items():
        group = ledger.groups[number]
        row = rows[group.task, group.stack]
        if group.stretch >= material.settled_before:
            row.young += found.frames
            continue
        row.kept += found.frames
        row.mapped += found.mapped
        row.by_chance += found.frames if 1 << group.order < ledger.frames.step else 0
        if group.stretch < ledger.paused_until:
            row.unfollowed += found.frames
        elif group.stretch < ledger.lost_until:
            row.doubtful += found.frames
    return dict(rows)


def _on_free_lists(rows: Iterable[TraceRow], step: int) -> int:
    """How many of the frames may lie on per-CPU lists: only where a free may have been missed."""
    doubtful = sum(row.unfollowed + row.doubtful for row in rows)
    return min(doubtful * step, pages_on_lists()) if doubtful else 0


def pages_on_lists() -> int:
    """Free pages that wait on the lists of the CPUs, by /proc/zoneinfo."""
    try:
        with open("/proc/zoneinfo", "rb") as file:
            return sum(map(int, _PAGESET.findall(file.read())))
    except OSError:
        return 1 << 40


def _held(
    material: Material, key: tuple[int, int], row: TraceRow, ghosts: dict[int, int]
) -> dict[str, int]:
    """One row, in pages: each frame stands for ``step`` of them, give or take."""
    step = material.ledger.frames.step
    # Blocks, not frames, come by chance, and their places are not all alike.
    error = (_SAMPLING_MARGIN * isqrt(row.kept + row.young) + 1) * (step - 1)
    least = row.kept - row.unfollowed
    least -= min(row.doubtful, material.statistics.lost_freed * _lost_with_each(material, key[0]))
    pages = (row.kept - min(row.doubtful, ghosts.get(key[0], 0))) * step
    most = (row.kept + row.young) * step + error + _missed(material, key[0])
    most = max(pages, min(most, _pages_of_machine()))
    others = others_pages(
        material.ledger, material.statistics, material.sums, key[0], row.by_chance
    )
    certain = min(pages, least * step - error, row.kept * step - others)
    if key[0] in material.ledger.tasks.doubted:
        certain = 0
    return {
        "pages": pages,
        "least_pages": max(0, certain),
        "most_pages": most,
        "mapped_pages": min(pages, row.mapped * step),
    }


def _lost_with_each(material: Material, task: int) -> int:
    """How many frames of a task may be gone with one lost happening.

    The flags of a free block tell that it is free, but on the lists of a CPU; if somebody took
    it again, and that was lost too, they tell nothing.
    """
    if not material.statistics.lost_taken:
        return _LIST_ORDERS
    return max(_LIST_ORDERS, 1 << material.ledger.orders.get(task, 0))


def _ghosts(material: Material, rows: Mapping[tuple[int, int], TraceRow]) -> dict[int, int]:
    """By task: frames that only look held because their being freed was lost.

    Whoever frees nothing has none; a sender that frees all has as many as were lost of it.
    """
    told, ledger = material.statistics, material.ledger
    if not told.lost_freed:
        return {}
    share = _GHOST_MARGIN * told.lost_freed / (told.freed + told.lost_freed)
    gone = {task: pages // ledger.frames.step for task, pages in ledger.gross.items()}
    for (task, _), row in rows.items():
        gone[task] = gone.get(task, 0) - row.kept
    return {task: int(share * max(0, frames)) + 1 for task, frames in gone.items()}


def _missed(material: Material, task: int) -> int:
    """What a thread may have taken unseen.

    By the kernel's own sums where they are whole, else in the measure in which it was seen to
    take; who was never seen is in no row.
    """
    ledger, sums, told = material.ledger, material.sums, material.statistics
    unkept = ledger.unkept.get(task, 0)
    lost = -(-told.lost_taken // _RECORDS_OF_ONE)
    if not lost:
        return unkept
    largest = max(ledger.frames.step, 1 << ledger.orders.get(task, 0))
    share = -(-_LOSS_MARGIN * lost * ledger.gross.get(task, 0) // max(1, told.taken))
    by_losses = min(lost * largest, share)
    if sums is None:
        return unkept + by_losses
    tid = ledger.tasks.rows[task].tid
    by_sums = max(0, sums.pages.get(tid, 0) - ledger.gross.get(task, 0))
    return unkept + (max(by_sums, by_losses) if sums.dropped else by_sums)


def _pages_of_machine() -> int:
    return os.sysconf("SC_PHYS_PAGES")


def _named(material: Material, stacks: NumberTable) -> list[list[str]]:
    raw = {number: addresses(callers) for callers, number in material.stacks.items()}
    return material.symbols.stacks([raw.get(number, ()) for number in stacks.values])


def _task(task: TracerTask) -> dict[str, Any]:
    return {
        "tid": task.tid,
        "tgid": task.tgid,
        "comm": comm_of(task),
        "start_ticks": task.start_ticks,
        "is_kernel_thread": task.is_kernel_thread,
        "cgroups": list(task.cgroups),
        "cgroup_inode": task.cgroup_inode,
        "known_by": task.known_by,
        "alive": is_alive(task),
    }


def _driver_rows(material: Material, tasks: NumberTable) -> list[dict[str, Any]]:
    pages = material.ledger.drivers
    return [
        {
            "driver": material.drivers[driver].name,
            "task": tasks.number(task),
            "pages": taken,
            "freed_pages": pages.freed.get((driver, task), 0),
        }
        for (driver, task), taken in pages.taken.items()
    ]


def _notes(material: Material, rows: list[TraceRow]) -> list[str]:
    """What could not be seen, one sentence each."""
    told, ledger, step = material.statistics, material.ledger, material.ledger.frames.step
    words = {
        f"{told.lost_taken} records of pages being taken were lost, two for each block: who took "
        "them is not known": told.lost_taken,
        f"{told.lost_freed} happenings of pages being freed were lost: what was taken before is "
        "counted with care": told.lost_freed,
        f"somebody else switched our recording off {told.stops} times: what was taken and freed "
        "meanwhile is not known": told.stops,
        f"{told.lost_tasks} forks or moves between cgroups were lost: threads that began meanwhile "
        "may have been others": told.lost_tasks,
        f"{told.unreadable_pages} pages of the ring buffer are not as documented":
            told.unreadable_pages,
        f"one page frame in {step} is followed and stands for the others": step > 1,
        "the kernel shows no names (kernel.kptr_restrict=2): what the pages are is not known, and "
        "whoever took them is not certain to hold uncounted memory": material.symbols.is_hidden,
        "pages were not followed all the time since they were taken (paused)":
            any(row.unfollowed for row in rows),
        f"the kernel's own sums dropped {material.sums.dropped if material.sums else 0} happenings "
        "of threads that found no room: they are BLIND": material.sums and material.sums.dropped,
        f"only the largest {HELD_MOST} of {len(rows)} rows are told": len(rows) > HELD_MOST,
        f"{sum(ledger.unkept.values())} pages found no room here: whether they are held is not "
        "known": any(ledger.unkept.values()),
        "more stacks than are remembered: others have none, and nothing of theirs is certain":
            len(material.stacks) >= STACKS_MOST,
        "more threads than are remembered: what the others took is nobody's": ledger.tasks.is_cut,
        "a driver gave out more than is remembered": ledger.drivers.is_cut,
    }  # fmt: skip
    return [sentence for sentence, applies in words.items() if applies]


def others_pages(
    ledger: FrameLedger, told: FollowerStatistics, sums: Sums | None, task: int, by_chance: int
) -> int:
    """Pages that may be others' of the ``by_chance`` frames that a task holds: of blocks smaller
    than the step, so that which were followed was chance.

    Where few are followed, who comes first may always get the ones that are: two that take in
    turn halve a block between them.  The kernel's own sums (``hist.py``) are of every frame that a
    thread took; by so much as the followed ones say more, they are somebody else's.  Where there
    are no such sums, of what is there by chance half is certain at the most.
    """
    step = ledger.frames.step
    # A few that are left out of our own accord halve nothing.
    unknown = by_chance * step // 2 if step > PACE_STEP_MOST else 0
    if sums is None or told.lost_taken:
        return unknown
    seen, took = ledger.gross.get(task, 0), sums.pages.get(ledger.tasks.rows[task].tid, 0)
    too_many = min(max(0, seen - took), by_chance * step)
    # Who found no room in them took more than they say.
    return min(unknown, too_many) if sums.dropped else too_many
