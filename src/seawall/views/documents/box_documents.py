# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox list --json`` and ``seawall blackbox show --json``."""

import math
from typing import Final, NamedTuple

from seawall.blackbox.overview import BootSummary, Stretch
from seawall.views.blackbox_page import BoxEvent, BoxPage, BoxRow, ShowPage
from seawall.views.documents.document_fields import (
    Document,
    shown,
    spread,
    unread,
)


class MostMemory(NamedTuple):
    """Who has most at a tick."""

    name: str
    bytes: int
    """with the uncounted memory that it surely holds"""
    outside_bytes: int
    """of them, what no cgroup counts"""


def most_memory(row: BoxRow) -> MostMemory | None:
    """Nobody is known to a box of an older guard."""
    if not row.leader:
        return None
    return MostMemory(row.leader, row.leader_bytes, row.leader_outside_bytes)


def finite(value: float) -> float | None:
    """To four digits; None is infinite, which JSON has not."""
    return round(value, 4) if math.isfinite(value) else None


_EVENT: Final = (
    *shown("unix_seconds:3 at=unix_seconds:time frame=tick:filled kind decision:filled"),
    *shown("sentence=words"),
)

LIST: Final = Document(
    name="blackbox-list",
    verb="seawall blackbox list --json",
    about="What a black box holds.",
    window="null: it is none of two moments",
    pages=(BoxPage,),
    shapes={
        BoxPage: shown("path bytes=size_bytes missing_bytes torn boots events"),
        BootSummary: (
            *shown("boot_id"), *spread("span"), *shown("frames bytes gaps bursts"),
        ),
        Stretch: (
            *shown("from=first_unix_seconds:time to=last_unix_seconds:time seconds:3"),
        ),
        BoxEvent: _EVENT,
    },
)  # fmt: skip

SHOW: Final = Document(
    name="blackbox-show",
    verb="seawall blackbox show --json",
    about="A time of a black box, tick by tick.",
    window="null: it is none of two moments",
    pages=(ShowPage,),
    shapes={
        ShowPage: (
            *shown("path from=first_unix_seconds:time to=last_unix_seconds:time ticks=rows:count"),
            *shown("rows events notes"),
        ),
        BoxRow: (
            *shown("unix_seconds:3 at=unix_seconds:time frame=tick state headroom_bytes"),
            *shown("growth_bytes_per_second stall", turn=finite),
            *unread("residual_bytes", most_memory),
        ),
        BoxEvent: _EVENT,
    },
)
