# SPDX-License-Identifier: Apache-2.0
"""What the guard's watcher learns of uncounted memory: ledger and tracer around ``accounts/watch``.

The same order of things as in ``loop.py``, at another pace: growth is believed after a few
seconds, and what was taken is told as soon as it has settled.
"""

import time
from typing import Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.tracing.sums import TraceInputs, UncountedGrowth, sum_trace
from seawall.accounts.tracing.task_workloads import memory_path
from seawall.accounts.watch.tracing_pace import BURST, LEAK, MIB, Growth, LedgerMoment, TracingPace
from seawall.accounts.watch.watched_claims import ClaimPlace
from seawall.accounts.watch.watching import MemoryWatch
from seawall.accounts.workloads import Workloads
from seawall.host.host import Host, Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.container_files import ContainerFiles
from seawall.readings.page_trace import PageTrace
from seawall.readings.saved_claims import SavedClaims
from seawall.readings.snapshot import Snapshot
from seawall.watcher.inodes import Inodes
from seawall.watcher.ledger_looks import LedgerLook, LedgerLooks
from seawall.watcher.resident_tracer import ResidentTracer
from seawall.watcher.workload_inventory import WorkloadInventory

SURGE: Final = TracingPace(3.0, 12 * MIB, hold_seconds=20.0)
"""36 MiB in 3 s.  Told wrongly it costs a tenant 1 to 3 % of a page fault, for 20 s."""
LOOK_EVERY_SECONDS: Final = 0.1
"""While it traces; the loop takes longer."""
_STRANGERS_EVERY_SECONDS: Final = 1.0


class MemoryLearner:
    """Ledger, tracer and memory of one watcher."""

    def __init__(self, host: Host, inventory: WorkloadInventory) -> None:
        self._host = host
        self._inventory = inventory
        self.looks = LedgerLooks(host)
        self.following = ResidentTracer()
        self._inodes = Inodes(self._host)
        self._strangers_at = 0.0
        self._strangers: frozenset[tuple[str, int | None]] = frozenset()
        kept = Snapshot(host).get(SavedClaims)
        known = None if isinstance(kept, Unread) else kept
        growth = Growth((SURGE, BURST, LEAK))
        self.watch = MemoryWatch(
            known, growth, look_every_seconds=LOOK_EVERY_SECONDS, now_unix_seconds=time.time()
        )
        self.problem = ""
        """Why the last look of the tracer told nothing."""

    def see(self, *, is_calm: bool = False, may_make: bool = True) -> LedgerLook | None:
        """One more look at the ledger, and all that follows from it.  ``is_calm``: nothing is
        short for minutes; ``may_make``: a tracer that is not there may be made.
        """
        look = self.looks.look(whole=self.watch.is_armed, is_calm=is_calm)
        if look is None:
            return None
        if not look.is_whole and self._would_arm(look.moment):
            look = self.looks.look(whole=True) or look  # meminfo alone may be mistaken
        for step in self.watch.see(look.moment):
            if step == "arm":
                self._arm()
            elif step == "look":
                look = self._learn(look)
            else:
                self.watch.disarmed()
                self.following.disarm(keeps=bool(self.watch.live))
        if self.watch.is_armed and not self.following.is_on:
            if may_make:
                self.following.open()
            self._arm()
        return look

    def pump(self, seconds: float) -> bool:
        """Follow for so long; False when there is nothing to follow."""
        if not self.following.is_on:
            return False
        self.following.pump(seconds)
        return self.following.is_on

    @property
    def blind(self) -> str:
        """Why less is learned than could be."""
        return self.looks.blind or self.following.blind or self.problem

    @property
    def ledger(self) -> Ledger | None:
        """The last ledger that was read whole; None before the first."""
        return self.looks.ledger

    def _arm(self) -> None:
        paths = [group.cgroup for group in self._inventory.groups()]
        self._inodes.begin(paths, self.place(), keeps=bool(self.watch.live))
        self.following.arm()

    def _would_arm(self, moment: LedgerMoment) -> bool:
        low = self.watch.growth.low_bytes
        return low is not None and moment.residual_bytes - low > 8 * MIB

    def _learn(self, look: LedgerLook) -> LedgerLook:
        """Ask the tracer what is still held, then the ledger: in this order, for what is taken
        in between must not look like growth that nobody claimed.
        """
        had = bool(self.watch.live) or self.following.is_on
        trace = self.following.look()
        if isinstance(trace, Unread):
            self.problem = trace.detail
            if had and not self.following.is_on:
                self.watch.drop_tracer()
            return look
        self.problem = ""
        self._meet(trace)
        later = self.looks.look(whole=True) or look
        sight, place = self._sight(), self.place()
        trace = self._inodes.with_workload_cgroups(
            trace, sight.places, self._inventory.cgroups, place
        )
        self.watch.learn(later.moment, sum_trace(trace, sight, UncountedGrowth()).rows, place)
        if not self.watch.is_armed and not self.watch.live:
            self.following.disarm(keeps=False)
        return later

    def _sight(self) -> TraceInputs:
        """Of the last whole ledger, with the inventory of now: nothing else is read."""
        inventory = self._inventory
        known = {
            Ledger: self.looks.ledger, Cgroups: inventory.cgroups, ContainerFiles: inventory.files,
            Workloads: inventory.workloads,
        }  # fmt: skip
        return TraceInputs.of(Snapshot(self._host, known))

    def _meet(self, trace: PageTrace) -> None:
        """A cgroup that is not known yet must not be taken for one that is gone."""
        if time.monotonic() < self._strangers_at:
            return
        version, known = (
            self._inventory.cgroups.layout.memory_version,
            set(self._inventory.cgroups.paths),
        )
        paths = ((memory_path(task.cgroups, version), task.cgroup_inode) for task in trace.tasks)
        strangers = frozenset(
            (path, inode) for path, inode in paths if path is not None and path not in known
        )
        if not strangers <= self._strangers:
            self._strangers_at = time.monotonic() + _STRANGERS_EVERY_SECONDS
            self._inventory.refresh()
        self._strangers = strangers  # those that are still not there are gone

    def place(self) -> ClaimPlace:
        """The boot and moment that saved claims are of."""
        kernel = self.looks.kernel
        return ClaimPlace(
            boot_id=(kernel.boot_id if kernel else None) or "",
            unix_seconds=time.time(),
            mount_point=self._inventory.cgroups.mount_point,
            traced_seconds=self.following.seconds,
        )
