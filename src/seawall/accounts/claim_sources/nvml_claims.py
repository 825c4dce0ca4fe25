# SPDX-License-Identifier: Apache-2.0
"""Device memory that is the host's own: on machines where GPU and CPU share one memory (GB10).

The driver tells how much each process uses; no cgroup counts it.  It is judged against the
node's headroom, for no limit of a pod was ever meant to hold it.  On other machines device
memory is not the host's, and nothing is claimed.
"""

from typing import Final

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.drivers.driver_names import NVIDIA
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.nvml import PROBE, Nvml

_MISSING: Final = "how much of it is managed memory, which the cgroup counts already"


def claims(nvml: Nvml | Unread, workloads: Workloads) -> SourceClaims:
    """One claim of class ``unified`` for each workload that works on such a device."""
    if isinstance(nvml, Unread):
        # Without such a device nothing is missing; with one, and without its library, much is.
        words = f"device memory that is the host's own: {nvml.path}: {nvml.detail}"
        return SourceClaims(unseen=() if nvml.why == "absent" and nvml.path != PROBE else (words,))
    held: dict[str, tuple[Workload | None, int]] = {}
    unseen: list[str] = []
    for device in nvml.devices:
        if not device.is_unified:
            continue
        if device.processes is None:
            unseen.append(f"who uses {device.name}: NVML says {device.problem or 'nothing'}")
            continue
        silent = 0
        # One process is listed once for computing and once for graphics, with the same figure.
        used: dict[int, int] = {}
        for process in device.processes:
            silent += process.bytes is None
            used[process.pid] = max(used.get(process.pid, 0), process.bytes or 0)
        for pid, size in used.items():
            owner = workloads.by_pid.get(pid)
            holder = f"process {pid}" if owner is None else owner.name
            held[holder] = owner, held.get(holder, (owner, 0))[1] + size
        if silent:
            unseen.append(f"what {silent} processes use of {device.name}: NVML does not tell")
    claims = [_claim(holder, owner, size) for holder, (owner, size) in held.items() if size]
    return SourceClaims(tuple(claims), unseen=tuple(unseen))


def _claim(holder: str, owner: Workload | None, size: int) -> Claim:
    return Claim(
        holder=holder,
        workload=None if owner is None else owner.name,
        cgroup=None if owner is None else owner.cgroup,
        driver=NVIDIA,
        bytes=size,
        least_bytes=0,
        most_bytes=size,
        kind="unified",
        within=RESIDUAL,
        is_counted=False,
        source="NVML, memory of processes on a device that shares the host's memory",
        confidence="estimate",
        missing=_MISSING,
        give_back="let the program free its device memory, or end it",
    )
