# SPDX-License-Identifier: Apache-2.0
"""``seawall cache``: what the page cache holds, file by file, largest first."""

import os
from argparse import ArgumentParser, Namespace
from typing import Final

from seawall.accounts.cache.page_cache import CacheTotals
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.workloads import Workload, Workloads
from seawall.cli.cache_scan import CacheScan
from seawall.cli.named_workload import named_workload
from seawall.cli.number_argument import a_number
from seawall.cli.progress import ProgressLine
from seawall.cli.source_options import add_source_arguments
from seawall.cli.verb import Head, SourceVerb
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.sources.source import Source
from seawall.views.cache_page import CachePage, Owners, ScopeKind
from seawall.views.cache_unseen import unseen

WANTED: Final = ("SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH", "FOWNER")
"""Capabilities without which something stays unseen: other users' files and mappings."""
TEXT_ROWS: Final = 25
SMALL_BYTES: Final = 1 << 20
"""Of a file in the page cache: without --top the text counts such files and lists none, but for
the ROWS_LEAST largest."""
ROWS_LEAST: Final = 3
JSON_ROWS: Final = 1000


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall cache`` to its parser."""
    add_source_arguments(parser)
    parser.add_argument(
        "targets", metavar="PATH|WORKLOAD", nargs="*",
        help="files and folders (walked, without what is mounted below), or one workload: "
        "namespace/pod[/container], a container id, pid:N, unit:NAME or a cgroup path",
    )  # fmt: skip
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--pid", type=a_number(), metavar="N", help="what one process maps or has open"
    )
    one.add_argument(
        "--node", action="store_true",
        help="what any process maps or has open (this is what no argument means)",
    )  # fmt: skip
    parser.add_argument(
        "--walk", action="store_true",
        help="and every file on the disks that are mounted; takes minutes, raise --timeout",
    )  # fmt: skip
    parser.add_argument(
        "--top", type=a_number(), metavar="N",
        help=f"this many files (default {TEXT_ROWS} of 1 MiB and more, as JSON {JSON_ROWS})",
    )  # fmt: skip
    parser.add_argument(
        "--owners", action="store_true",
        help="which cgroups are charged for the largest, by a sample of their pages (root)",
    )  # fmt: skip
    parser.add_argument(
        "--dirty", action="store_true",
        help="dirty pages instead: limits in bytes, whose they are, who waits for them",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Print the files, or what is dirty; the exit status."""
    if (arguments.pid is not None or arguments.node) and arguments.targets:
        raise UsageProblem("give either PATH or WORKLOAD, or --pid, or --node")
    if arguments.dirty:
        from seawall.cli import cache_dirty  # noqa: PLC0415 - only then

        return cache_dirty.run(arguments)
    return CacheVerb.run(arguments)


class CacheVerb(SourceVerb[CachePage]):
    """The page cache by files."""

    name = "cache"
    text_view = "seawall.views.cache_text:lines"

    def page(self) -> CachePage:
        return _page(self.source, self.arguments)

    def document(self, top: Head, page: CachePage) -> Head:
        from seawall.views.documents.cache_document import CACHE, RecordedCachePage  # noqa: PLC0415 - JSON alone

        if self.source.live is None:
            return CACHE.of(top, RecordedCachePage(page.unseen, page.bundle_notes))
        return CACHE.of(top, page)


