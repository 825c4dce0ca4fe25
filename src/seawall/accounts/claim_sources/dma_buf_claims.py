# SPDX-License-Identifier: Apache-2.0
"""dma-bufs by inode and holder: buffers that devices share, each counted once.

Who made one is on no record, and a descriptor can be handed on.  So nobody is charged for
holding; only a workload that holds a buffer of a heap alone and has the heap's device open,
as those who allocate do and those who are handed a buffer do not, is taken for its maker.
Buffers of graphics drivers may lie in device memory, and their drivers tell more
(``drm_clients.py``): holders are suspects.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims, Suspect
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.dma_bufs import DmaBuf, DmaBufs
from seawall.readings.driver_files import DriverFiles
from seawall.words import size

_LEAST_BYTES: Final = 1 << 20
_HEAPS: Final = ("system", "linux,cma", "reserved", "default_cma_region", "cma")
_UDMABUF: Final = "udmabuf"
_HEAP_DEVICE: Final = "dma_heap"
_GIVE_BACK: Final = "close the buffers and unmap them, in every process that has them"
_NAMED_MOST: Final = 3
_PIDS_KEPT: Final = 64


class _Group(NamedTuple):
    """Buffers of which the same can be said."""

    exporter: str
    holders: tuple[Workload, ...]
    is_maker: bool


def claims(buffers: DmaBufs, files: DriverFiles | Unread, workloads: Workloads) -> SourceClaims:
    """One claim for each exporter and set of holders."""
    groups: dict[_Group, list[DmaBuf]] = {}
    for one in buffers.buffers:
        holders = {w.cgroup: w for pid in one.pids if (w := workloads.by_pid.get(pid))}
        told = tuple(holders[path] for path in sorted(holders))
        group = _Group(one.exporter, told, _has_heap_open(one.pids, files))
        groups.setdefault(group, []).append(one)
    found: list[Claim] = []
    suspects: list[Suspect] = []
    for group, members in groups.items():
        if sum(one.bytes for one in members) >= _LEAST_BYTES:
            claim = _claim(group, members)
            found += [claim] if claim else []
            if claim is None or claim.workload is None:
                suspects += _suspects(group, members, workloads)
    return SourceClaims(tuple(found), tuple(suspects), tuple(_unseen(buffers)))


def _has_heap_open(pids: Sequence[int], files: DriverFiles | Unread) -> bool:
    if isinstance(files, Unread):
        return False
    held = (files.by_pid[pid] for pid in pids if pid in files.by_pid)
    return any(file.driver == _HEAP_DEVICE for holder in held for file in holder.devices)


def _claim(group: _Group, members: Sequence[DmaBuf]) -> Claim | None:
    """None where the memory may be the device's own."""
    is_heap = group.exporter.startswith(_HEAPS)
    if not is_heap and group.exporter != _UDMABUF:
        return None
    held = sum(one.bytes for one in members)
    owner = group.holders[0] if len(group.holders) == 1 else None
    if is_heap and not group.is_maker:
        owner = None
    names = ", ".join(w.name for w in group.holders[:_NAMED_MOST]) or "no process that was seen"
    missing = "who made them: a buffer can be handed on"
    if owner is not None:
        missing = "whether they were handed on: it holds them alone"
    count = "1 buffer" if len(members) == 1 else f"{len(members):,} buffers"
    return Claim(
        holder=owner.name if owner else f"dma-bufs of {group.exporter} (held by {names})",
        workload=owner.name if owner else None,
        cgroup=owner.cgroup if owner else None,
        driver=None,
        bytes=held,
        least_bytes=0 if owner else held,
        most_bytes=held,
        kind="surface",
        # udmabuf has pages of a memfd, which are somebody's shared memory already.
        within=RESIDUAL if is_heap else "tmpfs and shared",
        is_counted=not is_heap,
        source=f"dma-buf {group.exporter}: {count}",
        confidence="estimate" if owner else "exact",
        missing=missing,
        give_back=_GIVE_BACK,
        things=frozenset(f"dmabuf:{one.inode}" for one in members),
    )


def _suspects(group: _Group, members: Sequence[DmaBuf], workloads: Workloads) -> Iterator[Suspect]:
    held = sum(one.bytes for one in members)
    what = f"1 dma-buf of {group.exporter}, {size(held)}"
    if len(members) > 1:
        what = f"{len(members):,} dma-bufs of {group.exporter}, {size(held)} together"
    pids = sorted({pid for one in members for pid in one.pids})
    for workload in group.holders:
        own = [pid for pid in pids if workloads.by_pid.get(pid) == workload]
        yield Suspect(
            workload=workload.name, cgroup=workload.cgroup, driver=f"dma-buf {group.exporter}",
            pids=tuple(own[:_PIDS_KEPT]), why=f"holds {what}; others may have made them",
        )  # fmt: skip


def _unseen(buffers: DmaBufs) -> Iterator[str]:
    if buffers.unnamed:
        yield (
            f"{buffers.unnamed:,} descriptors of dma-bufs: before 5.3 the kernel does not tell"
            " one buffer from another"
        )
    if buffers.unread:
        yield f"dma-bufs that no process has open: {buffers.unread[0].path} could not be read"
