# SPDX-License-Identifier: Apache-2.0
"""Suspects: who has files of drivers open, and so could hold memory that nobody claims.

Nothing is proved by it; it names whom to ask first.  Most processes first, then the oldest.
"""

from typing import Final

from seawall.accounts.claim import SourceClaims, Suspect
from seawall.accounts.drivers.driver_names import driver_of, node_name
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.driver_files import DriverFiles, Holder
from seawall.readings.kernel import Kernel

_NODES_SHOWN: Final = 2
_COUNTED: Final = frozenset({"misc:kvm"})
"""The kernel counts and charges what these take: their holders are no suspects."""
_PIDS_KEPT: Final = 64


def claims(files: DriverFiles, workloads: Workloads | Unread, kernel: Kernel) -> SourceClaims:
    """No claims; one suspect for each workload and driver."""
    groups: dict[tuple[str, str], tuple[Workload | None, dict[int, Holder], set[str]]] = {}
    for pid, holder in files.by_pid.items():
        owner = None if isinstance(workloads, Unread) else workloads.by_pid.get(pid)
        for file in holder.devices:
            if file.driver in _COUNTED:
                continue
            driver = driver_of(file, files.module_of)
            key = "" if owner is None else owner.cgroup, driver
            _, pids, nodes = groups.setdefault(key, (owner, {}, set()))
            pids[pid] = holder
            nodes.add(node_name(file))
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1][1]), _oldest(item[1][1])))
    suspects = [
        Suspect(
            workload=None if owner is None else owner.name,
            cgroup=None if owner is None else owner.cgroup,
            driver=driver,
            pids=tuple(sorted(pids)[:_PIDS_KEPT]),
            why=_why(pids, nodes, kernel),
        )
        for (_, driver), (owner, pids, nodes) in ranked
    ]
    unseen = []
    if files.left_out:
        count = f"{files.left_out:,} processes hold" if files.left_out > 1 else "1 process holds"
        unseen.append(f"which drivers' files {count}: not asked, for lack of time or rights")
    return SourceClaims(suspects=tuple(suspects), unseen=tuple(unseen))


def _oldest(pids: dict[int, Holder]) -> int:
    return min(holder.start_ticks for holder in pids.values())


def _why(pids: dict[int, Holder], nodes: set[str], kernel: Kernel) -> str:
    """``3 processes have /dev/nvidia0 and 2 more open, the oldest for 2 h``."""
    names = sorted(nodes)
    shown = ", ".join(names[:_NODES_SHOWN])
    if len(names) > _NODES_SHOWN:
        shown += f" and {len(names) - _NODES_SHOWN} more"
    age = _age(_oldest(pids), kernel)
    if len(pids) == 1:
        return f"1 process has {shown} open" + (f", for {age}" if age else "")
    return f"{len(pids):,} processes have {shown} open" + (f", the oldest for {age}" if age else "")


def _age(start_ticks: int, kernel: Kernel) -> str:
    """In the largest unit that fits; empty where the machine's uptime is not known."""
    if kernel.uptime_seconds is None:
        return ""
    seconds = max(0, int(kernel.uptime_seconds - start_ticks / kernel.clock_ticks))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