def _page(source: Source, arguments: Namespace) -> CachePage:
    top = arguments.top or (JSON_ROWS if arguments.json else TEXT_ROWS)
    progress = ProgressLine("cache")
    if source.live is None:
        return _recorded(source)
    scan = CacheScan(source, source.live, progress, max(top, JSON_ROWS))
    scope, name, workload = _scan(scan, source, arguments)
    progress.end()
    files = scan.table.sorted_files()
    owners: tuple[Owners, ...] = ()
    if arguments.owners:
        from seawall.cli.cache_owners import sample_owners  # noqa: PLC0415 - only when asked

        owners = sample_owners(source, scan, files)
    kernel = source.first.get(Kernel)
    shown = files[:top]
    if not arguments.json and arguments.top is None:
        large = [file for file in shown if (file.cached_bytes or 0) >= SMALL_BYTES]
        shown = shown[: max(ROWS_LEAST, len(large))]
    return CachePage(
        scope=scope,
        name=name,
        files=tuple(shown),
        left_out=max(0, scan.table.totals.files - len(shown)),
        gone=scan.table.gone,
        totals=scan.table.totals,
        folders=scan.table.folders,
        meminfo=source.first.get(Meminfo),
        group=_group(source, workload),
        kernel_version=None if isinstance(kernel, Unread) else kernel.version,
        walked=arguments.walk,
        mounts=tuple(dict.fromkeys(scan.mounts)),
        owners=owners,
        unseen=tuple(unseen(source.first, scan.table, scan.unread)),
        bundle_notes=source.notes,
    )


def _scan(
    scan: CacheScan, source: Source, arguments: Namespace
) -> tuple[ScopeKind, str, Workload | None]:
    """Do what the arguments ask; what it was about."""
    paths = _paths(arguments.targets, scan)
    if paths:
        scan.of_paths(paths)
        scan.find_users(scan.all_pids())
        return "paths", ", ".join(paths), None
    if arguments.pid is not None:
        if arguments.pid not in scan.all_pids():
            raise UsageProblem(f"no process {arguments.pid} with memory of its own")
        scan.of_processes([arguments.pid])
        found = source.first.get(Workloads)
        owner = None if isinstance(found, Unread) else found.by_pid.get(arguments.pid)
        return "process", f"pid {arguments.pid}", owner
    if arguments.targets:
        workload = named_workload(source, arguments.targets[0])
        scan.of_processes(scan.pids_of(workload))
        return "workload", workload.name, workload
    scan.of_processes(scan.all_pids())
    if arguments.walk:
        scan.of_mounts()
    return "node", "this node", None


def _paths(targets: list[str], scan: CacheScan) -> list[str]:
    """The targets as absolute paths; empty when they name a workload.

    What exists is a path, but for cgroups, which are workloads; ``./x`` is always a path.
    """
    are_paths = [text.startswith((".", "~")) or scan.is_path(_absolute(text)) for text in targets]
    if any(are_paths) and not all(are_paths):
        missing = targets[are_paths.index(False)]
        raise UsageProblem(f"{missing}: no such file; a workload is asked about alone")
    if not any(are_paths):
        if len(targets) > 1:
            raise UsageProblem(f"{targets[0]}: no such file, and only one workload at a time")
        return []
    return [_absolute(text) for text in targets]


def _absolute(text: str) -> str:
    return os.path.abspath(text)  # looks at no disk


def _group(source: Source, workload: Workload | None) -> MemoryGroup | None:
    """The workload's memory cgroup, else the one with most cache."""
    groups = source.first.get(MemoryGroups)
    if isinstance(groups, Unread):
        return None
    if workload is not None:
        return groups.by_path.get(workload.cgroup)
    # One above others says nothing about whose it is; a container's inner ones are its own.
    inner = groups.children()
    own = [
        group for group in groups.by_path.values()
        if group.cache and group.workload is not None
        and (group.workload.kind in ("container", "unit") or group.path not in inner)
    ]  # fmt: skip
    return max(own, key=lambda group: group.cache or 0, default=None)


def _recorded(source: Source) -> CachePage:
    row = NotSeen(
        "the page cache, file by file", "a bundle or a tree of files does not record it",
        "the machine itself, while it runs",
    )  # fmt: skip
    return CachePage(
        scope="node", name="this node", files=(), left_out=0, totals=CacheTotals(), folders=0,
        meminfo=source.first.get(Meminfo), group=_group(source, None), kernel_version=None,
        walked=False, mounts=(), unseen=(row, *unread_rows([source.first])),
        bundle_notes=source.notes,
    )  # fmt: skip
