# SPDX-License-Identifier: Apache-2.0
"""Events out of the lines of logs: the one place that knows every kind of writer.

::

    events_of(log, source)                         -> list[RecentEvent], in the log's order
    recent_events(lines_by_source, clock, since_seconds, unread) -> RecentEvents, newest first

``lines_by_source``: by the name that an event gives as its source, the lines, oldest first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from seawall.accounts.log_episodes import (
    kernel_episodes,
    node_episodes,
    oom_kill_episodes,
    userspace_kill_episodes,
)
from seawall.accounts.log_episodes.episode import log_seconds
from seawall.accounts.log_episodes.guard_events import one_for_each_decision
from seawall.accounts.log_episodes.recent_events import RecentEvent, RecentEvents
from seawall.host.host import Unread
from seawall.readings.event_log.event_log import EventLog, read_events
from seawall.readings.event_log.log_line import LogClock

SINCE_SECONDS: Final = 1800.0
"""How far back ``why`` looks where nobody says otherwise."""
AHEAD_SECONDS: Final = 120.0
"""A line from further in the future than this is of a clock that was wrong."""
OOM_KINDS: Final = frozenset({"oom_kill"})
_KINDS: Final[Sequence[Callable[[EventLog], Iterator[RecentEvent]]]] = (
    oom_kill_episodes.kernel_kills,
    userspace_kill_episodes.systemd_oomd,
    userspace_kill_episodes.facebook_oomd,
    userspace_kill_episodes.earlyoom,
    userspace_kill_episodes.nohang,
    userspace_kill_episodes.talos,
    userspace_kill_episodes.guard_lines_told,
    kernel_episodes.hung_tasks,
    kernel_episodes.failed_allocations,
    kernel_episodes.driver_requests,
    kernel_episodes.xids,
    kernel_episodes.starts,
    node_episodes.evictions,
    node_episodes.not_ready,
    node_episodes.kubelet_oom_episodes,
    node_episodes.unit_kill_episodes,
    node_episodes.container_ooms,
    node_episodes.described_pods,
    node_episodes.slurm,
)


def events_of(log: EventLog, source: str = "") -> list[RecentEvent]:
    """Every event of one log, kind by kind."""
    return [replace(event, source=source) for kind in _KINDS for event in kind(log)]


def events_beside_reports(log: EventLog, source: str) -> list[RecentEvent]:
    """The same without OOM kills, which the reports of the log tell better."""
    kinds = (kind for kind in _KINDS if kind is not oom_kill_episodes.kernel_kills)
    events = (replace(event, source=source) for kind in kinds for event in kind(log))
    return [event for event in events if event.kind not in OOM_KINDS]


def recent_events(
    lines_by_source: Mapping[str, Iterable[bytes]],
    clock: LogClock,
    since_seconds: float = SINCE_SECONDS,
    unread: Iterable[Unread] = (),
    others: Iterable[RecentEvent] = (),
) -> RecentEvents:
    """Of the last ``since_seconds`` before ``clock.now_unix_seconds``.

    An event that cannot be placed in time is kept if it is of the last ``since_seconds`` of its
    own log: it may be of that time.  ``others``: events
    that no line of a log tells.
    """
    now = clock.now_unix_seconds
    found: list[RecentEvent] = []
    for source, lines in lines_by_source.items():
        log = read_events(lines, clock)
        end = log_seconds(log.last)
        found += [e for e in events_of(log, source) if not _is_before(e, end, since_seconds)]
    every = one_for_each_decision(chain(found, others))
    kept = [event for event in every if is_within(event, now, since_seconds)]
    kept = without_repeats(sorted(kept, key=_newest_first))
    return RecentEvents(
        since_seconds=since_seconds, events=tuple(kept), unread=tuple(unread), now_unix_seconds=now
    )


def is_within(event: RecentEvent, now: float | None, since_seconds: float) -> bool:
    """Whether its end lies in the span, as far as that can be told."""
    last = event.last_at_unix_seconds
    if now is None or last is None:
        return True
    return now - since_seconds <= last <= now + AHEAD_SECONDS


def _is_before(event: RecentEvent, end: float | None, since_seconds: float) -> bool:
    """Of a log whose dates cannot be placed: long before its own last line."""
    own = event.last_log_seconds
    if event.last_at_unix_seconds is not None or own is None or end is None:
        return False
    return end - own > since_seconds


def _newest_first(event: RecentEvent) -> float:
    last = event.last_at_unix_seconds
    return float("inf") if last is None else -last


_SAME_SECONDS: Final = 30.0
_SECOND_HAND: Final = (": OOM event for ", "kubelet saw OOM kills", ", says systemd")


def without_repeats(events: Iterable[RecentEvent]) -> list[RecentEvent]:
    """Newest first.  The same event of two logs is one; what systemd, the kubelet or a runtime
    says of an OOM kill that the kernel itself tells in the same moment is left out.
    """
    kept: list[RecentEvent] = []
    every = list(events)
    kernel = [e for e in every if e.kind == "oom_kill" and not _is_second_hand(e)]
    for event in every:
        if _is_second_hand(event) and any(_is_near(event, other) for other in kernel):
            continue
        if any(
            other.kind == event.kind and other.sentence == event.sentence
            and other.decision == event.decision and other.source != event.source
            and _is_near(event, other)
            for other in kept
        ):  # fmt: skip
            continue
        kept.append(event)
    return kept


def _is_second_hand(event: RecentEvent) -> bool:
    return any(words in event.sentence for words in _SECOND_HAND)


def _is_near(one: RecentEvent, other: RecentEvent) -> bool:
    mine, theirs = one.last_at_unix_seconds, other.last_at_unix_seconds
    return mine is not None and theirs is not None and abs(mine - theirs) <= _SAME_SECONDS
