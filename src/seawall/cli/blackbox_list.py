# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox list``: what a black box holds."""

import math
from collections.abc import Iterable

from seawall.blackbox.overview import summary
from seawall.cli.blackbox import BoxVerb
from seawall.cli.verb import Head
from seawall.sources.box_lines import LISTED, lines_between
from seawall.sources.box_source import box_head
from seawall.views.blackbox_page import BoxPage
from seawall.views.terminal import Console


class BoxListVerb(BoxVerb[BoxPage]):
    """Boots, gaps and decisions of one black box."""

    name = "blackbox-list"
    document_table = "seawall.views.documents.box_documents:LIST"

    def page(self) -> BoxPage:
        box = self.box
        return BoxPage(
            box.path, box.size_bytes, box.torn, box.missing_bytes,
            [summary(boot.boot_id, boot.heads) for boot in box.boots()],
            [line for line in lines_between(box, 0, math.inf) if line.kind in LISTED],
        )  # fmt: skip

    def head(self, _page: BoxPage) -> Head:
        # A line of the journal may have been written later than what it is about.
        seen = [head for head in self.box.heads if head.kind != "line"] or self.box.heads
        return box_head(self.name, self.box, seen[-1].unix_seconds if seen else None)

    def text(self, page: BoxPage, paper: Console) -> Iterable[str]:
        from seawall.views.blackbox_list_text import lines  # noqa: PLC0415 - text alone

        return lines(self.head(page), page, paper, whole=self.arguments.whole)


run = BoxListVerb.run
