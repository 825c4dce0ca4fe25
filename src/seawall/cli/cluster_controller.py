# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster controller``: the process that watches a cluster's nodes, until it is ended.

With ``--act`` it is the one that does something about who kills them.
"""

import json
import logging
import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Final

from seawall.problems import UsageProblem
from seawall.views.terminal import plain

if TYPE_CHECKING:
    from seawall.cluster.actor.cluster_actor import ClusterActor
    from seawall.cluster.kube.kube_client import ClusterAccess, KubeClient
    from seawall.cluster.observer.cluster_observer import ClusterObserver

LEASE_NAME: Final = "seawall-observer"
ACTOR_LEASE_NAME: Final = "seawall-actor"
LEASE_NAMESPACE: Final = "seawall"
_PORT: Final = 9443
_ONCE_SECONDS: Final = 60.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the controller."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--kubeconfig", metavar="FILE",
        help="outside of a cluster: which one, and who asks (default: the pod's own account)",
    )  # fmt: skip
    where.add_argument(
        "--server", metavar="URL",
        help="outside of a cluster: https://HOST:PORT, with --ca-file and --token-file",
    )  # fmt: skip
    parser.add_argument("--context", metavar="NAME", help="of the kubeconfig; default its current")
    parser.add_argument("--ca-file", metavar="FILE", help="authority of --server")
    parser.add_argument("--token-file", metavar="FILE", help="token for --server")
    parser.add_argument(
        "--namespace", metavar="NAME", default=os.environ.get("POD_NAMESPACE", LEASE_NAMESPACE),
        help="of its lease (default $POD_NAMESPACE, else %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--metrics-address", metavar="ADDRESS:PORT", default="",
        help=f"default 0.0.0.0:{_PORT} in a pod, 127.0.0.1:{_PORT} elsewhere",
    )  # fmt: skip
    parser.add_argument(
        "--act", action="store_true",
        help="act on quarantines, as far as the SeawallPolicy lets it: a process of its own, "
        "beside the observer",
    )  # fmt: skip
    parser.add_argument(
        "--once", action="store_true",
        help="look once, say what stands there as JSON, write nothing, end",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Watch; UsageProblem where the cluster cannot be asked."""
    try:
        import ssl  # noqa: PLC0415, F401 - what the self-contained file lacks is said at once

        from seawall.cluster.actor import cluster_actor  # noqa: PLC0415, F401
        from seawall.cluster.kube.kube_client import KubeClient, KubeProblem  # noqa: PLC0415
        from seawall.cluster.observer import cluster_observer  # noqa: PLC0415, F401
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "seawall":
            raise
        raise UsageProblem(
            f"no Python module {problem.name}: the observer needs the extra `cluster`: "
            "pip install 'seawall[cluster]'"
        ) from None
    if arguments.act and arguments.once:
        raise UsageProblem("--once is of the observer, which only looks: not with --act")
    name = "seawall-actor" if arguments.act else "seawall-observer"
    try:
        client = KubeClient(_access(arguments), user_agent=name)
        client.server_seconds()
    except KubeProblem as problem:
        raise UsageProblem(f"the cluster cannot be asked: {problem}") from None
    log_to_stderr(name.replace("-", "."))
    return _look_once(client, arguments) if arguments.once else _watch(client, arguments)


def _access(arguments: Namespace) -> "ClusterAccess":
    from seawall.cluster.kube.kube_client import ClusterAccess  # noqa: PLC0415 - an extra

    if arguments.context is not None and arguments.kubeconfig is None:
        raise UsageProblem("--context is of --kubeconfig")
    if arguments.server is not None:
        return ClusterAccess(
            arguments.server, ca_file=arguments.ca_file or "",
            token_file=arguments.token_file or "",
        )  # fmt: skip
    if arguments.ca_file or arguments.token_file:
        raise UsageProblem("--ca-file and --token-file are of --server")
    if arguments.kubeconfig is not None:
        from seawall.cluster.kube.kubeconfig_access import kubeconfig_access  # noqa: PLC0415 - an extra

        return kubeconfig_access(arguments.kubeconfig, arguments.context)
    return ClusterAccess.in_cluster()


