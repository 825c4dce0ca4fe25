"""Every query of every dashboard against a real Prometheus that scrapes a scenario: none is empty.

Observer and actor in a cluster of which nodes die; on this machine a real guard that ends a ring
hog, with an agent beside it and a node exporter for its textfile.
"""

import contextlib
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.architecture.test_cluster_alerts import queries
from tests.cluster.actor_process import ActorProcess, ready_for_actors, set_policy
from tests.cluster.agent_account import install, token_of
from tests.cluster.api_client import ApiClient, Object
from tests.cluster.control_plane import ControlPlane, free_ports
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.observed_scene import WHOLE_SCENARIO
from tests.cluster.observer_process import ObserverProcess, objects, watched_for_a_month
from tests.cluster.slow_killer import SlowKiller
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import namespace, pods
from tests.end_to_end.guard_room import Room, missing, own_environment, room, within
from tests.end_to_end.innocents import why_no_rings
from tests.end_to_end.test_guard_live import FOLDERS, HOG, MIB

from seawall.cluster.objects.api_group import WORKLOAD_QUARANTINE

pytestmark = [
    pytest.mark.cluster, pytest.mark.timeout(580), WHOLE_SCENARIO,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.skipif(why_no_rings() is not None, reason=why_no_rings() or ""),
]  # fmt: skip
SCRAPED_SECONDS = 2
LEFT = f"{FOLDERS[-1]}/{'cd' * 32}"
"""A container that holds rings and is left alone."""


