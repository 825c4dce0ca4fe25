# SPDX-License-Identifier: Apache-2.0
"""Who is suspected, for Prometheus: the same series beside Kubernetes and beside Slurm."""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Gauge

WORKLOADS_MOST: Final = 200
"""Series by workload: the worst of them."""
_WORKLOAD: Final = ("namespace", "kind", "name")


class SuspectRow(NamedTuple):
    """One quarantine as it stands."""

    workload: tuple[str, str, str]
    """Namespace, kind, name; of Slurm the account, Job, the quarantine's name."""
    state: str
    expires_seconds: float | None
    """Unix seconds; None where it is not in force."""
    verdict: str
    """Empty: the judge has said nothing of it."""
    score_log10: float | None
    nodes: int


class SuspectGauges:
    """``show`` replaces what was shown before."""

    def __init__(self, registry: CollectorRegistry, states: Iterable[str]) -> None:
        self._states = tuple(states)
        self._suspicion = Gauge(
            "seawall_workload_suspicion_log10", "Score of a workload that is suspected.",
            _WORKLOAD, registry=registry,
        )  # fmt: skip
        self._nodes_lost = Gauge(
            "seawall_nodes_lost", "Nodes that died with a workload that is suspected.",
            _WORKLOAD, registry=registry,
        )  # fmt: skip
        self._verdict = Gauge(
            "seawall_workload_verdict", "1 for what the judge says of a workload.",
            (*_WORKLOAD, "verdict"), registry=registry,
        )  # fmt: skip
        self.threshold = Gauge(
            "seawall_workload_conviction_threshold_log10", "The score that convicts.",
            registry=registry,
        )  # fmt: skip
        self._quarantines = Gauge(
            "seawall_quarantines", "Quarantines by state.", ["state"], registry=registry
        )
        self._expiry = Gauge(
            "seawall_quarantine_expiry_timestamp_seconds",
            "When a quarantine that is in force ends by itself.", _WORKLOAD, registry=registry,
        )  # fmt: skip
        for state in self._states:
            self._quarantines.labels(state).set(0)

    def show(self, quarantines: Iterable[SuspectRow]) -> None:
        """As they stand; of workloads the 200 worst."""
        states = dict.fromkeys(self._states, 0)
        rows: dict[tuple[str, str, str], tuple[float, int, str]] = {}
        self._expiry.clear()
        for one in quarantines:
            states[one.state] += 1
            if one.expires_seconds is not None:
                self._expiry.labels(*one.workload).set(one.expires_seconds)
            if one.verdict:
                score = -math.inf if one.score_log10 is None else one.score_log10
                row = (score, one.nodes, one.verdict)
                rows[one.workload] = max(row, rows.get(one.workload, row))
        worst = sorted(rows.items(), key=lambda pair: pair[1], reverse=True)[:WORKLOADS_MOST]
        for gauge in (self._suspicion, self._nodes_lost, self._verdict):
            gauge.clear()
        for key, (score, nodes, verdict) in worst:
            self._verdict.labels(*key, verdict).set(1)
            if math.isfinite(score):
                self._suspicion.labels(*key).set(score)
            self._nodes_lost.labels(*key).set(nodes)
        for state, number in states.items():
            self._quarantines.labels(state).set(number)
