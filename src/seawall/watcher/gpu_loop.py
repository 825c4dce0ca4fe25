# SPDX-License-Identifier: Apache-2.0
"""The loop of ``seawall gpu --watch``: looks, listens for writers, and tells what changed.

A look follows each write at once, so that what somebody gives for a moment is seen; else it
comes every so many seconds.  The whole table is made anew a moment after a rule changed or a
process ended, and every TABLE_SECONDS; never more than a twentieth of the time goes into it.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.watch.changes import Changes
from seawall.accounts.devices.watch.device_watch_events import (
    AccessEvent,
    Begun,
    Blind,
    Line,
    WatchEnded,
)
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.watcher.alarm import Alarm
from seawall.watcher.device_probe import DeviceProbe, now
from seawall.watcher.device_writes import DeviceWrites

TABLE_SECONDS: Final = 10.0
TABLE_SHARE: Final = 20.0
"""So many times as long as a table took passes before the next one."""
SOON_SECONDS: Final = 0.5
"""From a change to a table: whoever rewrites rules is not done with the first."""
SETTLE_SECONDS: Final = 0.03
"""A look waits until nobody wrote for so long, and at most SETTLE_MOST_SECONDS."""
SETTLE_MOST_SECONDS: Final = 0.15
AGAIN_SECONDS: Final = 0.2
"""Between two looks because of writes: who writes all the time costs no more."""


class GpuLoop:
    """One run of ``seawall gpu --watch``: what it looks at, when, and what it told."""

    def __init__(
        self,
        wanted: Workload | None,
        tell: Callable[[Line], None],
        *,
        every_seconds: float,
        for_seconds: float | None,
        table_seconds: float,
    ) -> None:
        self._tell = tell
        self._every = every_seconds
        self._for = for_seconds
        self._sight = DeviceProbe(wanted, table_seconds)
        self._writes = DeviceWrites(self._sight.with_workload)
        self._changes = Changes()
        self._blind: set[str] = set()
        self._table_due = 0.0
        self._table_least = 0.0
        self._looks = 0
        self._events = 0
        self._devices: set[tuple[str | None, str]] = set()
        self._due = 0.0

    def run(self, alarm: Alarm) -> Unread | None:
        """Until the alarm is over, or the time; why nothing can be seen."""
        began = time.monotonic()
        problem = self._table()
        if problem is not None:
            return problem
        self._begin()
        until = time.monotonic() + self._for if self._for is not None else float("inf")
        self._due = time.monotonic() + self._every
        while not alarm.is_over and (moment := time.monotonic()) < until:
            alarm.sleep(min(self._due, until, self._table_due) - moment, *self._writes.fds)
            if alarm.is_over:
                break
            if self._writes.collect() or self._writes.touched():
                self._after_writes(alarm)
            self._on_time()
        seconds = time.monotonic() - began
        self._tell(WatchEnded(now(), seconds, self._looks, self._events, len(self._devices)))
        return None

    def close(self) -> None:
        """End the children: the listener for writes, and whoever tries the devices for us."""
        self._writes.close()
        self._sight.close()

    def _begin(self) -> None:
        look = self._sight.look()
        self._changes.see(look)
        self._looks += 1
        unseen = (*self._writes.unseen, *self._sight.unseen)
        self._blind = set(unseen)
        self._tell(
            Begun(
                at=look.at, names=dict(self._changes.names), stands=self._changes.stands(),
                nodes=dict(look.nodes or {}), every_seconds=self._every, for_seconds=self._for,
                unseen=unseen,
            )
        )  # fmt: skip

    def _on_time(self) -> None:
        if time.monotonic() >= self._table_due:
            problem = self._table()
            if problem is not None:
                self._say_blind((f"{problem.path}: {problem.detail or problem.why}",))
            self._due = time.monotonic()  # who came is looked at
        if time.monotonic() >= self._due:
            self._look(None)
            self._due = max(self._due + self._every, time.monotonic())

    # --- the table ----------------------------------------------------------------------

    def _table(self) -> Unread | None:
        began = time.monotonic()
        told = self._sight.tabulate()
        ended = time.monotonic()
        took = ended - began
        self._table_least = ended + max(SOON_SECONDS, took * TABLE_SHARE / 4)
        self._table_due = ended + max(TABLE_SECONDS, took * TABLE_SHARE)
        if isinstance(told, Unread):
            return told
        self._writes.watch(self._sight.containers)
        self._say(self._changes.tell(told))
        if self._looks:
            self._say_blind((*self._writes.unseen, *self._sight.unseen))
        return None

    def _table_soon(self) -> None:
        soon = max(time.monotonic() + SOON_SECONDS, self._table_least)
        self._table_due = min(self._table_due, soon)

    # --- looks --------------------------------------------------------------------------

    def _after_writes(self, alarm: Alarm) -> None:
        """Once it is quiet, a look at those that were written to."""
        until = time.monotonic() + SETTLE_MOST_SECONDS
        is_quiet = False
        while not is_quiet and time.monotonic() < until and not alarm.is_over:
            alarm.sleep(SETTLE_SECONDS, *self._writes.fds)
            is_quiet = not self._writes.collect()
        self._look(self._writes.touched())
        alarm.sleep(AGAIN_SECONDS)

    def _look(self, only: set[str] | None) -> None:
        look = self._sight.look(only)
        self._writes.collect()
        own, above = self._writes.pending()
        if only is not None:  # others were not looked at, so nothing is known of their writes
            own = {cgroup: rows for cgroup, rows in own.items() if cgroup in only}
            above = {cgroup: rows for cgroup, rows in above.items() if cgroup in only}
        self._looks += 1
        events = self._changes.see(replace(look, writes=own, writes_above=above))
        self._writes.forget_before(only, look.began)
        if self._sight.has_gone or any(one.layer == "kernel" for one in events):
            self._table_soon()
        self._say(events)

    # --- what is told -------------------------------------------------------------------

    def _say(self, events: list[AccessEvent]) -> None:
        if not events:
            return
        self._events += len(events)
        self._devices |= {(one.cgroup, one.device) for one in events if one.device is not None}
        self._tell(tuple(events))

    def _say_blind(self, unseen: tuple[str, ...]) -> None:
        """Each once, until it was seen again."""
        new = [words for words in dict.fromkeys(unseen) if words not in self._blind]
        self._blind = set(unseen)
        for words in new:
            self._tell(Blind(now(), words))
