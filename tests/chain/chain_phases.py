"""The phases of the chain; each says what it saw in figures, and the watch has the rest."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chain.chain_cluster import (
    BOOT_SECONDS,
    ENFORCING,
    KEPT_OUT,
    OBSERVING,
    RESCUED,
    ChainCluster,
)
from tests.chain.chain_watch import HOG, WEB, end_words
from tests.chain.kubelet_node import agent_token
from tests.cluster.actor_process import ActorProcess, set_policy
from tests.cluster.custom_resources import API
from tests.cluster.observer_process import REPOSITORY, ObserverProcess, watched_for_a_month

from seawall.formats.iso_time import iso_datetime

DEATH_SECONDS = 900.0
"""From the culprit's start on a node to NotReady, at most."""
MOVED_SECONDS = 450.0
"""Of the culprit from a silent node: if the kernel kills there, it is Ready for a while again."""
KILL_SECONDS = 300.0
AFTER_SECONDS = 30.0
"""So long the innocents are looked at after a kill."""

Figures = dict[str, Any]


def watched_death(cluster: ChainCluster) -> tuple[str, float | None]:
    """The node on which the culprit is, and seconds until it is NotReady; None: it is not."""
    watch = cluster.watch
    watch.wait(cluster.hog_node, 120)
    node = cluster.hog_node()
    placed = watch.first("pod placed", "hog", f"on {node}") or 0.0
    if not watch.wait(lambda: watch.first("node", node, "Unknown"), DEATH_SECONDS):
        return node, None
    return node, round((watch.first("node", node, "Unknown") or 0.0) - placed, 1)


def let_die(cluster: ChainCluster, most: int) -> Figures:
    """Node after node, until so many are dead or the culprit does not come back."""
    cluster.watch.start_again()
    cluster.deploy_hog()
    deaths: list[Any] = []
    while len(deaths) < most:
        node, seconds = watched_death(cluster)
        if seconds is None:
            break
        deaths.append([node, seconds])
        if len(deaths) < most and not cluster.watch.wait(
            lambda node=node: cluster.hog_node() not in ("", node), MOVED_SECONDS
        ):
            break
    return {
        "deaths": deaths, "kernel_kills": kernel_kills(cluster),
        "kernel_kills_before_silence": [
            kernel_kills_before(cluster, node, cluster.watch.first("node", node, "Unknown") or 0.0)
            for node, _ in deaths
        ],
    }  # fmt: skip


def kernel_kills(cluster: ChainCluster) -> int:
    return sum(kernel_kills_before(cluster, name, math.inf) for name in cluster.nodes)


def kernel_kills_before(cluster: ChainCluster, node: str, seconds: float) -> int:
    """On that node, until so long after the culprit was deployed; a line of the console can come
    twice.
    """
    until = cluster.watch.began + seconds
    return len({line for stamp, line in list(cluster.nodes[node].lines)
                if "Killed process" in line and stamp < until})  # fmt: skip


def alone(cluster: ChainCluster) -> Figures:
    """Without Seawall: each node that gets the pod stops, and hands it on."""
    return let_die(cluster, len(cluster.nodes))


def observed(cluster: ChainCluster) -> Figures:
    """Guard and agent only tell; the observer names the workload."""
    watched_for_a_month(cluster.client)
    with ObserverProcess(cluster.plane, cluster.folder) as observer:
        cluster.watch.wait(observer.leads, 60)
        found = let_die(cluster, 2)
        watch = cluster.watch
        watch.wait(lambda: watch.first("quarantine", "ml/hog", ": convicted"), 60)
        return {**found, "suspected_at": watch.first("quarantine", "ml/hog"),
                "convicted_at": watch.first("quarantine", "ml/hog", ": convicted"),
                "why": verb(cluster, "why")}  # fmt: skip


def acted(cluster: ChainCluster) -> Figures:
    """Observer and actor, approval auto: it stops at two, of a cluster watched for a month."""
    watched_for_a_month(cluster.client)
    set_policy(cluster.client)
    with (
        ObserverProcess(cluster.plane, cluster.folder) as observer,
        ActorProcess(cluster.plane, cluster.folder) as actor,
    ):
        cluster.watch.wait(observer.leads, 60)
        cluster.watch.wait(actor.leads, 60)
        found = let_die(cluster, len(cluster.nodes))
        return {**found, "alive": sorted(cluster.ready()), "why": verb(cluster, "why")}


