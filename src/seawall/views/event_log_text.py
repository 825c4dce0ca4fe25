# SPDX-License-Identifier: Apache-2.0
"""What a log tells beside OOM reports, as text: ``seawall oom explain`` of a journal.

Newest first; those of the last half hour of the log before the others.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.views.document import taken_at
from seawall.views.terminal import Console
from seawall.words import count, counted

WHOLE_MOST: Final = 4
"""With their details; of more of them a line each is shown."""
SHOWN_MOST: Final = 12
HALF_HOUR: Final = 1800.0
_KINDS: Final = {
    "oom_kill": "OOM kill by the kernel",
    "userspace_kill": "OOM killer in user space",
    "guard_decision": "decision of Seawall's guard",
    "eviction": "eviction by the kubelet",
    "container_oom": "OOM event of a container runtime",
    "slurm_oom": "Slurm step out of memory",
    "slurm_failure": "Slurm step that ended otherwise",
    "node_not_ready": "node that failed",
    "hung_task": "hung task",
    "allocation_failure": "request for memory that failed",
    "device_fault": "NVIDIA Xid",
    "unclean_reboot": "start without a shutdown",
    "unrecognised": "not understood",
}


def event_log_lines(
    events: Sequence[RecentEvent], last_log_seconds: float | None, paper: Console
) -> Iterator[str]:
    """``last_log_seconds``: of the log's last line, by its own clock; None: it has none."""
    near = [event for event in events if _is_near(event, last_log_seconds)]
    before = [event for event in events if not _is_near(event, last_log_seconds)]
    yield from _part(near, paper, WHOLE_MOST)
    if before:
        yield ""
        yield "More than 30 minutes before the last line of this log:"
        yield from _part(before, paper, WHOLE_MOST if not near else 2)


def _is_near(event: RecentEvent, last: float | None) -> bool:
    own = event.last_log_seconds
    return last is None or own is None or last - own <= HALF_HOUR


def _part(events: Sequence[RecentEvent], paper: Console, whole: int) -> Iterator[str]:
    for event in events[:whole]:
        yield ""
        yield from _wrap(paper, f"{_KINDS[event.kind]}, {_when(event)}", "  ")
        for line in _wrap(paper, event.sentence, "  "):
            yield paper.paint(line, "bold")
        for detail in event.details:
            yield from paper.wrap(detail, "    ", "  - ")
        if event.more and event.kind != "oom_kill":
            yield from paper.wrap(f"on that machine: {event.more}", "    ", "  > ")
    if len(events) > whole:
        yield ""
        for event in events[whole:SHOWN_MOST]:
            yield from paper.wrap(f"{_when(event)}: {event.sentence}", "    ", "  ")
    if len(events) > SHOWN_MOST:
        yield f"  and {count(len(events) - SHOWN_MOST)} more; --json has all"


def _wrap(paper: Console, text: str, indent: str) -> Iterator[str]:
    return paper.wrap(text, indent, "")


def _when(event: RecentEvent) -> str:
    first, last = taken_at(event.first_at_unix_seconds), taken_at(event.last_at_unix_seconds)
    if last is None:
        return event.when or "its time is not in the log"
    return last if first in (None, last) else f"{first} to {last}"


def event_log_ending(
    events: Sequence[RecentEvent], lines_read: int, left_out: int, paper: Console
) -> Iterator[str]:
    """Instead of "No OOM report" where the log tells of something else."""
    yield ""
    where = f"{count(lines_read)} lines"
    if left_out:
        where += f" (for other events the last {count(lines_read - left_out)} were looked at)"
    yield from paper.wrap(
        f"No OOM report of the kernel in {where}; {counted(len(events), 'other event')}, "
        "told above.",
        "", "",
    )  # fmt: skip
