# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox show``: a node's last minute, or another one, on a screen."""

from argparse import Namespace

from seawall.blackbox.reader import Box
from seawall.blackbox.record_times import rfc3339_of
from seawall.cli.console import console_for
from seawall.sources.box_lines import lines_between
from seawall.sources.box_source import box_head, box_time, whole_span
from seawall.sources.box_ticks import Ticks, ticks_between
from seawall.views.blackbox_page import ShowPage
from seawall.views.document import render


def run(arguments: Namespace) -> int:
    """Print it; the exit status."""
    box = Box.open(arguments.file)
    until = box_time(box, arguments.at, whole_span(box))
    page = _page(box, until - arguments.seconds, until)
    top = box_head("blackbox-show", box, until)
    if arguments.json:
        from seawall.views.documents.box_documents import SHOW  # noqa: PLC0415 - one of the two

        print(render(SHOW.of(top, page)))
        return 0
    from seawall.views.blackbox_show_text import lines  # noqa: PLC0415

    for line in lines(top, page, console_for(arguments.color), whole=arguments.whole):
        print(line)
    return 0


def _page(box: Box, since: float, until: float) -> ShowPage:
    ticks = ticks_between(box, since, until)
    told = [*lines_between(box, since, until), *ticks.kills]
    events = sorted(told, key=lambda event: event.unix_seconds)
    return ShowPage(box.path, since, until, ticks.rows, events, _notes(box, ticks, since, until))


def _notes(box: Box, ticks: Ticks, since: float, until: float) -> list[str]:
    notes = []
    if not ticks.rows:
        ends = [h.unix_seconds for h in box.heads if h.kind == "tick" and h.unix_seconds < since]
        last = rfc3339_of(max(ends)) if ends else "none"
        notes.append(f"no tick of the guard is in this time; the last before it: {last}")
    if ticks.lost:
        which = "a tick" if ticks.lost == 1 else f"{ticks.lost} ticks"
        notes.append(f"{which} cannot be read: a frame that is needed for it is torn or gone")
    boots = {h.boot_id for h in box.heads if since <= h.unix_seconds <= until}
    if len(boots) > 1:
        notes.append(f"the machine started anew in this time: {len(boots)} boots")
    return notes
