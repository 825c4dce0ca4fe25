# SPDX-License-Identifier: Apache-2.0
"""Which of the node's daemons read their own program back from the disk.

Three things have to agree, for each alone is innocent: the daemon has major faults now (a
start has them too), pages of its program are missing that were dropped (a half that is never
used is missing too), and the node drops file pages and reads them back now.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.rates import gained, per_second
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.daemon_code import DaemonCode, DaemonProgram
from seawall.readings.kernel import Kernel
from seawall.readings.process import Process, Processes
from seawall.readings.residency import FilePages
from seawall.readings.vmstat import Vmstat

_LOST_FRACTION: Final = 0.02
"""Of the program dropped too early; 1,000 pages of a kubelet."""
_THERE_FRACTION: Final = 0.75
"""Where the kernel does not count dropped pages (before 6.5).  In a VM that thrashed, with 200
major faults a second, Python's own fell from 0.87 to 0.54."""
_REFAULTS_PER_SECOND: Final = 50.0


@dataclass(frozen=True, slots=True)
class CodeLoss:
    """One daemon over the window."""

    program: DaemonProgram
    pages: FilePages
    faults_per_second: float
    program_pages: int
    lost_pages: int | None
    """Pages of its program that were dropped too early; None before 6.5."""
    is_dropped: bool
    """Whether pages that it needs are missing."""

    @property
    def share(self) -> float:
        """Of the program in memory."""
        return min(1.0, (self.pages.cached or 0) / max(1, self.program_pages))


def losses(
    code: DaemonCode, tasks: TopicWindow[Processes], kernel: Kernel, young_seconds: float
) -> Iterator[CodeLoss]:
    """Every daemon older than ``young_seconds`` whose program could be looked at: one that starts
    reads its program for the first time.
    """
    for program in code.programs:
        earlier, later = (moment.by_pid.get(program.pid) for moment in (tasks.earlier, tasks.later))
        if earlier is None or later is None or isinstance(program.pages, Unread):
            continue
        if not earlier.starttime_ticks == later.starttime_ticks == program.starttime_ticks:
            continue
        faults = gained(earlier.majflt, later.majflt)
        if faults is None or _age(later, kernel) < young_seconds:
            continue
        whole = max(1, -(-program.pages.size_bytes // kernel.page_size))
        yield CodeLoss(
            program=program, pages=program.pages, faults_per_second=faults / tasks.seconds,
            program_pages=whole, lost_pages=program.pages.recently_evicted,
            is_dropped=_is_dropped(program.pages, whole),
        )  # fmt: skip


def _age(process: Process, kernel: Kernel) -> float:
    """Seconds since it began; infinite when that is not known."""
    if kernel.uptime_seconds is None:
        return float("inf")
    return kernel.uptime_seconds - process.starttime_ticks / kernel.clock_ticks


def reads_files_back(vmstat: TopicWindow[Vmstat]) -> bool:
    """Whether the node drops file pages and reads them back now."""
    names = ("workingset_refault_file", "workingset_refault")
    return (per_second(vmstat, *names) or 0.0) >= _REFAULTS_PER_SECOND


def _is_dropped(pages: FilePages, whole: int) -> bool:
    if pages.recently_evicted is not None:
        return pages.recently_evicted >= _LOST_FRACTION * whole
    return (pages.cached or 0) < _THERE_FRACTION * whole
