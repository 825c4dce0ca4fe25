# SPDX-License-Identifier: Apache-2.0
"""What a run shows: its moments while it goes on, and its end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from seawall.lab.disk import DiskLimit
from seawall.lab.group import Measured
from seawall.lab.plan import Plan

Ended = Literal["time", "nobody_left", "interrupted"]

HUNG_SECONDS: Final = 3.0
"""At the limit, nothing taken and nobody killed for so long: it hangs."""
NEAR_BYTES: Final = 1 << 20
"""The last charges of a batch are refused before the limit itself is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabMoment:
    """One look at the run; ``seconds`` since the first process was started."""

    seconds: float
    measured: Measured
    alive: int
    started: int
    killed: int
    """By a SIGKILL that the lab did not send."""
    done_bytes: int
    """What all the living have taken, written or run through so far."""
    turns: int
    last_turn_seconds: float | None
    """thrash: the median over the programs; None before the first turn."""
    waiting: int
    """Those that live and still want more."""

    @property
    def moved(self) -> tuple[object, ...]:
        """What changes while anything goes on at all."""
        return (self.done_bytes, self.turns, self.started, self.killed, self.measured.oom_kills)


@dataclass(slots=True, kw_only=True)
class Available:
    """MemAvailable of the machine, in bytes; None: not told.  Others move it too."""

    before: int | None = None
    least: int | None = None
    """While it ran."""
    after: int | None = None
    """When everything was removed."""

    def look(self, now: int | None) -> None:
        """Take in MemAvailable of a moment during the run, in bytes; None: it could not be read."""
        if now is not None and (self.least is None or now < self.least):
            self.least = now


@dataclass(slots=True, kw_only=True)
class Watch:
    """Tells a hang from work: fed with every look."""

    limit_bytes: int
    longest_seconds: float = 0.0
    _since: float | None = None
    _before: LabMoment | None = None

    def look(self, now: LabMoment) -> None:
        """Count on while the cgroup is full, somebody waits, and nothing at all moves."""
        before, self._before = self._before, now
        usage = now.measured.usage or 0
        is_full = usage >= self.limit_bytes - max(NEAR_BYTES, self.limit_bytes // 64)
        is_still = before is not None and now.waiting > 0 and now.moved == before.moved
        if not (is_full and is_still and before):
            self._since = None
            return
        if self._since is None:
            self._since = before.seconds
        self.longest_seconds = max(self.longest_seconds, now.seconds - self._since)

    @property
    def hung_seconds(self) -> float:
        """The longest hang; 0 for pauses shorter than HUNG_SECONDS."""
        return self.longest_seconds if self.longest_seconds >= HUNG_SECONDS else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabReport:
    """How a whole run of the lab went, from its plan to what was left behind."""

    plan: Plan
    path: str
    """The cgroup, as ``seawall pods`` shows it."""
    folders: Sequence[str]
    version: Literal[1, 2]
    ended: Ended
    seconds: float
    last: LabMoment
    """The last look before the end."""
    peak_bytes: int | None
    peak_is_sampled: bool
    """No file tells the peak here (memory.peak is 6.0+): the highest that was seen."""
    started: int
    killed: int
    """By a SIGKILL that the lab did not send: the kernel's, or somebody else's."""
    failed: int
    """Ended by an error; see notes."""
    replaced: int
    """Of those started, in the place of a killed one."""
    survived: int
    """Alive when the lab ended it."""
    done_bytes: int
    """What all that were started have taken, written or run through."""
    hung_seconds: float
    """The longest time at the limit in which nothing was taken and nobody killed; 0 when less than
    3 s."""
    held: DiskLimit | None
    """thrash: whether the disk was held slow; None when that was not asked for."""
    first_turn_seconds: float | None
    notes: Sequence[str]
    """What was not done as planned, and what failed processes said."""
    moments: Sequence[LabMoment]
    """One a second or so, 600 at most."""
    available: Available | None = None
    """MemAvailable of the machine, for memory that no cgroup counts; others move it too."""
    left: Sequence[str] = field(default_factory=tuple)
    """What could not be removed; empty when everything is gone, as was looked at."""
