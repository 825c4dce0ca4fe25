# SPDX-License-Identifier: Apache-2.0
"""The watcher's loop: looks, learns, tells the guard (``guard/watcher_channel.py``) what it knows.

Nothing here waits for the guard: a message for which there is no room is lost, and the next one
tells all of it again.
"""

import select
import time
from collections import deque
from contextlib import suppress
from typing import Any, Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.host.background_question import BackgroundQuestion
from seawall.host.host import JSON
from seawall.proc.forked_child import bury
from seawall.watcher.claim_rows import ClaimReport, ClaimRows, LearnedClaims
from seawall.watcher.claims_file import ClaimsFile
from seawall.watcher.deferred_host import DeferredHost
from seawall.watcher.guard_endpoint import GuardEndpoint, word
from seawall.watcher.ledger_looks import FreeMemoryLook
from seawall.watcher.memory_learner import MemoryLearner
from seawall.watcher.watcher_reader import WatcherReader, be_first
from seawall.watcher.workload_inventory import WorkloadInventory

PEACE_SECONDS: Final = 1.0
_ARMED_LEAST_SECONDS, _ARMED_MOST_SECONDS = 0.25, 1.5
_CPU_SHARE, _CPU_SHARE_NEAR, _CPU_SHARE_HURRIED = 0.2, 0.4, 0.9
"""Of a CPU, for looks, following and telling together; near: the guard says that the node comes
near its limit; hurried: that seconds are left.  Where that is not enough, looks come less often,
up to the most.
"""
_HURRIED_PACE: Final = 0.1
_REST_SECONDS: Final = 0.02
_GLIMPSES: Final = 4
"""At free memory, for each look."""
_PACE_LEAST, _PACE_MOST = _HURRIED_PACE, 10.0
_QUIET_PACE, _QUIET_SECONDS = 5.0, 14.0
"""The guard's pace in deep peace: it sleeps for so long, and is told less often than looked."""
_PUMP_SECONDS: Final = 0.1
_INVENTORY_PEACE_SECONDS: Final = 3.0
_INVENTORY_FAST_SECONDS: Final = 1.0
_ANSWERS_FAST_SECONDS: Final = 0.0
"""Asked for again at once: while memory falls, an old claim is less than what is held."""
_ANSWERS_HELD_SECONDS: Final = 5.0
"""While somebody holds something, in peace: older claims are no evidence."""
_ANSWERS_PEACE_SECONDS: Final = 60.0
_DRIVERS_SECONDS: Final = 60.0
"""So long what drivers have mapped is asked for after the guard asked for it."""
_DRIVERS_LEAST_BYTES: Final = 256 << 20
_RINGS_LEAST_BYTES: Final = 32 << 20
_SLOW_SECONDS: Final = 60.0
_STUCK_SECONDS: Final = 12.0
_NOTHING: Final = ClaimReport([], [], 0)


def pause_seconds(pace: float, spent: float, *, is_armed: bool) -> float:
    """Between the begins of two looks.  ``pace``: what the guard asked for, in seconds; ``spent``:
    CPU seconds since the last look began.
    """
    if not is_armed:
        return max(pace, _ARMED_LEAST_SECONDS)
    share = _CPU_SHARE if pace >= PEACE_SECONDS else _CPU_SHARE_NEAR
    if pace <= _HURRIED_PACE:
        share = _CPU_SHARE_HURRIED
    return min(max(_ARMED_LEAST_SECONDS, spent / share), _ARMED_MOST_SECONDS)


