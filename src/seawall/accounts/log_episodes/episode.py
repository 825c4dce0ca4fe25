# SPDX-License-Identifier: Apache-2.0
"""From lines of a log to one event: the moments of its first and its last line."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seawall.accounts.log_episodes.recent_events import EventKind, RecentEvent
from seawall.readings.event_log.log_line import NO_MOMENT, LogTime
from seawall.readings.event_log.sign import Sign


def episode(
    kind: EventKind, moments: Sequence[LogTime], sentence: str, details: Iterable[str] = (),
    *, began: float = 0.0, **rest: Any,
) -> RecentEvent:  # fmt: skip
    """moments: of the lines, in their order; began: so many seconds before the first line.

    An event of which some line can be placed in time has that time; else ``when`` has what the
    log gives, with ``to`` where the last line has another time than the first.
    """
    dated = [one for one in moments if one != NO_MOMENT]
    placed = [one.unix_seconds for one in dated if one.unix_seconds is not None]
    when = ""
    if dated and not placed:
        when = dated[0].text
        if dated[-1].text != when:
            when = f"{when} to {dated[-1].text}"
    return RecentEvent(
        kind=kind,
        first_at_unix_seconds=min(placed) - began if placed else None,
        last_at_unix_seconds=max(placed) if placed else None,
        when=when,
        last_log_seconds=log_seconds(dated[-1]) if dated else None,
        sentence=sentence,
        details=tuple(details),
        **rest,
    )


def log_seconds(moment: LogTime) -> float | None:
    """By the clock that a log's lines have in common; only differences mean something."""
    for seconds in (moment.unix_seconds, moment.wall_seconds, moment.boot_seconds):
        if seconds is not None:
            return seconds
    return None


def brief(name: str, most: int = 30) -> str:
    """A long name in a sentence: its beginning, without systemd's suffix."""
    short = name.removesuffix(".scope").removesuffix(".service")
    return short if len(short) <= most else short[: most - 2] + ".."


def moments_of(signs: Iterable[Sign]) -> list[LogTime]:
    """When each of these signs was logged, in the order of the log."""
    return [sign.line.moment for sign in signs]


def runs(signs: Iterable[Sign], gap_seconds: float) -> Iterator[list[Sign]]:
    """Signs that follow each other within the gap; without times all of them are one run."""
    run: list[Sign] = []
    for sign in signs:
        if run:
            passed = sign.line.moment.after(run[-1].line.moment)
            if passed is not None and abs(passed) > gap_seconds:
                yield run
                run = []
        run.append(sign)
    if run:
        yield run


def span_seconds(first: LogTime, last: LogTime) -> float | None:
    """Between two lines; None without a clock that both have."""
    passed = last.after(first)
    return None if passed is None else abs(passed)
