# SPDX-License-Identifier: Apache-2.0
"""What is known of one boot of one node: the journal's lines, the kernel's, and the ticks.

Pure: who read them puts them in.  All moments are monotonic seconds of the boot, so that "four
seconds later" stays true when a clock was set.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from seawall.guard.tell.guard_sentences import STOPPED
from seawall.guard.tick_facts import Group
from seawall.readings.oom_log.parser import read_reports
from seawall.replay.journal_lines import DecisionLine, names_in

CALM: Final = ("peace", "near", "blind")
LINES_MOST: Final = 500_000
_KERNEL_LINE_MOST: Final = 4096
_NAMES_MOST: Final = 20_000
_AIMS_MOST: Final = 2_000
"""Each of them is looked for in each tick."""
_STAMP_OFF_SECONDS: Final = 60.0


class KernelLogLine(NamedTuple):
    """A line of the kernel's log, as the black box has it."""

    seconds: float
    text: str


class StoryMoment(NamedTuple):
    """A tick, as far as a report needs it."""

    seconds: float
    state: str
    kernel_kills: int


class StoryKill(NamedTuple):
    """One process that the kernel's OOM killer ended, by its own words."""

    seconds: float
    comm: str
    path: str
    """Of its cgroup; empty: the line that names it is not there."""
    is_at_limit: bool
    """At the limit of a cgroup; otherwise the node was short."""


