# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall memory --who`` are made from, and what it could not see."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.tracing.trace_rows import TraceSum
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.views.memory_page import MemoryPage
from seawall.words import count

_WHO: Final = "who takes uncounted memory, now"
_PROVIDE: Final = {
    "absent": "a kernel with tracefs and the event kmem:mm_page_alloc; until then: what the "
    "other sources claim (seawall memory), and seawall memory --census",
    "refused": "root on the host itself (hostPID in a pod), and a kernel that is not locked "
    "down; until then: what the other sources claim (seawall memory)",
    "not_reached": "a longer --timeout",
    "not_captured": "seawall capture --who",
}
_OTHERWISE: Final = "the reason removed; until then: what the other sources claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoPage:
    """One answer of the verb."""

    memory: MemoryPage
    traced: TraceSum
    unseen: tuple[NotSeen, ...]


def not_traced(unread: Unread | None) -> NotSeen:
    """Why there is no trace; None: nobody tried, so this is a recorded host."""
    if unread is None:
        return NotSeen(_WHO, "nobody traced before this was recorded", _PROVIDE["not_captured"])
    words = unread.detail or unread.why.replace("_", " ")
    return NotSeen(_WHO, words, _PROVIDE.get(unread.why, _OTHERWISE))


def trace_lacks(traced: TraceSum) -> Iterator[NotSeen]:
    """What a trace that came about did not see."""
    if traced.lost_events:
        share = traced.lost_events / max(1, traced.lost_events + traced.events)
        yield NotSeen(
            f"{count(traced.lost_events)} of the kernel's reports ({share:.0%})",
            "they came faster than they could be read: what is claimed may be too little",
            "a shorter trace, or one at a quieter time",
        )
    for note in traced.notes:
        yield NotSeen("a part of the trace", note, "see the reason")
    yield NotSeen(
        "what was taken before the trace", "tracing sees only what is taken while it runs",
        "the other sources of seawall memory, and seawall memory --watch from the start",
    )  # fmt: skip
