# SPDX-License-Identifier: Apache-2.0
"""Which nodes died, which were meant to end, and which came back.  Pure: rows in, events out.

The same rows at the same times give the same events, so that a recorded day can be judged again.

    silent     Ready=Unknown, or deleted while it was not Ready; Ready=False is a kubelet that talks
    reset      another boot id of a node that was Ready
    planned    either, with a drain mark at least 5 s before it, or a cordon that is younger than
               half an hour.  A mark that comes after the silence is somebody's repair
    retracted  Ready again with the same boot id: it never died
    recovered  Ready again with another boot id, or made anew: it did

While the API could not be asked nobody knows who is alive: deaths that are seen then, and for a
minute after, wait that minute, and whoever is Ready again by then was never dead.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from seawall.cluster.judge.node_death import DeathKind, Stratum
from seawall.cluster.kube.node_row import NodeRow

DEAD_MOST: Final = 10_000
"""Dead nodes whose return is waited for; of more the oldest are forgotten."""
_NEVER_UPDATED: Final = "NodeStatusNeverUpdated"
"""Its kubelet never said anything: nothing lived there."""
_TOLERANCE_SECONDS: Final = 30.0
"""Between what the node controller's clock says and when we heard it, in a view that is whole."""


class NodeLifeTimes(NamedTuple):
    """All in seconds; the names say of what."""

    mark_before: float = 5.0
    """A mark is a plan if it is so much older than the silence."""
    cordon_most: float = 1800.0
    """A cordon alone that is older is no plan: people forget them."""
    silence_most: float = 30.0
    """No sign of the API for so long interrupts the view."""
    wait: float = 60.0
    """After an interruption, and for nodes that are silent when they are first seen."""
    old_most: float = 900.0
    """A node that was silent for longer when it was first seen is old news."""


class NodeLifeKind(Enum):
    """What became of a node."""

    DEATH = "death"
    PLANNED = "planned"
    RETRACTED = "retracted"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class NodeLifeEvent:
    """What became of a node.  A node that is retracted and dies again with the same boot id has a
    second death of the same name.
    """

    kind: NodeLifeKind
    death_kind: DeathKind
    row: NodeRow
    """As it was when it died: of a reset the boot before it."""
    heartbeat_seconds: float
    """Of the death: the last sign of life, in the observer's one clock."""
    observed_seconds: float
    """When this was seen."""
    stratum_nodes: int = 0
    """How many nodes its stratum has, this one too."""
    zone_nodes: int = 0
    reason: str = ""
    """Why planned, why retracted."""
    was_ready: bool = True
    """Its kubelet said so until the end, as far as it was seen."""

    @property
    def stratum(self) -> Stratum:
        return self.row.stratum


class _Life:
    """What is known of a node that exists."""

    __slots__ = ("cordoned_at", "not_ready_at", "planned_at", "ready_at", "row")

    def __init__(self, row: NodeRow) -> None:
        self.row = row
        self.ready_at = 0.0
        """When it was last heard to be Ready; 0: never."""
        self.not_ready_at = 0.0
        """Since when it is not; 0: it is."""
        self.planned_at = self.cordoned_at = 0.0
        """When the mark was first seen; 0: there is none."""


class _Dead(NamedTuple):
    """A death that was told, or one that waits."""

    event: NodeLifeEvent
    due_seconds: float


