# SPDX-License-Identifier: Apache-2.0
"""What the page cache holds, file by file: each file once, whoever sees it.

A file is its device and inode: containers that share a layer share its pages.  What is not
known (the kernel tells only the owner) is never 0 and never the whole file.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from seawall.host.host import Unread
from seawall.readings.process_files import FileUse
from seawall.readings.residency import FilePages, Kind, WalkSlice

_PAGES: Final = ("cached", "dirty", "writeback", "evicted", "recently_evicted")
_ASKED: Final = ("file", "shmem", "hugetlb")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFile:
    """One file.  Bytes are whole pages; None where the kernel does not tell."""

    path: str
    """As its processes see it, or as it was walked to."""
    host_path: str
    """On overlayfs the layer's file; empty elsewhere."""
    device: int
    """St_dev of the file whose pages these are."""
    inode: int
    kind: Kind
    """Shmem cannot be dropped; hugetlb is not in the page cache."""
    size_bytes: int
    cached_bytes: int | None
    """Whole pages in memory."""
    dirty_bytes: int | None
    writeback_bytes: int | None
    evicted_bytes: int | None
    recently_evicted_bytes: int | None
    method: str | None
    deleted: bool
    overlay: bool | None
    workloads: tuple[str, ...]
    """Addresses of the workloads whose processes map it or have it open."""
    pids: frozenset[int]
    """Those processes."""
    is_mapped: bool
    """Else it is only open."""
    is_system: bool
    """Code of a daemon that the node cannot do without."""
    held_bytes: int | None = None
    """hugetlbfs: what is allocated to it; that is no page cache."""

    @property
    def share(self) -> float | None:
        """Of the file, in memory: 0 to 1; None when not known or the file is empty."""
        if self.cached_bytes is None or not self.size_bytes:
            return None
        return min(1.0, self.cached_bytes / self.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTotals:
    """Sums over files that were looked at, each once."""

    files: int = 0
    """Looked at."""
    unknown_files: int = 0
    """Looked at, and the kernel told nothing."""
    size_bytes: int = 0
    """Their lengths."""
    cached_bytes: int = 0
    """In the page cache, over all files that were looked at, each once."""
    shmem_bytes: int = 0
    """Part of ``cached_bytes`` that cannot be dropped: tmpfs, memfd, shared memory."""
    dirty_bytes: int = 0
    """Not written yet."""
    writeback_bytes: int = 0
    """Being written."""
    evicted_bytes: int = 0
    """Were in memory, as far as the kernel remembers."""
    recently_evicted_bytes: int = 0
    """Of these, dropped so lately that their return counts as a refault."""
    hugetlb_bytes: int = 0
    """Held by hugetlbfs files; not in the page cache."""
    mincore_files: int = 0
    """Counted by mincore, which tells neither dirty nor evicted pages."""


@dataclass(slots=True)
class CacheTable:
    """Files and sums, filled by ``add_uses`` and ``add_slice``."""

    page_bytes: int
    workload_of: Callable[[int], str | None]
    """Address of a process's workload."""
    system_pids: frozenset[int]
    files: dict[tuple[int, int], CacheFile] = field(default_factory=dict)
    totals: CacheTotals = field(default_factory=CacheTotals)
    unread: list[Unread] = field(default_factory=list)
    gone: int = 0
    """Files that were gone before they could be asked: their processes ended meanwhile."""
    folders: int = 0
    """Folders walked."""
    keep: int = 1000
    above_pages: int = 0
    """A walked file that holds no more than this cannot be among the ``keep`` largest."""

    def add_uses(self, uses: Sequence[FileUse], answers: Iterable[FilePages | Unread]) -> None:
        """Files of processes with what was answered about each."""
        for use, answer in zip(uses, answers, strict=True):
            if isinstance(answer, Unread):
                if answer.why in ("absent", "vanished"):
                    self.gone += 1
                else:
                    self.unread.append(replace(answer, path=use.name))
            elif answer.kind in _ASKED:
                self._add(self._file(use, answer))

    def add_pages(self, pages: FilePages, path: str) -> None:
        """A file that was named by its path."""
        ways: FileUse = FileUse(path, 0, None, "")
        self._add(self._file(ways, pages))

    def add_slice(self, part: WalkSlice) -> None:
        """A part of a folder; its files are new, for what was seen was left out."""
        sums = part.sums
        self.folders += sums["folders"]
        for row in part.rows:
            file = self._file(FileUse(row.path, 0, None, ""), replace(row, path=""))
            self.files.setdefault((file.device, file.inode), file)
        self._trim()
        if part.refusals:
            rest = sums["refused"] - len(part.refusals)
            more = f", and {rest} more files or folders" if rest > 0 else ""
            self.unread += [Unread(path, "refused", f"may not be opened{more}")
                            for path in part.refusals[:1]]  # fmt: skip
        bytes_of = {name: sums[name] * self.page_bytes for name in (*_PAGES, "shmem")}
        self._sum(
            files=sums["files"], unknown_files=sums["unknown"], size_bytes=sums["size"],
            mincore_files=sums["by_mincore"],
            **{f"{name}_bytes": value for name, value in bytes_of.items()},
        )  # fmt: skip

    def _file(self, use: FileUse, pages: FilePages) -> CacheFile:
        counts = {name: _times(getattr(pages, name), self.page_bytes) for name in _PAGES}
        names = {self.workload_of(pid) for pid in use.pids}
        return CacheFile(
            path=use.name,
            host_path=pages.path if pages.overlay else "",
            device=pages.device,
            inode=pages.inode,
            kind=pages.kind,
            size_bytes=pages.size_bytes,
            **{f"{name}_bytes": value for name, value in counts.items()},
            method=pages.method,
            deleted=pages.deleted,
            overlay=pages.overlay,
            workloads=tuple(sorted(name for name in names if name)),
            pids=frozenset(use.pids),
            is_mapped=use.is_mapped,
            is_system=not self.system_pids.isdisjoint(use.code_of),
            held_bytes=pages.held_bytes,
        )

    def _add(self, file: CacheFile) -> None:
        key = file.device, file.inode
        known = self.files.get(key)
        if known is not None:
            self.files[key] = _joined(known, file)
            return
        self.files[key] = file
        if file.kind == "hugetlb":
            self._sum(hugetlb_bytes=file.held_bytes or 0)
            return
        self._sum(
            files=1, unknown_files=int(file.cached_bytes is None), size_bytes=file.size_bytes,
            mincore_files=int(file.method == "mincore"),
            shmem_bytes=(file.cached_bytes or 0) if file.kind == "shmem" else 0,
            **{f"{name}_bytes": getattr(file, f"{name}_bytes") or 0 for name in _PAGES},
        )  # fmt: skip

    def _sum(self, **gains: int) -> None:
        changed = {name: getattr(self.totals, name) + gain for name, gain in gains.items()}
        self.totals = replace(self.totals, **changed)

    def _trim(self) -> None:
        """A walk meets millions: only the ``keep`` largest stay listed, all stay counted."""
        if len(self.files) > 4 * self.keep:
            largest = self.sorted_files()[: self.keep]
            self.files = {(file.device, file.inode): file for file in largest}
            self.above_pages = (largest[-1].cached_bytes or 0) // self.page_bytes

    def sorted_files(self) -> list[CacheFile]:
        """Largest in the page cache first; what is not known last."""
        return sorted(self.files.values(), key=_order)

    def join_workloads(
        self, uses: Sequence[FileUse], answers: Iterable[FilePages | Unread]
    ) -> None:
        """Tell of files that are there already which processes use them; adds none."""
        for use, answer in zip(uses, answers, strict=True):
            if isinstance(answer, Unread) or answer.kind not in _ASKED:
                continue
            key = answer.device, answer.inode
            if key in self.files:
                self.files[key] = _joined(self.files[key], self._file(use, answer))


def explained_fraction(totals: CacheTotals, cached_bytes: int) -> float | None:
    """The share of the host's Cached that the files account for, at most 1."""
    return min(1.0, totals.cached_bytes / cached_bytes) if cached_bytes > 0 else None


def _joined(known: CacheFile, more: CacheFile) -> CacheFile:
    """One file that was met twice: its counts once, its users together."""
    return replace(
        known,
        workloads=tuple(sorted({*known.workloads, *more.workloads})),
        pids=known.pids | more.pids,
        is_mapped=known.is_mapped or more.is_mapped,
        is_system=known.is_system or more.is_system,
    )


def _times(pages: int | None, page_bytes: int) -> int | None:
    return None if pages is None else pages * page_bytes


def _order(file: CacheFile) -> tuple[bool, int, str]:
    return file.cached_bytes is None, -(file.cached_bytes or 0), file.path
