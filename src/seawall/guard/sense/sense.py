# SPDX-License-Identifier: Apache-2.0
"""What the guard sees by itself, each tick: the node and its groups.

Nothing here takes another process's lock, forks, imports or keeps what it need not.  What the
watcher tells comes in by ``hear``; without it there are no claims and no names, and all the
rest goes on.
"""

import os
import time
from collections.abc import Sequence
from typing import Final

from seawall.actions.orders import Mounts
from seawall.guard.sense.cadence import Cadence
from seawall.guard.sense.canary import Canary
from seawall.guard.sense.details import Details
from seawall.guard.sense.group_pressure import GroupPressure
from seawall.guard.sense.group_table import GroupTable
from seawall.guard.sense.merge import Merge
from seawall.guard.sense.residual import TickResidual
from seawall.guard.sense.standstill import StandstillWatch
from seawall.guard.sense.tick_headroom import TickHeadroom
from seawall.guard.sense.tick_meminfo import TickMeminfo
from seawall.guard.sense.tick_vmstat import Rate, TickVmstat
from seawall.guard.sense.trend import Trend
from seawall.guard.sense.triggers import Triggers
from seawall.guard.sense.users import largest_parts
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import NOT_TOLD, Group, Node, UserSlice

_RARELY_SECONDS: Final = 10.0
_DEEP_SECONDS: Final = 60.0
"""In deep peace nothing hangs on watermarks and swap areas."""
_NEAR_TIMES: Final = 4
"""So many times the act threshold, or less, is near."""
_NEAR_SECONDS: Final = 30.0
_STALL_IS_NEAR: Final = 0.1
_GROWN_SHARE: Final = 64
"""Of all memory: uncounted memory that grew by more is no deep peace."""
_FALLEN_SHARE: Final = 16
_LATE_SECONDS: Final = 0.005
"""poll() itself rounds up by one millisecond."""


