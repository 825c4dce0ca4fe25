# SPDX-License-Identifier: Apache-2.0
"""Huge pages by cgroup: in the line ``hugetlb``, and in no charge of the memory controller.

Where no cgroup tree counts them, HugetlbPages of the processes tells as much as it can: a page
that several share stands with each of them.
"""

import re
from typing import Final

from seawall.accounts.claim import Claim, Confidence, SourceClaims
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.hugetlb_groups import HugetlbGroups
from seawall.readings.meminfo import Meminfo
from seawall.readings.process_status import ProcessStatuses
from seawall.readings.snapshot import Snapshot

_LINE: Final = "hugetlb"
_WEKA: Final = re.compile(r"weka[\w@.-]*\.(?:service|slice|scope)\Z")
_GIVE_BACK: Final = (
    "end it, or let it unmap its huge pages; they go back to the pool, and to the host when"
    " vm.nr_hugepages is lowered"
)


def claims(
    groups: HugetlbGroups | Unread, meminfo: Meminfo, workloads: Workloads, snapshot: Snapshot
) -> SourceClaims:
    """By the controller where there is one, else by process where pages are in use."""
    if isinstance(groups, HugetlbGroups):
        return SourceClaims(tuple(_by_group(groups, workloads)))
    if not (meminfo.hugetlb or meminfo.huge_pages_total):
        return SourceClaims()
    statuses = snapshot.get(ProcessStatuses)
    if isinstance(statuses, Unread):
        return SourceClaims()
    return SourceClaims(tuple(_by_process(statuses, workloads)))


def _whose(owner: Workload) -> str | None:
    """WEKA's processes have their buffers there (docs.weka.io: memory resources)."""
    is_weka = owner.kind == "unit" and not owner.is_tenant and bool(_WEKA.match(owner.unit or ""))
    return "WEKA" if is_weka else None


def _by_group(groups: HugetlbGroups, workloads: Workloads) -> list[Claim]:
    held: dict[str, tuple[Workload, int]] = {}
    for path, size in groups.own_bytes().items():
        owner = workloads.of_cgroup(path)
        if owner is not None and owner.kind != "root":
            before = held.get(owner.cgroup, (owner, 0))[1]
            held[owner.cgroup] = owner, before + size
    name = "usage_in_bytes" if groups.version == 1 else "current"
    source = f"{groups.mount_point} hugetlb.*.{name}"
    return [
        _claim(owner, (size, size, size), source, "exact", "", is_counted=groups.is_charged)
        for owner, size in held.values()
    ]


def _by_process(statuses: ProcessStatuses, workloads: Workloads) -> list[Claim]:
    held: dict[str, tuple[Workload, list[int]]] = {}
    for pid, status in statuses.by_pid.items():
        owner = workloads.by_pid.get(pid)
        if status.hugetlb_pages and owner is not None and owner.kind != "root":
            held.setdefault(owner.cgroup, (owner, []))[1].append(status.hugetlb_pages)
    missing = "pages that several processes share stand with each of them"
    return [
        _claim(
            owner, (0, max(sizes), sum(sizes)), "/proc/*/status HugetlbPages", "estimate",
            missing if len(sizes) > 1 else "whether another workload shares them",
        )
        for owner, sizes in held.values()
    ]  # fmt: skip


def _claim(
    owner: Workload, sizes: tuple[int, int, int], source: str, confidence: Confidence,
    missing: str, *, is_counted: bool = False,
) -> Claim:  # fmt: skip
    least, likely, most = sizes
    return Claim(
        holder=owner.name, workload=owner.name, cgroup=owner.cgroup, driver=_whose(owner),
        bytes=likely,
        least_bytes=least, most_bytes=most, kind="hugetlb", within=_LINE, is_counted=is_counted,
        source=source, confidence=confidence, missing=missing, give_back=_GIVE_BACK,
    )  # fmt: skip