def rescued(cluster: ChainCluster) -> Figures:
    """A silent node is ordered to end the culprit; the innocents never move."""
    watch = cluster.watch
    watch.start_again()
    before = set(cluster.serving())
    cluster.deploy_hog()
    node, silent_after = watched_death(cluster)
    if silent_after is None:
        return {"silent_after": None}
    ordered = time.monotonic() - watch.began
    watch.add("ordered", node, "seawall cluster rescue")
    said = verb(cluster, "rescue", node)
    unknown = watch.first("node", node, "Unknown") or 0.0
    watch.wait(lambda: len(after(watch.rows, "node", node, "True", unknown)) > 0, 120)
    back = after(watch.rows, "node", node, "True", unknown)
    # Its owner takes it away, else it begins again.
    cluster.client.patch(f"/apis/apps/v1/namespaces/{HOG}/deployments/hog",
                         {"spec": {"replicas": 0}})  # fmt: skip
    watch.add("scaled", "hog", "to 0, by its owner")
    watch.wait(lambda: set(cluster.serving()) >= before, 120)
    innocents = {pod["metadata"]["uid"]: pod for pod in cluster.pods(WEB)}
    return {
        "node": node, "silent_after": silent_after, "order_said": said,
        "ready_after_order": round(back[0] - ordered, 1) if back else None,
        "innocents_same": before == set(innocents), "innocents_serving": len(cluster.serving()),
        "innocent_restarts": restarts(list(innocents.values())),
    }  # fmt: skip


def after(rows: list[Figures], what: str, subject: str, words: str, since: float) -> list[float]:
    return [row["at"] for row in list(rows) if row["what"] == what and row["subject"] == subject
            and row["words"] == words and row["at"] > since]  # fmt: skip


def restarts(pods: list[Any]) -> int:
    return sum(one.get("restartCount", 0) for pod in pods
               for one in pod.get("status", {}).get("containerStatuses", ()))  # fmt: skip


def guarded(cluster: ChainCluster) -> Figures:
    """The guard enforces: the culprit is ended each time, no node dies, the innocents serve on.

    One run; the cluster is used again for the next.
    """
    watch = cluster.watch
    before, had = set(cluster.serving()), restarts(cluster.pods(WEB))
    watch.start_again()
    cluster.deploy_hog()
    is_killed = watch.wait(
        lambda: watch.first("restart", "hog") or watch.first("container ended", "hog"),
        KILL_SECONDS,
    )
    time.sleep(AFTER_SECONDS)
    innocents = cluster.pods(WEB)
    return {
        "killed_after": watch.first("restart", "hog") or watch.first("container ended", "hog"),
        "is_killed": is_killed,
        "kills": watch.count("restart", "hog"),
        "nodes_lost": watch.count("node", "", "Unknown") + watch.count("node", "", "False"),
        "innocents_same": before == {pod["metadata"]["uid"] for pod in innocents},
        "innocent_restarts": restarts(innocents) - had,
        "innocents_not_ready": watch.count("pod ready", "web", "False"),
        "kernel_kills": kernel_kills(cluster),
    }


def quarantine_hog(cluster: ChainCluster) -> None:
    """Before its node boots: the pod is bound to it, and named to it by its uid, as the actor does
    it.  The pod stays there for ever, as those of DaemonSets do, and nobody deletes it.
    """
    agent_token(cluster.client, "n1")  # makes the node's object
    cluster.deploy_hog(nodeName="n1", tolerations=[{"operator": "Exists"}])
    cluster.watch.wait(lambda: cluster.pods(HOG), 60)
    (pod,) = cluster.pods(HOG)
    said = verb(cluster, "quarantine", "ml/deployment/hog", "--mode", "gate", "--yes")
    (one,) = cluster.client.items(f"{API}/workloadquarantines")
    body = {"status": {"pods": [{"uid": pod["metadata"]["uid"], "node": "n1"}]}}
    path = f"{API}/workloadquarantines/{one['metadata']['name']}/status"
    cluster.watch.add("quarantine", "ml/hog", said.splitlines()[0])
    cluster.client.patch(path, body)


