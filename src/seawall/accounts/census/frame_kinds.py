# SPDX-License-Identifier: Apache-2.0
"""What a page frame is, by its word of /proc/kpageflags.

Kernel document: admin-guide/mm/pagemap.rst; source: fs/proc/page.c.  4.18 flags page tables
(PGTABLE), 5.1 renames BALLOON to OFFLINE.  A large kmalloc is not flagged as slab by any
kernel, pages on per-CPU free lists are not flagged as free, and neither are pages that the
kernel has not initialised yet.  Fields of struct page mean other things in slabs and page
tables, so what these words say of mappings (MMAP, ANON, KSM) is looked at last.
"""

from typing import Final, Literal, TypeAlias

from seawall.readings.page_census import CHARGED

Kind: TypeAlias = Literal[
    "free",
    "not yet initialised",
    "per-cpu lists",
    "anonymous",
    "ksm",
    "swap cache",
    "tmpfs and shared",
    "page cache",
    "slab",
    "page tables",
    "hugetlb",
    "zero page",
    "mapped kernel pages",
    "charged kernel pages",
    "kernel pages",
    "hardware corrupted",
    "offline",
    "reserved",
    "unmanaged",
    "no page",
]
"""Stable words of the JSON document.  ``mapped kernel pages`` are those that a driver, a ring
or the kernel shows to a program; ``charged kernel pages`` are plain ones that a cgroup pays
for; ``kernel pages`` plain ones that nobody pays for.  ``unmanaged``: plain, and outside
MemTotal (struct pages, holes)."""

_BITS: Final = {
    "UPTODATE": 3, "DIRTY": 4, "LRU": 5, "SLAB": 7, "WRITEBACK": 8, "BUDDY": 10, "MMAP": 11,
    "ANON": 12, "SWAPCACHE": 13, "SWAPBACKED": 14, "HUGE": 17, "UNEVICTABLE": 18,
    "HWPOISON": 19, "NOPAGE": 20, "KSM": 21, "THP": 22, "OFFLINE": 23, "ZERO_PAGE": 24,
    "PGTABLE": 26, "RESERVED": 32, "MLOCKED": 33,
}  # fmt: skip


def bits(*names: str) -> int:
    """The word in which these flags are set."""
    return sum(1 << _BITS[name] for name in names)


# The first that a word has decides.
_PLAIN_ANSWERS: Final[tuple[tuple[int, Kind], ...]] = (
    (bits("NOPAGE"), "no page"),
    (bits("BUDDY"), "free"),
    (bits("HWPOISON"), "hardware corrupted"),
    (bits("SLAB"), "slab"),
    (bits("OFFLINE"), "offline"),
    (bits("PGTABLE"), "page tables"),
    (bits("HUGE"), "hugetlb"),
    (bits("RESERVED"), "reserved"),
    (bits("ZERO_PAGE"), "zero page"),
)
_DECIDED: Final = sum(bit for bit, _ in _PLAIN_ANSWERS)
_USED: Final = bits("LRU", "UPTODATE", "SWAPBACKED", "MLOCKED", "UNEVICTABLE", "WRITEBACK")
"""Pages of programs and files have one of these, also while on their way between lists."""

OF_WHICH: Final = {
    "dirty": bits("DIRTY"),
    "writeback": bits("WRITEBACK"),
    "mlocked": bits("MLOCKED"),
    "transparent huge": bits("THP"),
}
"""Further marks of pages that programs and files hold."""
HELD: Final[frozenset[Kind]] = frozenset(
    {"anonymous", "ksm", "swap cache", "tmpfs and shared", "page cache"}
)
PLAIN: Final[Kind] = "kernel pages"


def kind_of(word: int) -> Kind:
    """What one frame is, as far as it can be told by itself: never ``per-cpu lists``,
    ``not yet initialised`` or ``unmanaged``, which are ``kernel pages`` here.
    """
    if word & _DECIDED:
        return next(kind for bit, kind in _PLAIN_ANSWERS if word & bit)
    if word & _USED:
        return _held_kind(word)
    if word & bits("MMAP"):
        return "anonymous" if word & bits("ANON") else "mapped kernel pages"
    return "charged kernel pages" if word & CHARGED else PLAIN


def _held_kind(word: int) -> Kind:
    if word & bits("ANON"):
        return "ksm" if word & bits("KSM") else "anonymous"
    if word & bits("SWAPBACKED"):
        return "swap cache" if word & bits("SWAPCACHE") else "tmpfs and shared"
    return "page cache"
