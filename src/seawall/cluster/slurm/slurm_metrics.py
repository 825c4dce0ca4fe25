# SPDX-License-Identifier: Apache-2.0
"""The Slurm controller's numbers for Prometheus; names are those of the cluster's controllers where
the meaning is the same.  The only module here that needs a library, of the extra ``cluster``.
"""

import time
from collections.abc import Iterator
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.observer.suspect_metrics import SuspectGauges, SuspectRow
from seawall.cluster.slurm.hold_plan import (
    SCORE_LEAST,
    held_jobs_most,
    held_targets,
    quarantines_left,
)
from seawall.cluster.slurm.job_quarantine import JobQuarantine, JobQuarantineState
from seawall.cluster.slurm.slurm_policy import SlurmPolicy
from seawall.cluster.slurm.turn_sink import SlurmTurn
from seawall.version import VERSION

BRAKES: Final = ("api", "storm", "view")
SILENT_SECONDS: Final = 300.0
"""Without a whole answer for so long the process is ill."""


class SlurmMetrics:
    """A ``TurnSink``; written by one thread and read by another."""

    def __init__(self, policy: SlurmPolicy) -> None:
        self._policy = policy
        self._looked = time.monotonic()
        """Of the last whole look; before it of the start."""
        self.registry = registry = CollectorRegistry()
        self._deaths = Counter(
            "seawall_node_deaths", "Nodes that died, as this process saw it.",
            ["pool", "zone", "kind"], registry=registry,
        )  # fmt: skip
        self._suspects = SuspectGauges(
            registry, (one.lower() for one in get_args(JobQuarantineState))
        )
        self._brakes = Gauge(
            "seawall_brake_tripped", "1 while this brake stops what is new.", ["brake"],
            registry=registry,
        )  # fmt: skip
        self._budget = Gauge(
            "seawall_action_budget_remaining",
            "How often the lever may be pulled before a brake stops it.", ["lever"],
            registry=registry,
        )  # fmt: skip
        self._held = Gauge(
            "seawall_held_jobs", "Jobs, arrays and tasks that are held by us.", registry=registry
        )
        self._leader = Gauge(
            "seawall_leader", "1 while this process is the one that writes.", registry=registry
        )
        self._up = Gauge(
            "seawall_slurmctld_up", "1 where slurmctld answered whole at the last look.",
            registry=registry,
        )  # fmt: skip
        staleness = Gauge(
            "seawall_watch_staleness_seconds", "Since a watch said anything.", ["resource"],
            registry=registry,
        )  # fmt: skip
        staleness.labels("slurmctld").set_function(self._stale_seconds)
        dry_run = Gauge(
            "seawall_dry_run", "1 while the policy lets nothing be done.", registry=registry
        )
        dry_run.set(policy.dry_run)
        build = Gauge("seawall_build_info", "Always 1.", ["version"], registry=registry)
        build.labels(VERSION).set(1)
        for brake in BRAKES:
            self._brakes.labels(brake).set(0)

    def look(self, turn: SlurmTurn) -> None:
        """Slurmctld answered whole."""
        self._looked = time.monotonic()
        self._up.set(1)
        self._leader.set(turn.obstacle.brake != "elsewhere")
        for brake in BRAKES:
            self._brakes.labels(brake).set(turn.obstacle.brake == brake)
        for death in turn.deaths:
            self._deaths.labels(death.stratum.pool, death.domain, death.kind.value).inc()
        quarantines = list(turn.state.quarantines.values())
        held, now = held_targets(quarantines), turn.at_seconds
        self._held.set(held)
        self._budget.labels("hold").set(max(held_jobs_most(turn.jobs, self._policy) - held, 0))
        self._budget.labels("activate").set(min(quarantines_left(quarantines, self._policy, now)))
        self._suspects.show(_rows(quarantines))
        marks = [one.threshold_log10 for one in quarantines if one.threshold_log10]
        if marks:
            self._suspects.threshold.set(min(marks))

    def silence(self) -> None:
        """It did not."""
        self._up.set(0)
        for brake in BRAKES:
            self._brakes.labels(brake).set(brake == "api")

    def problem(self) -> str:
        """Why the process is ill; empty: it is well."""
        stale = self._stale_seconds()
        return f"no whole answer of Slurm for {stale:.0f} s" if stale > SILENT_SECONDS else ""

    def _stale_seconds(self) -> float:
        return time.monotonic() - self._looked


def _rows(quarantines: list[JobQuarantine]) -> Iterator[SuspectRow]:
    """By the names that ``suspects`` and ``approve`` have: a job's own is what its user writes."""
    for one in quarantines:
        verdict = "" if one.verdict == SuspicionState.NONE.value else one.verdict
        score = one.score_log10 if one.score_log10 > SCORE_LEAST else None
        expires = one.expires_seconds if one.state == "Active" else None
        yield SuspectRow(
            (one.account, "Job", one.name), one.state.lower(), expires, verdict, score,
            len(one.nodes),
        )  # fmt: skip
