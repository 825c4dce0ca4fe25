# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --watch --json``: one document a line."""

from typing import Final

from seawall.readings.saved_claims import SavedClaim
from seawall.views.documents.document_fields import Document, one_of, shown, unread
from seawall.watcher.memory_watch_loop import WatchEvent


def claims(one: WatchEvent) -> tuple[SavedClaim, ...]:
    """Everything that is claimed at that moment."""
    return one.kept.claims if one.kept else ()


def blind(one: WatchEvent) -> str:
    """Why nothing can be traced; empty when it can."""
    return one.kept.blind if one.kept else ""


WATCH: Final = Document(
    name="watch",
    verb="seawall memory --watch --json",
    about="One document a line, for each change. Additive within a major number.",
    is_of_host=False,
    pages=(WatchEvent,),
    shapes={
        WatchEvent: (
            *shown("event", turn=one_of("started armed disarmed claim gone blind ended")),
            *shown("words", claims, blind),
            *unread("at=unix_seconds:time residual_bytes=kept.residual_bytes"),
            *unread("base_residual_bytes=kept.base_residual_bytes"),
        ),
        SavedClaim: shown(
            "holder workload cgroup driver class=kind what bytes least_bytes most_bytes "
            "frames=stack"
        ),
    },
)