@dataclass
class BootStory:
    """What is known of one boot of a node, from journal, kernel log and ticks."""

    boot_id: str
    has_box: bool = False
    is_followed: bool = False
    """The node booted again after it."""
    decision_lines: list[DecisionLine] = field(default_factory=list)
    kernel: list[KernelLogLine] = field(default_factory=list)
    ticks: list[StoryMoment] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Workloads by cgroup."""
    last_seen: dict[tuple[str, int], float] = field(default_factory=dict)
    """Whom a verdict aimed at, by cgroup and inode: the last tick that saw it."""
    first_missed: dict[tuple[str, int], float] = field(default_factory=dict)
    offset: float | None = None
    """Unix less monotonic seconds."""
    last_frame_seconds: float = 0.0
    ranking: bytes = b""
    """Of the last verdict."""
    _marks: set[tuple[object, ...]] = field(default_factory=set)

    # --- what is put in -------------------------------------------------------------------------

    def hear(self, said: DecisionLine) -> None:
        """A line of the journal, once."""
        if (
            said.kind == "ranking"
            or said.mark in self._marks
            or len(self.decision_lines) >= LINES_MOST
        ):
            return
        self._marks.add(said.mark)
        if self.offset is None and said.seconds is not None:
            self.offset = said.unix_seconds - said.seconds
        self.ranking = said.ranking or self.ranking
        self.decision_lines.append(said._replace(ranking=b""))
        for aim in said.aims:
            self.names.setdefault(aim.path, aim.name)
            mark = (aim.path, aim.inode)
            is_room = mark in self.last_seen or len(self.last_seen) < _AIMS_MOST
            if said.seconds is not None and is_room:
                self.last_seen[mark] = max(said.seconds, self.last_seen.get(mark, 0.0))

    def see(self, moment: StoryMoment, groups: dict[str, Group]) -> None:
        """A tick, and who was there."""
        self.ticks.append(moment)
        if not groups.keys() <= self.names.keys() and len(self.names) < _NAMES_MOST:
            self.names.update((path, group.name) for path, group in groups.items())
        for mark, seen in self.last_seen.items():
            group = groups.get(mark[0])
            if group is not None and group.inode == mark[1]:
                self.last_seen[mark] = max(seen, moment.seconds)
                self.first_missed.pop(mark, None)
            elif moment.seconds > seen:
                self.first_missed.setdefault(mark, moment.seconds)

    def kernel_said(self, text: str, seconds: float) -> None:
        """A line of the kernel's log; its own stamp is nearer to the truth than the frame's."""
        stamp = text[:200].split(",", 3)[2:3]
        if stamp and stamp[0].isascii() and stamp[0].isdecimal() and len(stamp[0]) < 18:
            own = int(stamp[0]) / 1e6
            seconds = own if abs(own - seconds) < _STAMP_OFF_SECONDS else seconds
        if len(self.kernel) < LINES_MOST:
            self.kernel.append(KernelLogLine(seconds, text[:_KERNEL_LINE_MOST].replace("\n", " ")))

    def join(self, other: "BootStory") -> None:
        """The same boot from another file."""
        for said in other.decision_lines:
            self.hear(said)
        if other.has_box:
            self.has_box, self.offset = True, other.offset
        self.kernel += other.kernel
        self.ticks += other.ticks
        self.last_frame_seconds = max(self.last_frame_seconds, other.last_frame_seconds)
        for mark, at in other.last_seen.items():
            self.last_seen[mark] = max(at, self.last_seen.get(mark, 0.0))
        missed = {**other.first_missed, **self.first_missed}
        self.first_missed = {m: at for m, at in missed.items() if at > self.last_seen.get(m, 0.0)}
        self.names = {**other.names, **self.names}
        self.ranking = self.ranking or other.ranking

    def close(self) -> None:
        """All of it is there.  A tick of peace may stand in a burst too, and a file come twice."""
        self.ticks = sorted(set(self.ticks))
        self.kernel = sorted(dict.fromkeys(self.kernel), key=lambda line: line.seconds)

    # --- what is asked --------------------------------------------------------------------------

    def seconds_of(self, said: DecisionLine) -> float:
        """When the line was said, in monotonic seconds of the boot."""
        if said.seconds is not None:
            return said.seconds
        return said.unix_seconds - (self.offset or 0.0)

    @property
    def by_time(self) -> list[DecisionLine]:
        """The journal's lines of this boot, oldest first."""
        return sorted(self.decision_lines, key=self.seconds_of)

    @cached_property
    def _kills(self) -> list[StoryKill]:
        return sorted(_kills_of(self.kernel), key=lambda kill: kill.seconds)

    def kills_between(self, since: float, until: float) -> list[StoryKill]:
        """Whom the kernel ended, as its log in the box says; both moments included."""
        begin = bisect_left(self._kills, since, key=lambda kill: kill.seconds)
        return self._kills[begin : bisect_right(self._kills, until, key=lambda kill: kill.seconds)]

    def counted_kills(self, since: float, until: float) -> list[tuple[float, int]]:
        """Kills that were only counted, with the moment: by the ticks, else by the journal."""
        ticks = _between(self._tick_kills, since, until)
        lines = _between(self._told_kills, since, until)
        return max(ticks, lines, key=lambda rows: sum(kills for _, kills in rows))

    def ticks_between(self, since: float, until: float) -> list[StoryMoment]:
        """Later than ``since``, and not later than ``until``."""
        begin = bisect_right(self.ticks, since, key=lambda tick: tick.seconds)
        return self.ticks[begin : bisect_right(self.ticks, until, key=lambda tick: tick.seconds)]

    @cached_property
    def _tick_kills(self) -> list[tuple[float, int]]:
        return [(tick.seconds, tick.kernel_kills) for tick in self.ticks if tick.kernel_kills > 0]

    @cached_property
    def _told_kills(self) -> list[tuple[float, int]]:
        told = [said for said in self.decision_lines if said.kernel_kills > 0]
        return sorted((self.seconds_of(said), said.kernel_kills) for said in told)

    @cached_property
    def end_seconds(self) -> float:
        """Of the last that is known of it; asked when all of it was read."""
        ends = [self.last_frame_seconds, *map(self.seconds_of, self.decision_lines)]
        return max(ends + [moment.seconds for moment in self.ticks[-1:]])

    def name_of(self, path: str) -> str:
        """Of the workload that a cgroup belongs to; the path itself where nobody named it."""
        if self.ranking:
            self.names = {**names_in(self.ranking), **self.names}
            self.ranking = b""
        inner = path
        while len(inner) > 1:
            if inner in self.names:
                return self.names[inner]
            inner = inner.rpartition("/")[0]
        return path

    def was_stopped(self, since: float) -> bool:
        """The guard said that it ends."""
        return self._stopped_seconds >= since

    @cached_property
    def _stopped_seconds(self) -> float:
        stops = [
            said
            for said in self.decision_lines
            if said.kind == "event" and said.sentence == STOPPED
        ]
        return max(map(self.seconds_of, stops), default=float("-inf"))

    @property
    def began(self) -> float | None:
        """Unix seconds of the boot; None: nothing is known of it."""
        if self.offset is not None:
            return self.offset
        return min((said.unix_seconds for said in self.decision_lines), default=None)

    @cached_property
    def is_mute(self) -> bool:
        """It decided something, and a kill of the kernel would stand nowhere."""
        is_told = bool(self.ticks) or any(said.tells_kills for said in self.decision_lines)
        return not is_told and any(said.kind == "verdict" for said in self.decision_lines)


def _between(rows: list[tuple[float, int]], since: float, until: float) -> list[tuple[float, int]]:
    begin = bisect_left(rows, since, key=lambda row: row[0])
    return rows[begin : bisect_right(rows, until, key=lambda row: row[0])]


def _kills_of(lines: list[KernelLogLine]) -> Iterable[StoryKill]:
    texts = (line.text.encode("utf-8", "surrogateescape") for line in lines)
    for report in read_reports(texts):
        path = report.task_memcg or report.group_kill or report.oom_memcg or ""
        for kill in report.kills:
            at = lines[min(max(kill.line, 1), len(lines)) - 1].seconds
            yield StoryKill(at, kill.comm, path, report.kind == "memcg")
