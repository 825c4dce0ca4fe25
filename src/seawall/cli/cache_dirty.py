# SPDX-License-Identifier: Apache-2.0
"""``seawall cache --dirty``: limits in bytes, whose pages wait for a disk, and who waits."""

from collections.abc import Iterable
from typing import Final

from seawall.accounts.cache.dirty import Dirty
from seawall.cli.verb import SourceVerb
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.sources.source import Source
from seawall.views.cache_page import DirtyCachePage
from seawall.views.terminal import Console, plain
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


class DirtyVerb(SourceVerb[DirtyCachePage]):
    """Dirty pages, and who waits for them."""

    name = "cache"
    document_table = "seawall.views.documents.cache_document:CACHE"

    def page(self) -> DirtyCachePage:
        dirty = self.source.first.get(Dirty)
        return DirtyCachePage(dirty, _unseen(self.source, dirty), self.source.notes)

    def text(self, page: DirtyCachePage, paper: Console) -> Iterable[str]:
        from seawall.views.dirty_text import lines  # noqa: PLC0415 - text alone

        dirty = page.dirty
        if isinstance(dirty, Unread):
            words = f"Nothing about dirty pages: {dirty.path}: {dirty.detail or dirty.why}."
            return [plain(words)]
        return lines(dirty, paper)


run = DirtyVerb.run
