# SPDX-License-Identifier: Apache-2.0
"""Which workload kills nodes: every death is added once, and each workload on them gets a score.

The state is the deaths of 30 days and nothing else.  A judge that is given the same deaths in the
same order says the same to the last digit, so a new leader only has to read them.
"""

import bisect
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from seawall.cluster.judge.background_rate import LONG_HOURS, WINDOWS_HOURS, background_rate
from seawall.cluster.judge.death_coincidence import (
    IncidentDraw,
    coincidence_of_draws,
    mean_pods,
    probability_on_dead,
)
from seawall.cluster.judge.death_incidents import DeathIncident, DeathIncidents
from seawall.cluster.judge.evidence_factors import DeathFactor, factor_of
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    EvidenceKind,
    NodeDeath,
    Stratum,
    WorkloadKey,
)
from seawall.cluster.judge.sequential_test import Contribution, score_log10, threshold_log10

SUSPECT_LOG10: Final = 2.0
MOST_SHARE: Final = 0.30
"""What runs on more of a stratum was on the dead nodes anyway; of two or three nodes one is no
more than can be."""
LEAST_NODES: Final = 10
"""A cluster of fewer has the budget of ten: one false conviction in a thousand years."""
SAME_NODE_SECONDS: Final = 7 * 86400.0
"""A node that dies twice in a week may be broken itself."""
RETENTION_SECONDS: Final = LONG_HOURS * 3600.0
DEATHS_MOST: Final = 1000
ROWS_MOST: Final = 64
"""Deaths that are kept of one workload."""
INSEPARABLE_LOG10: Final = 1.0
"""Who is within a factor of ten, on the same deaths, cannot be told from the other."""
NO_DOMAIN_LOG10: Final = 1.0
"""Without racks' labels a rack that dies slowly looks like its jobs: ten times the mark, ..."""
NO_DOMAIN_OTHERS: Final = 3
NO_DOMAIN_SECONDS: Final = 1800.0
"""... and no credit where so many others died before and after it."""
LOCKSTEP_LEAST_DOMAINS: Final = 3
CHANCE_MOST: Final = 0.01
"""While somebody kills nodes, a workload on a fifth of them is on three dead ones by chance, and
the background that the test knows is not theirs.  So the deaths must be no coincidence either."""
LOOKED_AT_BEFORE: Final = 3
"""Incidents in which a killer is convicted; each further one is one look more."""
CONTRADICTED: Final = (
    "its nodes' own records say that memory was ample, or another cause: "
    "nodes of a job that hangs, reset by hand, look the same"
)
"""Why nobody is convicted whose dead nodes say so, all but one at most; a workload that kills nodes
by another way than memory is suspected for that, and no more."""
AWAITED: Final = (
    "the records of {} of its dead nodes are awaited: agents ran there and said nothing of memory"
)
"""Somebody may have power-cycled them; a record or the end of its time decides."""
HOURS_PER_YEAR: Final = 8766.0
LEAST_DEATHS_PER_NODE_YEAR: Final = 0.5
LEAST_KEYS_PER_DEATH: Final = 40.0
"""For the mark, until the cluster has shown more: ten workloads a node, four keys each."""


class SuspicionState(Enum):
    """What the judge says of a workload."""

    NONE = "none"
    SUSPECTED = "suspected"
    CONVICTED = "convicted"
    INSEPARABLE = "inseparable"
    """It would be convicted, and so would another that was on the same deaths: hold both only."""
    CANNOT_TELL = "cannot tell"
    """Nothing can count against it, for the reason in ``why_not``."""


class JudgePolicy(NamedTuple):
    """What the cluster's owner sets."""

    protected_namespaces: frozenset[str] = frozenset()
    false_per_thousand_node_years: float = 0.1