class Sense:
    """One node; ``look`` each tick."""

    def __init__(
        self,
        settings: Settings,
        mounts: Mounts,
        own_cgroup: str,
        *,
        proc: str = "/proc",
        sys: str = "/sys",
    ) -> None:
        self._settings = settings
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._cpus = os.cpu_count() or 1
        self.memory = TickMeminfo(proc)
        self.vmstat = TickVmstat(proc)
        self.headroom = TickHeadroom(proc, sys, self._page)
        self.residual = TickResidual()
        self.table = GroupTable(mounts, are_told=settings.watch, user_slices=settings.user_slices)
        self.groups: dict[str, Group] = self.table.by_path
        self._details = Details(self.table.names, proc)
        self._merge = Merge(self.table.members, self.residual, self.headroom.gpu)
        self._stalled = StandstillWatch(self.table.names, proc, own_cgroup, settings.stalled)
        self._canary = Canary(proc)
        self.triggers = Triggers()
        self._host_pressure = f"{proc}/pressure/memory"
        self._trend = Trend()
        self._is_detailed = False
        self._stalls = Rate()
        self._kills = Rate()
        self._rarely = Cadence(_RARELY_SECONDS)
        self._counters = Cadence(_RARELY_SECONDS)
        self._is_near = False
        self.pause_seconds = self.breath_seconds = settings.tick_least_seconds
        """Until the next tick; until somebody looks at free memory at least."""
        self.spare_seconds = settings.tick_least_seconds
        """So long nobody need look, whatever ``tick_most_seconds`` asks for."""
        self._is_deep = False
        self._is_woken = False
        """A trigger ended the last sleep."""
        self._glance = self._fallen = 0.0
        self._pressure_problem = ""
        self._swap_seen: tuple[int | None, int | None] = (None, None)

    # --- start ------------------------------------------------------------------------------

    def open(self) -> None:
        """Open what is read; after it nothing of the node's start is missing but rates."""
        now = time.monotonic()
        pressure = GroupPressure(self._host_pressure)
        pressure.open()
        self._pressure_problem = pressure.problem
        pressure.close()
        if not self._pressure_problem:
            self.triggers.add(self._host_pressure)
        self.table.open(now)
        self.look(now)

    def use(self, settings: Settings) -> None:
        """The configuration was read anew; who counts as stalled is looked up again."""
        self._settings = settings
        self._stalled.use(settings.stalled)

    @property
    def blind(self) -> list[str]:
        """What cannot be seen, with what would provide it."""
        table = self.table
        told = (
            self.memory.problem, self.vmstat.problem, self.headroom.problem,
            self._pressure_problem, self.triggers.problem, table.problem, table.swap_problem,
            table.tree.blind, self._canary.problem, self._merge.unlearned, *self._merge.refusals,
        )  # fmt: skip
        found = [words for words in told if words]
        if not self.table.names.unified:
            found.append(
                "pressure of groups: cgroup v1 has none; how long they stand still is estimated"
                " from major faults; cgroup v2 would tell"
            )
        if self._merge.claims_seconds is None:
            found.append("claims: no watcher has spoken; nobody's hidden memory is known")
        if count := sum(group.protected_by == NOT_TOLD for group in self.groups.values()):
            found.append(f"who {count} workloads are: not told yet; left alone so long")
        if self._merge.dropped:
            found.append(f"the watcher: {self._merge.dropped} messages or rows were not believed")
        return found

    @property
    def dropped(self) -> int:
        """Messages and rows of the watcher that were not believed."""
        return self._merge.dropped

    @property
    def is_near(self) -> bool:
        """Whether the slow files are read in each tick."""
        return self._is_near

    # --- each tick --------------------------------------------------------------------------

    def look(self, now: float) -> Node:
        """The node of this moment; ``groups`` are brought up to date with it."""
        memory, head, merge = self.memory, self.headroom, self._merge
        is_seen = memory.read()
        # In deep peace whoever waits in reclaim is heard of by a trigger, which ends the sleep.
        is_busy = not self._is_deep or self._is_woken or bool(memory.swap_total)
        is_counted = self._counters.is_due(now, is_near=is_busy)
        if is_counted:
            self.vmstat.read()
        if self._rarely.is_due(now, is_near=self._is_near):
            head.read_rarely(memory, now)
        merge.tend(now)
        has_swap = bool(memory.swap_total)
        self.table.look(
            now, head.total_bytes, is_near=self._is_near, has_swap=has_swap,
            swap_cached=self._swap_moved(memory),
        )  # fmt: skip
        merge.settle(now)
        if is_seen:
            head.look(memory, self.table.unswappable_bytes, self.table.protected_bytes)
            if head.is_other_measure:
                self._trend.forget()
            self._trend.add(now, head.bytes)
            beside = (self.vmstat.zspages or 0) * self._page + head.zones.listed_bytes
            beside += head.gpu.uncounted_bytes
            self.residual.look(now, memory, beside, merge.certain_bytes)
        else:
            self.residual.could_not_see()
        stall = self._stalled.look(now, self.groups)
        self.triggers.follow(self._stalled.new_pressure_files, now)
        node = self._node(now, stall, is_counted=is_counted)
        return node if is_seen else _unseen(node)

    def _node(self, now: float, stall: float, *, is_counted: bool) -> Node:
        """``is_counted``: the kernel's counters are of this tick."""
        head, residual, vmstat = self.headroom, self.residual, self.vmstat
        slope = -self._trend.slope()
        stalls, kills, faults = 0.0, 0, 0
        if is_counted:
            stalls = self._stalls.per_second(vmstat.stalls, now)
            kills = self._kills.gained(vmstat.kernel_kills, now)[0]
            faults = self._canary.major_faults(now)
        self._settle_pace(slope, stalls, stall)
        claims = self._merge.claims_seconds
        return Node(
            seconds=now,
            total_bytes=head.total_bytes,
            free_bytes=max(0, self.memory.mem_free - head.gpu.free_bytes),
            headroom_bytes=head.bytes,
            swap_bytes=min(head.swap_bytes, head.bytes),
            swap_used_bytes=(self.memory.swap_total or 0) - (self.memory.swap_free or 0),
            comparable_bytes=head.comparable_bytes,
            slope_bytes_per_second=slope,
            residual_bytes=residual.bytes,
            residual_grown_bytes=residual.grown_bytes,
            residual_slope_bytes_per_second=residual.slope,
            unexplained_growth_bytes=residual.unexplained_bytes,
            is_low=head.zones.is_low,
            is_min=head.zones.is_min,
            stalls_per_second=stalls,
            protected_stall=stall,
            late_seconds=self._canary.late_seconds(),
            own_major_faults=faults,
            kernel_kills=kills,
            exits=self.table.exits,
            claims_seconds=None if claims is None else max(0.0, now - claims),
            mem_total_bytes=self.memory.mem_total,
        )

    def _swap_moved(self, memory: TickMeminfo) -> int | None:
        """SwapCached, when anything went to swap or came back since the last tick."""
        seen = memory.swap_free, memory.swap_cached
        if seen == self._swap_seen:
            return None
        self._swap_seen = seen
        return memory.swap_cached or 0

    def _settle_pace(self, slope: float, stalls: float, stall: float) -> None:
        """How soon the next tick comes, and what is read in it."""
        settings, head = self._settings, self.headroom
        act = min(settings.act_fraction * head.total_bytes, settings.act_at_most_bytes)
        is_stalled = stalls > 0.0 or stall > _STALL_IS_NEAR
        self._is_near = (
            is_stalled or head.bytes < _NEAR_TIMES * act or slope * _NEAR_SECONDS > head.bytes
        )
        # Minutes are left, nobody is close to a limit, and a trigger would wake us.
        self._is_deep = (
            not self._is_near
            and self.table.is_quiet
            and bool(self.triggers.by_fd)
            and self.residual.grown_bytes < head.total_bytes // _GROWN_SHARE
        )
        self._rarely.peace = _DEEP_SECONDS if self._is_deep else _RARELY_SECONDS
        left = max(0, head.bytes - int(act))
        self.spare_seconds = pause_seconds(
            left, slope, settings.tick_least_seconds, float("inf"),
            is_stalled=is_stalled, is_deep=self._is_deep, cpus=self._cpus,
        )  # fmt: skip
        breath = self.breath_seconds = min(self.spare_seconds, settings.tick_most_seconds)
        self._glance = min(glance_seconds(left, self._cpus), breath)
        available = self.memory.mem_available
        self._fallen = float("inf") if available is None else available - head.bytes / _FALLEN_SHARE
        self.pause_seconds = broken_seconds(breath) if self._is_deep else breath

    def detail_all(self, wanted: Sequence[Group]) -> None:
        """Read what is only read of those that lead; of others it is old, and not known now."""
        if wanted or self._is_detailed:
            self._details.forget(member.group for member in self.table.members.values())
        self._is_detailed = bool(wanted)
        for group in wanted:
            self.detail(group)

    def detail(self, group: Group) -> None:
        """Read of one group what costs too much to be read of all of them at every tick."""
        member = self.table.members.get(group.path)
        if member is not None and member.group is group:
            has_swap = bool(self.memory.swap_total)
            self._details.read(member, time.monotonic(), has_swap=has_swap)
            if isinstance(group, UserSlice):
                for part in largest_parts(group):
                    of_part = self.table.members[part.path]
                    self._details.read(of_part, time.monotonic(), has_swap=has_swap)

    def hear(self, message: dict[str, object]) -> None:
        """A message of the watcher."""
        self._merge.hear(message, time.monotonic())

    # --- sleep ------------------------------------------------------------------------------

    def wait(self, seconds: float, fds: Sequence[int]) -> list[int]:
        """Sleep; a trigger ends it early.  Those of ``fds`` that can be read."""
        triggers = self.triggers
        triggers.listen(fds)
        self._is_woken = False
        while True:
            asked = min(seconds, self._glance) if self._is_deep else seconds
            began = time.monotonic()
            found = triggers.sleep(asked)
            if found:
                ready = triggers.ready(found)
                self._is_woken = len(ready) < len(found)
                return ready
            took = time.monotonic() - began
            if took - asked > _LATE_SECONDS:
                self._canary.slept(asked, took)
            seconds -= took
            # In deep peace: whether much less can be had than at the last look.
            if seconds <= 0.0 or self.memory.glance() < self._fallen:
                return []

    def close(self) -> None:
        """Give all descriptors back."""
        self.triggers.close()
        self._stalled.close()
        self.headroom.gpu.close()
        self.table.close()


