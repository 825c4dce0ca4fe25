# SPDX-License-Identifier: Apache-2.0
"""Memory that processes pinned or locked: it is counted as what it is, and cannot be dropped.

RDMA, io_uring and vfio register memory of a process with a device (VmPin; VmLck in vfio and
older drivers).  Pages registered twice stand there twice, and VmLck is address space.  Asking
every process is dear: it is done where the host's counters tell that much is pinned or locked.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.process_status import ProcessStatus, ProcessStatuses
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmstat import Vmstat

_LEAST_BYTES: Final = 64 << 20
"""Of a workload; daemons lock less than that."""
_MISSING: Final = "what was registered twice, and what is locked and not there"


def claims(
    meminfo: Meminfo, vmstat: Vmstat | Unread, kernel: Kernel, workloads: Workloads,
    snapshot: Snapshot,
) -> SourceClaims:  # fmt: skip
    """One claim for each workload and line."""
    if not _may_be_much(meminfo, vmstat, kernel.page_size):
        return SourceClaims()
    statuses = snapshot.get(ProcessStatuses)
    return (
        SourceClaims()
        if isinstance(statuses, Unread)
        else SourceClaims(tuple(_claims(statuses, workloads)))
    )


def _may_be_much(meminfo: Meminfo, vmstat: Vmstat | Unread, page_size: int) -> bool:
    """Pins that were not given back (since 5.6), or locked pages; true where neither is told."""
    if isinstance(vmstat, Unread):
        return True
    acquired = vmstat.counters.get("nr_foll_pin_acquired")
    if acquired is None:
        return True
    pins = acquired - vmstat.counters.get("nr_foll_pin_released", 0)
    return pins * page_size >= _LEAST_BYTES or (meminfo.mlocked or 0) >= _LEAST_BYTES


def _claims(statuses: ProcessStatuses, workloads: Workloads) -> Iterator[Claim]:
    held: dict[tuple[str, str], tuple[Workload, int, int]] = {}
    for pid, status in statuses.by_pid.items():
        owner = workloads.by_pid.get(pid)
        size = max(status.vm_pin or 0, status.vm_lck or 0)
        if not size or owner is None or owner.kind == "root":
            continue
        for line, part in _lines(status, size):
            key = owner.cgroup, line
            _, likely, most = held.get(key, (owner, 0, 0))
            held[key] = owner, likely + part, most + part
    for (_, line), (owner, likely, most) in held.items():
        if most >= _LEAST_BYTES:
            yield _claim(owner, line, likely, most)


def _lines(status: ProcessStatus, size: int) -> list[tuple[str, int]]:
    """Where so much of this process can lie: anonymous first, for most of it is.  Huge pages
    are claimed as such (hugetlb.py).
    """
    rooms = (("anonymous", status.rss_anon), ("tmpfs and shared", status.rss_shmem))
    parts = []
    for line, room in rooms:
        part = min(size, room or 0)
        size -= part
        if part:
            parts.append((line, part))
    return parts


def _claim(owner: Workload, line: str, likely: int, most: int) -> Claim:
    return Claim(
        holder=owner.name, workload=owner.name, cgroup=owner.cgroup, driver=None, bytes=likely,
        least_bytes=0, most_bytes=most, kind="pinned", within=line, is_counted=True,
        source="/proc/*/status VmPin, VmLck", confidence="estimate", missing=_MISSING,
        give_back="let it unregister its buffers (RDMA, io_uring, vfio) or unlock its memory",
    )  # fmt: skip