@dataclass(frozen=True, slots=True)
class WorkloadSuspicion:
    """What is known of one workload at one moment."""

    key: WorkloadKey
    state: SuspicionState
    score_log10: float
    threshold_log10: float
    nodes: tuple[str, ...]
    """That died with it and count, in order."""
    deaths: tuple[str, ...]
    proved: int
    """Deaths whose own record speaks of it."""
    why_not: str = ""
    companions: tuple[WorkloadKey, ...] = ()


class _Row(NamedTuple):
    """A death as one workload had part in it."""

    death: NodeDeath
    incident: DeathIncident
    nodes: int
    background_per_hour: float
    factor: DeathFactor
    pods: frozenset[str]
    bar: "_Bar | None"
    """Why it cannot count; None: it may."""


class _Bar(NamedTuple):
    """Why a death cannot count against a workload."""

    words: str
    is_of_workload: bool
    """Not of this one death: nothing counts against it."""


class _DeathTimes:
    """When deaths were, in order."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: list[float] = []

    def add(self, seconds: float) -> None:
        bisect.insort(self._times, seconds)

    def remove(self, seconds: float) -> None:
        del self._times[bisect.bisect_left(self._times, seconds)]

    def count_since(self, seconds: float) -> int:
        return len(self._times) - bisect.bisect_left(self._times, seconds)

    def count_near(self, seconds: float, apart: float) -> int:
        first = bisect.bisect_left(self._times, seconds - apart)
        return bisect.bisect_right(self._times, seconds + apart) - first


@dataclass(slots=True)
class _Credits:
    """The rows that count, as the test's contributions."""

    contributions: list[Contribution] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)


