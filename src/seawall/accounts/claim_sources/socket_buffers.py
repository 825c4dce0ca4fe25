# SPDX-License-Identifier: Apache-2.0
"""Data that waits in sockets of TCP and UDP: uncounted memory.

Payload of TCP lies in pages of its own (uncounted), small datagrams of UDP lie in the slab.
Tried on 6.18 over loopback: 395 MiB waiting in TCP moved uncounted memory by 395.4 MiB, the slab
by 9.1, and ``TCP: mem`` by 403.1; UDP in datagrams of 1,400 bytes moved the slab alone, in
datagrams of 60,000 uncounted memory alone.  AF_UNIX is charged like any kernel memory.

v2 charges ``sock`` of memory.stat, a budget and not pages: memory.current has it, so it is no
shadow charge.  v1 counts it only where memory.kmem.tcp was limited, and never in its usage.

Where it is much, whose queues it lies in is asked on both (``readings/socket_queues.py``): data is
held by whose queue it waits in, not by who sent it.  Certain is what the slab cannot hold of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from seawall.accounts.cgroup_memory.memory_groups import parent
from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims, Suspect
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.kmem_tcp import FILE, KmemTcp
from seawall.readings.memcg import Memcgs
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot
from seawall.readings.socket_queues import ASKED_FROM_BYTES, QueueRow, SocketQueues
from seawall.readings.sockstat import PATHS, Sockstat
from seawall.words import size

_LEAST_BYTES = 1 << 20
_PIDS_TOLD = 4
_GIVE_BACK = "whoever reads these sockets has to catch up, or net.ipv4.tcp_rmem, tcp_wmem be lower"
_READ = "end the process that does not read these sockets, or let it catch up or close them"
_MISSING = "how much of it lies in the slab, and how much more a piece of a page keeps from use"


def claims(
    sockstat: Sockstat,
    memcgs: Memcgs | Unread,
    kmem_tcp: KmemTcp | Unread,
    workloads: Workloads | Unread,
    snapshot: Snapshot,
) -> SourceClaims:
    """One for each workload whose cgroup or whose queues tell, one for the rest of the host."""
    tcp, udp = sockstat.tcp_bytes, sockstat.udp_bytes
    if tcp + udp < _LEAST_BYTES:
        return SourceClaims()
    owned: dict[Workload, int] = {}
    told = {} if isinstance(memcgs, Unread) else _told(memcgs, kmem_tcp)
    is_v2 = not isinstance(memcgs, Unread) and memcgs.version == 2
    if not isinstance(workloads, Unread):
        for path, own in _own(told):
            workload = workloads.of_cgroup(path)
            if workload is not None and workload.kind not in ("slice", "root"):
                owned[workload] = owned.get(workload, 0) + own
    queues = _Queues((), (), ())
    if max(tcp, udp) >= ASKED_FROM_BYTES:
        queues = _queues_of(snapshot, tcp, is_counted=is_v2 and bool(told))
    known = {claim.cgroup for claim in queues.claims}
    found = [
        *queues.claims,
        *(
            _claim(workload, min(held, tcp + udp), tcp / (tcp + udp), is_v2=is_v2)
            for workload, held in owned.items()
            if held >= _LEAST_BYTES and workload.cgroup not in known
        ),
    ]
    rest = max(0, tcp + udp - sum(claim.most_bytes for claim in found))
    if rest >= _LEAST_BYTES:
        found.append(_claim(None, rest, tcp / (tcp + udp), is_v2=False))
    return SourceClaims(tuple(found), queues.suspects, queues.unseen)


class _Queues(NamedTuple):
    """What the queues tell."""

    claims: tuple[Claim, ...]
    suspects: tuple[Suspect, ...]
    unseen: tuple[str, ...]


def _queues_of(snapshot: Snapshot, tcp_bytes: int, *, is_counted: bool) -> _Queues:
    """Whose queues the data lies in; what several workloads hold is charged to none of them."""
    from seawall.accounts.tracing.task_workloads import TaskOwner, TaskWorkloads  # noqa: PLC0415 - why loads us
    from seawall.readings.cgroup import Cgroups  # noqa: PLC0415
    from seawall.readings.container_files import ContainerFiles  # noqa: PLC0415

    queues = snapshot.get(SocketQueues)
    if isinstance(queues, Unread):
        words = f"whose queues the data in sockets lies in: {queues.detail or queues.why}"
        return _Queues((), (), (words,))
    places = TaskWorkloads(
        snapshot.get(Cgroups), snapshot.get(ContainerFiles), snapshot.get(Workloads)
    )
    held: dict[TaskOwner, list[QueueRow]] = {}
    shared: dict[TaskOwner, list[QueueRow]] = {}
    for row in queues.rows:
        owners = {places.holding(lines) for lines in row.cgroups}
        for owner in owners:
            if owner is not None and owner.cgroup not in (None, "/"):
                rows = held if len(owners) == 1 else shared
                rows.setdefault(owner, []).append(row)
    meminfo = snapshot.get(Meminfo)
    slab = None if isinstance(meminfo, Unread) else meminfo.s_unreclaim
    slack = max(0, tcp_bytes - _sum(queues.rows, "tcp"))
    claims = (
        _held(owner.holder, owner.cgroup or "", rows, slab, slack) for owner, rows in held.items()
    )
    return _Queues(
        tuple(
            replace(claim, is_counted=is_counted)
            for claim in claims if claim.most_bytes >= _LEAST_BYTES
        ),
        tuple(
            Suspect(
                workload=owner.workload, cgroup=owner.cgroup, driver="sockets",
                pids=tuple(pid for row in rows for pid in row.pids)[:_PIDS_TOLD],
                why=f"holds sockets with {size(sum(row.bytes for row in rows))} in their queues,"
                " and so do others",
            )
            for owner, rows in shared.items() if sum(row.bytes for row in rows) >= _LEAST_BYTES
        ),
        tuple(_unseen(queues)),
    )  # fmt: skip


def _sum(rows: Iterable[QueueRow], protocol: str) -> int:
    return sum(row.bytes for row in rows if row.protocol == protocol)


def _held(
    name: str, cgroup: str, rows: Sequence[QueueRow], slab: int | None, slack: int
) -> Claim:  # fmt: skip
    """``slab``: what the node's slab has that is not reclaimable; ``slack``: what the kernel took
    for TCP beyond the payload in all queues.
    """
    tcp, udp = _sum(rows, "tcp"), _sum(rows, "udp")
    certain = 0 if slab is None else max(0, tcp + udp - slab)
    count = sum(row.sockets for row in rows)
    pids = [str(pid) for row in rows for pid in row.pids]
    more = " and others" if len(pids) > _PIDS_TOLD else ""
    tables = " and ".join(
        f"/proc/net/{one}" for one in ("tcp", "udp") if any(row.protocol == one for row in rows)
    )
    return Claim(
        holder=name, workload=name, cgroup=cgroup, driver=None,
        bytes=max(tcp, certain), least_bytes=certain, most_bytes=tcp + udp + (slack if tcp else 0),
        kind="socket", within=RESIDUAL, is_counted=False,
        source=f"{tables}: in the queues of {count:,} socket{'s' if count > 1 else ''}, held by"
        f" pid {', '.join(pids[:_PIDS_TOLD])}{more}",
        confidence="exact" if max(tcp, certain) else "bound", missing=_MISSING,
        give_back=_READ,
    )  # fmt: skip


def _unseen(queues: SocketQueues) -> Iterator[str]:
    left_out = queues.namespaces_left_out + queues.tables_cut
    if left_out:
        yield (
            f"all queues of sockets in {left_out:,} network namespace{'s' if left_out > 1 else ''}:"
            " not entered or not read to the end, for lack of CAP_SYS_ADMIN or of time"
        )
    if queues.holders_left_out:
        found = ", ".join(
            f"{one.cgroup} has {one.descriptors:,} descriptors in {one.processes:,} of them"
            for one in queues.crowds
        )
        yield (
            f"whether {queues.holders_left_out:,} more processes hold sockets with data in their"
            " queues: no right to look, or no time" + (f" ({found})" if found else "")
        )


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
