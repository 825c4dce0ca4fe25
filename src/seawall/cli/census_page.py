# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --census``: every page frame by what it is and by the cgroup that pays."""

from typing import Final, NamedTuple

from seawall.accounts.census.census_agreement import agreements_of
from seawall.accounts.census.cgroups import CgroupPages, by_cgroup
from seawall.accounts.census.frame_census import Census, census_of
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.workloads import Workloads
from seawall.cli.verb import Head, SourceVerb
from seawall.findings.blindness import unread_rows
from seawall.host.host import Unread
from seawall.host.page_census.page_census_probe import SECONDS
from seawall.readings.cgroup import Cgroups
from seawall.readings.meminfo import Meminfo
from seawall.readings.page_census import PageCensus, take
from seawall.readings.slabinfo import Slabinfo
from seawall.readings.snapshot import Snapshot
from seawall.readings.zoneinfo import Zoneinfo
from seawall.sources.source import Source
from seawall.views.memory_census_page import CensusPage
from seawall.views.memory_census_unseen import unseen_rows

REST_SECONDS: Final = 3.0
"""Of --timeout, kept for everything else."""
_LEAST_SECONDS: Final = 0.5


class _Counters(NamedTuple):
    """What the kernel itself counts at one moment."""

    ledger: Ledger | Unread
    zones: Zoneinfo | Unread


def make_page(source: Source, *, exact: bool) -> CensusPage:
    """Count between two looks at the kernel's own counters."""
    first = source.first
    slabinfo, meminfo = first.get(Slabinfo), first.get(Meminfo)
    looks = [_look(first)]
    counted = take(first.host, _seconds(source, exact=exact))
    if source.live is not None:
        looks.append(_look(Snapshot(source.live)))
    census: Census | Unread
    if isinstance(counted, Unread):
        census = counted
    elif isinstance(meminfo, Unread):
        census = meminfo
    else:
        zones = [look.zones for look in looks if not isinstance(look.zones, Unread)]
        census = census_of(counted, meminfo, zones)
    ledgers = [look.ledger for look in looks if not isinstance(look.ledger, Unread)]
    known = None if isinstance(census, Unread) else census
    return CensusPage(
        census=census,
        agreements=agreements_of(known, ledgers, slabinfo) if known and ledgers else (),
        cgroups=None if isinstance(counted, Unread) else _cgroups(source, counted),
        unseen=(*unseen_rows(counted, exact=exact), *unread_rows([first])),
        bundle_notes=source.notes,
    )


class CensusVerb(SourceVerb[CensusPage]):
    """The page census; its document has the ledger of ``seawall memory`` too."""

    name = "memory"
    text_view = "seawall.views.memory_census_text:lines"

    def page(self) -> CensusPage:
        return make_page(self.source, exact=self.arguments.exact)

    def document(self, top: Head, page: CensusPage) -> Head:
        from seawall.views.documents.memory_document import MEMORY, MemoryCensus  # noqa: PLC0415 - JSON alone
        from seawall.views.memory_page import MemoryPage  # noqa: PLC0415 - likewise

        memory = MemoryPage.of(self.source.first, self.source.notes)
        return MEMORY.of(top, MemoryCensus(memory, page))


run = CensusVerb.run


def _look(moment: Snapshot) -> _Counters:
    return _Counters(moment.get(Ledger), moment.get(Zoneinfo))


def _seconds(source: Source, *, exact: bool) -> float | None:
    """What may be spent; None: as long as the probe itself finds fit."""
    if source.live is None:
        return None
    left = max(_LEAST_SECONDS, source.live.seconds_left() - REST_SECONDS)
    return left if exact or left < SECONDS else None


def _cgroups(source: Source, counted: PageCensus) -> tuple[CgroupPages, ...] | None:
    """The tree is walked after the count: cgroups that were removed meanwhile are not found."""
    if not counted.has_cgroups:
        return None
    cgroups = source.first.get(Cgroups)
    paths = {} if isinstance(cgroups, Unread) else _paths(source, cgroups)
    return by_cgroup(counted, cgroups, paths, source.first.get(Workloads))


def _paths(source: Source, cgroups: Cgroups) -> dict[int, str]:
    """Inode -> path of every cgroup of the tree that counts memory."""
    found: dict[int, str] = {}
    for path in cgroups.paths:
        folder = (cgroups.mount_point.rstrip("/") + path).rstrip("/") or "/"
        told = source.first.host.ask("inode", folder)
        inode = told.get("inode") if isinstance(told, dict) else None
        if isinstance(inode, int):
            found[inode] = path
    return found
