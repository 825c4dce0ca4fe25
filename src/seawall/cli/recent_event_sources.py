# SPDX-License-Identifier: Apache-2.0
"""Where the recent events of ``why`` come from: this machine, a bundle, a black box.

::

    add_since_argument(parser)                            # --since of the verb
    pending = begin_recent_events(source, arguments)      # at once: a child begins to read
    pending.events()                                      # RecentEvents; waits for it, 2 s at most

On a live machine the logs are read by a child beside the window of the verb, so nobody waits for
it; a disk that hangs costs its 2 s, counted from the beginning, and is told in ``unread``.
"""

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seawall.host.host import Unread

if TYPE_CHECKING:
    from seawall.accounts.log_episodes.recent_events import RecentEvent, RecentEvents
    from seawall.blackbox.reader import Box
    from seawall.host.background_question import BackgroundQuestion
    from seawall.host.host import Host
    from seawall.readings.event_lines import EventLines
    from seawall.sources.box_source import BoxSource
    from seawall.sources.source import Source
    from seawall.views.blackbox_page import BoxEvent

SINCE_SECONDS: Final = 1800.0
SINCE_MOST_SECONDS: Final = 7 * 86_400.0
DEADLINE_SECONDS: Final = 2.0
_OF_DECISION: Final = ("verdict", "outcome", "told")
_SPAN: Final = re.compile(r"(\d{1,6})(s|min|m|h|d)?\Z", re.ASCII)
_UNITS: Final = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def add_since_argument(parser: ArgumentParser) -> None:
    """How far back what happened is told."""
    parser.add_argument(
        "--since", type=span_of, default=SINCE_SECONDS, metavar="SPAN",
        help="how far back kills, evictions and hangs are told: 90s, 30min, 2h, 1d (default 30min)",
    )  # fmt: skip


def span_of(text: str) -> float:
    """Seconds of a week at most."""
    found = _SPAN.match(text)
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= SINCE_MOST_SECONDS:
        raise ArgumentTypeError(f"expected a span such as 30min or 2h, 7d at most, not {text!r}")
    return seconds


class PendingEvents:
    """Asked for, and not waited for yet."""

    def __init__(
        self, source: "Source", since_seconds: float, asked: "BackgroundQuestion | None"
    ) -> None:
        self._source = source
        self._since_seconds = since_seconds
        self._asked = asked

    def events(self) -> "RecentEvents":
        """Newest first; call it once.  A fault of ours in them is told in ``unread``."""
        from seawall.accounts.log_episodes.recent_events import RecentEvents  # noqa: PLC0415 - see below
        from seawall.readings.own_fault import unread_of  # noqa: PLC0415 - see below

        try:
            return self._events()
        except Exception as error:  # noqa: BLE001 - the past must not take the present
            fault = unread_of("what happened lately", error)
            return RecentEvents(since_seconds=self._since_seconds, events=(), unread=(fault,))

    def _events(self) -> "RecentEvents":
        from seawall.readings.event_lines import lines_told, read  # noqa: PLC0415 - likewise
        from seawall.readings.kernel import Kernel  # noqa: PLC0415 - likewise

        if self._asked is not None:
            own = events_of_lines(
                lines_told(self._asked.answer()), self._since_seconds, is_own=True
            )
            return with_guard_verbs(own, self._source.first.host)
        from seawall.sources.box_source import BoxSource  # noqa: PLC0415 - of a record alone

        if isinstance(self._source, BoxSource):
            return _of_box(self._source, self._since_seconds)
        found = read(self._source.first.host)
        kernel = self._source.first.get(Kernel)
        if isinstance(found, Unread) or isinstance(kernel, Unread):
            return events_of_lines(found, self._since_seconds, is_own=False)
        # A tree of files is read later than it was written.
        then = kernel.taken_at_unix_seconds or found.unix_seconds
        found = replace(found, unix_seconds=then)
        return events_of_lines(found, self._since_seconds, is_own=False)

    def drop(self) -> None:
        """Nobody will ask for them."""
        if self._asked is not None:
            self._asked.drop()


def begin_recent_events(source: "Source", arguments: Namespace) -> PendingEvents:
    """``arguments.since`` as ``add_since_argument`` makes it."""
    since = float(getattr(arguments, "since", SINCE_SECONDS))
    asked = None
    if source.live is not None:
        asked = source.live.ask_beside("event_log", str(since), DEADLINE_SECONDS)
    return PendingEvents(source, since, asked)


