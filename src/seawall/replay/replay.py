# SPDX-License-Identifier: Apache-2.0
"""A black box judged once more: with the settings of then, and with others beside them.

A mind that was written down and every tick after it give the decisions of then, to the frame.
Between bursts there is a tick every ten seconds, with six digits: what is decided on those is
marked as coarse, and no decision of then is held against it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from seawall.blackbox.reader import Boot, Box
from seawall.guard.settings import Settings
from seawall.problems import BundleProblem
from seawall.replay.boot_decoder import (
    BootDecoder,
    Event,
    LogFrame,
    LostFrames,
    MindFrame,
    TickFrame,
    note,
)
from seawall.replay.compare import comparison_of
from seawall.replay.incidents import within
from seawall.replay.player import Player
from seawall.replay.replay_results import (
    BootReplay,
    BoxReplay,
    DecisionComparison,
    JournalDecision,
    ReplayResult,
    ReplayRun,
    ReplayStretch,
)
from seawall.replay.start_frame import StartFrame
from seawall.replay.tick import Tick
from seawall.replay.typed_codec import short_repr

OUR_ERRORS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a judge may raise over values that no guard would have: as the loop takes it."""
LINE_MOST: Final = 1 << 20
FOUND_MOST: Final = 5_000
LINES_MOST: Final = 20_000
LINES_MOST_BYTES: Final = 64 << 20
"""A box is hostile input: what is kept of it is bounded."""
SCHEMA: Final = "seawall.decision/1"


class Track:
    """One judge on its way through a boot."""

    def __init__(self, boot_id: str, policy: Settings | None) -> None:
        self.run = ReplayRun(policy or Settings())
        self._boot_id = boot_id
        self._policy = policy
        self._player: Player | None = None

    def begin(self, start: StartFrame) -> None:
        """A guard that has just begun remembers nothing."""
        settings = self._policy or start.settings
        self._player = self._new_player(settings, start.own_cgroup, start.last_decision)
        self.run.settings = settings

    def use(self, settings: Settings) -> None:
        """The guard's own file was read anew."""
        if self._policy is None and self._player is not None:
            self._player.use(settings)
            self.run.settings = settings

    def recall(self, mind: MindFrame) -> None:
        """From here on as it was then; another policy takes over in this moment."""
        player = self._new_player(Settings(), "", "")
        player.recall(mind.mind)
        if self._policy is not None:
            player.use(self._policy)
        self._player, self.run.settings = player, player.settings

    def _new_player(self, settings: Settings, own_cgroup: str, last_decision: str) -> Player:
        is_other = self._policy is not None
        return Player(settings, self._boot_id, own_cgroup, last_decision, is_other=is_other)

    def rewind(self, number: int) -> None:
        """What was decided from this tick on, on less than is known now, does not count."""
        found = self.run.results
        while found and found[-1].number >= number:
            found.pop()

    def step(self, tick: Tick, *, is_exact: bool) -> None:
        """One tick; without a player nothing is known of this guard yet."""
        player = self._player
        if player is None:
            return
        try:
            verdict = player.step(tick)
        except OUR_ERRORS as error:
            self._player = None
            words = f"tick {tick.number} could not be judged: {type(error).__name__}: {error}"
            note(self.run.problems, words)
            return
        if verdict is not None:
            mode = player.settings.mode
            self._keep(ReplayResult(tick.number, tick.unix_seconds, verdict, mode, is_exact))

    def _keep(self, found: ReplayResult) -> None:
        """Of what stands on few ticks only what orders something."""
        if not found.is_exact and not found.acts:
            return
        if len(self.run.results) < FOUND_MOST:
            self.run.results.append(found)
        else:
            note(self.run.problems, f"more than {FOUND_MOST:,} decisions: the rest is left out")


