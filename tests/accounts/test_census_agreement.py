"""The census beside the ledger: which lines are which kinds, and what may differ."""

from typing import Any

from tests.accounts.test_census import PAGE, meminfo, whole

from seawall.accounts.census.census_agreement import (
    CensusAgreement,
    agreements_of,
    largest_difference,
)
from seawall.accounts.census.frame_census import Census, census_of
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.node_memory.ledger_parts import LedgerLine
from seawall.host.host import Unread
from seawall.readings.slabinfo import SlabCache, Slabinfo

NO_SLABINFO = Unread("/proc/slabinfo", "refused")


def ledger(residual: int = 0, **pages: int) -> Ledger:
    """Names with underscores for their spaces; in pages."""
    lines = [LedgerLine(name.replace("_", " "), n * PAGE, "") for name, n in pages.items()]
    return Ledger(
        total_bytes=sum(line.bytes for line in lines) + residual * PAGE, lines=tuple(lines),
        residual_bytes=residual * PAGE, residual_error_bytes=0, unknown=(), nodes=(), notes=(),
    )  # fmt: skip


def census(**pages: int) -> Census:
    counted = whole({(names.replace("_", " "), 0): n for names, n in pages.items()})
    return census_of(counted, meminfo(sum(pages.values())), [])


COUNTED = census(
    BUDDY=4000, LRU_UPTODATE=3000, LRU_UPTODATE_SWAPBACKED=500,
    LRU_UPTODATE_ANON_SWAPBACKED_MMAP=1500, SLAB=600, PGTABLE=100, HUGE=200, MMAP=40, HEAD=60,
)  # fmt: skip
LINES: dict[str, Any] = {
    "free": 4000, "anonymous": 1500, "tmpfs_and_shared": 500, "page_cache": 2900, "buffers": 100,
    "swap_cache": 0, "slab": 600, "page_tables": 100, "hugetlb": 200, "vmalloc": 30,
    "kernel_stacks": 20, "per-cpu_lists": 10,
}  # fmt: skip


def rows(found: tuple[CensusAgreement, ...]) -> dict[str, tuple[int, int, int]]:
    """Ledger, census and moved, in pages."""
    return {
        row.name: (row.ledger_bytes // PAGE, row.census_bytes // PAGE, row.moved_bytes // PAGE)
        for row in found
    }


def test_every_line_and_every_kind_is_in_one_pair() -> None:
    found = agreements_of(COUNTED, [ledger(40, **LINES)], NO_SLABINFO)
    assert rows(found) == {
        "free": (4000, 4000, 0),
        "anonymous and swap cache": (1500, 1500, 0),
        "tmpfs and shared": (500, 500, 0),
        "page cache": (3000, 3000, 0),
        "slab": (600, 600, 0),
        "page tables": (100, 100, 0),
        "hugetlb": (200, 200, 0),
        "kernel and drivers": (100, 100, 0),
    }
    assert found[-1].lines == ("vmalloc", "kernel stacks", "per-cpu lists", "residual")
    assert all(row.agrees(COUNTED.total_bytes) for row in found)
    assert largest_difference(found, COUNTED.total_bytes) == 0


def test_what_differs_by_more_than_half_a_percent_is_told() -> None:
    """10,000 pages: 50 are 0.5 %."""
    just = agreements_of(COUNTED, [ledger(40, **{**LINES, "free": 3950})], NO_SLABINFO)
    assert just[0].agrees(COUNTED.total_bytes)
    assert largest_difference(just, COUNTED.total_bytes) == 0.005
    more = agreements_of(COUNTED, [ledger(40, **{**LINES, "free": 3949})], NO_SLABINFO)
    assert not more[0].agrees(COUNTED.total_bytes)
    assert more[0].difference_bytes == 51 * PAGE


def test_what_moved_meanwhile_is_the_mean_and_allowed() -> None:
    before = ledger(40, **{**LINES, "free": 4300, "page_cache": 2600})
    after = ledger(40, **{**LINES, "free": 3500, "page_cache": 3400})
    found = agreements_of(COUNTED, [before, after], NO_SLABINFO)
    assert rows(found)["free"] == (3900, 4000, 800)
    assert rows(found)["page cache"] == (3100, 3000, 800)
    assert found[0].agrees(COUNTED.total_bytes)


def test_a_large_kmalloc_is_slab_in_the_ledger_and_a_plain_page_in_the_census() -> None:
    """Slab has 700 pages and the caches only 600: no flag tells the rest."""
    counters = ledger(-60, **{**LINES, "slab": 700})
    cache = SlabCache(
        name="kmalloc-8k", active_objs=1, num_objs=1, objsize_bytes=1, objperslab=1,
        pagesperslab=4, active_slabs=1, num_slabs=150,
    )  # fmt: skip
    found = agreements_of(COUNTED, [counters], Slabinfo((cache,)))
    assert rows(found)["slab"] == (600, 600, 0)
    assert rows(found)["kernel and drivers"] == (100, 100, 0)
    assert found[-1].lines[-1] == "large kmalloc"
    blind = agreements_of(COUNTED, [counters], NO_SLABINFO)
    assert rows(blind)["slab"] == (700, 600, 0)
