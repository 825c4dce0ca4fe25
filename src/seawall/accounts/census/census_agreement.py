# SPDX-License-Identifier: Apache-2.0
"""The census beside the ledger: the same memory counted twice, frame by frame and by counters.

Plain kernel pages are several lines of the ledger at once (vmalloc, stacks, percpu, pipes, ...)
and its residual: no flag tells them apart, so only their sum is compared.  A large kmalloc is
slab in the ledger and a plain page in the census: what slabinfo does not have of Slab.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seawall.accounts.census.frame_census import Census
from seawall.accounts.census.frame_kinds import Kind
from seawall.accounts.node_memory.ledger import Ledger
from seawall.host.host import Unread
from seawall.readings.slabinfo import Slabinfo

TOLERANCE: Final = 0.005
"""Of MemTotal, beyond what moved meanwhile and what a sample may be off."""
_REST: Final = "kernel and drivers"
_SLAB: Final = "slab"
_LARGE: Final = "large kmalloc"

# Name of the pair, kinds of the census, lines of the ledger.
_PAIRS: Final[tuple[tuple[str, tuple[Kind, ...], tuple[str, ...]], ...]] = (
    ("free", ("free", "not yet initialised"), ("free",)),
    ("anonymous and swap cache", ("anonymous", "ksm", "swap cache"),
     ("anonymous", "unmapped anonymous", "swap cache")),
    ("tmpfs and shared", ("tmpfs and shared",), ("tmpfs and shared",)),
    ("page cache", ("page cache",), ("page cache", "buffers")),
    (_SLAB, ("slab",), (_SLAB,)),
    ("page tables", ("page tables",), ("page tables",)),
    ("hugetlb", ("hugetlb",), ("hugetlb",)),
    ("balloon", ("offline",), ("balloon",)),
    ("hardware corrupted", ("hardware corrupted",), ("hardware corrupted",)),
    (_REST, ("per-cpu lists", "mapped kernel pages", "charged kernel pages", "kernel pages",
             "zero page", "reserved"), ()),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusAgreement:
    """One comparison of ledger and page census: bytes that both count of the same memory."""

    name: str
    lines: tuple[str, ...]
    """Lines of the ledger; ``residual`` among them."""
    kinds: tuple[Kind, ...]
    ledger_bytes: int
    """The mean of before and after the count."""
    census_bytes: int
    moved_bytes: int
    """By how much the ledger's figure changed meanwhile."""
    error_bytes: int
    """What a sample may be off; 0 when every frame was read."""

    @property
    def difference_bytes(self) -> int:
        """Bytes by the census less bytes by the ledger; negative where the census counts less."""
        return self.census_bytes - self.ledger_bytes

    def agrees(self, total_bytes: int) -> bool:
        """Within TOLERANCE, besides what moved and what a sample may be off."""
        allowed = TOLERANCE * total_bytes + self.moved_bytes + self.error_bytes
        return abs(self.difference_bytes) <= allowed


def agreements_of(
    census: Census, ledgers: Sequence[Ledger], slabinfo: Slabinfo | Unread
) -> tuple[CensusAgreement, ...]:
    """All pairs that either side has; ``ledgers``: before the count and, if known, after it."""
    large = _large_kmalloc(ledgers[0], slabinfo, census.page_size)
    paired = {line for _, _, lines in _PAIRS for line in lines}
    rest = tuple(line.name for line in ledgers[0].lines if line.name not in paired)
    rows = []
    for name, kinds, paired_lines in _PAIRS:
        lines = (
            paired_lines if name != _REST else (*rest, "residual", *((_LARGE,) if large else ()))
        )
        extra = {_SLAB: -large, _REST: large}.get(name, 0)
        figures = [_sum(ledger, lines) + extra for ledger in ledgers]
        row = CensusAgreement(
            name=name,
            lines=lines,
            kinds=kinds,
            ledger_bytes=sum(figures) // len(figures),
            census_bytes=census.of(*kinds),
            moved_bytes=max(figures) - min(figures),
            error_bytes=census.error_of(*kinds),
        )
        if row.ledger_bytes or row.census_bytes:
            rows.append(row)
    return tuple(rows)


def largest_difference(rows: Sequence[CensusAgreement], total_bytes: int) -> float:
    """As a fraction of MemTotal."""
    largest = max((abs(row.difference_bytes) for row in rows), default=0)
    return largest / total_bytes if total_bytes else 0.0


def _sum(ledger: Ledger, names: Sequence[str]) -> int:
    known = sum(line.bytes for line in ledger.lines if line.name in names)
    return known + (ledger.residual_bytes if "residual" in names else 0)


def _large_kmalloc(ledger: Ledger, slabinfo: Slabinfo | Unread, page_size: int) -> int:
    """Bytes in Slab that are in no cache; 0 where slabinfo was not read."""
    line = ledger.line(_SLAB)
    if line is None or isinstance(slabinfo, Unread):
        return 0
    return max(0, line.bytes - sum(cache.bytes(page_size) for cache in slabinfo.caches))
