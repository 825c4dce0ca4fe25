# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox show``: a node's last minute, or another one, on a screen."""

from collections.abc import Iterable

from seawall.blackbox.reader import Box
from seawall.blackbox.record_times import rfc3339_of
from seawall.cli.blackbox import BoxVerb
from seawall.cli.verb import Head
from seawall.sources.box_lines import lines_between
from seawall.sources.box_source import box_head, box_time, whole_span
from seawall.sources.box_ticks import Ticks, ticks_between
from seawall.views.blackbox_page import ShowPage
from seawall.views.terminal import Console


class BoxShowVerb(BoxVerb[ShowPage]):
    """The moments before one time of a black box."""

    name = "blackbox-show"
    document_table = "seawall.views.documents.box_documents:SHOW"

    def page(self) -> ShowPage:
        until = box_time(self.box, self.arguments.at, whole_span(self.box))
        return _page(self.box, until - self.arguments.seconds, until)

    def head(self, page: ShowPage) -> Head:
        return box_head(self.name, self.box, page.last_unix_seconds)

    def text(self, page: ShowPage, paper: Console) -> Iterable[str]:
        from seawall.views.blackbox_show_text import lines  # noqa: PLC0415 - text alone

        return lines(self.head(page), page, paper, whole=self.arguments.whole)


run = BoxShowVerb.run


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
