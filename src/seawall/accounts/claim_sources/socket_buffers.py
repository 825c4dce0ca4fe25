# SPDX-License-Identifier: Apache-2.0
"""Data that waits in sockets of TCP and UDP: uncounted memory.

Payload of TCP lies in pages of its own (uncounted), small datagrams of UDP lie in the slab.
Tried on 6.18 over loopback: 395 MiB waiting in TCP moved uncounted memory by 395.4 MiB, the slab
by 9.1, and ``TCP: mem`` by 403.1; UDP in datagrams of 1,400 bytes moved the slab alone, in
datagrams of 60,000 uncounted memory alone.  AF_UNIX is charged like any kernel memory.

v2 charges ``sock`` of memory.stat, a budget and not pages: memory.current has it, so it is no
shadow charge.  v1 counts it only where memory.kmem.tcp was limited, and never in its usage.
"""

from collections.abc import Iterator, Mapping

from seawall.accounts.cgroup_memory.memory_groups import parent
from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.kmem_tcp import FILE, KmemTcp
from seawall.readings.memcg import Memcgs
from seawall.readings.sockstat import PATHS, Sockstat

_LEAST_BYTES = 1 << 20
_GIVE_BACK = "whoever reads these sockets has to catch up, or net.ipv4.tcp_rmem, tcp_wmem be lower"
_MISSING = "how much of it lies in the slab, and how much more a piece of a page keeps from use"


def claims(
    sockstat: Sockstat,
    memcgs: Memcgs | Unread,
    kmem_tcp: KmemTcp | Unread,
    workloads: Workloads | Unread,
) -> SourceClaims:
    """One for each workload whose cgroup tells, one for the rest of the host."""
    tcp, udp = sockstat.tcp_bytes, sockstat.udp_bytes
    if tcp + udp < _LEAST_BYTES:
        return SourceClaims()
    owned: dict[Workload, int] = {}
    is_v2 = not isinstance(memcgs, Unread) and memcgs.version == 2
    if not isinstance(memcgs, Unread) and not isinstance(workloads, Unread):
        for path, own in _own(_told(memcgs, kmem_tcp)):
            workload = workloads.of_cgroup(path)
            if workload is not None and workload.kind not in ("slice", "root"):
                owned[workload] = owned.get(workload, 0) + own
    found = [
        _claim(workload, min(held, tcp + udp), tcp / (tcp + udp), is_v2=is_v2)
        for workload, held in owned.items() if held >= _LEAST_BYTES
    ]  # fmt: skip
    rest = max(0, tcp + udp - sum(claim.most_bytes for claim in found))
    if rest >= _LEAST_BYTES:
        found.append(_claim(None, rest, tcp / (tcp + udp), is_v2=False))
    return SourceClaims(tuple(found))


def _told(memcgs: Memcgs, kmem_tcp: KmemTcp | Unread) -> Mapping[str, int]:
    """Bytes of each cgroup with what is below it."""
    if memcgs.version == 1:
        return {} if isinstance(kmem_tcp, Unread) else kmem_tcp.by_path
    return {path: memcg.sock for path, memcg in memcgs.by_path.items() if memcg.sock}


def _own(told: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """What of a cgroup is not of one below it."""
    below: dict[str, int] = {}
    for path, held in told.items():
        if path != "/":
            below[parent(path)] = below.get(parent(path), 0) + held
    for path, held in told.items():
        if held > below.get(path, 0):
            yield path, held - below.get(path, 0)


def _claim(workload: Workload | None, held: int, share_of_tcp: float, *, is_v2: bool) -> Claim:
    if workload is None:
        source = f"{PATHS[0]} TCP and UDP mem"
    else:
        source = "memory.stat sock" if is_v2 else FILE
    return Claim(
        holder="TCP and UDP sockets" if workload is None else workload.name,
        workload=None if workload is None else workload.name,
        cgroup=None if workload is None else workload.cgroup,
        driver=None,
        bytes=int(held * share_of_tcp),
        least_bytes=0,
        most_bytes=held,
        kind="socket",
        within=RESIDUAL,
        is_counted=is_v2,
        source=source,
        confidence="estimate",
        missing=f"whose sockets they are, and {_MISSING}" if workload is None else _MISSING,
        give_back=_GIVE_BACK,
    )
