# SPDX-License-Identifier: Apache-2.0
"""The actor's numbers for Prometheus, in a registry of their own."""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from seawall.cluster.objects.action_levers import ActionLever
from seawall.cluster.objects.workload_quarantine_object import QuarantineState
from seawall.version import VERSION

BRAKES: Final = ("disarmed", "policy", "view", "api", "storm")
"""What stops all that is new; the words of the policy's status."""
_HOLD_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class ActorMetrics:
    """All of them; may be written by one thread and read by another."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.actions = Counter(
            "seawall_actions", "Writes on objects of others, and dry runs of them.",
            ["lever", "result", "dry_run"], registry=registry,
        )  # fmt: skip
        self.refusals = Counter(
            "seawall_action_refusals", "Steps that were not made, by reason; each once.",
            ["reason"], registry=registry,
        )  # fmt: skip
        self._brakes = Gauge(
            "seawall_brake_tripped", "1 while this brake stops what is new.", ["brake"],
            registry=registry,
        )  # fmt: skip
        self.budget = Gauge(
            "seawall_action_budget_remaining",
            "How often the lever may be pulled before a brake stops it.", ["lever"],
            registry=registry,
        )  # fmt: skip
        self.held_pods = Gauge(
            "seawall_held_pods", "Pods that wait on a silent node by our hold.", registry=registry
        )
        self._quarantines = Gauge(
            "seawall_quarantines", "WorkloadQuarantine objects.", ["state"], registry=registry
        )
        self.hold_seconds = Histogram(
            "seawall_death_to_hold_seconds", "From a node's silence to the hold of a pod on it.",
            buckets=_HOLD_SECONDS, registry=registry,
        )  # fmt: skip
        self.leader = Gauge(
            "seawall_actor_leader", "1 while this process is the one that acts.", registry=registry
        )
        self.staleness = Gauge(
            "seawall_watch_staleness_seconds", "Since a watch said anything.", ["resource"],
            registry=registry,
        )  # fmt: skip
        build = Gauge("seawall_build_info", "Always 1.", ["version"], registry=registry)
        build.labels(VERSION).set(1)
        for brake in BRAKES:
            self._brakes.labels(brake).set(0)
        for state in QuarantineState:
            self._quarantines.labels(state.value).set(0)

    def show_brakes(self, tripped: Mapping[str, str]) -> None:
        """Those of now."""
        for brake in BRAKES:
            self._brakes.labels(brake).set(brake in tripped)

    def show_quarantines(self, states: Iterable[QuarantineState]) -> None:
        """As they stand in the cluster."""
        found = list(states)
        for state in QuarantineState:
            self._quarantines.labels(state.value).set(found.count(state))

    def count(self, lever: str, result: str, *, is_dry_run: bool) -> None:
        """One step that was made, or would have been."""
        known = {one.value for one in ActionLever} | {"activate", "release", "undo"}
        word = lever if lever in known else "other"
        self.actions.labels(word, result, str(is_dry_run).lower()).inc()
