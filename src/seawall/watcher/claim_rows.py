# SPDX-License-Identifier: Apache-2.0
"""Claims on uncounted memory as rows for the guard: joined, bounded by the ledger, by group.

What was traced and what earlier watchers kept; packet rings by PACKET_DIAG; what drivers have
mapped, when it is asked for.  Certain is exact and traced evidence alone, as in
``accounts/shadow_charge``.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.claim_sources import driver_mapping_claims, packet_ring_claims
from seawall.accounts.claims.claims import Claims, joined
from seawall.accounts.claims.shadow_charge import sum_of, uncounted_claims
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.packet_rings.bounds import bounded
from seawall.accounts.packet_rings.ring_places import RING_CALLERS
from seawall.accounts.watch.claims_file_words import claim_of
from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.driver_files import DriverFiles
from seawall.readings.driver_mappings import DriverMappings
from seawall.readings.kernel import Kernel
from seawall.readings.packet_rings import PacketRings
from seawall.readings.saved_claims import SavedClaim, inode_of
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmallocinfo import PATH, Vmallocinfo, parse
from seawall.watcher.deferred_host import DeferredHost
from seawall.watcher.guard_endpoint import word
from seawall.watcher.workload_inventory import WorkloadInventory

_NO_BASE: Final = Unread("base", "absent")
_NO_VMALLOCINFO: Final = Unread("/proc/vmallocinfo", "not_captured")
_NOUNS: Final = {"ring": "packet rings", "socket": "socket buffers", "unknown": "kernel pages"}
_HOW: Final = {"exact": "counted by the kernel", "traced": "traced page by page"}
_AREAS_LEAST_BYTES: Final = 32 << 20
"""Of rings together, that it matters where they lie."""
_SOURCES_MOST: Final = 200
_REFUSALS_MOST: Final = 8


class ClaimReport(NamedTuple):
    """What goes into ``claims``, and what of uncounted memory is explained."""

    rows: list[dict[str, Any]]
    refusals: list[str]
    explained_bytes: int
    """Of uncounted memory, by exact and traced evidence, whoever it names."""
    oldest: float | None = None
    """When the oldest answer was asked for that a row rests on; None: on none."""


class LearnedClaims(NamedTuple):
    """What the watcher itself knows."""

    ledger: Ledger
    followed: Sequence[SavedClaim] = ()
    """Page by page, at this moment."""
    earlier_claims: Sequence[SavedClaim] = ()
    """Of before: the trace is paused, or was another watcher's."""


class ClaimRows:
    """Makes the rows of the message ``claims``, one account after another."""

    def __init__(self, host: DeferredHost, inventory: WorkloadInventory) -> None:
        self._host = host
        self._inventory = inventory
        self._areas = RingAreas()

    def tell(self, learned: LearnedClaims, *, with_drivers: bool) -> ClaimReport:
        """One account of now; what is not answered yet is not in it."""
        ledger = learned.ledger
        known = {Ledger: ledger, Vmallocinfo: _NO_VMALLOCINFO}
        snapshot = Snapshot(self._host, known)
        found: list[SourceClaims] = []
        unread: list[Unread] = []
        ages: list[float] = []
        kept = learned.earlier_claims
        for source in (self._rings, self._drivers) if with_drivers else (self._rings,):
            self._host.oldest = None
            answer = source(snapshot, ledger)
            if isinstance(answer, Unread):
                unread.append(answer)
                continue
            found.append(answer)
            if source == self._rings:
                kept = _bounded(kept, snapshot, answer)
            # An old answer that names nobody makes the others no older.
            if self._host.oldest is not None and any(one.least_bytes for one in answer.claims):
                ages.append(self._host.oldest)
        own = [one for one in (*learned.followed, *kept) if _is_there(self._host, one)]
        found.append(SourceClaims(tuple(claim_of(claim, None) for claim in own)))
        claims = joined(found, ledger, _NO_BASE, tuple(unread))
        rows, oldest = _rows(claims, self._inventory), min(ages, default=None)
        return ClaimReport(rows, _refused(claims), explained_by(claims.claims), oldest)

    def _rings(self, snapshot: Snapshot, ledger: Ledger) -> SourceClaims | Unread:
        rings, kernel = snapshot.get(PacketRings), snapshot.get(Kernel)
        if isinstance(rings, Unread):
            return rings
        if isinstance(kernel, Unread):
            return kernel
        held = sum(one.held_bytes(kernel.page_size) for one in rings.sockets)
        may_read = held >= _AREAS_LEAST_BYTES and not self._host.is_hurried
        self._areas.see(self._host, ledger, may_read=may_read)
        inventory = self._inventory
        told = packet_ring_claims.claims(
            kernel, rings, inventory.workloads, inventory.cgroups, self._areas.areas
        )  # fmt: skip
        return less_sure(told, self._areas.unsure_bytes(ledger))

    def _drivers(self, snapshot: Snapshot, ledger: Ledger) -> SourceClaims | Unread:
        files = snapshot.get(DriverFiles)
        if isinstance(files, Unread):
            return files
        mappings, kernel = snapshot.get(DriverMappings), snapshot.get(Kernel)
        if isinstance(mappings, Unread):
            return mappings
        if isinstance(kernel, Unread):
            return kernel
        return driver_mapping_claims.claims(
            mappings, files, self._inventory.workloads, kernel, ledger
        )


