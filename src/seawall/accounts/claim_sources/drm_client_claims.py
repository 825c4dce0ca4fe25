# SPDX-License-Identifier: Apache-2.0
"""What graphics drivers say of their clients (DRM fdinfo): buffers in the host's memory.

One client counts once, however many descriptors and processes hold it.  Drivers that use TTM
(amdgpu, xe) take pages that no cgroup counts, since 7.1 in GPUActive; all others that print
their memory take it from tmpfs, where the ledger and the cgroup have it already.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.drivers.driver_names import AMD
from seawall.accounts.node_memory.ledger_parts import TTM_LINE
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.drm_clients import DrmClient, DrmClients, DrmRegion
from seawall.readings.meminfo import Meminfo

_TMPFS_LINE: Final = "tmpfs and shared"
_TTM: Final = {"amdgpu": ("gtt", "cpu"), "xe": ("gtt", "system")}
_TMPFS: Final = ("memory", "system0", "system")
"""``memory`` is reserved for the host's memory; i915 numbers its regions, and those that are
stolen are none of the host's."""
_LEAST_BYTES: Final = 64 << 10
_SHOWN: Final = 3
_USERPTR: Final = "how much of it is the process's own memory, registered with the device"


_Owners = dict[str, Workload | None]


class _Sizes(NamedTuple):
    """Bytes of the host's memory that one client holds: at least, likely, and at most."""

    least: int
    likely: int
    most: int


def claims(clients: DrmClients, workloads: Workloads, meminfo: Meminfo | Unread) -> SourceClaims:
    """One claim for each workload (or shared client) and driver."""
    has_line = isinstance(meminfo, Meminfo) and meminfo.gpu_active is not None
    groups: dict[tuple[str, str], tuple[_Owners, list[DrmClient]]] = {}
    for client in clients.clients:
        owners = _owners(client, workloads)
        names = " or ".join(list(owners)[:_SHOWN])
        groups.setdefault((names, client.driver), (owners, []))[1].append(client)
    found = [
        claim
        for (holder, _), (owners, members) in groups.items()
        if (claim := _claim(holder, owners, members, has_line=has_line)) is not None
    ]
    return SourceClaims(tuple(found), unseen=tuple(_unseen(clients)))


def _owners(client: DrmClient, workloads: Workloads) -> _Owners:
    """Who holds it, by name; more than one: the descriptor was handed on."""
    found: dict[str, Workload | None] = {}
    for pid in client.pids:
        owner = workloads.by_pid.get(pid)
        found[f"process {pid}" if owner is None else owner.name] = owner
    return dict(sorted(found.items()))


def _claim(
    holder: str, owners: _Owners, clients: list[DrmClient], *, has_line: bool
) -> Claim | None:  # fmt: skip
    driver = clients[0].driver
    sizes = [_sizes(driver, client.regions) for client in clients]
    most = sum(size.most for size in sizes)
    if most < _LEAST_BYTES:
        return None
    owner = next(iter(owners.values())) if len(owners) == 1 else None
    told = [] if len(owners) < 2 else ["which of them took it: they share the descriptor"]
    is_tmpfs = driver not in _TTM
    if driver == "amdgpu":
        told.append(_USERPTR)
    return Claim(
        holder=holder,
        workload=None if owner is None else owner.name,
        cgroup=None if owner is None else owner.cgroup,
        driver=AMD if driver == "amdgpu" else f"the {driver} driver",
        bytes=sum(size.likely for size in sizes),
        least_bytes=sum(size.least for size in sizes),
        most_bytes=most,
        kind="surface",
        within=_TMPFS_LINE if is_tmpfs else TTM_LINE if has_line else RESIDUAL,
        is_counted=is_tmpfs,
        source=f"/proc/PID/fdinfo of {_count(len(clients), 'client')} of {driver}",
        confidence="estimate",
        missing="; ".join(told),
        give_back="let the program free its buffers, or end it",
    )


def _sizes(driver: str, regions: Mapping[str, DrmRegion]) -> _Sizes:
    """Of one client, in the regions that are the host's memory.

    Shared buffers stand with each client that has them: half of them is taken as likely, none
    as certain.  amdgpu counts registered memory of the process too, xe only its own pages.
    """
    least = likely = most = 0
    for name in _TTM.get(driver, _TMPFS):
        region = regions.get(name)
        if region is None:
            continue
        resident = region.resident if region.resident is not None else region.memory
        size = region.total or 0 if resident is None else resident
        shared = min(size, region.shared or 0)
        most += size
        likely += size - shared // 2
        # In the other regions a buffer may have no pages yet, or be swapped out.
        if driver == "xe" and name == "gtt" and resident is not None and region.shared is not None:
            least += size - shared
    return _Sizes(least, likely, most)


def _unseen(clients: DrmClients) -> Iterator[str]:
    for driver, pids in sorted(clients.silent.items()):
        if driver == "?" or driver.startswith("nvidia"):
            continue  # nvidia prints nothing; its suspects and mappings are told
        yield (
            f"what {_count(len(pids), 'process')} hold{'s' if len(pids) == 1 else ''} of {driver}: "
            "this version of the driver prints no memory in fdinfo (a newer kernel does)"
        )
    if clients.unread:
        first = clients.unread[0]
        yield f"what some clients of graphics drivers hold: {first.path}: {first.detail}"
    if clients.left_out:
        yield f"{clients.left_out:,} descriptors of graphics devices, for there are too many"


def _count(number: int, word: str) -> str:
    if number == 1:
        return f"1 {word}"
    return f"{number:,} {word}{'es' if word.endswith('s') else 's'}"
