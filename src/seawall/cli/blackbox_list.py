# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox list``: what a black box holds."""

from argparse import Namespace
from typing import Any

from seawall.blackbox.moments import key_before
from seawall.blackbox.overview import summary
from seawall.blackbox.reader import Box
from seawall.cli.box_lines import Line, lines_between
from seawall.cli.box_scene import NOT_RECORDED
from seawall.cli.paper import paper_for
from seawall.host.bundle import BundleHost
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.views.blackbox_page import BoxPage, Event
from seawall.views.document import head, render, taken_at


def run(arguments: Namespace) -> int:
    """Print it; the exit status."""
    box = Box.open(arguments.file)
    page = BoxPage(
        box.path, box.size_bytes, box.torn, box.missing_bytes,
        [summary(boot.boot_id, boot.heads) for boot in box.boots()],
        [event_of(line) for line in lines_between(box, 0, float("inf")) if line.is_listed],
    )  # fmt: skip
    top = box_head("blackbox-list", box, box.heads[-1].unix_seconds if box.heads else 0.0)
    if arguments.json:
        from seawall.views.blackbox_list_json import document  # noqa: PLC0415 - one of the two

        print(render(document(top, page)))
        return 0
    from seawall.views.blackbox_list_text import lines  # noqa: PLC0415

    for line in lines(top, page, paper_for(arguments.color), whole=arguments.whole):
        print(line)
    return 0


def event_of(line: Line) -> Event:
    """As the views show it."""
    return Event(line.unix_seconds, line.tick, line.kind, line.decision, line.sentence)


def box_head(name: str, box: Box, unix_seconds: float) -> dict[str, Any]:
    """What a document begins with: the host as it was then, and when that was."""
    one = key_before(box, unix_seconds)
    host = BundleHost(one.round, NOT_RECORDED) if one else None
    kernel = Snapshot(host).get(Kernel) if host else Unread("kernel", "not_captured")
    top = head(name, kernel, None)
    moment = taken_at(unix_seconds)
    if moment is None:
        return top
    return {**top, "taken_at": moment, "unread": [n for n in top["unread"] if n != "taken_at"]}
