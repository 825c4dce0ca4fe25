# SPDX-License-Identifier: Apache-2.0
"""``seawall cache`` as text: sums first, then one or two lines a file, largest first."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.cache.page_cache import CacheFile, explained_fraction
from seawall.host.host import Unread
from seawall.views.cache_advice import advice
from seawall.views.cache_page import CachePage, Owners
from seawall.views.terminal import Console, plain, shorten, shorten_path
from seawall.words import count, percent, size

_HEAD: Final = "   CACHED  SHARE    DIRTY  EVICTED    FILE"
_INDENT: Final = " " * 38
_WORKLOADS_SHOWN: Final = 2
_MEANINGS: Final = {
    "S": "code of the kubelet, runtime, sshd, init, ... : without it the node stops answering",
    "T": "tmpfs or shared memory: cannot be dropped, only swapped or deleted",
    "D": "deleted, and still in use",
    "H": "huge pages: no page cache",
    "?": "the kernel tells only the file's owner",
}


def lines(page: CachePage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    if not page.totals.files and not page.files:
        yield f"No file that could be looked at in {plain(page.name)}."
    else:
        yield from _summary(page, paper)
        yield ""
        yield from _table(page, paper)
    yield from _owners(page, paper)
    yield ""
    yield paper.paint("To have cache released", "bold")
    for words in advice(page):
        yield from paper.wrap(words, "    ", "  - ")


def _summary(page: CachePage, paper: Console) -> Iterator[str]:
    sums = page.totals
    where = "" if page.scope == "node" else f" of {page.name}"
    least = "At least " if sums.unknown_files else ""
    words = f"{least}{size(sums.cached_bytes)} in the page cache{where}"
    words += f", of {size(sums.size_bytes)} in {count(sums.files)} files"
    if sums.cached_bytes > sums.size_bytes:
        words += ": pages count whole"
    if page.folders:
        words += f" ({count(page.folders)} folders walked)"
    yield from paper.wrap(words + ".")
    yield from paper.wrap(_parts(page))
    if not isinstance(page.meminfo, Unread) and page.host_cached_bytes is not None:
        yield from paper.wrap(_explained(page, page.host_cached_bytes))
    if page.group is not None and page.scope in ("workload", "process"):
        memcg = page.group.memcg
        both = (("file pages", memcg.file), ("tmpfs and shared", memcg.shmem))
        known = [f"{size(value)} {name}" for name, value in both if value]
        if known:
            yield from paper.wrap(
                f"Its cgroup is charged for {', '.join(known)}: who reads a file first is charged,"
                " whoever uses it later."
            )


def _parts(page: CachePage) -> str:
    sums = page.totals
    parts = []
    if sums.mincore_files + sums.unknown_files < sums.files:
        before = sums.evicted_bytes - sums.recently_evicted_bytes
        parts = [
            f"{size(sums.dirty_bytes)} dirty",
            f"{size(sums.writeback_bytes)} being written",
            f"{size(sums.recently_evicted_bytes)} evicted lately",
            f"{size(before)} evicted before",
        ]
    if sums.shmem_bytes:
        parts.append(f"{size(sums.shmem_bytes)} tmpfs or shared, which cannot be dropped")
    if sums.hugetlb_bytes:
        parts.append(f"{size(sums.hugetlb_bytes)} in huge pages beside it")
    if sums.unknown_files:
        parts.append(f"{count(sums.unknown_files)} files not known")
    if page.gone:
        files = "1 file was" if page.gone == 1 else f"{count(page.gone)} files were"
        parts.append(f"{files} gone before they could be asked")
    if sums.mincore_files:
        parts.append(f"{count(sums.mincore_files)} files by mincore, so no dirty or evicted pages")
    return "; ".join(parts) + "." if parts else ""


def _explained(page: CachePage, cached: int) -> str:
    """Never as if the rest were nothing."""
    share = explained_fraction(page.totals, cached)
    rest = cached - page.totals.cached_bytes
    if rest <= 0:
        return (
            f"That is all of the {size(cached)} in Cached of this machine, as far as sums that take"
            " their time can tell: files come and go while they are counted."
        )
    words = f"That is {percent(share or 0)} of the {size(cached)} in Cached of this machine;"
    words += f" {size(rest)} is in files that were not looked at"
    if page.scope != "node":
        return words + "."
    if page.walked:
        return words + " (deleted ones, other mount namespaces, network filesystems)."
    return words + "; no process that was seen has them open now. --walk looks on the disks."


def _table(page: CachePage, paper: Console) -> Iterator[str]:
    yield _HEAD
    marks: set[str] = set()
    for file in page.files:
        flags = _flags(file)
        marks |= set(flags)
        yield from _row(file, flags, page, paper)
    if page.left_out:
        yield _rest(page)
    shown = [f"{mark} {words}" for mark, words in _MEANINGS.items() if mark in marks]
    columns = "SHARE of the file that is in memory; EVICTED lately enough to count as too early"
    yield from paper.wrap("; ".join([*shown, columns]) + ".", "  ", "  ")


def _rest(page: CachePage) -> str:
    """The files that are counted and not shown: how much they are, each and together."""
    shown = sum(file.cached_bytes or 0 for file in page.files)
    rest = max(0, page.totals.cached_bytes - shown)
    least = min((f.cached_bytes for f in page.files if f.cached_bytes is not None), default=None)
    each = "" if least is None else f", none above {size(least)}"
    return f"and {count(page.left_out)} more files, {size(rest)} in all{each}: --top N"


def _flags(file: CacheFile) -> str:
    flags = "S" if file.is_system else ""
    flags += {"shmem": "T", "hugetlb": "H"}.get(file.kind, "")
    if file.deleted:
        flags += "D"
    return flags + ("?" if file.cached_bytes is None and file.kind != "hugetlb" else "")


def _row(file: CacheFile, flags: str, page: CachePage, paper: Console) -> Iterator[str]:
    share = file.share
    cells = (
        f"{_bytes(file.cached_bytes):>9} {'-' if share is None else percent(share):>6} "
        f"{_bytes(file.dirty_bytes, '-'):>8} {_bytes(file.recently_evicted_bytes, '-'):>8}"
        f" {flags:<2} "
    )
    line = cells + shorten_path(plain(file.path), paper.width - len(cells))
    yield paper.paint(line, "warning") if file.is_system and file.recently_evicted_bytes else line
    users = [name for name in file.workloads if name not in ("/", page.name)]
    if users:
        words = ", ".join(users[:_WORKLOADS_SHOWN])
        more = len(users) - _WORKLOADS_SHOWN
        words += f" and {count(more)} more" if more > 0 else ""
        indent = len(cells) + 2
        shown = shorten(plain(words), paper.width - indent - 3)
        yield " " * indent + paper.paint(f"in {shown}", "dim")


def _bytes(value: int | None, zero: str = "0 B") -> str:
    """``512.0M``: narrow, for columns."""
    if value is None:
        return "?"
    return size(value).replace(" ", "").replace("iB", "") if value else zero


def _owners(page: CachePage, paper: Console) -> Iterator[str]:
    if not page.owners:
        return
    yield ""
    yield paper.paint("Who is charged for them (a sample of their pages)", "bold")
    for owner in page.owners:
        yield from paper.wrap(_owner(owner), "    ", "  ")


def _owner(owner: Owners) -> str:
    parts = [f"{percent(pages / owner.sampled)} {name}" for name, pages in owner.by_cgroup]
    return f"{owner.path}: {', '.join(parts)} (of {count(owner.sampled)} pages sampled)"
