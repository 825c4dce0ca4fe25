# SPDX-License-Identifier: Apache-2.0
"""Every claim of now as rows for the guard: joined, held against the ledger, charged to groups.

What was traced and what earlier watchers kept; packet rings by PACKET_DIAG; what drivers have
mapped, when it is asked for.  Certain is exact and traced evidence alone, as in
``accounts/shadow_charge``.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from seawall.accounts.claim import Claim, Found
from seawall.accounts.claim_sources import driver_mappings, packet_rings
from seawall.accounts.claims import Claims, joined
from seawall.accounts.kept_words import claim_of
from seawall.accounts.ledger import Ledger
from seawall.accounts.shadow_charge import sum_of, uncounted_claims
from seawall.host.host import Host, Unread
from seawall.readings.driver_files import DriverFiles
from seawall.readings.driver_mappings import DriverMappings
from seawall.readings.kept_claims import KeptClaim, inode_of
from seawall.readings.kernel import Kernel
from seawall.readings.packet_rings import PacketRings
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.watcher.asked_host import AskedHost
from seawall.watcher.endpoint import word
from seawall.watcher.people import People

_NO_BASE: Final = Unread("base", "absent")
_NO_VMALLOCINFO: Final = Unread("/proc/vmallocinfo", "not_captured")
_NOUNS: Final = {"ring": "packet rings", "socket": "socket buffers", "unknown": "kernel pages"}
_HOW: Final = {"exact": "counted by the kernel", "traced": "traced page by page"}
_SOURCES_MOST: Final = 200
_REFUSALS_MOST: Final = 8


class Told(NamedTuple):
    """What goes into ``claims``, and what of the residual is explained."""

    rows: list[dict[str, Any]]
    refused: list[str]
    explained_bytes: int
    """Of the residual, by exact and traced evidence, whoever it names."""
    oldest: float | None = None
    """When the oldest answer was asked for that a row rests on; None: on none."""


def tell_claims(
    host: AskedHost, people: People, ledger: Ledger, kept: Sequence[KeptClaim],
    *, with_drivers: bool,
) -> Told:  # fmt: skip
    """One account of now; what is not answered yet is not in it."""
    known = {Ledger: ledger, Vmallocinfo: _NO_VMALLOCINFO}
    snapshot = Snapshot(host, known)
    found = [Found(tuple(claim_of(claim, None) for claim in kept if _is_there(host, claim)))]
    unread: list[Unread] = []
    ages: list[float] = []
    for source in (_rings, _drivers) if with_drivers else (_rings,):
        host.oldest = None
        answer = source(snapshot, people, ledger)
        if isinstance(answer, Unread):
            unread.append(answer)
            continue
        found.append(answer)
        # An old answer that names nobody makes the others no older.
        if host.oldest is not None and any(claim.least_bytes for claim in answer.claims):
            ages.append(host.oldest)
    claims = joined(found, ledger, _NO_BASE, tuple(unread))
    rows, oldest = _rows(claims, people), min(ages, default=None)
    return Told(rows, _refused(claims), explained_by(claims.claims), oldest)


def explained_by(claims: Sequence[Claim]) -> int:
    """Bytes of the residual that exact and traced evidence names; a bound explains nothing."""
    return sum(
        claim.bytes
        for claim in claims
        if claim.within == "residual" and claim.confidence in ("exact", "traced")
    )


def _is_there(host: Host, claim: KeptClaim) -> bool:
    """Whether the cgroup that it was learned of is still that one."""
    if claim.is_gone or claim.folder is None:
        return False
    return inode_of(host, claim.folder) == claim.cgroup_inode


def _rings(snapshot: Snapshot, people: People, _: Ledger) -> Found | Unread:
    rings, kernel = snapshot.get(PacketRings), snapshot.get(Kernel)
    if isinstance(rings, Unread):
        return rings
    if isinstance(kernel, Unread):
        return kernel
    return packet_rings.claims(kernel, rings, people.workloads, people.cgroups, _NO_VMALLOCINFO)


def _drivers(snapshot: Snapshot, people: People, ledger: Ledger) -> Found | Unread:
    files = snapshot.get(DriverFiles)
    if isinstance(files, Unread):
        return files
    mappings, kernel = snapshot.get(DriverMappings), snapshot.get(Kernel)
    if isinstance(mappings, Unread):
        return mappings
    if isinstance(kernel, Unread):
        return kernel
    return driver_mappings.claims(mappings, files, people.workloads, kernel, ledger)


def _rows(claims: Claims, people: People) -> list[dict[str, Any]]:
    """One for each group that holds something and is known by its inode."""
    by_group: dict[str, list[Claim]] = {}
    for claim in uncounted_claims(claims.claims):
        group = people.group_of(claim.cgroup or "/")
        if group is not None and claim.kind != "hugetlb":
            by_group.setdefault(group.cgroup, []).append(claim)
    rows: list[dict[str, Any]] = []
    for path, own in by_group.items():
        inode, held = people.inode(path), sum_of(own)
        if inode is None:
            continue
        sources = ", ".join(dict.fromkeys(map(_source, held.claims)))
        rows.append({
            "cgroup": path, "inode": inode, "certain": _certain(own), "likely": held.bytes,
            "most": held.most_bytes, "sources": word(sources, _SOURCES_MOST),
        })  # fmt: skip
    rows.sort(key=lambda row: -row["certain"])
    return rows


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
        for one in claims.refused()
        if one.why != "not_reached"
    ]
    return [word(one, 200) for one in (*words, *claims.unseen)][:_REFUSALS_MOST]