def less_sure(told: SourceClaims, in_vmalloc_bytes: int) -> SourceClaims:
    """Of any uncounted ring so much may be in vmalloc by now, and so not in uncounted memory."""
    claims = (
        replace(claim, least_bytes=max(0, claim.least_bytes - in_vmalloc_bytes))
        if claim.within == RESIDUAL
        else claim
        for claim in told.claims
    )
    return replace(told, claims=tuple(claims))


def _bounded(
    kept: Sequence[SavedClaim], snapshot: Snapshot, told: SourceClaims
) -> Sequence[SavedClaim]:  # fmt: skip
    rings, kernel = snapshot.get(PacketRings), snapshot.get(Kernel)
    if isinstance(rings, Unread) or isinstance(kernel, Unread):
        return kept
    return tuple(bounded(kept, rings, told.claims, kernel.page_size))


def explained_by(claims: Sequence[Claim]) -> int:
    """Bytes of uncounted memory that exact and traced evidence names; a bound explains nothing."""
    return sum(
        claim.bytes
        for claim in claims
        if claim.within == "residual" and claim.confidence in ("exact", "traced")
    )


def _is_there(host: Host, claim: SavedClaim) -> bool:
    """Whether the cgroup that it was learned of is still that one."""
    if claim.is_gone or claim.folder is None:
        return False
    return inode_of(host, claim.folder) == claim.cgroup_inode


def _rows(claims: Claims, inventory: WorkloadInventory) -> list[dict[str, Any]]:
    """One for each group that holds something and is known by its inode."""
    by_group: dict[str, list[Claim]] = {}
    for claim in uncounted_claims(claims.claims):
        if claim.kind == "hugetlb":
            continue
        for path, one in _of_groups(claim, inventory):
            by_group.setdefault(path, []).append(one)
    rows: list[dict[str, Any]] = []
    for path, own in by_group.items():
        inode, held = inventory.inode(path), sum_of(own)
        if inode is None:
            continue
        sources = ", ".join(dict.fromkeys(map(_source, held.claims)))
        rows.append({
            "cgroup": path, "inode": inode, "certain": _certain(own), "likely": held.bytes,
            "most": held.most_bytes, "sources": word(sources, _SOURCES_MOST),
        })  # fmt: skip
    rows.sort(key=lambda row: -row["certain"])
    return rows