class GuardFeed:
    """One watcher at work for one guard."""

    def __init__(self, endpoint: GuardEndpoint, reader: WatcherReader | None = None) -> None:
        self._to = endpoint
        self._reader = reader or WatcherReader()
        self._stuck: BackgroundQuestion | None = None
        self._live = self._reader.host
        self._host = DeferredHost(self._live, self._reader)
        self._inventory = WorkloadInventory(self._live)
        self._learning = MemoryLearner(self._live, self._inventory)
        self._claiming = ClaimRows(self._host, self._inventory)
        self._keeping = ClaimsFile()
        self._residual, self._unclaimed = RollingMinimum(), RollingMinimum()
        self._pace = PEACE_SECONDS
        self._glimpse = FreeMemoryLook()
        self._drivers_until = 0.0
        self._inventory_due = self._slow_due = self._claims_due = self._tell_due = 0.0
        self._claims_seconds = 0.0
        self._told_claims = _NOTHING
        self._had_rows = False
        self._is_short = False

    @property
    def is_fast(self) -> bool:
        """Whether memory grows, or the guard said that it is short."""
        return self._learning.watch.is_armed or self._pace < PEACE_SECONDS

    @property
    def _is_calm(self) -> bool:
        """The guard said that nothing is short for minutes."""
        return self._pace >= _QUIET_PACE

    # --- before and after -----------------------------------------------------------------

    def rehearse(self) -> None:
        """Do everything once, so that nothing is imported, opened or made later."""
        self._reader.start()
        self._inventory.refresh()
        if not self._keeping.why_not_alone():
            self._learning.following.open()
        self._look()
        self._host.may_ask = True
        self._rehearse_claims()
        self._rehearse_answers()

    def _rehearse_answers(self) -> None:
        until = time.monotonic() + 3.0
        while time.monotonic() < until and not self._host.is_idle:
            self._host.go_on()
            time.sleep(0.01)
        self._rehearse_claims()

    def _rehearse_claims(self) -> None:
        if self._learning.ledger is not None:
            self._claiming.tell(self._learned(self._learning.ledger), with_drivers=True)

    def run(self) -> None:
        """Until the guard is gone."""
        while self._to.is_open:
            began = time.monotonic(), time.thread_time()
            self._reader.start()  # one that was lost is replaced at once, by the spare
            self._look()
            self._tell()
            self._do_slow_things()
            self._wait(*began, time.monotonic() + _REST_SECONDS)

    def close(self) -> None:
        """Take away what was made; safe to call twice."""
        self._learning.following.close()
        self._reader.close()
        if self._stuck is not None:
            self._stuck.drop()
        self._live.close()
        self._glimpse.close()
        self._to.close()

    # --- the rounds -----------------------------------------------------------------------

    def _wait(self, began: float, used: float, least: float) -> None:
        """Until the next look; the tracer's buffers are read meanwhile, and an answer is told
        when it comes.  Memory that falls, or a guard that says so, brings the look forward.

        ``began``, ``used``: clock and CPU when the last look began.
        """
        before = self._pace
        while self._to.is_open and self._pace >= before:
            # CPU, not the clock: on a busy machine it would look ever less.
            spent = time.thread_time() - used
            pause = pause_seconds(self._pace, spent, is_armed=self._learning.watch.is_armed)
            due = max(began + pause, least)
            if (left := due - time.monotonic()) <= 0:
                return
            if self.is_fast and self._host.go_on():
                self._tell_claims()
            is_pumped = self._learning.pump(min(left, _PUMP_SECONDS))
            glimpse = 0.0 if is_pumped else min(left, self._pace / _GLIMPSES)
            if select.select((self._to.fd,), (), (), glimpse)[0]:
                self._hear()
            elif not is_pumped and self._glimpse.has_fallen():
                return

    def _hear(self) -> None:
        for message in self._to.messages():
            kind = message.get("t")
            if kind == "pace":
                self._set_pace(message.get("seconds"))
                self._set_short(is_short=message.get("short") is True)
            elif kind == "look":
                self._asked_to_look(message)

    def _set_pace(self, seconds: object) -> None:
        if isinstance(seconds, int | float) and seconds == seconds:  # noqa: PLR0124 - not nan
            self._pace = min(max(float(seconds), _PACE_LEAST), _PACE_MOST)
            self._host.is_hurried = self._pace <= _HURRIED_PACE

    def _set_short(self, *, is_short: bool) -> None:
        """From now on nothing is forked or made, until the guard says that memory is back."""
        self._is_short = is_short
        self._reader.child.may_fork = not is_short

    def _asked_to_look(self, message: dict[str, Any]) -> None:
        cgroups = message.get("cgroups")
        paths = [path for path in cgroups if isinstance(path, str)] if cgroups else []
        if message.get("why") == "stuck":
            self._ask_stuck(paths)
            return
        self._drivers_until = time.monotonic() + _DRIVERS_SECONDS
        self._claims_due = 0.0
        if any(self._inventory.inode(path) is None for path in paths):
            self._inventory_due = 0.0

    def _look(self) -> None:
        self._seen = self._learning.see(is_calm=self._is_calm, may_make=not self._is_short)
        self._glimpse.note_look()
        if self._seen is not None:
            self._residual.see(self._seen.moment.seconds, self._seen.moment.residual_bytes)

    def _tell(self) -> None:
        self._tell_stuck()
        now = time.monotonic()
        if self._is_calm and now < self._tell_due:
            return  # the guard sleeps longer than that, and hears all of it at once
        self._tell_due = now + _QUIET_SECONDS
        is_answered = self._host.go_on()
        if self.is_fast or is_answered or time.monotonic() >= self._claims_due:
            self._tell_claims()
        self._tell_ledger()
        self._tell_inventory()

    # --- messages -------------------------------------------------------------------------

    def _tell_ledger(self) -> None:
        watch, seen = self._learning.watch, self._seen
        blind = word(self._keeping.problem or self._learning.blind or self._inventory.problem)
        if seen is None:
            self._to.tell("blind", blind=blind)
            return
        moment = seen.moment
        unclaimed = moment.residual_bytes - self._told_claims.explained_bytes
        self._unclaimed.see(moment.seconds, unclaimed)
        grown = max(0, moment.residual_bytes - (self._residual.low or 0))
        self._to.tell(
            "ledger",
            seconds=moment.seconds,
            residual=moment.residual_bytes,
            error=moment.error_bytes,
            quick=seen.quick,
            gpu_nodes=self._gpu_nodes(),
            armed=watch.is_armed,
            blind=blind,
            grown=grown,
            unexplained=min(grown, max(0, unclaimed - (self._unclaimed.low or 0))),
        )

    def _gpu_nodes(self) -> list[int]:
        ledger = self._learning.ledger
        return [node.node for node in ledger.nodes if node.is_gpu] if ledger else []

    def _learned(self, ledger: Ledger) -> LearnedClaims:
        watch = self._learning.watch
        if watch.is_armed and self._learning.following.is_on:
            return LearnedClaims(ledger, watch.live, watch.inherited)
        return LearnedClaims(ledger, (), watch.claims)

    def _tell_claims(self) -> None:
        ledger = self._learning.ledger
        if ledger is None:
            return
        now = time.monotonic()
        self._claims_due = now + (PEACE_SECONDS if self._had_rows else _ANSWERS_PEACE_SECONDS)
        fast = self.is_fast or now < self._drivers_until
        peace = _ANSWERS_HELD_SECONDS if self._had_rows else _ANSWERS_PEACE_SECONDS
        self._host.refresh(_ANSWERS_FAST_SECONDS if fast else peace)
        self._host.may_ask = ledger.residual_bytes >= _RINGS_LEAST_BYTES or fast
        grown = ledger.residual_bytes - (self._residual.low or 0)
        drivers = now < self._drivers_until or grown >= _DRIVERS_LEAST_BYTES
        told = self._claiming.tell(self._learned(ledger), with_drivers=drivers)
        self._told_claims, self._had_rows = told, bool(told.rows)
        if told.oldest is not None:  # of then; but never back in time
            now = max(self._claims_seconds, told.oldest)
        self._claims_seconds = now
        self._to.tell_rows(
            "claims", told.rows, seconds=now, refused=[*told.refusals, *self._inventory.blind]
        )

    def _tell_inventory(self) -> None:
        rows, gone = self._inventory.row_updates()
        if (rows or gone) and self._to.tell_rows("groups", rows, gone=gone):
            self._inventory.mark_sent(rows, gone)

    def _ask_stuck(self, paths: list[str]) -> None:
        """By a child that ends with its answer, once an hour at most.  What it predicts by, 0.8 MB,
        only the child imports.
        """

        def answer() -> JSON:
            be_first()
            from seawall.watcher.stuck_groups import stuck  # noqa: PLC0415 - see above

            return stuck(paths)

        if self._stuck is None and not self._is_short:
            with suppress(OSError):  # no memory for it: the guard asks again
                self._stuck = BackgroundQuestion("stuck", answer, _STUCK_SECONDS)

    def _tell_stuck(self) -> None:
        if self._stuck is None or not self._stuck.is_over:
            return
        told, self._stuck = self._stuck.answer(), None
        if isinstance(told, list):
            rows = [row for row in told if isinstance(row, dict)]
            for row in rows:
                row["inode"] = self._inventory.inode(str(row.get("cgroup")))
            self._to.tell_rows("stuck", rows)

    # --- what can wait --------------------------------------------------------------------

    def _do_slow_things(self) -> None:
        now = time.monotonic()
        if now >= self._inventory_due:
            if self._inventory_due == 0.0 or self._inventory.is_stale():
                self._inventory.refresh()
            is_soon = self.is_fast or self._inventory.is_to_be_named
            self._inventory_due = now + (
                _INVENTORY_FAST_SECONDS if is_soon else _INVENTORY_PEACE_SECONDS
            )
        if now >= self._slow_due and not self.is_fast:
            self._slow_due = now + _SLOW_SECONDS
            bury()
            if self._keeping.is_alone:
                self._learning.following.open()
                self._learning.following.refresh()
        if self._seen is not None and not self.is_fast:
            self._keeping.write(self._learning, self._seen.moment)


# The rolling minimum of a number over the last hour: what growth is measured from.

_MINUTE: Final = 60.0
_MINUTES_MOST: Final = 60


class RollingMinimum:
    """The least of each minute, of an hour of them."""

    def __init__(self) -> None:
        self._minutes: deque[tuple[int, int]] = deque(maxlen=_MINUTES_MOST)

    def see(self, seconds: float, value: int) -> None:
        """Add a value; ``seconds``: when, monotonic."""
        minute = int(seconds // _MINUTE)
        if self._minutes and self._minutes[-1][0] == minute:
            value = min(value, self._minutes.pop()[1])
        self._minutes.append((minute, value))
        while self._minutes[0][0] <= minute - _MINUTES_MOST:
            self._minutes.popleft()

    @property
    def low(self) -> int | None:
        """The least value of the kept minutes; None before the first."""
        return min((value for _, value in self._minutes), default=None)
