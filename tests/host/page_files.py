"""Files that stand for /proc/kpageflags and /proc/kpagecgroup: one word for each frame."""

from array import array
from collections.abc import Sequence
from pathlib import Path

from seawall.host.page_census.count import PageFiles

BITS = {
    "LOCKED": 0, "REFERENCED": 2, "UPTODATE": 3, "DIRTY": 4, "LRU": 5, "ACTIVE": 6, "SLAB": 7,
    "BUDDY": 10, "MMAP": 11, "ANON": 12, "SWAPBACKED": 14, "HEAD": 15, "TAIL": 16, "HUGE": 17,
    "NOPAGE": 20, "KSM": 21, "THP": 22, "OFFLINE": 23, "PGTABLE": 26, "RESERVED": 32,
    "OWNER_2": 34, "PRIVATE": 35,
}  # fmt: skip
"""As the kernel's header has them; written down again, not taken from what is tested."""


def word(names: str) -> int:
    """``"LRU UPTODATE"`` as a word."""
    return sum(1 << BITS[name] for name in names.split())


def page_files(folder: Path, words: Sequence[int], inodes: Sequence[int] | None) -> PageFiles:
    """Both files; without ``inodes`` the second is not there."""
    flags, cgroups = folder / "kpageflags", folder / "kpagecgroup"
    flags.write_bytes(array("Q", words).tobytes())
    if inodes is not None:
        cgroups.write_bytes(array("Q", inodes).tobytes())
    return PageFiles(str(flags), str(cgroups))