def events_of_lines(found: "EventLines | Unread", since: float, *, is_own: bool) -> "RecentEvents":
    """Of the last ``since`` seconds; ``is_own``: times without a zone are in ours."""
    from seawall.accounts.log_episodes.guard_events import guard_events  # noqa: PLC0415 - see above
    from seawall.accounts.log_episodes.log_events import recent_events  # noqa: PLC0415 - see above
    from seawall.accounts.log_episodes.recent_events import RecentEvents  # noqa: PLC0415 - see above
    from seawall.readings.event_lines import CAPTURED_SECONDS  # noqa: PLC0415 - see above
    from seawall.readings.event_log.log_line import LogClock  # noqa: PLC0415 - see above

    if isinstance(found, Unread):
        words = found.detail or "a bundle that 'seawall capture' of this version makes has them"
        name = Unread("kernel log and journal", found.why, words)
        return RecentEvents(since_seconds=since, events=(), unread=(name,))
    clock = LogClock(found.boot_unix_seconds, found.unix_seconds, is_own_zone=is_own)
    unread = [source.problem for source in found.sources if source.problem is not None]
    logs: dict[str, Sequence[bytes]] = {
        source.name: source.lines for source in found.sources if source.name != "guard"
    }
    if any(one.name == "/dev/kmsg" and one.problem is None for one in found.sources):
        logs = {
            name: lines if name == "/dev/kmsg" else without_kernel(lines, found.boot_unix_seconds)
            for name, lines in logs.items()
        }
    if not is_own and since > CAPTURED_SECONDS:
        words = f"a bundle holds {CAPTURED_SECONDS // 3600} h"
        unread.append(Unread("what was before", "not_captured", words))
    guard = [line for one in found.sources if one.name == "guard" for line in one.lines]
    return recent_events(logs, clock, since, unread, guard_events(guard, "guard"))


def with_guard_verbs(recent: "RecentEvents", host: "Host") -> "RecentEvents":
    """Of this machine: the black box tells of the very decision, where there is one; of what is
    in the kernel's log alone nothing tells more.
    """
    if not any(event.decision for event in recent.events):
        return recent
    from seawall.cli.source_options import BOX  # noqa: PLC0415 - see above
    from seawall.findings.shell import quote  # noqa: PLC0415 - see above

    folder, _, name = BOX.rpartition("/")
    names = host.names(folder)  # asked as all that may hang: a folder on a disk
    has_box = not isinstance(names, Unread) and name in names
    events = []
    for event in recent.events:
        more = event.more
        if event.decision and has_box:
            more = f"seawall why --at {quote(event.decision)}"
        elif event.source == "guard":
            more = "seawall guard report"
        events.append(replace(event, more=more))
    return replace(recent, events=tuple(events))


_KERNEL: Final = re.compile(rb"(\d{9,11}\.\d{3,9}) [^\s:]{1,255} kernel: ")


def without_kernel(lines: Sequence[bytes], boot_unix_seconds: float) -> list[bytes]:
    """Lines of a journal less those that /dev/kmsg holds too: the kernel's, of this boot; its
    first line stays, for it is what tells of a start.
    """
    kept = []
    for line in lines:
        found = _KERNEL.match(line)
        if found and float(found[1]) > boot_unix_seconds + 1 and b"Linux version " not in line:
            continue
        kept.append(line)
    return kept


def _of_box(source: "BoxSource", since: float) -> "RecentEvents":
    now = source.asked_unix_seconds
    if source.box is not None and now is not None:
        return box_events(source.box, now, since)
    from seawall.accounts.log_episodes.recent_events import RecentEvents  # noqa: PLC0415 - see above

    missing = Unread("kernel log", "not_captured", "an export of a black box holds no lines")
    return RecentEvents(since_seconds=since, events=(), unread=(missing,), now_unix_seconds=now)


def box_events(box: "Box", now_unix_seconds: float, since_seconds: float) -> "RecentEvents":
    """Kernel lines and decisions that the recorder kept, up to a moment."""
    from seawall.accounts.log_episodes.log_events import recent_events  # noqa: PLC0415 - see above
    from seawall.readings.event_log.log_line import LogClock  # noqa: PLC0415 - see above
    from seawall.sources.box_lines import lines_between  # noqa: PLC0415 - see above

    rows = lines_between(box, now_unix_seconds - since_seconds, now_unix_seconds)
    kernel = [
        f"{row.unix_seconds:.6f} box kernel: {row.words}".encode("utf-8", "backslashreplace")
        for row in rows if row.kind == "kernel"
    ]  # fmt: skip
    words = "a black box keeps OOM kills and decisions"
    rest = Unread("journal, kubelet and runtime logs", "not_captured", words)
    clock = LogClock(None, now_unix_seconds)
    decisions = _box_decisions(rows, box.path)
    return recent_events({"black box": kernel}, clock, since_seconds, (rest,), decisions)


def _box_decisions(rows: "Sequence[BoxEvent]", path: str) -> "Iterator[RecentEvent]":
    from seawall.accounts.log_episodes.guard_events import guard_event  # noqa: PLC0415 - see above
    from seawall.findings.shell import quote  # noqa: PLC0415 - see above

    by_decision: dict[str, list[BoxEvent]] = {}
    for row in rows:
        if row.kind in _OF_DECISION and row.decision:
            by_decision.setdefault(row.decision, []).append(row)
    for decision, some in by_decision.items():
        times = [row.unix_seconds for row in some]
        yield replace(
            guard_event([row.words for row in some], decision),
            first_at_unix_seconds=min(times), last_at_unix_seconds=max(times), source="black box",
            more=f"seawall why --from {quote(path)} --at {quote(decision)}",
        )  # fmt: skip