class ClusterJudge:
    """Deaths in, suspicions out."""

    def __init__(self, policy: JudgePolicy = JudgePolicy()) -> None:  # noqa: B008 - immutable
        self.policy = policy
        self._deaths: dict[str, NodeDeath] = {}
        self._incidents = DeathIncidents()
        self._rows: dict[WorkloadKey, list[_Row]] = {}
        self._times: dict[Stratum, _DeathTimes] = defaultdict(_DeathTimes)
        self._explained: dict[Stratum, _DeathTimes] = defaultdict(_DeathTimes)
        self._explained_names: set[str] = set()
        self._watched_since: float | None = None
        self._keys_seen = 0
        self._deaths_seen = 0

    def watch_from(self, seconds: float) -> None:
        """Since when deaths would have been seen; not said: since the first one."""
        self._watched_since = seconds

    def add(self, death: NodeDeath) -> tuple[WorkloadKey, ...]:
        """Take a death in; the keys whose score it changes.  One that is known changes none."""
        if death.name in self._deaths:
            return ()
        if self._watched_since is None:
            self._watched_since = death.heartbeat_seconds
        self._forget_before(death.heartbeat_seconds - RETENTION_SECONDS)
        incident = self._incidents.add(death)
        keys = tuple(self._add_rows(death, incident))
        self._deaths[death.name] = death
        self._times[death.stratum].add(death.heartbeat_seconds)
        if any(line.kind is EvidenceKind.PROVED for line in death.statements()):
            self._explained[death.stratum].add(death.heartbeat_seconds)
            self._explained_names.add(death.name)
        self._keys_seen += len(keys)
        self._deaths_seen += 1
        return keys

    def retract(self, name: str) -> tuple[WorkloadKey, ...]:
        """The node came back with the same boot id: it never died.  The keys that this changes."""
        death = self._deaths.pop(name, None)
        if death is None:
            return ()
        return self._remove(death)

    @property
    def deaths(self) -> tuple[NodeDeath, ...]:
        """All that are remembered, in the order in which they came."""
        return tuple(self._deaths.values())

    def threshold_log10(self) -> float:
        """The mark, from the cluster's own deaths and workloads a node."""
        strata = {death.stratum: death.stratum_nodes for death in self._deaths.values()}
        nodes = max(sum(strata.values()), LEAST_NODES)
        latest = max((death.heartbeat_seconds for death in self._deaths.values()), default=0.0)
        hours = max(self._watched_hours(latest), 24.0)
        deaths = len(self._deaths) / (nodes * hours) * HOURS_PER_YEAR
        keys = self._keys_seen / max(self._deaths_seen, 1)
        starts = max(deaths, LEAST_DEATHS_PER_NODE_YEAR) * max(keys, LEAST_KEYS_PER_DEATH)
        return threshold_log10(starts, self.policy.false_per_thousand_node_years)

    def suspicions(self, now_seconds: float) -> tuple[WorkloadSuspicion, ...]:
        """All that are more than nothing, worst first."""
        return self.judge(self._rows, now_seconds)

    def judge(
        self, keys: Iterable[WorkloadKey], now_seconds: float | None = None
    ) -> tuple[WorkloadSuspicion, ...]:
        """Of these keys those that are more than nothing, worst first.

        What others explain is taken from them, and who cannot be told apart is said to be so.
        """
        mark = self.threshold_log10()
        raw = {key: self._suspicion(key, mark, now_seconds, frozenset()) for key in keys}
        wanted = set(raw)
        # Whoever was on the same deaths may explain them, or be as likely.
        for one in [one for one in raw.values() if one.state is SuspicionState.CONVICTED]:
            for key in self._keys_of(one.deaths):
                if key not in raw:
                    raw[key] = self._suspicion(key, mark, now_seconds, frozenset())
        rest = sorted(
            (one for one in raw.values() if one.state is not SuspicionState.NONE),
            key=lambda one: (-one.score_log10, one.key),
        )
        judged: list[WorkloadSuspicion] = []
        explained: dict[WorkloadKey, frozenset[str]] = {}
        for one in rest:
            others = frozenset().union(
                *(deaths for key, deaths in explained.items() if not self._is_same(key, one.key))
            )
            now = one
            if others & set(one.deaths):
                now = self._suspicion(one.key, mark, now_seconds, others)
            elif one.state is SuspicionState.CONVICTED and not one.proved:
                now = self._separate(one, rest)
            if now.state is SuspicionState.CONVICTED:
                explained[now.key] = frozenset(now.deaths)
            if now.state is not SuspicionState.NONE and now.key in wanted:
                judged.append(now)
        return tuple(judged)

    def _separate(
        self, one: WorkloadSuspicion, others: Iterable[WorkloadSuspicion]
    ) -> WorkloadSuspicion:
        """Inseparable when another workload was on all its deaths and is nearly as likely."""
        companions = tuple(
            other.key
            for other in others
            if other.key != one.key
            and other.score_log10 >= one.score_log10 - INSEPARABLE_LOG10
            and set(one.deaths) <= set(other.deaths)
            and not self._is_same(other.key, one.key)
        )
        if not companions:
            return one
        return WorkloadSuspicion(
            one.key, SuspicionState.INSEPARABLE, one.score_log10, one.threshold_log10, one.nodes,
            one.deaths, one.proved, "others were on the same nodes", companions,
        )  # fmt: skip

    def finest(self, suspicions: Collection[WorkloadSuspicion]) -> tuple[WorkloadSuspicion, ...]:
        """Of keys that name the same pods the finest that is convicted: what a gate may match."""
        convicted = sorted(
            (one for one in suspicions if one.state is SuspicionState.CONVICTED),
            key=lambda one: (one.key.level, -one.score_log10, one.key),
        )
        finest: list[WorkloadSuspicion] = []
        for one in convicted:
            if not any(self._is_same(one.key, other.key) for other in finest):
                finest.append(one)
        return tuple(finest)

    def _add_rows(self, death: NodeDeath, incident: DeathIncident) -> Iterable[WorkloadKey]:
        grouped: dict[WorkloadKey, list[tuple[BoundWorkload, int]]] = defaultdict(list)
        for workload in death.workloads:
            for key, nodes in zip(workload.keys, workload.nodes, strict=True):
                grouped[key].append((workload, nodes))
        for key, parts in grouped.items():
            nodes = max(nodes for _, nodes in parts)
            pods = frozenset(workload.pod for workload, _ in parts)
            rows = self._rows.setdefault(key, [])
            row = _Row(
                death, incident, nodes, self._background(key, death, nodes),
                factor_of(death, pods), pods, self._bar(death, parts, nodes),
            )  # fmt: skip
            bisect.insort(rows, row, key=lambda one: one.death.heartbeat_seconds)
            del rows[:-ROWS_MOST]
            yield key

    def _bar(
        self, death: NodeDeath, parts: list[tuple[BoundWorkload, int]], nodes: int
    ) -> _Bar | None:
        if any(workload.is_static for workload, _ in parts):
            return _Bar("a static pod is the node's own", is_of_workload=True)
        if any(workload.namespace in self.policy.protected_namespaces for workload, _ in parts):
            return _Bar("its namespace is protected by the owner", is_of_workload=True)
        if not death.stratum.is_known:
            return _Bar("pool or kernel of a dead node is not known", is_of_workload=False)
        if _is_everywhere(nodes, death.stratum_nodes):
            words = (
                f"it runs on {nodes} of {death.stratum_nodes} nodes, so on dead ones in any case"
            )
            return _Bar(words, is_of_workload=True)
        if not death.can_count:
            return _Bar("a reset without a record of short memory", is_of_workload=False)
        return None

    def background_per_hour(self, stratum: Stratum, nodes: int, now_seconds: float) -> float:
        """Deaths an hour of one of the stratum's nodes, from above and without explained ones."""
        return self._background_rate(stratum, nodes, now_seconds, ())

    @property
    def incidents(self) -> DeathIncidents:
        """To be read alone: ``add`` and ``retract`` write them."""
        return self._incidents

    def _background(self, key: WorkloadKey, death: NodeDeath, nodes: int) -> float:
        """Of the stratum before this death, without the workload's own and explained ones."""
        own = [row.death for row in self._rows.get(key, ()) if row.death.stratum == death.stratum]
        others = death.stratum_nodes - nodes
        return self._background_rate(death.stratum, others, death.heartbeat_seconds, own)

    def _background_rate(
        self, stratum: Stratum, nodes: int, at: float, own: Collection[NodeDeath]
    ) -> float:
        counts = []
        for hours in WINDOWS_HOURS:
            since = at - hours * 3600.0
            mine = [one for one in own if one.heartbeat_seconds >= since]
            explained = self._explained[stratum].count_since(since)
            explained -= sum(1 for one in mine if one.name in self._explained_names)
            all_of_them = self._times[stratum].count_since(since)
            counts.append(max(all_of_them - len(mine) - explained, 0))
        return background_rate(max(nodes, 1), self._watched_hours(at), counts)

    def _watched_hours(self, at: float) -> float:
        since = at if self._watched_since is None else self._watched_since
        return max(at - since, 0.0) / 3600.0

    def _credits(self, key: WorkloadKey, explained: frozenset[str]) -> _Credits:
        """Once an incident, once a node in a week; a record of its own counts by itself."""
        found = _Credits()
        nodes: dict[str, float] = {}
        incidents: dict[int, int] = {}
        for row in self._rows.get(key, ()):
            at, direct = row.death.heartbeat_seconds, row.factor.is_direct
            before = nodes.get(row.death.node)
            if row.bar or row.death.name in explained:
                continue
            if before is not None and at - before <= SAME_NODE_SECONDS:
                continue
            if not direct and (row.incident.is_storm or self._may_be_a_rack(key, row)):
                continue
            nodes[row.death.node] = at
            this = Contribution(
                at, row.nodes, row.background_per_hour, row.factor.times, row.factor.credit
            )
            place = incidents.get(row.incident.number)
            if place is not None and not direct:
                other = found.contributions[place]
                if other.times <= 1.0:  # of the same moment: what speaks for it most
                    found.contributions[place] = other._replace(
                        nodes=max(other.nodes, this.nodes),
                        times=min(other.times, this.times),
                        credit=min(other.credit, this.credit),
                    )
                found.rows.append(row)
                continue
            incidents.setdefault(row.incident.number, len(found.contributions))
            found.contributions.append(this)
            found.rows.append(row)
        return found

    def _may_be_a_rack(self, key: WorkloadKey, row: _Row) -> bool:
        """Of a cluster that has no labels of racks: others died within the same half hour."""
        death = row.death
        if death.domain:
            return False
        at = death.heartbeat_seconds
        near = self._times[death.stratum].count_near(at, NO_DOMAIN_SECONDS)
        own = sum(
            1
            for other in self._rows[key]
            if other.death.stratum == death.stratum
            and abs(other.death.heartbeat_seconds - at) <= NO_DOMAIN_SECONDS
        )
        return near - own >= NO_DOMAIN_OTHERS

    def _chance(self, key: WorkloadKey, counted: _Credits) -> float:
        """That one of the workloads on the dead nodes is on so many of them without a cause."""
        first, last = counted.rows[0].death, counted.rows[-1].death
        own = {row.death.name for row in counted.rows}
        nodes = max(row.nodes for row in counted.rows)
        pods = mean_pods([row.death for row in counted.rows])
        strata = {first.stratum, last.stratum}
        families = self._keys_at(own, key.level)
        draws: list[IncidentDraw] = []
        others = 0
        # As long before its first death as until its last: each incident there that it had no part
        # in is one more place at which its row might have begun or ended.
        began = 2 * first.heartbeat_seconds - last.heartbeat_seconds
        for incident in self._incidents.between(began, last.heartbeat_seconds):
            with_it = own & set(incident.deaths)
            deaths = [
                death
                for death in incident.deaths.values()
                if death.name in own or (death.stratum in strata and death.can_count)
            ]
            if not deaths or (incident.is_storm and not with_it):
                continue
            others += not with_it
            if not with_it and incident.first_seconds < first.heartbeat_seconds:
                continue
            if not with_it:
                families |= self._keys_at((death.name for death in deaths), key.level)
            likeliest = max(probability_on_dead(death, nodes, pods) for death in deaths)
            draws.append(IncidentDraw(len(deaths), len(with_it), likeliest))
        hits = sum(1 for draw in draws if draw.deaths_with_workload)
        looks = max(hits - LOOKED_AT_BEFORE, 1)
        chance = coincidence_of_draws(draws) * len(families) * (looks + others)
        for row in counted.rows:
            chance /= row.factor.times if row.factor.is_direct else 1.0
        return min(chance, 1.0)

    def _suspicion(
        self, key: WorkloadKey, mark: float, now: float | None, explained: frozenset[str]
    ) -> WorkloadSuspicion:
        rows = self._rows.get(key, [])
        counted = self._credits(key, explained)
        score = score_log10(counted.contributions, now)
        proved = sum(1 for row in counted.rows if row.factor.is_direct)
        nodes = tuple(dict.fromkeys(row.death.node for row in counted.rows))
        deaths = tuple(row.death.name for row in counted.rows)
        if any(not row.death.domain for row in counted.rows) and not proved:
            mark += NO_DOMAIN_LOG10
        state, why = SuspicionState.NONE, ""
        if len(rows) > 1 and rows[-1].bar and rows[-1].bar.is_of_workload:
            state, why = SuspicionState.CANNOT_TELL, rows[-1].bar.words
        elif score >= mark and len(nodes) > 1 and len(counted.contributions) > 1:
            state = SuspicionState.CONVICTED
            chance = self._chance(key, counted)
            awaited = {row.death.name for row in counted.rows if row.death.is_awaited}
            if chance > CHANCE_MOST:
                state = SuspicionState.SUSPECTED
                why = (
                    f"as many of its nodes would die by chance in {100 * chance:.1f} of 100 cases, "
                    "busy nodes before idle ones"
                )
            elif len({row.death.node for row in counted.rows if not row.death.is_contradicted}) < 2:
                state, why = SuspicionState.SUSPECTED, CONTRADICTED
            elif awaited and not self._is_convicted_without(key, now, explained | awaited):
                state, why = SuspicionState.SUSPECTED, AWAITED.format(len(awaited))
        elif _is_lockstep(counted.rows):
            state = SuspicionState.SUSPECTED
            why = "its nodes died in one moment: a fault of fabric or storage looks the same"
        elif score >= SUSPECT_LOG10 or proved:
            state = SuspicionState.SUSPECTED
            if any(row.bar for row in rows):
                why = next(row.bar.words for row in reversed(rows) if row.bar)
        return WorkloadSuspicion(key, state, score, mark, nodes, deaths, proved, why)

    def _is_convicted_without(
        self, key: WorkloadKey, now: float | None, deaths: frozenset[str]
    ) -> bool:
        without = self._suspicion(key, self.threshold_log10(), now, deaths)
        return without.state is SuspicionState.CONVICTED

    def _keys_at(self, deaths: Iterable[str], level: int) -> set[WorkloadKey]:
        return {key for key in self._keys_of(deaths) if key.level == level}

    def _keys_of(self, deaths: Iterable[str]) -> set[WorkloadKey]:
        return {
            key
            for name in deaths
            if name in self._deaths
            for workload in self._deaths[name].workloads
            for key in workload.keys
        }

    def _is_same(self, one: WorkloadKey, other: WorkloadKey) -> bool:
        """Whether two keys name the same pods."""
        if one == other:
            return True
        pods = {pod for row in self._rows.get(one, ()) for pod in row.pods}
        return any(row.pods & pods for row in self._rows.get(other, ()))

    def _remove(self, death: NodeDeath) -> tuple[WorkloadKey, ...]:
        """Whatever was kept of it; the keys that this changes."""
        self._incidents.remove(death)
        self._times[death.stratum].remove(death.heartbeat_seconds)
        if death.name in self._explained_names:
            self._explained[death.stratum].remove(death.heartbeat_seconds)
            self._explained_names.discard(death.name)
        changed = dict.fromkeys(key for workload in death.workloads for key in workload.keys)
        for key in changed:
            rest = [row for row in self._rows.get(key, ()) if row.death.name != death.name]
            if rest:
                self._rows[key] = rest
            else:
                self._rows.pop(key, None)
        return tuple(changed)

    def _forget_before(self, seconds: float) -> None:
        """Deaths of a month ago; of more than 1,000 the oldest."""
        names: list[str] = []
        for name, death in self._deaths.items():  # in the order in which they came
            more = len(self._deaths) - len(names) >= DEATHS_MOST
            if not more and death.heartbeat_seconds >= seconds:
                break
            names.append(name)
            if self._watched_since is not None:  # what is forgotten was not watched
                self._watched_since = max(self._watched_since, death.heartbeat_seconds)
        for name in names:
            self._remove(self._deaths.pop(name))


def _is_everywhere(nodes: int, stratum_nodes: int) -> bool:
    """Too much of a stratum for its other nodes to show how often one dies without the workload."""
    return nodes >= stratum_nodes or nodes > max(1.0, MOST_SHARE * stratum_nodes)


def _is_lockstep(rows: Collection[_Row]) -> bool:
    """A gang whose nodes, and no others, died in one moment, in three racks and more."""
    together: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        together[row.incident.number].append(row)
    return any(
        len(group) == len(group[0].incident.deaths)
        and len({row.death.domain for row in group if row.death.domain}) >= LOCKSTEP_LEAST_DOMAINS
        for group in together.values()
    )
