# SPDX-License-Identifier: Apache-2.0
"""What ``top`` and ``ps`` show of one workload: resident memory, summed over its processes.

RES counts a page for every process that maps it: a library or a shared buffer that ten
processes map is counted ten times.  Proportional shares (PSS) count it once; asking for them
takes the process's mmap_lock, so only the verb asks, through the expendable child.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seawall.accounts.numbers.tool_numbers import Input, ToolNumber
from seawall.host.host import Unread
from seawall.readings.process import Processes
from seawall.readings.process_extra import SmapsRollup
from seawall.readings.process_status import ProcessStatuses

KINDS = ("anon", "file", "shmem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Bytes, over the processes that could be read."""

    processes: int
    """That could be read."""
    missing: int
    """In cgroup.procs, and gone or hidden when they were read."""
    bytes: int
    """Sum of RES."""
    source: str
    by_kind: Mapping[str, int]
    """anon, file, shmem; empty before 4.5 and where only ``stat`` was read."""
    shares_bytes: int | None
    """Sum of proportional shares over ``shares_processes`` of them; None when none was read."""
    shares_processes: int
    """Of how many."""
    shares_resident_bytes: int
    """Resident memory of those whose shares were read."""

    @property
    def whole(self) -> int:
        """How many processes cgroup.procs lists: those that were read and the missing ones."""
        return self.processes + self.missing

    @property
    def times_counted(self) -> float | None:
        """How often RES counts the average page of these processes, everywhere on the host."""
        if not self.shares_bytes:
            return None
        return self.shares_resident_bytes / self.shares_bytes


def resident_of(
    pids: Iterable[int],
    statuses: ProcessStatuses | Unread,
    processes: Processes | Unread,
    page_size: int,
    shares: Mapping[int, SmapsRollup],
) -> Resident | None:
    """By VmRSS where it was read, else by ``stat``; None when no process was."""
    wanted = list(pids)
    by_kind: dict[str, int] = {}
    sizes: dict[int, int] = {}
    if not isinstance(statuses, Unread):
        found = [statuses.by_pid[pid] for pid in wanted if pid in statuses.by_pid]
        sizes = {one.pid: one.vm_rss for one in found if one.vm_rss is not None}
        parts = [(one.rss_anon, one.rss_file, one.rss_shmem) for one in found if one.vm_rss]
        if parts and all(part is not None for row in parts for part in row):
            sums = [sum(part or 0 for part in column) for column in zip(*parts, strict=True)]
            by_kind = dict(zip(KINDS, sums, strict=True))
    source = "VmRSS in /proc/PID/status"
    if not sizes and not isinstance(processes, Unread):
        known = processes.by_pid
        sizes = {pid: known[pid].rss_pages * page_size for pid in wanted if pid in known}
        source = "rss in /proc/PID/stat"
    if not sizes:
        return None
    shared = {pid: rollup for pid, rollup in shares.items() if pid in sizes}
    return Resident(
        processes=len(sizes),
        missing=len(wanted) - len(sizes),
        bytes=sum(sizes.values()),
        source=source,
        by_kind=by_kind,
        shares_bytes=sum(rollup.pss for rollup in shared.values()) if shared else None,
        shares_processes=len(shared),
        shares_resident_bytes=sum(rollup.rss for rollup in shared.values()),
    )


def process_numbers(resident: Resident | None) -> tuple[ToolNumber, ...]:
    """Rows for the table: RES, and the sum of shares when it covers every process."""
    if resident is None:
        return ()
    words = f"sum of RES over {resident.processes} process{'es' * (resident.processes != 1)}"
    note = ""
    if resident.missing:
        note = f"at least, {resident.processes} of {resident.whole} processes"
        words = f"{words} of {resident.whole}: at least"
    inputs = [
        Input(f"Rss{kind.capitalize()}", count, "/proc/PID/status")
        for kind, count in resident.by_kind.items()
    ] or [Input("RES", resident.bytes, resident.source)]
    rows = [
        ToolNumber(tool="top, ps", name="RES, RSS", bytes=resident.bytes, formula=words,
                   inputs=tuple(inputs), letters="Aift", note=note)
    ]  # fmt: skip
    if resident.shares_bytes is not None and resident.shares_processes == resident.whole:
        pss = Input("Pss", resident.shares_bytes, "/proc/PID/smaps_rollup")
        rows.append(
            ToolNumber(tool="smem, ps", name="PSS", bytes=resident.shares_bytes,
                       formula="sum of Pss", inputs=(pss,), letters="Aift")
        )  # fmt: skip
    return tuple(rows)


def largest_pids(pids: Iterable[int], processes: Processes | Unread, most: int) -> list[int]:
    """Whose shares to ask for: the largest first."""
    if isinstance(processes, Unread):
        return []
    known = [processes.by_pid[pid] for pid in pids if pid in processes.by_pid]
    users = [one for one in known if one.rss_pages and not one.is_kernel_thread]
    return [one.pid for one in sorted(users, key=lambda one: -one.rss_pages)[:most]]