class BootRun:
    """The replay of one boot, with the guard's own settings and with others beside them."""

    def __init__(
        self, box: Box, boot: Boot, policy: Settings | None, tell: Callable[[], None] | None
    ) -> None:  # fmt: skip
        self._boot = boot
        self._tape = BootDecoder(box, boot, tell)
        self._live = Track(boot.boot_id, None)
        self._other = Track(boot.boot_id, policy) if policy is not None else None
        self._tracks = [track for track in (self._live, self._other) if track is not None]
        self._start: StartFrame | None = None
        self._first_start: StartFrame | None = None
        self._mind: MindFrame | None = None
        self._last: int | None = None
        self._is_exact = False
        self._was_lost = False
        self.stretches: list[ReplayStretch] = []
        self.lines: list[JournalDecision] = []
        self.outcomes: dict[str, str] = {}
        self.kernel_kills: list[tuple[float, str]] = []
        self._line_bytes = 0
        self._coarse: list[int] = []
        """Numbers of the ticks between which others are missing."""

    def replay(self) -> BootReplay:
        """From its first frame to its last."""
        for event in self._tape:
            self._take(event)
        times = [head.unix_seconds for head in self._boot.heads]
        live = list({_key(line): line for line in self.lines}.values())
        other = self._other.run if self._other is not None else None
        coarse = len(self._coarse)
        ticks = coarse + sum(stretch.ticks for stretch in self.stretches)
        found = comparison_of(live, self._live.run.results, self.stretches)
        return BootReplay(
            self._boot.boot_id, self._first_start, min(times), max(times), ticks, coarse,
            self.stretches, live, self.outcomes, self.kernel_kills, self._live.run, other, found,
            self._notes(),
        )  # fmt: skip

    def _notes(self) -> list[str]:
        notes = list(self._first_start.notes) if self._first_start is not None else []
        if self._first_start is None:
            notes.append("no start frame is left: with which settings it judged is not known")
        if self._tape.lost_frames:
            notes.append(f"{self._tape.lost_frames} frames are torn, overwritten or missing")
        if self._tape.lost_ticks:
            notes.append(f"{self._tape.lost_ticks} ticks follow on one that is missing: not judged")
        notes += self._tape.problems
        for track in self._tracks:
            notes += track.run.problems
        return list(dict.fromkeys(notes))

    # --- one event after the other ------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event:
            case StartFrame():
                self._begin(event)
            case MindFrame():
                self._mind = event
            case TickFrame():
                self._tick(event)
            case LogFrame():
                self._line(event)
            case LostFrames():
                self._was_lost = True

    def _begin(self, start: StartFrame) -> None:
        was, self._start = self._start, start
        self._first_start = self._first_start or start
        if not start.is_same_recorder(was):
            self._break("another guard began, or its recorder anew")
            for track in self._tracks:
                track.begin(start)
        elif was is not None and start.settings != was.settings:
            for track in self._tracks:
                track.use(start.settings)

    def _tick(self, ticked: TickFrame) -> None:
        tick, last = ticked.tick, self._last
        if self._mind is not None:
            if not (self._is_exact and last is not None and tick.number <= last + 1):
                self._recall(self._mind, tick)
                last = self._last
            self._mind = None
        if last is not None and tick.number <= last:
            return  # written twice
        if ticked.is_rounded or last is None or tick.number != last + 1:
            why = "" if ticked.is_rounded else "ticks are missing there"
            self._break("frames are missing there" if self._was_lost else why)
        self._judge(tick)

    def _recall(self, mind: MindFrame, tick: Tick) -> None:
        for track in self._tracks:
            try:
                track.recall(mind)
            except BundleProblem as problem:
                note(track.run.problems, str(problem))
                return
        for track in self._tracks:
            track.rewind(tick.number)
        self._trim(tick.number)
        self._last, self._is_exact = tick.number - 1, True
        unix = tick.unix_seconds
        self.stretches.append(ReplayStretch(tick.number, tick.number - 1, unix, unix, 0))

    def _trim(self, number: int) -> None:
        """What comes now was written before: the half minute before a trigger, soon after one."""
        while self._coarse and self._coarse[-1] >= number:
            self._coarse.pop()
        while self.stretches and self.stretches[-1].first >= number:
            self.stretches.pop()
        if self.stretches and self.stretches[-1].last >= number:
            stretch = self.stretches[-1]
            stretch.last, stretch.ticks = number - 1, number - stretch.first

    def _break(self, why: str) -> None:
        if self._is_exact:
            self.stretches[-1].ends = why
        self._is_exact = False

    def _judge(self, tick: Tick) -> None:
        self._was_lost = False
        self._last = tick.number
        if not self._is_exact:
            self._coarse.append(tick.number)
        else:
            stretch = self.stretches[-1]
            stretch.last, stretch.last_unix_seconds = tick.number, tick.unix_seconds
            stretch.ticks += 1
        for track in self._tracks:
            track.step(tick, is_exact=self._is_exact)

    # --- what was written down then -----------------------------------------------------------

    def _line(self, line: LogFrame) -> None:
        self._line_bytes += len(line.text)
        if self._line_bytes > LINES_MOST_BYTES or len(self.lines) >= LINES_MOST:
            note(self._live.run.problems, "too many lines of the journal: the rest is left out")
            return
        if line.is_kernel:
            if "Killed process" in line.text:
                self.kernel_kills.append((line.unix_seconds, line.text[:300]))
            return
        document = _document(line.text)
        if document is None:
            return
        match document:
            case {"kind": "verdict", "decision": str(), "sentence": str()}:
                number = document.get("frame")
                number = number if type(number) is int else line.tick
                self.lines.append(JournalDecision(number, line.unix_seconds, document))
            case {"kind": "told", "decision": str(decision), "sentence": str(sentence)}:
                self.outcomes[decision] = sentence[:1000]