def test_no_panel_is_empty(slow_plane: ControlPlane, tmp_path: Path) -> None:
    for program in ("prometheus", "prometheus-node-exporter"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: apt-get install --no-install-recommends {program}")
    with (
        slow_plane.client() as client, KwokNodes(slow_plane) as nodes, room(tmp_path) as own,
        contextlib.ExitStack() as stack,
    ):  # fmt: skip
        ready_for_actors(client)
        watched_for_a_month(client)
        set_policy(client, dryRun=True)
        pool = NodePool(client, nodes, "panels", 20)
        pool.fill(random.Random(35))
        pool.deploy("hog", 3)
        pool.wait_until_running()
        node = min(set(pool.names) - pool.nodes_of("hog"))
        hog = pods(client, pool.space, "hog")[0]["metadata"]["name"]
        guarded_hogs(own, tmp_path, pool.space, hog)
        observer = stack.enter_context(ObserverProcess(slow_plane, tmp_path))
        actor = stack.enter_context(ActorProcess(slow_plane, tmp_path))
        wait_until(lambda: observer.leads() and actor.leads(), 40, "both lead")
        targets = {
            "observer": observer.metrics_port, "actor": actor.metrics_port,
            "agent": stack.enter_context(agent(slow_plane, client, own, tmp_path, node)),
            "exporter": stack.enter_context(node_exporter(tmp_path)),
        }  # fmt: skip
        ask = stack.enter_context(prometheus(tmp_path, targets, node))
        play(slow_plane, client, pool, own)
        variables = {"$namespace": pool.space, "$workload": "hog", "$node": node}
        empty: list[str] = []

        def none_is_empty() -> bool:
            empty[:] = [
                f"{where}: {query}" for where, query in queries(variables) if not values(ask, query)
            ]
            return not empty

        within(90, none_is_empty)
        assert not empty, "\n".join(empty)
        client.delete(f"/api/v1/namespaces/{pool.space}")


def play(plane: ControlPlane, client: ApiClient, pool: NodePool, own: Room) -> None:
    """A dry run, an API server that is away, a hog that kills until it is held, a guard's kill."""
    killer = SlowKiller(plane, pool.nodes, pool.space, "hog", 1.0, chance=random.Random(3))
    with killer:
        killer.kill(1)
        wait_until(lambda: "suspected" in verdicts(client), 60, "it is suspected")
        time.sleep(3 * SCRAPED_SECONDS)
        set_policy(client)
        plane.kill_apiserver()
        plane.start_apiserver()
        wait_until(lambda: plane.is_ready(client), 60, "the API server is back")
        killer.kill(3)
        print("go", file=own.processes[-1].stdin, flush=True)
        wait_until(lambda: "Active" in states(client), 200, "it is convicted, and held")
        killer.ended.set()


def verdicts(client: ApiClient) -> set[str]:
    return {one.get("status", {}).get("verdict", "") for one in quarantines(client)}


def states(client: ApiClient) -> set[str]:
    return {one["spec"]["state"] for one in quarantines(client)}


def quarantines(client: ApiClient) -> list[Object]:
    return objects(client, WORKLOAD_QUARANTINE)


# --- this machine -------------------------------------------------------------------------


def guarded_hogs(own: Room, folder: Path, space: str, pod: str) -> None:
    """A guard that enforces, a hog that it ends soon after "go", another that only holds."""
    names = "/var/log/containers"
    logs = [f"{names}/{pod}_{space}_main-{name.rpartition('/')[2]}.log" for name in (HOG, LEFT)]
    script = f"mkdir -p {names} && mount -t tmpfs none {names} && touch {' '.join(logs)}"
    subprocess.run([*own.enter, "sh", "-c", script], check=True)
    (folder / "textfiles").mkdir()
    own.write(
        mode="enforce", over_limit="kill", over_limit_opt_in=[f"{own.scope}/{HOG}"],
        over_limit_seconds=1, tick_most_seconds=1,
        textfile=str(folder / "textfiles/guard.prom"),
    )  # fmt: skip
    own.begin(folder / "out")
    for name in FOLDERS:
        own.make(name)
    for name in (HOG, LEFT):
        own.make(name, 100 * MIB if name == HOG else None)
    own.start(LEFT, "rings", str(150 * MIB), "0", "now", own_network=True)
    own.start(HOG, "rings", str(250 * MIB), "0", "stdin", own_network=True)


@contextlib.contextmanager
def agent(
    plane: ControlPlane, client: ApiClient, own: Room, folder: Path, node: str
) -> Iterator[int]:
    """Of that node, with the page of the guard on this machine; the port of its metrics."""
    install(client, space := namespace(client, f"panels-{uuid.uuid4().hex[:6]}"))
    (token := folder / "agent-token").write_text(token_of(client, space, node))
    (folder / "kept").mkdir(mode=0o700)
    (port,) = free_ports(1)
    command = [
        *own.enter, sys.executable, "-m", "seawall", "agent", "--node-name", node,
        "--server", f"https://127.0.0.1:{plane.port}", "--ca", str(plane.folder / "tls.crt"),
        "--token-file", str(token), "--blackbox", "",
        "--state-folder", str(folder / "kept"), "--listen", f"127.0.0.1:{port}",
    ]  # fmt: skip
    with running(command, folder / "agent.log", own_environment()):
        yield port


@contextlib.contextmanager
def node_exporter(folder: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    command = [
        "prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}",
        "--collector.disable-defaults", "--collector.textfile",
        f"--collector.textfile.directory={folder}/textfiles",
    ]  # fmt: skip
    with running(command, folder / "exporter.log"):
        yield port


@contextlib.contextmanager
def running(
    command: list[str], log: Path, environment: dict[str, str] | None = None
) -> Iterator[None]:
    with open(log, "w") as file, subprocess.Popen(
        command, stdout=file, stderr=file, env=environment
    ) as process:  # fmt: skip
        try:
            yield
            assert process.poll() is None, log.read_text()[-2000:]
        finally:
            process.kill()


# --- Prometheus ---------------------------------------------------------------------------


@contextlib.contextmanager
def prometheus(folder: Path, targets: dict[str, int], node: str) -> Iterator[str]:
    """Its address; every target has that ``node`` for a label, as a PodMonitor gives it."""
    (port,) = free_ports(1)
    jobs = [
        {"job_name": name, "static_configs": [
            {"targets": [f"127.0.0.1:{target}"],
             "labels": {"node": node} if name == "agent" else {}},
        ]}
        for name, target in targets.items()
    ]  # fmt: skip
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({
        "global": {"scrape_interval": f"{SCRAPED_SECONDS}s"}, "scrape_configs": jobs,
    }))  # fmt: skip
    command = [
        "prometheus", f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with running(command, folder / "prometheus.log", {**os.environ, "GOMAXPROCS": "1"}):
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: up(address) == set(targets), 30, "it scrapes all of them")
        yield address


def up(address: str) -> set[str]:
    try:
        rows = result(address, "up == 1")
    except OSError:
        return set()
    return {row["metric"]["job"] for row in rows}


def result(address: str, query: str) -> list[dict[str, Any]]:
    words = urllib.parse.urlencode({"query": query})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{address}/api/v1/query?{words}", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found


def values(address: str, query: str) -> list[float]:
    """What a panel would draw."""
    found = [float(row["value"][1]) for row in result(address, query)]
    return [value for value in found if not math.isnan(value)]
