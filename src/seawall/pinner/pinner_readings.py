# SPDX-License-Identifier: Apache-2.0
"""From chosen processes to files: whose text is mapped, and what of it is in memory."""

import errno
import os
from collections.abc import Sequence
from typing import Final

from seawall.pinner.intervals import union
from seawall.pinner.mappings import Segment
from seawall.pinner.pin_plan import File
from seawall.pinner.program_choice import ChosenProgram, Unstarted
from seawall.pinner.residency_child import ResidencyChild

WAYS_MOST: Final = 4
FILES_MOST: Final = 4000
_PASSING: Final = (errno.ENOMEM, errno.ENFILE, errno.EMFILE, errno.EIO)
"""Of the machine, not of the file."""
NOT_ROOTS: Final = "its program is not root's alone, and only such are the node's"


class PinnerReadings:
    """All that one round has seen."""

    def __init__(self, looker: ResidencyChild) -> None:
        self._looker = looker
        self.files: dict[tuple[str, int], File] = {}
        self.silent: list[tuple[ChosenProgram, str]] = []
        """Processes that told nothing, and why."""
        self.found_words: set[str] = set()

    def processes(self, chosen: Sequence[ChosenProgram]) -> None:
        """Whose mappings are read, one after the other."""
        for one in chosen:
            told, _ = self._looker.ask(f"pid {one.pid}", do="maps", pid=one.pid)
            if "why" in told:
                if told.get("errno") not in (errno.ENOENT, errno.ESRCH):  # it ended
                    self.silent.append((one, told["why"]))
                continue
            self._add(one, [Segment(*row) for row in told["segments"]])

    def _add(self, one: ChosenProgram, segments: list[Segment]) -> None:
        for segment in segments:
            file = self.files.get(segment.key)
            if file is None:
                if len(self.files) >= FILES_MOST:
                    continue
                file = File(segment.device, segment.inode, segment.name, rank=one.rank)
                self.files[segment.key] = file
            name = segment.name.removesuffix(" (deleted)")
            if name == one.exe:
                file.is_program = True
                file.must_be_roots |= one.must_be_roots
            file.rank = min(file.rank, one.rank)
            file.programs.add(one.program)
            file.pids.add(one.pid)
            if len(file.ways) < WAYS_MOST * 2:
                file.ways.append(f"/proc/{one.pid}/map_files/{segment.span}")
            if segment.is_code and len(file.probes) < WAYS_MOST:
                low = int(segment.span.partition("-")[0], 16)
                file.probes.append((one.pid, low, segment.start, segment.end))
            (file.code if segment.is_code else file.data).append((segment.start, segment.end))
            file.name = name if file.name.endswith(" (deleted)") else file.name

    def contents(self) -> None:
        """What of each file is in memory."""
        for file in self.files.values():
            fd = self.ask(file)
            if fd >= 0:
                os.close(fd)

    def ask(self, file: File) -> int:
        """Fills in ``resident`` and ``why``; the open file or -1."""
        file.code, file.data = union(file.code), union(file.data)
        told, fd = self._looker.ask(
            f"file {file.key}", do="file", ways=_ways(file), device=file.device,
            inode=file.inode, ranges=union([*file.code, *file.data]), probes=file.probes,
        )  # fmt: skip
        return self._heard(file, told, fd)

    def _heard(self, file: File, told: dict[str, object], fd: int) -> int:
        file.why = str(told.get("why", ""))
        file.is_silent = "is_silent" in told or told.get("errno") in _PASSING
        if file.must_be_roots and told.get("is_roots") is False:
            file.why = NOT_ROOTS
        if file.why:
            if fd >= 0:
                os.close(fd)
            return -1
        _fill(file, told)
        return fd

    def programs(self, unstarted: Sequence[Unstarted]) -> None:
        """Files of programs that nobody runs; those that some process maps are known already."""
        for one in unstarted:
            ways = [way for path in one.paths for way in (f"/proc/1/root{path}", path)]
            told, _ = self._looker.ask(f"path {one.program}", do="program", ways=ways)
            key = str(told.get("device")), int(told.get("inode") or 0)
            if "why" in told or (one.must_be_roots and not told["is_roots"]):
                continue
            self.found_words.add(one.word)
            if key in self.files or len(self.files) >= FILES_MOST:
                continue
            file = File(*key, name=one.paths[0], programs={one.program}, rank=one.rank)
            file.is_program, file.ways = True, ways
            file.code = [(start, end) for start, end in told["code"]]
            file.data = [(start, end) for start, end in told["data"]]
            _fill(file, told)
            self.files[key] = file


def _ways(file: File) -> list[str]:
    """By its mapping, then by its name below the root of who maps it."""
    pids = sorted(file.pids)[:WAYS_MOST]
    below = [f"/proc/{pid}/root{file.name}" for pid in pids]
    return [*file.ways, *below] if file.name.startswith("/") else file.ways


def _fill(file: File, told: dict[str, object]) -> None:
    rows, size = told.get("resident"), told.get("size")
    if isinstance(rows, list) and isinstance(size, int):
        file.resident = union((start, end) for start, end in rows)
        file.size = size