def _key(line: JournalDecision) -> tuple[str, str, str]:
    return line.decision, short_repr(line.document.get("seconds")), line.sentence


def _document(text: str) -> dict[str, Any] | None:
    """A line of ours; None: it is none."""
    try:
        found = json.loads(text) if len(text) <= LINE_MOST else None
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(found, dict) and found.get("schema") == SCHEMA
    return found if is_ours else None


def replay(
    box: Box, policy: Settings | None, config_path: str = "", *, moment: float | None = None,
    tell: Callable[[], None] | None = None,
) -> BoxReplay:  # fmt: skip
    """All boots; ``policy``: other settings beside those of then; ``moment``: only the burst then,
    Unix seconds; ``tell``: called at each frame.
    """
    boots = box.boots() if moment is None else boot_near(box.boots(), moment)
    found = [BootRun(box, boot, policy, tell).replay() for boot in boots]
    if moment is not None:
        found = [select_burst(boot, moment) for boot in found]
    notes = [f"{box.torn} frames are torn: their checksum is wrong"] if box.torn else []
    return BoxReplay(box.path, config_path, policy, found, notes)


# The selection of one burst of a replay: that at a moment (Unix seconds).


def boot_near(boots: Sequence[Boot], moment: float) -> list[Boot]:
    """The one that ran then, or next to it."""

    def away(boot: Boot) -> float:
        times = [head.unix_seconds for head in boot.heads]
        return _seconds_away(min(times), max(times), moment)

    return sorted(boots, key=away)[:1]


def select_burst(boot: BootReplay, moment: float) -> BootReplay:
    """The burst that holds the moment, or the nearest; where there is none, all of the boot."""
    if not boot.stretches:
        note = "no burst is in it: every tick is needed, and peace keeps one in ten seconds"
        return replace(boot, notes=[*boot.notes, note])

    def seconds(burst: ReplayStretch) -> float:
        return _seconds_away(burst.first_unix_seconds, burst.last_unix_seconds, moment)

    one = min(boot.stretches, key=seconds)
    away = seconds(one)
    notes = [f"no burst holds that moment; the nearest is {away:.0f} s away"] if away else []
    return replace(
        boot, stretches=[one], compared=_compared_in(boot.compared, one), notes=boot.notes + notes,
        live=[line for line in boot.live if one.holds(line.number)],
        ticks=one.ticks, coarse_ticks=0, as_live=_run_in(boot.as_live, one),
        other=boot.other and _run_in(boot.other, one),
    )  # fmt: skip


def _seconds_away(first: float, last: float, moment: float) -> float:
    return max(0.0, first - moment, moment - last)


def _run_in(run: ReplayRun, one: ReplayStretch) -> ReplayRun:
    return replace(run, results=within(run.results, one))


def _compared_in(found: DecisionComparison, one: ReplayStretch) -> DecisionComparison:
    return DecisionComparison(
        [pair for pair in found.same if one.holds(pair[1].number)],
        [row for row in found.differ if one.holds(row.here.number)],
        [row for row in found.missing if one.holds(row.then.number)],
        [extra for extra in found.extra if one.holds(extra.number)],
    )
