# SPDX-License-Identifier: Apache-2.0
"""The recording policy: what goes to the disk when.

Little in peace, all of it from half a minute before a trigger on.

Every tick and every round is put into frames once, for the past in memory; in a *burst* these go
to the disk as they come.  In peace a chain of its own has one tick and one round every ten
seconds.  Whatever begins anew begins with a ``start`` frame and keys.
"""

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group
from seawall.host.host import JSON
from seawall.host.recording import Round
from seawall.problems import BundleProblem
from seawall.recorder.frame_chain import FrameChain, clocks
from seawall.recorder.guard_messages import GuardStart, JournalLine
from seawall.recorder.pretrigger_buffer import SPAN_SECONDS, PendingFrame, PreTriggerBuffer
from seawall.replay.player import Player
from seawall.replay.tick import Tick

PEACE_SECONDS: Final = 10.0
BURST_SECONDS: Final = 60.0
"""So long after the last trigger all is written."""
KEY_SECONDS: Final = 280.0
BURST_KEY_SECONDS: Final = 60.0
FULL_PEACE_SECONDS: Final = 60.0
FULL_BURST_SECONDS: Final = 10.0
STALL: Final = 0.5
"""A protected group that stands still for half of the time."""
KILL_BURSTS_MOST: Final = 6
"""In an hour, when a kernel kill is all that happened: a container that is killed again and again
at its limit must not push the rest out of the ring."""
HOUR: Final = 3600.0
_TROUBLED: Final = ("short", "holding")
NOT_JUDGED: Final = (
    "what this guard remembers is of another version: its ticks cannot be judged again"
)

About = Callable[[Settings, str], dict[str, JSON]]
"""The body of a ``start`` frame, of settings and the last decision."""


