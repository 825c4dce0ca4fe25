# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox list`` as text: what the box holds, boot by boot, and what happened."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from seawall.blackbox.overview import BootSummary, Stretch
from seawall.blackbox.record_times import rfc3339_of
from seawall.findings.shell import quote
from seawall.views.blackbox_page import BoxEvent, BoxPage
from seawall.views.terminal import Console, plain
from seawall.views.why_text import heading
from seawall.words import count, counted, duration, size

_BOOTS_SHOWN: Final = 10
_STRETCHES_SHOWN: Final = 6
_EVENTS_SHOWN: Final = 15
_EPISODE_GAP_SECONDS: Final = 60.0
_NAMES_SHOWN: Final = 3
_KILLED: Final = re.compile(r"Killed process \d{1,10} \((.{1,64}?)\)[, ]")
_KINDS: Final = {
    "tick": ("tick", "ticks"), "round": ("pass", "passes"), "line": ("line", "lines"),
    "mind": ("mind", "minds"),
}  # fmt: skip


def lines(top: dict[str, Any], page: BoxPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: every boot, gap, burst and decision."""
    yield from heading(top, paper)
    frames = sum(sum(boot.frames.values()) for boot in page.boots)
    told = counted(frames, "frame", "frames")
    yield from paper.wrap(f"{page.path}: {size(page.size_bytes)}, {told}")
    if page.torn:
        yield from paper.wrap(
            f"{count(page.torn)} torn: their checksum is wrong (a power cut in the middle of a "
            "write); all others are as they were written"
        )
    if page.missing_bytes:
        yield from paper.wrap(f"The file was cut: {size(page.missing_bytes)} of it are missing.")
    boots = page.boots if whole else page.boots[-_BOOTS_SHOWN:]
    if len(boots) < len(page.boots):
        yield f"{counted(len(page.boots) - len(boots), 'boot', 'boots')} before these: --whole"
    for boot in boots:
        yield ""
        yield from _boot_lines(boot, paper, whole=whole)
    yield ""
    if not page.boots:
        yield "It holds no frame."
        return
    yield from _event_lines(page.events, paper, whole=whole)
    yield from _next_steps(page)


def _boot_lines(boot: BootSummary, paper: Console, *, whole: bool) -> Iterator[str]:
    span = _words(boot.span)
    yield paper.paint(f"Boot {plain(boot.boot_id[:8])}  {span}", "bold")
    kinds = ", ".join(counted(boot.frames[kind], *words) for kind, words in _KINDS.items()
                      if boot.frames.get(kind))  # fmt: skip
    yield from paper.wrap(f"{kinds}; {size(boot.bytes)}", "  ", "  ")
    yield from _stretch_lines("every tick", boot.bursts, paper, whole=whole)
    yield from _stretch_lines("nothing", boot.gaps, paper, whole=whole)


def _stretch_lines(
    what: str, stretches: Sequence[Stretch], paper: Console, *, whole: bool
) -> Iterator[str]:  # fmt: skip
    shown = stretches if whole else stretches[-_STRETCHES_SHOWN:]
    if len(shown) < len(stretches):
        before = counted(len(stretches) - len(shown), "time", "times")
        yield f"  {what}: {before} before these: --whole"
    for stretch in shown:
        yield from paper.wrap(f"{what}: {_words(stretch)}", "    ", "  ")


def _event_lines(events: Sequence[BoxEvent], paper: Console, *, whole: bool) -> Iterator[str]:
    if not events:
        yield "It holds no decision, and no line of the kernel's log about a kill."
        return
    events = events if whole else list(_episodes(events))
    shown = events if whole else events[-_EVENTS_SHOWN:]
    more = f", the last {len(shown)} of {count(len(events))}" if len(shown) < len(events) else ""
    yield paper.paint(f"Decisions and kills{more}", "bold")
    for event in shown:
        who = f"{event.decision}: " if event.decision else ""
        kernel = "kernel: " if event.kind == "kernel" else ""
        text = f"{rfc3339_of(event.unix_seconds)}  {who}{kernel}{event.words}"
        yield from paper.wrap(text, "    ", "  ")


def _episodes(events: Sequence[BoxEvent]) -> Iterator[BoxEvent]:
    """Lines of the kernel's log that follow one another closely, as one event."""
    run: list[BoxEvent] = []
    for event in events:
        is_near = run and event.unix_seconds - run[-1].unix_seconds <= _EPISODE_GAP_SECONDS
        if run and (event.kind != "kernel" or event.boot_id != run[-1].boot_id or not is_near):
            yield _episode(run)
            run = []
        if event.kind == "kernel":
            run.append(event)
        else:
            yield event
    if run:
        yield _episode(run)


def _episode(run: Sequence[BoxEvent]) -> BoxEvent:
    """The kills in a sentence; a line of which nothing is known stays as it is."""
    victims = [match[1] for event in run if (match := _KILLED.search(event.words))]
    if len(run) == 1:
        return run[0]
    if not victims:
        return run[0]._replace(words=f"{run[0].words} (and {len(run) - 1} more lines: --whole)")
    names = list(dict.fromkeys(victims))
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    shown += f" and {more} more" if more > 0 else ""
    seconds = run[-1].unix_seconds - run[0].unix_seconds
    kills = counted(len(victims), "OOM kill", "OOM kills")
    words = f"{kills} in {duration(max(1.0, seconds))}: {shown} ({len(run)} lines: --whole)"
    return run[0]._replace(words=words)


def _next_steps(page: BoxPage) -> Iterator[str]:
    """The commands that look at the last decision, or at the end."""
    last = next((event for event in reversed(page.events) if event.decision), None)
    at = f" --at {last.decision}" if last else ""
    path = quote(page.path)
    yield ""
    yield f"  seawall blackbox show {path}{at}"
    yield f"  seawall why --from {path}{at}"


def _words(stretch: Stretch) -> str:
    first, last = rfc3339_of(stretch.first_unix_seconds), rfc3339_of(stretch.last_unix_seconds)
    return f"{first} to {last} ({duration(stretch.seconds)})"