def _unseen(node: Node) -> Node:
    """Without what meminfo would have said: the last that it said may be long over."""
    return node._replace(
        total_bytes=0, free_bytes=0, headroom_bytes=0, swap_bytes=0, swap_used_bytes=0,
        slope_bytes_per_second=0.0, is_low=False, is_min=False,
    )  # fmt: skip


# How long to sleep: the closer and the faster, the shorter.
#
# An eighth of the time that is left at the present slope.  What may come up from nothing during
# the sleep is met too: the headroom must outlast a sleep at the rate at which memory can be
# filled by several programs at once.  In deep peace the sleep is longer than that, but every so
# often it is broken by a glance at MemAvailable: a look at everything, once a second, costs three
# times as much.  PSI triggers end a sleep early where they exist.

_SHARE: Final = 8
_FILLED_BYTES_PER_SECOND: Final = 6 << 30
"""The most, as earlyoom takes it too; fewer processors cannot clear so many pages."""
_FILLED_BY_ONE: Final = 2 << 30
_BUSY_SECONDS: Final = 0.25
"""While somebody that is protected stands still, or allocations wait."""
_BROKEN_SECONDS: Final = 10.0
_BROKEN_TIMES: Final = 10
"""A sleep in deep peace is of so many pieces, or so long, if the pieces are short."""
_GLANCE_LEAST: Final = 1.0
"""Less than this is no deep peace."""


def glance_seconds(headroom: int, cpus: int = 4) -> float:
    """So long nobody need look, whatever comes up from nothing."""
    return headroom / min(_FILLED_BYTES_PER_SECOND, cpus * _FILLED_BY_ONE)


def pause_seconds(
    headroom: int,
    slope: float,
    least: float,
    most: float,
    *,
    is_stalled: bool = False,
    is_deep: bool = False,
    cpus: int = 4,
) -> float:
    """Between ``least`` and ``most`` seconds.  ``is_deep``: the sleep is broken by glances."""
    glance = glance_seconds(headroom, cpus)
    wanted = headroom / slope / _SHARE if slope > 0.0 else most
    if not is_deep or glance < _GLANCE_LEAST:
        wanted = min(wanted, glance)
    if is_stalled:
        wanted = min(wanted, _BUSY_SECONDS)
    return min(max(wanted, least), most)


def broken_seconds(piece: float) -> float:
    """A whole sleep in deep peace: between two of its pieces only free memory is looked at."""
    return max(piece, min(_BROKEN_SECONDS, _BROKEN_TIMES * piece))