class RecordingPolicy:
    """``put`` takes what goes to the disk.  All times are monotonic seconds."""

    def __init__(
        self, put: Callable[[PendingFrame], None], about: About,
        player: Callable[[Settings, str], Player], past: PreTriggerBuffer | None = None,
    ) -> None:  # fmt: skip
        self._put, self._about, self._new_player = put, about, player
        self._past = past or PreTriggerBuffer()
        self._fine = FrameChain(is_peace=False)
        self._calm = FrameChain(is_peace=True)
        self._start: GuardStart | None = None
        self._player: Player | None = None
        self._last: Tick | None = None
        self._told_tick = -1
        self._is_recalled = False
        """The player was told what the judge remembers just before the next tick."""
        self.not_judged = ""
        """Why ticks are written that nobody will judge again; empty: they can be."""
        self._is_span_due = self._is_key_due = True
        self._key_due = self._full_due = self._frame_due = 0.0
        self._burst_until: float | None = None
        self._kill_bursts: deque[float] = deque()

    # --- what is known --------------------------------------------------------------------------

    @property
    def is_burst(self) -> bool:
        """Whether everything is written as it comes."""
        return self._burst_until is not None

    @property
    def is_fast(self) -> bool:
        """Whether the node's counters are worth ten looks a second."""
        return self.is_burst or (self._last is not None and self._last.state != "peace")

    @property
    def groups(self) -> Collection[Group]:
        """The groups of the guard's last tick; empty before the first."""
        return self._last.groups.values() if self._last else ()

    def wants_full(self, now: float) -> bool:
        """Whether a full round is due; it ends with ``sampled``."""
        return now >= self._full_due or (self._is_key_now(now) and not self.is_burst)

    def begin_anew(self) -> None:
        """Something was lost, or the file is another one."""
        self._is_span_due = self._is_key_due = True

    # --- what comes -----------------------------------------------------------------------------

    def started(self, start: GuardStart) -> None:
        """What holds from the next tick on."""
        self._start = start
        self.begin_anew()
        if start.mind is not None:
            self._player = self._new_player(start.settings, start.last_decision)
            self._recall(self._player, start.mind)
            self._is_recalled = True
        elif self._player is not None:
            self._player.use(start.settings)
        elif self._last is None:  # nothing was seen yet, so nothing is remembered
            self._player = self._new_player(start.settings, start.last_decision)

    def _recall(self, player: Player, mind: dict[str, JSON]) -> None:
        """Of a guard under which our files were replaced it may be another version's."""
        try:
            player.recall(mind)
            self.not_judged = ""
        except BundleProblem:
            self._player = None
            self.not_judged = NOT_JUDGED

    def ticked(self, tick: Tick) -> None:
        """Take in one tick of the guard with its outcomes: write or hold its frame, look for
        triggers.
        """
        is_next = self._last is None or tick.number == self._last.number + 1
        if not is_next and not self._is_recalled:
            self._player = None  # it would go on without what it missed
        self._is_recalled = False
        now = tick.node.seconds
        self._is_span_due = self._is_span_due or not is_next
        if self._is_span_due or self._is_span_over(now):
            self._begin_span(tick.unix_seconds, now)
        if (waiting := self._fine.tick(tick)) is not None:
            self._keep(waiting)
        self._last = tick
        if self._player is not None:
            self._player.step(tick)
        if tick.state in _TROUBLED or tick.node.protected_stall > STALL:
            self._trigger(now)
        elif tick.node.kernel_kills:
            self._trigger_by_kill(now)

    def lined(self, line: JournalLine, unix: float, now: float) -> None:
        """Of the decision journal; at once, for it is what a reader looks for first."""
        if _is_decision(line.text):
            self._trigger(now)
        body: dict[str, JSON] = {"line": line.text}
        self._put(self._fine.frame("line", body, (unix, now), line.tick)._replace(is_urgent=True))

    def kernel_said(self, lines: Sequence[str], unix: float, now: float, *, is_kill: bool) -> None:
        """Take in lines of the kernel's log; a kill among them begins a burst."""
        if is_kill:
            self._trigger_by_kill(now)
        for line in lines:
            self._put(self._fine.frame("line", {"kernel": line}, (unix, now), self._number))

    def sampled(self, round_: Round, of: str) -> None:
        """A round is there; in peace a full one goes to the disk alone."""
        unix, now = clocks(round_)
        if of == "full":
            every = FULL_BURST_SECONDS if self.is_burst else FULL_PEACE_SECONDS
            self._full_due = now + every
            if not self.is_burst:
                self._tell_peace(round_, of, now)
                return
        if self._is_span_due or self._is_span_over(now):
            self._begin_span(unix, now)
        self._keep(self._fine.round(round_, of, self._number))
        is_due = of == "light" and not self.is_burst and now >= self._frame_due
        if is_due and not self.wants_full(now):
            self._tell_peace(round_, of, now)

    def tend(self, now: float) -> None:
        """The end of a burst."""
        if self._burst_until is not None and now >= self._burst_until:
            self._burst_until = None
            self._past.clear()
            self.begin_anew()

    # --- what goes out --------------------------------------------------------------------------

    @property
    def _number(self) -> int:
        return self._last.number if self._last else 0

    def _is_key_now(self, now: float) -> bool:
        return self._is_key_due or now >= self._key_due

    def _keep(self, waiting: PendingFrame) -> None:
        self._past.add(waiting)
        if self.is_burst:
            self._put(waiting)

    def _is_span_over(self, now: float) -> bool:
        return self._past.is_due(now, BURST_KEY_SECONDS if self.is_burst else SPAN_SECONDS)

    def _begin_span(self, unix: float, now: float) -> None:
        """From here on the past can be read by itself."""
        is_spare, self._is_span_due = not self._is_span_due, False
        self._past.begin(now)
        self._fine.begin()
        if self._start is not None:
            about = self._about(self._start.settings, self._start.last_decision)
            self._keep(self._fine.frame("start", about, (unix, now), self._number))
        if self._player is not None:
            mind: dict[str, JSON] = {"mind": self._player.state_document()}
            with suppress(ValueError):  # no frame holds it: what follows is not judged again
                made = self._fine.frame("mind", mind, (unix, now), self._number)
                self._keep(made._replace(is_spare=is_spare))

    def _trigger_by_kill(self, now: float) -> None:
        bursts = self._kill_bursts
        while bursts and now - bursts[0] > HOUR:
            bursts.popleft()
        if not self.is_burst:
            if len(bursts) >= KILL_BURSTS_MOST:
                return
            bursts.append(now)
        self._trigger(now)

    def _trigger(self, now: float) -> None:
        if self._burst_until is None:
            self._full_due = now
            for waiting in one_mind(self._past.frames()):
                self._put(waiting)
        self._burst_until = now + BURST_SECONDS

    def _tell_peace(self, round_: Round, of: str, now: float) -> None:
        """One tick and one round."""
        self._frame_due = now + PEACE_SECONDS - 0.5
        if self._is_key_now(now):
            self._is_key_due, self._key_due = False, now + KEY_SECONDS
            self._calm.begin()
            self._told_tick = -1
            if self._start is not None:
                about = self._about(self._start.settings, self._start.last_decision)
                self._put(self._calm.frame("start", about, clocks(round_), self._number))
        if self._last is not None and self._last.number != self._told_tick:
            self._told_tick = self._last.number
            if (waiting := self._calm.tick(self._last)) is not None:
                self._put(waiting)
        self._put(self._calm.round(round_, of, self._number))


def one_mind(frames: Iterable[PendingFrame]) -> Iterator[PendingFrame]:
    """Without the spare minds behind the first: they are the most of it, and it has to be quick."""
    has_mind = False
    for waiting in frames:
        if not (waiting.is_spare and has_mind):
            yield waiting
        has_mind = has_mind or waiting.kind == "mind"


def _is_decision(text: str) -> bool:
    """Whether a line of the journal tells of one."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and bool(told.get("decision"))
