# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu --watch`` as text: a time, then what changed; what is alike is one line."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Final

from seawall.accounts.devices.watch.device_watch_events import (
    THERE,
    AccessEvent,
    Begun,
    Blind,
    DeviceMoment,
    Line,
    Stand,
    WatchEnded,
    stand_words,
)
from seawall.views.gpu_watch_words import DEVICES_SHOWN, event_words
from seawall.views.gpu_words import containers
from seawall.views.terminal import Console
from seawall.words import duration, first

CONTAINERS_SHOWN: Final = 15
_INDENT: Final = " " * 14


class WatchText:
    """Remembers the day: it is told when it changes."""

    def __init__(self, paper: Console) -> None:
        self._paper = paper
        self._day = ""

    def lines(self, line: Line) -> Iterator[str]:
        """Of one thing that is to be told."""
        if isinstance(line, Begun):
            yield from self._begun(line)
        elif isinstance(line, Blind):
            yield from self._at(line.at, f"could not see: {line.words}")
        elif isinstance(line, WatchEnded):
            yield from self._at(line.at, _ended(line))
        else:
            for alike in _alike(line):
                yield from self._at(alike[0].at, event_words(alike), _style(alike[0]))

    def _at(self, at: DeviceMoment, words: str, style: str = "") -> Iterator[str]:
        moment = datetime.fromtimestamp(at.unix, timezone.utc)
        day = f"{moment:%Y-%m-%d}"
        if day != self._day:
            self._day = day
            yield f"{day} (UTC)"
        clock = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}  "
        for text in self._paper.wrap(words, _INDENT, clock):
            yield self._paper.paint(text, style) if style else text

    def _begun(self, begun: Begun) -> Iterator[str]:
        yield from self._at(begun.at, _summary(begun))
        works = _working(begun)
        rows = sorted(begun.names.items(), key=lambda row: (row[0] in works, row[1]))
        for cgroup, name in rows[:CONTAINERS_SHOWN]:
            for text in _standing(begun, cgroup):
                yield from self._paper.wrap(f"{name}: {text}", _INDENT + "  ", _INDENT)
        if rest := rows[CONTAINERS_SHOWN:]:
            is_well = all(cgroup in works for cgroup, _ in rest)
            words = "all allowed" if is_well else "--json has them"
            yield f"{_INDENT}and {containers(len(rest))} more: {words}"
        for path, words in begun.nodes.items():
            if words != THERE:
                yield from self._paper.wrap(f"the host {path}: {words}", _INDENT + "  ", _INDENT)
        for words in begun.unseen:
            yield from self._paper.wrap(f"could not see: {words}", _INDENT + "  ", _INDENT)


def _summary(begun: Begun) -> str:
    """What is watched, and how it stands, in one line."""
    devices = len(begun.stands)
    until = "until Ctrl-C" if begun.for_seconds is None else f"for {begun.for_seconds:g} s"
    head = f"watching {containers(len(begun.names))}, {devices} devices, every"
    head += f" {begun.every_seconds:g} s, {until}"
    counts = Counter(stand_words(stand) for stand in begun.stands.values())
    told = ", ".join(f"{count} {words}" for words, count in counts.most_common())
    if not begun.names:
        told = "no container that can be seen was promised a device yet"
    return f"{head}: {told}" if told else head


def _working(begun: Begun) -> set[str]:
    """Containers of which everything was tried and allowed."""
    tried = {key.cgroup for key in begun.stands}
    return tried - {key.cgroup for key, stand in begun.stands.items() if stand.errno != 0}


def _standing(begun: Begun, cgroup: str) -> Iterator[str]:
    """``allowed: /dev/nvidia0, /dev/nvidiactl``, for each way in which some of them stand."""
    found: dict[str, list[str]] = {}
    for key, stand in begun.stands.items():
        if key.cgroup == cgroup:
            found.setdefault(_stand(stand), []).append(key.path)
    if not found:
        yield "none of its devices can be tried"
    for words, paths in found.items():
        yield f"{words}: {first(sorted(paths), DEVICES_SHOWN)}"


def _stand(stand: Stand) -> str:
    return f"{stand_words(stand)} ({stand.why})" if stand.why else stand_words(stand)


def _alike(events: tuple[AccessEvent, ...]) -> list[list[AccessEvent]]:
    """Groups of one container with the same change at the same time by the same writers."""
    groups: dict[object, list[AccessEvent]] = {}
    for one in events:
        lasted = one.lasted and (one.lasted.began, one.lasted.is_first, one.lasted.writers)
        key = (one.kind, one.cgroup, one.workload, one.before, one.after, one.layer, one.at,
               one.is_back, one.writers, one.why, lasted)  # fmt: skip
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _style(event: AccessEvent) -> str:
    if event.kind == "access" and event.errno:
        return "critical"
    return "warning" if event.kind in ("node", "plugin") and event.after != THERE else ""


def _ended(ended: WatchEnded) -> str:
    changes = "no change" if not ended.events else f"{ended.events} events"
    if ended.events == 1:
        changes = "1 event"
    of = f" on {ended.devices} devices" if ended.devices > 1 else ""
    took = f"{ended.seconds:.1f} s" if ended.seconds < 120 else duration(ended.seconds)
    return f"ended after {took}: {changes}{of}, {ended.looks} looks"
