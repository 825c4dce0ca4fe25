# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox list``: what a black box holds."""

import math
from argparse import Namespace

from seawall.blackbox.overview import summary
from seawall.blackbox.reader import Box
from seawall.cli.console import console_for
from seawall.sources.box_lines import LISTED, lines_between
from seawall.sources.box_source import box_head
from seawall.views.blackbox_page import BoxPage
from seawall.views.document import render


def run(arguments: Namespace) -> int:
    """Print it; the exit status."""
    box = Box.open(arguments.file)
    page = BoxPage(
        box.path, box.size_bytes, box.torn, box.missing_bytes,
        [summary(boot.boot_id, boot.heads) for boot in box.boots()],
        [line for line in lines_between(box, 0, math.inf) if line.kind in LISTED],
    )  # fmt: skip
    # A line of the journal may have been written later than what it is about.
    seen = [head for head in box.heads if head.kind != "line"] or box.heads
    top = box_head("blackbox-list", box, seen[-1].unix_seconds if seen else None)
    if arguments.json:
        from seawall.views.documents.box_documents import LIST  # noqa: PLC0415 - one of the two

        print(render(LIST.of(top, page)))
        return 0
    from seawall.views.blackbox_list_text import lines  # noqa: PLC0415

    for line in lines(top, page, console_for(arguments.color), whole=arguments.whole):
        print(line)
    return 0