def _of_groups(claim: Claim, inventory: WorkloadInventory) -> Iterator[tuple[str, Claim]]:
    """Whose row it stands in.  What is a pod's and of which of its containers nobody knows stands
    with each of them, as possible: the guard has no row for a pod, and ends containers.
    """
    path = claim.cgroup or "/"
    group = inventory.group_of(path)
    if group is not None:
        yield group.cgroup, claim
        return
    above = inventory.workloads.by_cgroup.get(path)
    if above is None or above.kind != "pod":
        return
    bound = replace(claim, least_bytes=0, bytes=0, confidence="bound")
    for below, one in inventory.workloads.by_cgroup.items():
        is_inside = below.startswith(path + "/") and not one.is_sandbox
        if is_inside and inventory.group_of(below) == one:
            yield below, bound


def _source(claim: Claim) -> str:
    """Stable words without a comma: after a driver kept its memory the judge no longer believes
    what has the same.
    """
    what = _NOUNS.get(claim.kind, f"{claim.kind} memory")
    whose = f"{what} of {claim.driver}" if claim.driver else what
    how = _HOW.get(claim.confidence, claim.confidence)
    return f"{whose} {how}".replace(",", " ")


def _certain(claims: Sequence[Claim]) -> int:
    """Without data in sockets: it is on its way, and the reader may be the one who is slow."""
    return sum_of(claim for claim in claims if claim.kind != "socket").certain_bytes


def _refused(claims: Claims) -> list[str]:
    """What could not be asked, in words; what is only on its way is not meant."""
    words = [
        f"{one.path}: {one.detail or one.why}"
        for one in claims.refusals()
        if one.why != "not_reached"
    ]
    return [word(one, 200) for one in (*words, *claims.unseen)][:_REFUSALS_MOST]


# Blocks of packet rings that lie in vmalloc, for one watcher.
#
# /proc/vmallocinfo has a line for each area, and the kernel holds a lock of vmalloc while it prints
# them: it is read once at the start, then once a minute while there are rings worth it, and never
# while seconds are left.  What came since is at most what the ledger's line has grown by.

AGAIN_SECONDS: Final = 60.0
_LINE: Final = "vmalloc"
_CALLERS: Final = "|".join(sorted(RING_CALLERS)).encode()
_OF_RINGS: Final = re.compile(rb"^0x\S+ +\d+ (?:" + _CALLERS + rb")\b.*$", re.MULTILINE)
"""Of tens of thousands of lines only these are taken apart."""


class RingAreas:
    """Areas of packet rings in /proc/vmallocinfo, as they were read last."""

    def __init__(self) -> None:
        self.areas: Vmallocinfo | Unread = Unread(PATH, "not_captured")
        """Areas of packet rings alone."""
        self._due = 0.0
        self._low: int | None = None
        """The least that the ledger's line was since."""

    def see(self, host: Host, ledger: Ledger, *, may_read: bool) -> None:
        """One more look at the ledger; ``may_read``: rings are worth reading the file."""
        now = time.monotonic()
        if not self._due or (may_read and now >= self._due):
            self._due = now + AGAIN_SECONDS
            self.areas = _read(host)
            self._low = None
        line = ledger.line(_LINE)
        if line is not None:
            self._low = line.bytes if self._low is None else min(self._low, line.bytes)

    def unsure_bytes(self, ledger: Ledger) -> int:
        """Of rings that are not in ``found``, at most so much is in vmalloc by now."""
        line = ledger.line(_LINE)
        if line is None:
            return 0  # then no line has it, and it is in uncounted memory
        if isinstance(self.areas, Unread):
            return line.bytes
        return line.bytes - (line.bytes if self._low is None else self._low)


def _read(host: Host) -> Vmallocinfo | Unread:
    data = host.read(PATH)
    if isinstance(data, Unread):
        return data
    lines = _OF_RINGS.findall(data)
    if not lines:
        is_whole = b"-0x" in data  # no kernel runs without areas
        return Vmallocinfo(()) if is_whole else Unread(PATH, "malformed", "no areas")
    try:
        return parse(b"\n".join(lines))
    except ParseProblem as problem:
        return Unread(PATH, "malformed", str(problem))
