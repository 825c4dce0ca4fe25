# SPDX-License-Identifier: Apache-2.0
"""Rings of packet sockets, by socket and network namespace: exact bytes, proved owners only."""

from collections.abc import Iterator, Sequence

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims, Suspect
from seawall.accounts.packet_rings.owners import RingOwner, RingOwners
from seawall.accounts.packet_rings.ring_places import RingPlaces
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.kernel import Kernel
from seawall.readings.packet_rings import PacketRings, PacketSocket
from seawall.readings.vmallocinfo import PATH as VMALLOCINFO
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.words import size

_GIVE_BACK = (
    "close the socket and unmap its ring, in every process that has it (ending the process does"
    " both); or ask for a smaller ring"
)
_PIDS_TOLD = 8
_UNTOLD_LEAST_BYTES = 1 << 20


def claims(
    kernel: Kernel,
    rings: PacketRings,
    workloads: Workloads,
    cgroups: Cgroups,
    vmallocinfo: Vmallocinfo | Unread,
) -> SourceClaims:
    """One claim for all sockets of which the same can be said; suspects where nobody is charged."""
    owners = RingOwners(rings, workloads, cgroups)
    groups: dict[RingOwner, list[PacketSocket]] = {}
    if rings.is_looked:
        for one in rings.sockets:
            groups.setdefault(owners.owner(one), []).append(one)
    places = RingPlaces(rings.sockets, vmallocinfo, kernel.page_size)
    found: list[Claim] = []
    suspects: dict[Workload, list[PacketSocket]] = {}
    for owner, sockets in groups.items():
        found += _claims(owner, sockets, places, _told(rings, owners, owner, sockets))
        # Where rings are not told, whoever has a socket could hold one.
        for workload in owner.suspects or owners.workloads_of(
            pid for one in sockets if rings.why_not for pid in one.holders
        ):
            suspects.setdefault(workload, []).extend(sockets)
    return SourceClaims(
        (*found, *_others(rings), *_untold(places.untold_bytes())),
        tuple(_suspect(rings, owners, w, sockets, kernel) for w, sockets in suspects.items()),
        tuple(_unseen(rings)),
    )


def _claims(
    owner: RingOwner, sockets: Sequence[PacketSocket], places: RingPlaces, source: str
) -> Iterator[Claim]:
    """What is uncounted, and what lies in vmalloc."""
    rest, in_vmalloc = places.share(sockets)
    is_bound = owner.confidence != "exact"
    # A socket's blocks here are not its blocks there: so they have names of their own.
    for share, within, place in ((rest, RESIDUAL, ""), (in_vmalloc, "vmalloc", " in vmalloc")):
        if share.bytes > 0:
            yield Claim(
                holder=owner.holder,
                workload=owner.workload.name if owner.workload else None,
                cgroup=owner.workload.cgroup if owner.workload else None,
                driver=None,
                bytes=share.bytes,
                least_bytes=0 if is_bound else share.least_bytes,
                most_bytes=share.most_bytes,
                kind="ring",
                within=within,
                is_counted=False,
                source=source,
                confidence=owner.confidence,
                missing=owner.missing,
                give_back=_GIVE_BACK,
                things=frozenset(f"socket:[{one.inode}]{place}" for one in sockets),
            )


def _told(
    rings: PacketRings, owners: RingOwners, owner: RingOwner, sockets: Sequence[PacketSocket]
) -> str:
    what = "1 packet socket" if len(sockets) == 1 else f"{len(sockets):,} packet sockets"
    how = "mapped rings (/proc/PID/maps)" if rings.why_not else "PACKET_DIAG"
    pids = owners.pids_in(owner.workload, sockets)
    more = f" and {len(pids) - _PIDS_TOLD} more" if len(pids) > _PIDS_TOLD else ""
    held = f", held by pid {', '.join(map(str, pids[:_PIDS_TOLD]))}{more}" if pids else ""
    return f"{how}: {what}{held}"


def _others(rings: PacketRings) -> Iterator[Claim]:
    """The many small ones that were not looked at."""
    if rings.others_bytes:
        source = f"PACKET_DIAG: {rings.others:,} packet sockets"
        missing = "who made them: too many to look for their holders"
        yield _nobodys("small packet rings", rings.others_bytes, RESIDUAL, source, missing)


def _untold(in_vmalloc: int) -> Iterator[Claim]:
    if in_vmalloc >= _UNTOLD_LEAST_BYTES:
        missing = "which sockets they are of"
        yield _nobodys("packet rings", in_vmalloc, "vmalloc", VMALLOCINFO, missing)


def _nobodys(holder: str, held: int, within: str, source: str, missing: str) -> Claim:
    return Claim(
        holder=holder, workload=None, cgroup=None, driver=None, bytes=held, least_bytes=held,
        most_bytes=held, kind="ring", within=within, is_counted=False, source=source,
        confidence="exact", missing=missing, give_back=_GIVE_BACK,
    )  # fmt: skip


def _suspect(
    rings: PacketRings, owners: RingOwners, workload: Workload,
    sockets: Sequence[PacketSocket], kernel: Kernel,
) -> Suspect:  # fmt: skip
    pids = owners.pids_in(workload, sockets)
    own = [one for one in sockets if set(one.holders) & set(pids)] or sockets
    held = sum(one.held_bytes(kernel.page_size) for one in own)
    what = f"{len(own):,} packet socket{'s' if len(own) > 1 else ''}"
    rings_of = f"with {size(held)} of rings" if held else "whose rings are not told"
    verb = "holds" if pids else "has in its network"
    return Suspect(
        workload=workload.name,
        cgroup=workload.cgroup,
        driver="packet sockets",
        pids=tuple(pids),
        why=f"{verb} {what} {rings_of}"
        + ("" if rings.why_not or not pids else "; it could have made them, or been handed them"),
    )


def _unseen(rings: PacketRings) -> Iterator[str]:
    if rings.why_not:
        known = len(rings.sockets) + rings.others
        yield f"packet rings of {known:,} packet sockets: {rings.why_not}"
    if rings.namespaces_left_out:
        plural = "" if rings.namespaces_left_out == 1 else "s"
        yield (
            f"packet rings in {rings.namespaces_left_out:,} other network namespace{plural}: not"
            " entered, for lack of CAP_SYS_ADMIN or of time"
        )
    if rings.processes_left_out:
        whose = f"{rings.processes_left_out:,} processes that may"
        if rings.processes_left_out == 1:
            whose = "1 process that may"
        yield (
            f"packet rings in the network of {whose} not be looked into, if it is one of its own"
            " (CAP_SYS_PTRACE)"
        )
    if rings.is_looked and rings.holders_left_out:
        yield (
            f"whether {rings.holders_left_out:,} more processes hold packet sockets:"
            f" no right to look, or no time{_crowds(rings)}"
        )


def _crowds(rings: PacketRings) -> str:
    """Who has so many descriptors that there was none."""
    found = (
        f"{one.cgroup} has {one.descriptors:,} descriptors in {one.processes:,} of them"
        for one in rings.crowds
    )
    words = ", ".join(found)
    return f" ({words})" if words else ""