def _observer(client: "KubeClient", arguments: Namespace) -> "tuple[ClusterObserver, Any]":
    from seawall.cluster.kube.leader_lease import LeaderLease  # noqa: PLC0415 - an extra
    from seawall.cluster.observer.cluster_observer import ClusterObserver  # noqa: PLC0415
    from seawall.cluster.observer.observer_metrics import ObserverMetrics  # noqa: PLC0415

    pod = os.environ.get("POD_NAME") or socket.gethostname()
    identity = f"{pod}_{os.urandom(4).hex()}"
    lease = LeaderLease(client, arguments.namespace, LEASE_NAME, identity)
    metrics = ObserverMetrics()
    return ClusterObserver(client, lease, metrics, pod), metrics


def _actor(client: "KubeClient", arguments: Namespace) -> "tuple[ClusterActor, Any]":
    from seawall.cluster.actor.actor_metrics import ActorMetrics  # noqa: PLC0415 - an extra
    from seawall.cluster.actor.cluster_actor import ClusterActor  # noqa: PLC0415
    from seawall.cluster.kube.leader_lease import LeaderLease  # noqa: PLC0415

    pod = os.environ.get("POD_NAME") or socket.gethostname()
    identity = f"{pod}_{os.urandom(4).hex()}"
    lease = LeaderLease(client, arguments.namespace, ACTOR_LEASE_NAME, identity)
    metrics = ActorMetrics()
    return ClusterActor(client, lease, metrics, pod, arguments.namespace), metrics


def _watch(client: "KubeClient", arguments: Namespace) -> int:
    from seawall.cluster.observer.observer_metrics import (  # noqa: PLC0415 - an extra
        ObserverEndpoint,
        WatchNumbers,
    )

    process: ClusterActor | ClusterObserver
    process, metrics = (_actor if arguments.act else _observer)(client, arguments)
    metrics.registry.register(WatchNumbers(client.request_counts, process.watch_restarts))
    host, port = _address(arguments)
    try:
        endpoint = ObserverEndpoint(host, port, metrics, process.problem)
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"--metrics-address {host}:{port}: {words}") from error
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    endpoint.start()
    logger = "seawall.actor" if arguments.act else "seawall.observer"
    logging.getLogger(logger).info("metrics on %s:%d", host, endpoint.port)
    try:
        process.run()
    finally:
        endpoint.close()
        client.close()
    return 0


def _look_once(client: "KubeClient", arguments: Namespace) -> int:
    from seawall.cluster.kube.kube_client import KubeProblem  # noqa: PLC0415 - an extra

    observer, _ = _observer(client, arguments)
    try:
        document = observer.look(time.monotonic() + _ONCE_SECONDS)
    except KubeProblem as problem:
        raise UsageProblem(f"the cluster cannot be read: {problem}") from None
    print(json.dumps(document, indent=2, ensure_ascii=True))
    return 0


def _address(arguments: Namespace) -> tuple[str, int]:
    """Of the metrics."""
    from seawall.cli.guard_metrics import address_of  # noqa: PLC0415 - only a watch has one

    text = arguments.metrics_address
    if not text:
        is_pod = arguments.kubeconfig is None and arguments.server is None
        text = f"{'0.0.0.0' if is_pod else '127.0.0.1'}:{_PORT}"  # noqa: S104 - a pod's own
    try:
        return address_of(text)
    except UsageProblem:
        raise UsageProblem(f"--metrics-address {text}: expected ADDRESS:PORT") from None


class _PlainFormatter(logging.Formatter):
    """One line, with nothing in it that steers a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        words = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            words += f": {record.exc_info[1]!r}"
        return f"{moment} {record.levelname.lower()} {plain(words)}"


def log_to_stderr(name: str) -> None:
    """Lines of one process, with their time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter())
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
