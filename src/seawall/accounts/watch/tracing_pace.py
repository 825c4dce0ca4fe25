# SPDX-License-Identifier: Apache-2.0
"""When a watcher traces: only while uncounted memory grows faster than it should.

Pure: moments of any clock go in, a decision comes out.  Growth counts when it is above the
error of the ledger as well, so noise never arms.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LedgerMoment:
    """One look at the ledger."""

    seconds: float
    """Monotonic."""
    residual_bytes: int
    """Without the tracer's own buffers."""
    error_bytes: int


@dataclass(frozen=True, slots=True)
class TracingPace:
    """Growth of ``bytes_per_second`` or more, on the average of ``seconds``.

    It is traced for ``hold_seconds`` after the last look that showed it.
    """

    seconds: float
    bytes_per_second: int
    hold_seconds: float


BURST: Final = TracingPace(10.0, 4 * MIB, hold_seconds=120.0)
"""40 MiB in 10 s: nothing that a host does in peace.  Bursts come in rows."""
LEAK: Final = TracingPace(600.0, MIB // 4, hold_seconds=600.0)
"""150 MiB in ten minutes, which would be 21 GiB a day."""
PACES: Final = (BURST, LEAK)
"""The quickest first."""


class Growth:
    """Follows uncounted memory; ``is_armed`` is what it decided last."""

    def __init__(self, paces: tuple[TracingPace, ...] = PACES) -> None:
        self._paces = paces
        self._longest = max(pace.seconds for pace in paces)
        self._series: deque[tuple[float, int]] = deque()
        self._until = 0.0
        self.is_armed = False
        self.grown_bytes = 0
        """By how much uncounted memory had grown when it last said so: taken before the trace."""

    @property
    def low_bytes(self) -> int | None:
        """The least that uncounted memory was of late; None before the first look."""
        return min((residual for _, residual in self._series), default=None)

    def see(self, moment: LedgerMoment) -> bool:
        """Whether to trace from here on."""
        if self._series and moment.seconds <= self._series[-1][0]:
            return self.is_armed  # a clock that stands still tells no rate
        self._series.append((moment.seconds, moment.residual_bytes))
        while self._series[0][0] < moment.seconds - self._longest:
            self._series.popleft()
        growing = self._growing(moment)
        if growing is not None:
            self._until = moment.seconds + growing.hold_seconds
            self.is_armed = True
            self._begin_again()
        elif self.is_armed and moment.seconds >= self._until:
            self.is_armed = False
            self._begin_again()
        return self.is_armed

    def _growing(self, moment: LedgerMoment) -> TracingPace | None:
        """The quickest pace that is exceeded."""
        for pace in self._paces:
            since = moment.seconds - pace.seconds
            low = min(residual for at, residual in self._series if at >= since)
            least = max(int(pace.bytes_per_second * pace.seconds), moment.error_bytes)
            if moment.residual_bytes - low > least:
                self.grown_bytes = moment.residual_bytes - low
                return pace
        return None

    def _begin_again(self) -> None:
        """What was seen has had its consequence: the same growth does not count twice."""
        last = self._series[-1]
        self._series.clear()
        self._series.append(last)


class Falls:
    """How far uncounted memory fell, in falls that are more than noise."""

    def __init__(self, residual_bytes: int | None = None) -> None:
        self._peak = residual_bytes

    def see(self, residual_bytes: int, error_bytes: int) -> int:
        """By how much it fell now; 0 for noise."""
        if self._peak is None or residual_bytes >= self._peak:
            self._peak = residual_bytes
            return 0
        fall = self._peak - residual_bytes
        if fall <= error_bytes:
            return 0
        self._peak = residual_bytes
        return fall