class NodeLife:
    """Of a whole cluster.  Each method returns what became known by it, in order."""

    def __init__(self, times: NodeLifeTimes | None = None) -> None:
        self._times = times or NodeLifeTimes()
        self._lives: dict[str, _Life] = {}
        self._strata: Counter[Stratum] = Counter()
        self._zones: Counter[str] = Counter()
        self._dead: OrderedDict[str, NodeLifeEvent] = OrderedDict()
        self._recalled: dict[tuple[str, str], DeathKind] = {}
        self._waiting: dict[str, _Dead] = {}
        self._sign_at: float | None = None
        self._is_interrupted = False
        self._wait_until = 0.0

    def __len__(self) -> int:
        return len(self._lives)

    @property
    def is_interrupted(self) -> bool:
        """Nobody knows just now who is alive."""
        return self._is_interrupted

    @property
    def waiting(self) -> tuple[NodeLifeEvent, ...]:
        """Deaths that do not count yet."""
        return tuple(one.event for one in self._waiting.values())

    @property
    def strata(self) -> dict[Stratum, int]:
        """How many nodes each has."""
        return dict(self._strata)

    @property
    def rows(self) -> dict[str, NodeRow]:
        """Nodes that exist, by name, as they were last seen."""
        return {name: life.row for name, life in self._lives.items()}

    def living(self, stratum: Stratum) -> frozenset[str]:
        """Names of its nodes that are Ready."""
        return frozenset(
            name
            for name, life in self._lives.items()
            if life.row.ready == "True" and life.row.stratum == stratum
        )

    def recall(self, node: str, boot_id: str, kind: DeathKind) -> None:
        """A death that stands in the cluster (a NodeDeath that is not retracted), before the first
        row: it is not told again, and it is retracted if its node turns out to live.
        """
        self._recalled[node, boot_id] = kind

    def sign(self, now: float) -> list[NodeLifeEvent]:
        """The API answered: an event, a bookmark, a lease that was renewed.  Ten nodes have an
        event each half minute, so the lease's answers must be told as well.
        """
        self._mend(now)
        return self.tick(now)

    def interrupt(self, now: float) -> None:
        """The API cannot be asked."""
        self._is_interrupted = True
        self._wait_until = now + self._times.wait

    def tick(self, now: float) -> list[NodeLifeEvent]:
        """What waited, and is dead still."""
        if self._sign_at is not None and now - self._sign_at > self._times.silence_most:
            self.interrupt(now)
        if self._is_interrupted:
            return []
        due = [one for one in self._waiting.values()
               if max(one.due_seconds, self._wait_until) <= now]  # fmt: skip
        for one in due:
            del self._waiting[one.event.row.name]
        return [self._tell(one.event) for one in due]

    def see(self, row: NodeRow, now: float) -> list[NodeLifeEvent]:
        """A node as it is now."""
        self._mend(now)
        events: list[NodeLifeEvent] = []
        life = self._lives.get(row.name)
        if life is not None and life.row.uid != row.uid:
            events += self._remove(life, now)
            life = None
        before = None if life is None else life.row
        if life is None:
            life = self._lives[row.name] = _Life(row)
            self._count(row, 1)
        elif before is not None and (before.stratum != row.stratum):
            self._count(before, -1)
            self._count(row, 1)
        events += self._judge(life, before, row, now)
        self._take(life, row, now, is_first=before is None)
        return events + self.tick(now)

    def gone(self, name: str, now: float) -> list[NodeLifeEvent]:
        """A node that is no more."""
        self._mend(now)
        life = self._lives.pop(name, None)
        events = [] if life is None else self._remove(life, now)
        return events + self.tick(now)

    def _mend(self, now: float) -> None:
        """Something was heard: the view is whole again, or was not whole until just now."""
        was_silent = self._sign_at is not None and now - self._sign_at > self._times.silence_most
        if self._is_interrupted or was_silent:
            self._wait_until = now + self._times.wait
        self._is_interrupted = False
        self._sign_at = now if self._sign_at is None else max(self._sign_at, now)

    def _judge(
        self, life: _Life, before: NodeRow | None, row: NodeRow, now: float
    ) -> Iterable[NodeLifeEvent]:
        """Before ``life`` takes the row."""
        if row.ready == "True":
            return self._alive(life, before, row, now)
        is_silent = row.ready == "Unknown" and row.ready_reason != _NEVER_UPDATED
        if is_silent and not self._is_known_dead(row):
            return self._silent(life, before, row, now)
        return []

    def _is_known_dead(self, row: NodeRow) -> bool:
        """Whether the death of this boot was told, waits, or stands in the cluster."""
        waiting, told = self._waiting.get(row.name), self._dead.get(row.name)
        known = [waiting.event] if waiting else [told] if told else []
        is_known = any(one.row.boot_id == row.boot_id for one in known)
        return is_known or (row.name, row.boot_id) in self._recalled

    def _alive(
        self, life: _Life, before: NodeRow | None, row: NodeRow, now: float
    ) -> Iterable[NodeLifeEvent]:
        waiting = self._waiting.get(row.name)
        if waiting is not None:
            del self._waiting[row.name]
            if waiting.event.row.boot_id == row.boot_id:
                return []  # it was never told
            return [self._tell(waiting.event), self._back(row.name, waiting.event, row, now)]
        dead = self._dead.get(row.name) or self._recalled_death(row, now)
        if dead is not None:
            return [self._back(row.name, dead, row, now)]
        if before is None or before.ready != "True" or _is_same_boot(before, row):
            return []
        plan = self._plan(life, now, now)
        event = self._event(DeathKind.RESET, before, now, now, plan)
        told = self._tell(event)  # the new boot itself says so: this waits for nobody
        del self._dead[row.name]
        return [told]

    def _back(self, name: str, dead: NodeLifeEvent, row: NodeRow, now: float) -> NodeLifeEvent:
        """A dead node is Ready."""
        self._dead.pop(name, None)
        self._recalled.pop((name, dead.row.boot_id), None)
        is_same = dead.row.boot_id == row.boot_id
        reason = "Ready again with the same boot id" if is_same else ""
        kind = NodeLifeKind.RETRACTED if is_same else NodeLifeKind.RECOVERED
        return self._copy(dead, kind, now, reason)

    def _recalled_death(self, row: NodeRow, now: float) -> NodeLifeEvent | None:
        """That an earlier leader wrote down, of the boot that is Ready now."""
        kind = self._recalled.get((row.name, row.boot_id))
        if kind is None or not row.boot_id:
            return None
        return NodeLifeEvent(NodeLifeKind.DEATH, kind, row, now, now)

    def _silent(
        self, life: _Life, before: NodeRow | None, row: NodeRow, now: float
    ) -> Iterable[NodeLifeEvent]:
        """Ready=Unknown, for the first time."""
        heartbeat = row.ready_seconds
        low = max(life.ready_at - _TOLERANCE_SECONDS, 1.0)
        is_believable = low <= heartbeat <= now + self._times.mark_before
        if before is None and is_believable and now - heartbeat > self._times.old_most:
            return []
        if before is not None and before.ready == "Unknown" and _is_same_boot(before, row):
            return []  # old news still, or a second row of the same silence
        heartbeat = min(heartbeat, now) if is_believable else now
        plan = self._plan(life if before else None, heartbeat, now, row)
        event = self._event(DeathKind.SILENT, row, heartbeat, now, plan)
        event = replace(event, was_ready=before is None or before.ready == "True")
        return self._hold_or_tell(event, now, is_first_sight=before is None)

    def _remove(self, life: _Life, now: float) -> list[NodeLifeEvent]:
        """Deleted.  One that was Ready was taken away; one that was Unknown died before."""
        row = life.row
        self._lives.pop(row.name, None)
        self._count(row, -1)
        if row.ready != "False" or not life.ready_at or self._is_known_dead(row):
            return []
        plan = self._plan(life, life.not_ready_at, now)
        event = self._event(DeathKind.SILENT, row, life.not_ready_at, now, plan)
        event = replace(event, was_ready=False)
        return self._hold_or_tell(event, now, is_first_sight=False)

    def _hold_or_tell(
        self, event: NodeLifeEvent, now: float, *, is_first_sight: bool
    ) -> list[NodeLifeEvent]:
        if is_first_sight or now < self._wait_until:
            due = now + self._times.wait if is_first_sight else self._wait_until
            self._waiting[event.row.name] = _Dead(event, due)
            return []
        return [self._tell(event)]

    def _tell(self, event: NodeLifeEvent) -> NodeLifeEvent:
        self._dead.pop(event.row.name, None)
        self._dead[event.row.name] = event
        if len(self._dead) > DEAD_MOST:
            self._dead.popitem(last=False)
        return event

    def _plan(self, life: _Life | None, end: float, now: float, row: NodeRow | None = None) -> str:
        """Why the node was meant to end then; empty: it was not.

        life:  marks as they were seen before; None: the node is seen for the first time
        row:   marks as they stand now, with the times that whoever set them wrote down
        """
        if life is not None:
            if life.planned_at and life.planned_at <= end - self._times.mark_before:
                return life.row.plan
            if life.cordoned_at and self._is_fresh_cordon(life.cordoned_at, end):
                return "cordoned"
        if row is None or not row.ready_seconds:
            return ""
        latest = row.ready_seconds - self._times.mark_before
        # Who is seen for the first time may have been marked before: what cannot be told is a plan.
        unknown = latest if life is None else now
        if row.plan and (row.planned_seconds or unknown) <= latest:
            return row.plan
        cordoned = row.cordoned_seconds or unknown
        if row.is_cordoned and self._is_fresh_cordon(cordoned, row.ready_seconds):
            return "cordoned"
        return ""

    def _is_fresh_cordon(self, cordoned: float, end: float) -> bool:
        return self._times.mark_before <= end - cordoned <= self._times.cordon_most

    def _take(self, life: _Life, row: NodeRow, now: float, *, is_first: bool) -> None:
        if row.ready == "True":
            life.ready_at, life.not_ready_at = now, 0.0
        elif not life.not_ready_at:
            life.not_ready_at = now
        if not row.plan:
            life.planned_at = 0.0
        elif not life.planned_at:
            life.planned_at = now
        if not row.is_cordoned:
            life.cordoned_at = 0.0
        elif not life.cordoned_at:
            known = row.cordoned_seconds if is_first else 0.0
            life.cordoned_at = known if 0.0 < known <= now else now
        life.row = row

    def _count(self, row: NodeRow, step: int) -> None:
        self._strata[row.stratum] += step
        self._zones[row.zone] += step
        if not self._strata[row.stratum]:
            del self._strata[row.stratum]
        if not self._zones[row.zone]:
            del self._zones[row.zone]

    def _event(
        self, kind: DeathKind, row: NodeRow, heartbeat: float, now: float, plan: str
    ) -> NodeLifeEvent:
        return NodeLifeEvent(
            NodeLifeKind.PLANNED if plan else NodeLifeKind.DEATH, kind, row, heartbeat, now,
            self._strata.get(row.stratum, 0), self._zones.get(row.zone, 0), plan,
        )  # fmt: skip

    def _copy(
        self, dead: NodeLifeEvent, kind: NodeLifeKind, now: float, reason: str
    ) -> NodeLifeEvent:
        return NodeLifeEvent(
            kind, dead.death_kind, dead.row, dead.heartbeat_seconds, now,
            dead.stratum_nodes, dead.zone_nodes, reason,
        )  # fmt: skip


def _is_same_boot(before: NodeRow, row: NodeRow) -> bool:
    """A row without boot id says nothing."""
    return before.boot_id == row.boot_id or not before.boot_id or not row.boot_id
