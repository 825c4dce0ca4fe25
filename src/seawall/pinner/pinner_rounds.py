# SPDX-License-Identifier: Apache-2.0
"""One round: who lives, what they map, what of it is in memory, what is held from now on.

A round begins from nothing: a file that was replaced is another file, one that nobody of the set
maps any more is let go, and what is more important than what is held takes its place.  Only where
nobody answers, what is held stays: so it is on a node that stands still.  Without a ``Holding`` it
only tells what would be held.
"""

import os
import time
from typing import Any

from seawall.pinner import pins_page, program_choice
from seawall.pinner.holding import Key, LockedRanges, by_kernel
from seawall.pinner.intervals import Ranges, total, without
from seawall.pinner.pin_plan import File, PinPlan, budget, plan
from seawall.pinner.pin_request import PinRequest, memory_total_bytes
from seawall.pinner.pinner_readings import PinnerReadings
from seawall.pinner.residency_child import ResidencyChild


class Rounds:
    """``run`` again and again; ``close`` lets go of everything."""

    def __init__(self, asked: PinRequest, holding: LockedRanges | None, guard_pid: int = 0) -> None:
        self.request, self.holding, self._guard_pid = asked, holding, guard_pid
        self._looker = ResidencyChild()
        self._base = by_kernel()
        """What else looks like a pin to the kernel: the C library's tables."""
        self._before: dict[Key, int] = {}
        """Bytes that were in memory at the first look, by file."""
        self._held_files: dict[Key, File] = {}
        """Of the round before."""
        self.programs: list[program_choice.ChosenProgram] = []
        self._number = 0

    def run(self) -> dict[str, Any]:
        """The page of this round."""
        began, cpu = time.monotonic(), time.process_time()
        self._number += 1
        self.programs, unstarted = program_choice.chosen_programs(self.request.pin, self._guard_pid)
        look = PinnerReadings(self._looker)
        look.processes(self.programs)
        look.contents()
        look.programs(unstarted)
        total_bytes = memory_total_bytes()
        most = budget(self.request.pin_at_most_bytes, total_bytes)
        kept = self._unanswered(look, most)
        left = most - sum(map(total, kept.values()))
        found = plan([file for file in look.files.values() if not file.why], left)
        self._remember(look)
        if self.holding is not None:
            self._hold(self.holding, look, found, kept, most)
        seen = pins_page.PinsState(
            self.request, look, found, self.programs, self._before, self.holding, most, total_bytes
        )  # fmt: skip
        return {
            **pins_page.document(seen), "pid": os.getpid(), "written_unix_seconds": time.time(),
            "by_kernel_bytes": by_kernel() - self._base, "round": self._number,
            "round_seconds": round(time.monotonic() - began, 3),
            "round_cpu_seconds": round(time.process_time() - cpu, 3), "hung": self._looker.losses,
        }  # fmt: skip

    def close(self) -> None:
        """Nothing is held after it."""
        self._looker.close()
        if self.holding is not None:
            self.holding.close()

    def _remember(self, look: PinnerReadings) -> None:
        known = self._before
        self._before = {
            key: known[key] if key in known else pins_page.resident_bytes(file)
            for key, file in look.files.items()
        }

    def _unanswered(self, look: PinnerReadings, most: int) -> dict[Key, Ranges]:
        """What is held of files that nobody told of in this round: it stays.

        Those of processes that did not answer are put to the others that were seen.
        """
        if self.holding is None:
            return {}
        silent = {one.pid for one, _ in look.silent}
        for key, file in self._held_files.items():
            if key not in look.files and not silent.isdisjoint(file.pids):
                file.why, file.is_silent = "who runs it did not answer: what is held stays", True
                look.files[key] = file
        kept: dict[Key, Ranges] = {
            key: held for key, file in look.files.items()
            if file.is_silent and (held := self.holding.of(key))
        }  # fmt: skip
        return kept if sum(map(total, kept.values())) <= most else {}

    def _hold(
        self, holding: LockedRanges, look: PinnerReadings, found: PinPlan, kept: dict[Key, Ranges],
        most: int,
    ) -> None:  # fmt: skip
        """First let go, then take: the sum is never over the budget."""
        for key in holding.keys():  # noqa: SIM118 - a list, for it changes
            holding.let_go(key, kept.get(key) or found.ranges.get(key, []))
        for key, ranges in found.ranges.items():
            if without(ranges, holding.of(key)):
                why = _take(holding, look, look.files[key], ranges, most)
                if why:
                    left = total(without(ranges, holding.of(key)))
                    found.refused.setdefault(key, []).append((why, left))
        self._held_files = {key: look.files[key] for key in holding.keys()}  # noqa: SIM118 - as above
        over = by_kernel() - self._base - most
        for key in reversed(list(found.ranges)):  # never yet
            if over <= 0:
                return
            over -= holding.let_go(key, [])


def _take(
    holding: LockedRanges, look: PinnerReadings, file: File, ranges: Ranges, most: int
) -> str:
    """Why not all of it is held, or empty."""
    fd = look.ask(file)
    if fd < 0:
        return file.why or "it could not be opened"
    try:
        return holding.take(file.key, fd, ranges, most)
    finally:
        os.close(fd)
