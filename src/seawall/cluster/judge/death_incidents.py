# SPDX-License-Identifier: Apache-2.0
"""Incidents: deaths of one cause at one moment count once, and those of a storm for nobody."""

import bisect
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from seawall.cluster.judge.node_death import DeathKind, NodeDeath

SAME_MOMENT_SECONDS: Final = 20.0
"""Leases are renewed every 10 s, so nodes that lose power together seem to die 10 s apart."""
SAME_DOMAIN_SECONDS: Final = 1800.0
"""A rack that cools badly dies node by node."""
STORM_SECONDS: Final = 60.0
STORM_LEAST_NODES: Final = 10
STORM_LEAST_SHARE: Final = 0.03
"""Of a zone or stratum.  Over ten minutes instead of one, 16 copies of a hog would be a storm."""


class IncidentSize(Enum):
    """How many nodes one moment took."""

    SINGLE = "single"
    SEVERAL = "several"
    """At the same moment, or in one rack within half an hour."""
    STORM = "storm"


@dataclass(slots=True)
class DeathIncident:
    """One moment in which nodes died."""

    number: int
    first_seconds: float
    deaths: dict[str, NodeDeath] = field(default_factory=dict)
    is_storm: bool = False

    @property
    def size(self) -> IncidentSize:
        if self.is_storm:
            return IncidentSize.STORM
        return IncidentSize.SEVERAL if len(self.deaths) > 1 else IncidentSize.SINGLE

    def includes(self, death: NodeDeath) -> bool:
        """By the moment, or by the domain within half an hour."""
        apart = abs(death.heartbeat_seconds - self.first_seconds)
        if apart <= SAME_MOMENT_SECONDS:
            return True
        return (
            bool(death.domain)
            and apart <= SAME_DOMAIN_SECONDS
            and any(other.domain == death.domain for other in self.deaths.values())
        )


class DeathStorm(NamedTuple):
    """Many nodes in a minute, which accuse nobody."""

    first_seconds: float
    last_seconds: float
    nodes: int


class DeathIncidents:
    """All incidents; those of the last half hour are open to further deaths."""

    __slots__ = ("_incidents", "_next_number")

    def __init__(self) -> None:
        self._incidents: list[DeathIncident] = []
        self._next_number = 0

    def add(self, death: NodeDeath) -> DeathIncident:
        """The incident that it belongs to, a new one if none; storms are marked."""
        incident = next((one for one in self._open(death) if one.includes(death)), None)
        if incident is None:
            incident = DeathIncident(self._next_number, death.heartbeat_seconds)
            self._next_number += 1
            bisect.insort(self._incidents, incident, key=_first)
        incident.deaths[death.name] = death
        self._mark_storm(death)
        return incident

    def sizes(self) -> Counter[IncidentSize]:
        """How many incidents of each size are remembered."""
        return Counter(one.size for one in self._incidents)

    def storms(self) -> list[DeathStorm]:
        """In order; incidents of a storm that are a minute apart at most are one."""
        found: list[DeathStorm] = []
        for incident in self._incidents:
            if not incident.is_storm:
                continue
            first, nodes = incident.first_seconds, len(incident.deaths)
            last = max(one.heartbeat_seconds for one in incident.deaths.values())
            if found and first - found[-1].last_seconds <= STORM_SECONDS:
                before = found.pop()
                first, nodes = before.first_seconds, before.nodes + nodes
                last = max(last, before.last_seconds)
            found.append(DeathStorm(first, last, nodes))
        return found

    def between(self, first_seconds: float, last_seconds: float) -> list[DeathIncident]:
        """In order; both ends are part of it."""
        at = bisect.bisect_left(self._incidents, first_seconds - SAME_MOMENT_SECONDS, key=_first)
        end = bisect.bisect_right(self._incidents, last_seconds, key=_first)
        return self._incidents[at:end]

    def remove(self, death: NodeDeath) -> None:
        """It never was, or was too long ago."""
        for incident in self.between(
            death.heartbeat_seconds - SAME_DOMAIN_SECONDS,
            death.heartbeat_seconds + SAME_DOMAIN_SECONDS,
        ):
            if incident.deaths.pop(death.name, None) and not incident.deaths:
                self._incidents.remove(incident)

    def _open(self, death: NodeDeath) -> list[DeathIncident]:
        at = death.heartbeat_seconds
        return self.between(at - SAME_DOMAIN_SECONDS, at + SAME_DOMAIN_SECONDS)

    def _mark_storm(self, death: NodeDeath) -> None:
        """Every incident of a minute in which so much of a zone or stratum fell silent."""
        near = [
            (incident, other)
            for incident in self._open(death)
            for other in incident.deaths.values()
            if other.kind is DeathKind.SILENT
            and abs(other.heartbeat_seconds - death.heartbeat_seconds) <= STORM_SECONDS
        ]
        zone = [pair for pair in near if pair[1].stratum.zone == death.stratum.zone]
        stratum = [pair for pair in near if pair[1].stratum == death.stratum]
        for pairs, nodes in ((zone, death.zone_nodes), (stratum, death.stratum_nodes)):
            if nodes and len(pairs) >= max(STORM_LEAST_NODES, STORM_LEAST_SHARE * nodes):
                for incident, _ in pairs:
                    incident.is_storm = True


def _first(incident: DeathIncident) -> float:
    return incident.first_seconds
