# SPDX-License-Identifier: Apache-2.0
"""The observer's numbers for Prometheus, in a registry of their own.

Counters start at 0 with the process; what stands in the cluster is a gauge, so that a new leader
shows the same.
"""

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from seawall.cluster.judge.death_incidents import IncidentSize
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    WorkloadQuarantineObject,
)
from seawall.cluster.observer.suspect_metrics import SuspectGauges, SuspectRow
from seawall.version import VERSION

_NAME_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_IN_FORCE: Final = (QuarantineState.ACTIVE, QuarantineState.CANARY)
RequestCounts = Mapping[tuple[str, str, str], int]
"""By verb, resource and HTTP status."""


class WatchNumbers(Collector):
    """What the client and the watches count by themselves, read when somebody asks."""

    def __init__(
        self, requests: Callable[[], RequestCounts],
        restarts: Callable[[], Mapping[tuple[str, str], int]],
    ) -> None:  # fmt: skip
        self._requests = requests
        self._restarts = restarts

    def collect(self) -> Iterable[Metric]:
        """As prometheus-client wants it."""
        family = CounterMetricFamily(
            "seawall_api_requests", "Requests to the API server, each try.",
            labels=["verb", "resource", "code"],
        )  # fmt: skip
        for labels, number in self._requests().items():
            family.add_metric(labels, number)
        yield family
        family = CounterMetricFamily(
            "seawall_watch_restarts", "Watches that were opened again.",
            labels=["resource", "reason"],
        )  # fmt: skip
        for pair, number in self._restarts().items():
            family.add_metric(pair, number)
        yield family


def _missing_records(registry: CollectorRegistry) -> Gauge:
    words = "Deaths of the last day whose node has an agent, is back and does not tell of it."
    return Gauge("seawall_deaths_without_record", words, ["pool"], registry=registry)


class ObserverMetrics:
    """All of them; may be written by one thread and read by another."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.deaths = Counter(
            "seawall_node_deaths", "Nodes that died, as this process saw it.",
            ["pool", "zone", "cause"], registry=registry,
        )  # fmt: skip
        self.retracted = Counter(
            "seawall_node_deaths_retracted", "Nodes that came back with the same boot id.",
            registry=registry,
        )  # fmt: skip
        self._incidents = Gauge(
            "seawall_incidents", "Incidents of the last 30 days: deaths of one moment are one.",
            ["size"], registry=registry,
        )  # fmt: skip
        self._background = Gauge(
            "seawall_node_background_deaths_per_hour",
            "How often a node of the pool dies of something else, from above.",
            ["pool"], registry=registry,
        )  # fmt: skip
        self._missing = _missing_records(registry)
        self._suspects = SuspectGauges(registry, (one.value for one in QuarantineState))
        self.threshold = self._suspects.threshold
        self.name_seconds = Histogram(
            "seawall_death_to_name_seconds",
            "From a death that is visible to the workload that is named.",
            buckets=_NAME_SECONDS, registry=registry,
        )  # fmt: skip
        self.staleness = Gauge(
            "seawall_watch_staleness_seconds", "Since a watch said anything.", ["resource"],
            registry=registry,
        )  # fmt: skip
        self.leader = Gauge(
            "seawall_leader", "1 while this process is the one that writes.", registry=registry
        )
        self.requests_per_death = Histogram(
            "seawall_death_requests", "Requests that one death cost.",
            buckets=(2, 5, 10, 20, 30, 45), registry=registry,
        )  # fmt: skip
        build = Gauge("seawall_build_info", "Always 1.", ["version"], registry=registry)
        build.labels(VERSION).set(1)

    def show_incidents(self, sizes: Mapping[IncidentSize, int]) -> None:
        """As they stand in the cluster."""
        for size in IncidentSize:
            self._incidents.labels(size.value).set(sizes.get(size, 0))

    def show_background(self, pools: Mapping[str, float]) -> None:
        """By pool, deaths an hour of one node."""
        self._background.clear()
        for pool, rate in pools.items():
            self._background.labels(pool).set(rate)

    def show_missing(self, pools: Mapping[str, int]) -> None:
        """By pool, deaths whose record should have come."""
        self._missing.clear()
        for pool, number in pools.items():
            self._missing.labels(pool).set(number)

    def show_quarantines(self, quarantines: Iterable[WorkloadQuarantineObject]) -> None:
        """As they stand in the cluster."""
        self._suspects.show(map(_suspect_row, quarantines))


def _suspect_row(one: WorkloadQuarantineObject) -> SuspectRow:
    name, status = one.workload, one.status
    return SuspectRow(
        (name.namespace, name.kind, name.name), one.state.value,
        one.expires_seconds if one.state in _IN_FORCE else None,
        "" if status is None else status.verdict.value,
        None if status is None else status.score_log10, 0 if status is None else len(status.nodes),
    )  # fmt: skip


class _QuietHandler(WSGIRequestHandler):
    """One line for each scrape would be all that the log holds."""

    timeout = 10.0

    def log_message(self, *_: object) -> None:
        """Says nothing at all."""


class _SixServer(WSGIServer):
    """For a pod that has an address of IPv6."""

    address_family = socket.AF_INET6


class RegistryOwner(Protocol):
    """Numbers of a process: the observer's, or the actor's."""

    registry: CollectorRegistry


class ObserverEndpoint:
    """``/metrics`` and ``/healthz`` over HTTP, in a thread of its own."""

    def __init__(
        self, host: str, port: int, metrics: RegistryOwner, problem: Callable[[], str]
    ) -> None:
        """``problem``: why the process is ill; empty: it is well.  OSError: no such address."""
        self._metrics_app: Any = make_wsgi_app(metrics.registry)
        self._problem = problem
        server_class = _SixServer if ":" in host else WSGIServer
        self._server: WSGIServer = make_server(
            host, port, self._answer, server_class=server_class, handler_class=_QuietHandler
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )

    @property
    def port(self) -> int:
        """That was taken, where 0 was asked for."""
        return int(self._server.server_port)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        path = environment.get("PATH_INFO", "")
        if path == "/metrics":
            answer: Iterable[bytes] = self._metrics_app(environment, start)
            return answer
        words, status = "no such page", HTTPStatus.NOT_FOUND
        if path == "/healthz":
            words = self._problem()
            status = HTTPStatus.SERVICE_UNAVAILABLE if words else HTTPStatus.OK
        start(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{words or 'ok'}\n".encode("utf-8", "replace")]
