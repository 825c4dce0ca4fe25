# SPDX-License-Identifier: Apache-2.0
"""All deaths that stand in the cluster, and the judge that has heard them in the order of time.

The judge's answers must be those of any observer that reads the same objects.  So it hears deaths
as they are written down, and whatever is no new last death (a late one, a record that came, a
retraction) makes it hear all of them again.  Pure.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from seawall.cluster.judge.cluster_judge import (
    RETENTION_SECONDS,
    ClusterJudge,
    JudgePolicy,
    WorkloadSuspicion,
)
from seawall.cluster.judge.death_incidents import DeathIncidents
from seawall.cluster.judge.node_death import Stratum, WorkloadKey
from seawall.cluster.objects.node_death_object import DeathWorkload, NodeDeathObject

OBJECTS_MOST: Final = 1000
IDLE_MOST: Final = 200
"""Of these, that are no deaths."""


class DeathLedger:
    """Objects in, suspicions out."""

    def __init__(self, policy: JudgePolicy) -> None:
        self._policy = policy
        self._watched_since: float | None = None
        self._objects: dict[str, NodeDeathObject] = {}
        self._judge = ClusterJudge(policy)
        self._last = (-1.0, "")
        self._is_behind = False
        self._changed: set[WorkloadKey] = set()

    @property
    def objects(self) -> Mapping[str, NodeDeathObject]:
        """All of them by name."""
        return self._objects

    def set_policy(self, policy: JudgePolicy, watched_since: float | None) -> None:
        """Both change what is said of each death; ``watched_since``: since when deaths would have
        been seen; None: since the first one.
        """
        if (policy, watched_since) != (self._policy, self._watched_since):
            self._policy, self._watched_since = policy, watched_since
            self._is_behind = True

    def put(self, death: NodeDeathObject) -> None:
        """A new one, or another state of one that is known."""
        before = self._objects.get(death.name)
        self._objects[death.name] = death
        if before is not None and before.counts == death.counts:
            if not death.counts or before.to_judge() == death.to_judge():
                return
        elif before is None and not death.counts:
            return
        self._changed |= _keys(death) | (_keys(before) if before else set())
        place = (death.heartbeat_seconds, death.name)
        if before is None and place > self._last and not self._is_behind:
            self._judge.add(death.to_judge())
            self._last = place
        else:
            self._is_behind = True

    def remove(self, name: str) -> None:
        """It was forgotten, or somebody deleted its object."""
        before = self._objects.pop(name, None)
        if before is not None and before.counts:
            self._changed |= _keys(before)
            self._is_behind = True

    def change_all_since(self, seconds: float) -> None:
        """A new leader looks at what its predecessor may not have come to."""
        for death in self._objects.values():
            if death.counts and death.observed_seconds >= seconds:
                self._changed |= _keys(death)

    def change(self, keys: Iterable[WorkloadKey]) -> None:
        """These are to be looked at once more."""
        self._changed |= set(keys)

    def changed_keys(self) -> set[WorkloadKey]:
        """Whose score may be another since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def judge(self, keys: Collection[WorkloadKey]) -> tuple[WorkloadSuspicion, ...]:
        """Of these keys those that are more than nothing, worst first, as of their last death."""
        return self._current().judge(keys)

    def threshold_log10(self) -> float:
        """The mark that convicts."""
        return self._current().threshold_log10()

    def incidents(self) -> DeathIncidents:
        """Of the deaths that stand in the cluster; to be read alone."""
        return self._current().incidents

    def background_by_pool(self, strata: Mapping[Stratum, int], now: float) -> dict[str, float]:
        """Deaths an hour of one node, from above, in the worst stratum of each pool.

        strata:  how many nodes each has
        """
        judge, pools = self._current(), dict[str, float]()
        for stratum, nodes in strata.items():
            rate = judge.background_per_hour(stratum, nodes, now)
            pools[stratum.pool] = max(rate, pools.get(stratum.pool, 0.0))
        return pools

    def workloads_of(self, key: WorkloadKey, deaths: Iterable[str]) -> list[DeathWorkload]:
        """Pods of that key on these dead nodes, the last death's first."""
        return [
            workload
            for name in reversed(list(deaths))
            if name in self._objects
            for workload in self._objects[name].workloads
            if key in workload.bound.keys
        ]

    def outdated(self, now_seconds: float) -> list[str]:
        """Names that are to be forgotten: of more than a month ago, of more than 1,000 the oldest,
        and of what is no death (planned, retracted) all but the last 200.
        """
        ordered = sorted(self._objects.values(), key=lambda one: (one.heartbeat_seconds, one.name))
        names = [
            one.name for one in ordered if now_seconds - one.heartbeat_seconds > RETENTION_SECONDS
        ]
        idle = [one.name for one in ordered if not one.counts]
        counting = [one.name for one in ordered if one.counts]
        names += idle[:-IDLE_MOST]
        names += counting[: -(OBJECTS_MOST - IDLE_MOST)]
        return list(dict.fromkeys(names))

    def _current(self) -> ClusterJudge:
        if not self._is_behind:
            return self._judge
        self._judge = ClusterJudge(self._policy)
        if self._watched_since is not None:
            self._judge.watch_from(self._watched_since)
        self._last = (-1.0, "")
        counting = (one for one in self._objects.values() if one.counts)
        for one in sorted(counting, key=lambda one: (one.heartbeat_seconds, one.name)):
            self._judge.add(one.to_judge())
            self._last = (one.heartbeat_seconds, one.name)
        self._is_behind = False
        return self._judge


def _keys(death: NodeDeathObject) -> set[WorkloadKey]:
    return {key for workload in death.workloads for key in workload.bound.keys}
