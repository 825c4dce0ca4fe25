# SPDX-License-Identifier: Apache-2.0
"""``seawall cache --dirty``: limits in bytes, whose pages wait for a disk, and who waits."""

from argparse import Namespace
from typing import Final

from seawall.accounts.cache.dirty import Dirty
from seawall.accounts.cache.page_cache import CacheTotals
from seawall.cli.console import console_for
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.sources.source import Source
from seawall.views.cache_page import CachePage
from seawall.views.document import head, render
from seawall.views.terminal import plain
from seawall.words import first

_PATHS_SHOWN: Final = 6
_PROVIDE: Final = "the file: under --root the host's own, or a kernel that has it"


def _unseen(source: Source, dirty: Dirty | Unread) -> tuple[NotSeen, ...]:
    """Absent files too: without them a limit or an owner is missing from the page."""
    rows = unread_rows([source.first])
    missing = (dirty,) if isinstance(dirty, Unread) else dirty.unread
    groups: dict[str, list[str]] = {}
    for one in missing:
        if one.why in ("absent", "vanished"):
            groups.setdefault(one.detail or one.why, []).append(one.path)
    rows += [NotSeen(first(paths, _PATHS_SHOWN), why, _PROVIDE) for why, paths in groups.items()]
    return tuple(rows)


def show(source: Source, arguments: Namespace) -> int:
    """Print it; the exit status."""
    dirty = source.first.get(Dirty)
    top = head("cache", source.first.get(Kernel), None)
    page = CachePage(
        scope="node", name="this node", files=(), left_out=0, totals=CacheTotals(), folders=0,
        meminfo=source.first.get(Meminfo), group=None, kernel_version=None, walked=False,
        mounts=(), unseen=_unseen(source, dirty), bundle_notes=source.notes,
    )  # fmt: skip
    if arguments.json:
        from seawall.views.documents.cache_document import (  # noqa: PLC0415 - one of the two
            CACHE,
            DirtyCachePage,
        )

        print(render(CACHE.of(top, DirtyCachePage(dirty, page.unseen, page.bundle_notes))))
        return 0
    from seawall.views.dirty_text import lines  # noqa: PLC0415 - only one of the two
    from seawall.views.why_text import could_not_see, heading  # noqa: PLC0415

    paper = console_for(arguments.color)
    for line in heading(top, paper, source.notes):
        print(line)
    if isinstance(dirty, Unread):
        print(plain(f"Nothing about dirty pages: {dirty.path}: {dirty.detail or dirty.why}."))
    else:
        for line in lines(dirty, paper):
            print(line)
    for line in could_not_see(page.unseen, paper):
        print(line)
    return 0
