# SPDX-License-Identifier: Apache-2.0
"""Pages of drivers that processes have mapped: smaps tells them page by page.

They are in the process's Rss, and in no cgroup.  A page that several processes map counts once:
each has its share of it (Pss).  What no process outside the workload maps is certain; the rest
may have been taken by somebody else who handed on the descriptor.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.claim import RESIDUAL, Claim, ClaimClass, SourceClaims
from seawall.accounts.drivers.driver_names import UVM, driver_of, node_name
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.node_memory.ledger_lines import CHARGED
from seawall.accounts.workloads import Workload, Workloads
from seawall.readings.driver_files import DriverFile, DriverFiles
from seawall.readings.driver_mappings import DriverMappings, MappedDriver
from seawall.readings.kernel import Kernel

_LEAST_BYTES: Final = 64 << 10
"""A doorbell or a page of queues is no claim."""
_ROUNDING_BYTES: Final = 1024  # of each process and device: smaps rounds down to kB
_CHARGED_SINCE: Final = (5, 14)  # int_active_memcg: from then on nvidia-uvm charges its pages
_UNMAPPED: Final = "pages of the driver that no process maps, and devices closed after mmap"

_Pairs = list[tuple[int, MappedDriver]]
_Device = tuple[int, int]


def claims(
    mappings: DriverMappings, files: DriverFiles, workloads: Workloads, kernel: Kernel,
    ledger: Ledger,
) -> SourceClaims:  # fmt: skip
    """One claim for each holder and driver."""
    has_line = ledger.line(CHARGED) is not None
    charges = kernel.version >= _CHARGED_SINCE
    groups: dict[tuple[str, str, ClaimClass], tuple[Workload | None, _Pairs]] = {}
    sharers: dict[_Device, set[str]] = {}
    for pid, rows in mappings.by_pid.items():
        owner = workloads.by_pid.get(pid)
        for row in rows:
            driver = driver_of(_file(row), files.module_of)
            holder = f"process {pid}" if owner is None else owner.name
            key = holder, driver, _kind(row)
            groups.setdefault(key, (owner, []))[1].append((pid, row))
            if row.rss > row.private:
                sharers.setdefault((row.major, row.minor), set()).add(holder)
    found = []
    for (holder, driver, kind), (owner, pairs) in groups.items():
        is_charged = kind == "managed" and charges
        within = CHARGED if is_charged and has_line else RESIDUAL
        alone = frozenset(device for device, found in sharers.items() if found == {holder})
        bounds = _bounds(pairs, alone)
        claim = _claim((holder, owner, driver), kind, pairs, bounds, within, is_counted=is_charged)
        if claim.most_bytes >= _LEAST_BYTES:
            found.append(claim)
    return SourceClaims(tuple(found), unseen=tuple(_unseen(mappings)))


def _file(row: MappedDriver) -> DriverFile:
    return DriverFile(row.driver, row.major, row.minor, 0, ())


def _kind(row: MappedDriver) -> ClaimClass:
    if row.driver == UVM:
        return "managed"
    return "pinned" if row.driver.startswith(("infiniband", "misc:vfio", "vfio")) else "surface"


def _claim(
    whose: tuple[str, Workload | None, str], kind: ClaimClass, pairs: _Pairs,
    bounds: tuple[int, int, int], within: str, *, is_counted: bool,
) -> Claim:  # fmt: skip
    holder, owner, driver = whose
    least, likely, most = bounds
    nodes = sorted({node_name(_file(row)) for _, row in pairs})
    pids = len({pid for pid, _ in pairs})
    return Claim(
        holder=holder,
        workload=None if owner is None else owner.name,
        cgroup=None if owner is None else owner.cgroup,
        driver=driver,
        bytes=likely,
        least_bytes=least,
        most_bytes=most,
        kind=kind,
        within=within,
        is_counted=is_counted,
        source=f"/proc/PID/smaps, {', '.join(nodes[:3])} in {_processes(pids)}",
        confidence="exact",
        missing=_UNMAPPED,
        give_back="free the buffers in the program, or end it: the driver frees its pages then",
    )


def _bounds(pairs: _Pairs, alone: frozenset[_Device]) -> tuple[int, int, int]:
    """Least, likely and most that a workload's processes hold of one driver, in bytes; of the
    devices in ``alone`` nobody else was seen to map a page that is shared.
    """
    by_device: dict[_Device, list[MappedDriver]] = {}
    for _, row in pairs:
        by_device.setdefault((row.major, row.minor), []).append(row)
    sums = [_of_device(rows, is_alone=device in alone) for device, rows in by_device.items()]
    least, likely, most = (sum(column) for column in zip(*sums, strict=True))
    return least, likely, most


def _of_device(rows: Sequence[MappedDriver], *, is_alone: bool) -> tuple[int, int, int]:
    private = sum(row.private for row in rows)
    likely = sum(row.pss for row in rows)
    # Shares of the shared pages that add up to all of them: no stranger maps them either.
    shares = sum(row.pss - row.private for row in rows)
    shared = max(row.rss - row.private for row in rows)
    is_all = is_alone and shares + _ROUNDING_BYTES * sum(row.mappings for row in rows) >= shared
    return likely if is_all else private, likely, private + sum(r.rss - r.private for r in rows)


def _unseen(mappings: DriverMappings) -> Iterator[str]:
    if not mappings.left_out:
        return
    count = len(mappings.left_out)
    locked = [unread.path.split("/")[2] for unread in mappings.unread if unread.path]
    words = f": pid {', '.join(locked[:3])} did not answer (address space locked)" if locked else ""
    yield (
        f"what {_processes(count)} with driver files open "
        f"{'has' if count == 1 else 'have'} mapped{words}; look again when they answer, or as root"
    )


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count:,} processes"