def rebooted(cluster: ChainCluster) -> Figures:
    """A node dies of the pod, loses its power, and boots: its guard knows the pod from the disk.

    No agent runs in the second boot, so that nobody else can have told the guard.
    """
    watch = cluster.watch
    node = cluster.nodes["n1"]
    silent = watch.wait(lambda: watch.first("node", "n1", "Unknown"), DEATH_SECONDS)
    (before,) = cluster.pods(HOG)
    cluster.cut_power("n1", KEPT_OUT, with_agent=False)
    watch.add("power", "n1", "cut, and on again")
    cut = time.monotonic() - watch.began
    console = node.console
    watch.wait(lambda: after(watch.rows, "node", "n1", "True", cut), BOOT_SECONDS)
    back = after(watch.rows, "node", "n1", "True", cut)
    watch.wait(lambda: "in quarantine" in ended(cluster), 180)
    time.sleep(30)
    (pod,) = cluster.pods(HOG)
    return {
        "is_silent": silent, "same_uid": pod["metadata"]["uid"] == before["metadata"]["uid"],
        "ready_after_cut": round(back[0] - cut, 1) if back else None, "ended": ended(cluster),
        "lived_seconds": lived(pod), "is_ready_still": "n1" in cluster.ready(),
        "first_boot_said": [line for line in console.splitlines() if "seawall" in line][-5:],
    }  # fmt: skip


def ended(cluster: ChainCluster) -> str:
    """How the culprit's container ended last, in the words of its termination message."""
    statuses = [one for pod in cluster.pods(HOG)
                for one in pod.get("status", {}).get("containerStatuses", ())]  # fmt: skip
    ends = [end for one in statuses for state in (one.get("state", {}), one.get("lastState", {}))
            if (end := state.get("terminated"))]  # fmt: skip
    return end_words(ends[0]) if ends else ""


def lived(pod: Any) -> float | None:
    """Seconds of its container's last life."""
    for one in pod.get("status", {}).get("containerStatuses", ()):
        end = one.get("lastState", {}).get("terminated") or one.get("state", {}).get("terminated")
        if end and end.get("startedAt") and end.get("finishedAt"):
            began, ended_at = (iso_datetime(end[key]).timestamp()
                               for key in ("startedAt", "finishedAt"))  # fmt: skip
            return round(ended_at - began, 1)
    return None


def verb(cluster: ChainCluster, *words: str) -> str:
    """What `seawall cluster` says, as a person would ask it."""
    environment = {**os.environ, "PYTHONPATH": "src",
                   "KUBECONFIG": str(cluster.plane.kubeconfig("admin"))}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "cluster", *words], cwd=REPOSITORY, env=environment,
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    return f"{done.stdout}{done.stderr}".strip() + f"\n[exit status {done.returncode}]"


@dataclass(frozen=True)
class Phase:
    """One state of the cluster and what is done in it."""

    title: str
    guard: str | None
    """The guard's file on each node; None: nothing of Seawall is there."""
    play: Callable[[ChainCluster], Figures]
    with_actor: bool = False
    before: Callable[[ChainCluster], None] | None = None
    """Done before the nodes boot."""
    nodes: int | None = None


PHASES = {
    "alone": Phase("without Seawall", None, alone),
    "observed": Phase("guard and agent only tell, the observer judges", OBSERVING, observed),
    "acted": Phase("and the actor acts, approval auto", OBSERVING, acted, with_actor=True),
    "rescued": Phase("a silent node is ordered to end the culprit", RESCUED, rescued),
    "guarded": Phase("the guard enforces", ENFORCING, guarded),
    "rebooted": Phase("a power cut, and the guard before the kubelet", OBSERVING, rebooted,
                      before=quarantine_hog, nodes=1),
}  # fmt: skip


def shown(figures: Figures) -> str:
    return json.dumps({key: value for key, value in figures.items()
                       if key not in ("why", "order_said")})  # fmt: skip
