"""Scenarios in which nodes end, fall silent or come back, and nobody, or one alone, did it.

Each plays once and returns its figures for the journal; who was convicted the scene knows.  Times
are shortened: what takes half an hour in life stands in the name of a constant.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterable

from tests.cluster.api_client import ApiClient, Object
from tests.cluster.kwok_nodes import KwokNodes, now
from tests.cluster.node_pool import POOL_LABEL, NodePool
from tests.cluster.observed_cluster import silent
from tests.cluster.observed_scene import ObservedScene
from tests.cluster.observer_process import create, objects
from tests.cluster.slow_killer import SlowKiller
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import runs

from seawall.cluster.objects.api_group import (
    AGENT_ACCOUNT,
    API_VERSION,
    NODE_DEATH,
    NODE_REPORT,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.cluster.objects.node_death_object import (
    DeathPhase,
    NodeDeathObject,
    node_death_object,
)

INCIDENT_SECONDS = 22.0
"""So far apart deaths are two incidents."""
AWAY_SECONDS = 40.0
"""The API server: three minutes."""
SILENT_ZONE_NODES = 56
LOOKS_MOST = 50
"""Dead nodes of a storm that are looked into."""
PLAN_SECONDS = 7.0
"""From a mark to the node's end: minutes.  From 5 s on it is a plan."""
COMPANION_DEATHS = 5
"""By then nobody else is in question but the hog and its shadow; three are enough mostly."""
HUNG_POOL_NODES = 60
HUNG_REPLICAS = 9
HUNG_DEATHS = 7
"""Forty: a job on less than 30 of 100 of the stratum."""
BUSY_DEATHS = 7
BUSY_TIMES = 5
"""As often as idle nodes do busy ones die."""


def deaths_of(client: ApiClient, pool: NodePool) -> list[NodeDeathObject]:
    found = (node_death_object(one) for one in objects(client, NODE_DEATH))
    return [one for one in found if one.node in pool.names]


def phases(client: ApiClient, pool: NodePool) -> list[DeathPhase]:
    return [one.phase for one in deaths_of(client, pool)]


def cordon(client: ApiClient, names: Iterable[str], *, is_on: bool) -> None:
    for name in names:
        client.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": is_on or None}})


def taint(client: ApiClient, names: Iterable[str], key: str) -> None:
    for name in names:
        old = client.get(f"/api/v1/nodes/{name}")["spec"].get("taints") or []
        new = {"key": key, "value": str(int(time.time())), "effect": "NoSchedule"}
        client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": [*old, new]}})


def power_cycle(scene: ObservedScene, names: list[str], kernel: str = "") -> None:
    """Cordoned before, silent for so long that the core sees it, back with another boot."""
    cordon(scene.client, names, is_on=True)
    time.sleep(PLAN_SECONDS)
    scene.nodes.die(*names)
    scene.wait_until(lambda: silent(scene.client) >= set(names), 30, f"{names} are silent")
    boot(scene.nodes, names, kernel)
    cordon(scene.client, names, is_on=False)


def boot(nodes: KwokNodes, names: list[str], kernel: str = "") -> None:
    nodes.come_back(*names)
    if kernel:
        with nodes.plane.client("kubelets") as client:
            for name in names:
                body = {"status": {"nodeInfo": {"kernelVersion": kernel}}}
                client.patch(f"/api/v1/nodes/{name}/status", body)


def api_server_away(scene: ObservedScene, chance: random.Random) -> Object:
    """4: all leases run out meanwhile, and the core says of all nodes that they are silent."""
    pool = scene.pool("pool")
    pool.fill(chance)
    pool.wait_until_running()
    plane = scene.plane
    plane.kill_apiserver()
    time.sleep(AWAY_SECONDS)
    plane.start_apiserver()
    wait_until(lambda: plane.is_ready(scene.client), 60, "the API server is back")
    began = time.monotonic()
    # A kubelet says at once that it is Ready, whatever the core wrote meanwhile.
    scene.nodes.come_back(*scene.nodes.names, rebooted=False)
    scene.wait_until(lambda: staleness(scene) < 5, 40, "the watch goes on")
    resumed = time.monotonic() - began
    scene.wait_until(lambda: not silent(scene.client), 60, "all nodes are Ready")
    time.sleep(65)  # what was seen in the first minute would count by now
    assert objects(scene.client, NODE_DEATH) == []
    assert scene.said() == {}
    assert resumed < 30
    return {"resumed_seconds": round(resumed, 1)}


def staleness(scene: ObservedScene) -> float:
    return scene.observer.metrics()['seawall_watch_staleness_seconds{resource="nodes"}']


def silent_zone(scene: ObservedScene, chance: random.Random) -> Object:
    """7: a whole zone is silent while a hog in another one kills two nodes that tell."""
    away = scene.pool("away", SILENT_ZONE_NODES)
    away.fill(chance, 12)
    here = scene.pool("here")
    here.fill(chance)
    here.deploy("hog", chance.randint(1, 3))
    scene.right.add((here.space, "hog"))
    for pool in scene.pools:
        pool.wait_until_running()
    with SlowKiller(scene.plane, scene.nodes, here.space, "hog", 1.0, chance=chance) as killer:
        scene.nodes.die(*away.names)
        killer.kill(3)
        hog = (here.space, "hog")
        scene.wait_until(lambda: scene.clock.standing.get(hog) == "convicted", 120, "it is named")
        killer.ended.set()
    scene.wait_until(lambda: len(phases(scene.client, away)) == len(away.names), 60,
                     "each death of the zone is written down")  # fmt: skip
    looks = int(scene.observer.metrics()["seawall_death_requests_count"])
    assert looks <= LOOKS_MOST + len(killer.killed), "nodes that told have looks of their own"
    scene.nodes.come_back(*away.names, rebooted=False)
    scene.wait_until(
        lambda: set(phases(scene.client, away)) == {DeathPhase.RETRACTED}, 60,
        "all deaths of the zone are taken back",
    )  # fmt: skip
    time.sleep(2)
    assert {space for space, _ in scene.clock.standing} <= {here.space}
    return {"looks": looks, "nodes_lost": len(killer.killed)}


def companions(scene: ObservedScene, chance: random.Random) -> Object:
    """8: a hog beside what is everywhere, a sidecar, an innocent on 29 % and a shadow that follows
    it: the shadow is not told apart until a node's own record does it.
    """
    pool = scene.pool("pool")
    monitor(scene.client, pool)
    sidecar = {"name": "mesh", "image": "registry.test/mesh:1"}
    for number in range(5):
        spec = pool.spec(f"app-{number}")
        pool.deploy(f"app-{number}", chance.randint(1, 3),
                    {**spec, "containers": [*spec["containers"], sidecar]})  # fmt: skip
    pool.deploy("web", 7)
    pool.deploy("hog", 3, {**pool.spec("hog"), "affinity": {"podAntiAffinity": near("hog")}})
    follows = {"podAffinity": near("hog"), "podAntiAffinity": near("shadow")}
    pool.deploy("shadow", 3, {**pool.spec("shadow"), "affinity": follows})
    pool.wait_until_running()
    hog, shadow = (pool.space, "hog"), (pool.space, "shadow")
    scene.right.add(hog)
    with SlowKiller(scene.plane, scene.nodes, pool.space, "hog", chance=chance) as killer:
        for number in range(1, COMPANION_DEATHS + 1):
            scene.wait_until(lambda: pool.nodes_of("hog") == pool.nodes_of("shadow"), 60,
                             "the shadow is where hog is")  # fmt: skip
            killer.kill()
            scene.wait_until(
                lambda number=number: len(deaths_of(scene.client, pool)) == number, 60,
                f"{number} deaths",
            )  # fmt: skip
            with contextlib.suppress(AssertionError):  # one more death, then
                wait_until(lambda: scene.clock.standing.get(hog) == "inseparable", 10, "both")
                break
        # On nodes that are the busiest of a small pool chance explains five deaths, too (0037).
        standing = {str(scene.clock.standing.get(one)) for one in (hog, shadow)}
        assert standing in ({"inseparable"}, {"suspected"}), f"after {number} deaths: {standing}"
        assert scene.convicted() == set()
        killer.delivered = 1.0
        killer.kill()
        scene.wait_until(lambda: scene.clock.standing.get(hog) == "convicted", 60, "it is named")
    time.sleep(3)
    assert scene.clock.standing.get(shadow) not in {"convicted", "inseparable"}
    assert (pool.space, "monitor") not in scene.said()
    return {"nodes_lost": len(killer.killed), "both_stood": standing.pop()}


def near(name: str) -> Object:
    term = {"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": name}}}  # fmt: skip
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def monitor(client: ApiClient, pool: NodePool) -> None:
    labels = {"app": "monitor"}
    client.create(f"/apis/apps/v1/namespaces/{pool.space}/daemonsets", {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "monitor"},
        "spec": {"selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": pool.spec("monitor", "1")}},
    })  # fmt: skip
    wait_until(lambda: pool.running("monitor") == pool.size, 60, "monitor is on each node")


def planned_ends(scene: ObservedScene, chance: random.Random) -> Object:
    """9: a rolling upgrade of which one node does not return, a scale-down, spot nodes taken."""
    pool = scene.pool("pool")
    pool.fill(chance)
    pool.deploy("train", 7)
    pool.wait_until_running()
    order = chance.sample(pool.names, 16)
    upgraded, scaled, spot = order[:8], order[8:12], order[12:]
    power_cycle(scene, upgraded[:4], "6.8.0-1031-gcp")
    cordon(scene.client, upgraded[4:], is_on=True)
    taint(scene.client, scaled, "ToBeDeletedByClusterAutoscaler")
    taint(scene.client, spot, "aws-node-termination-handler/spot-itn")
    time.sleep(PLAN_SECONDS)
    scene.nodes.die(*upgraded[4:], *scaled, *spot)
    for name in scaled[:2]:  # two are deleted while Ready, two when they are silent
        scene.client.delete(f"/api/v1/nodes/{name}")
    there = {*upgraded[4:], *scaled[2:], *spot}
    scene.wait_until(lambda: silent(scene.client) >= there, 30, "they are silent")
    boot(scene.nodes, upgraded[4:7], "6.8.0-1031-gcp")
    cordon(scene.client, upgraded[4:7], is_on=False)
    for name in scaled[2:]:
        scene.client.delete(f"/api/v1/nodes/{name}")
    for name in scaled:
        scene.nodes.names.remove(name)
    time.sleep(5)
    found = phases(scene.client, pool)
    assert set(found) == {DeathPhase.PLANNED}
    assert len(found) == 14, "two were taken away while they were Ready"
    assert scene.said() == {}
    return {"planned": len(found)}


def power_cycled_job(scene: ObservedScene, chance: random.Random) -> Object:
    """13: the nodes of a job that hangs are reset by hand one after another: three at once, as a
    reset button does, three cordoned before and silent for as long as a machine boots.
    """
    pool = scene.pool("pool")
    pool.fill(chance)
    pool.deploy("hung", 7)
    pool.wait_until_running()
    victims = chance.sample(sorted(pool.nodes_of("hung")), 6)
    for name in victims[:3]:
        scene.nodes.come_back(name)
        time.sleep(INCIDENT_SECONDS)
    for name in victims[3:]:
        began = time.monotonic()
        power_cycle(scene, [name])
        time.sleep(max(INCIDENT_SECONDS - (time.monotonic() - began), 0.0))
    found = deaths_of(scene.client, pool)
    assert sorted(one.node for one in found) == sorted(victims)
    planned = [one for one in found if one.phase is DeathPhase.PLANNED]
    assert sorted(one.node for one in planned) == sorted(victims[3:])
    assert scene.said() == {}
    return {"resets": len(found) - len(planned), "planned": len(planned)}


def slow_power_cycles(scene: ObservedScene, chance: random.Random) -> Object:
    """13 in full: each node is silent for as long as a boot takes, uncordoned, and its agent had
    nothing to say; what the black boxes say comes when five are dead.
    """
    pool = scene.pool("cycled", HUNG_POOL_NODES)
    pool.fill(chance, 24)
    # A boot is over before the pods of a silent node are moved.
    pool.deploy("hung", HUNG_REPLICAS, {
        **pool.spec("hung"), "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": near("hung")},
    })  # fmt: skip
    agents(scene.client, pool)
    pool.wait_until_running()
    boots: dict[str, str] = {}
    hung = (pool.space, "hung")
    victims = chance.sample(sorted(pool.nodes_of("hung")), HUNG_DEATHS)
    for number, name in enumerate(victims):
        began = time.monotonic()
        boots[name] = boot_of(scene.client, name)
        scene.nodes.die(name)
        scene.wait_until(lambda name=name: name in silent(scene.client), 60, f"{name} is silent")
        scene.wait_until(
            lambda: {one.node for one in deaths_of(scene.client, pool)} >= set(boots), 60,
            "its death stands there",
        )  # fmt: skip
        scene.nodes.come_back(name)
        time.sleep(max(INCIDENT_SECONDS - (time.monotonic() - began), 0.0))
        if number == HUNG_DEATHS - 3:
            assert scene.clock.standing.get(hung) == "suspected"
            (said,) = [one for one in objects(scene.client, WORKLOAD_QUARANTINE)
                       if one["spec"]["workload"]["name"] == "hung"]  # fmt: skip
            why_not = said["status"].get("whyNot", said["status"])
            assert "awaited" in why_not, f"nothing else holds the judge back: {why_not}"
            for node, boot in boots.items():
                tell_of_its_end(scene.client, node, boot)
    waits = [one for one in deaths_of(scene.client, pool) if one.awaited_until_seconds is not None]
    assert len(waits) == 2, "the last two have not told yet"
    for node in list(boots)[-2:]:
        tell_of_its_end(scene.client, node, boots[node])
    scene.wait_until(
        lambda: all(one.record for one in deaths_of(scene.client, pool) if one.node in boots), 30,
        "all records are there",
    )  # fmt: skip
    time.sleep(3)
    assert scene.clock.standing.get(hung) == "suspected"
    return {"deaths": len(boots)}


def agents(client: ApiClient, pool: NodePool) -> None:
    """Pods by which the observer knows that an agent ran; nobody is in them."""
    space = "seawall"
    account = f"/api/v1/namespaces/{space}/serviceaccounts"
    create(client, account, {"apiVersion": "v1", "kind": "ServiceAccount",
                             "metadata": {"name": AGENT_ACCOUNT}})  # fmt: skip
    labels = {"app": f"agent-{pool.name}"}
    spec = {**pool.spec("agent", "10m"), "serviceAccountName": AGENT_ACCOUNT,
            "tolerations": [{"operator": "Exists"}]}  # fmt: skip
    client.create(f"/apis/apps/v1/namespaces/{space}/daemonsets", {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": f"agent-{pool.name}"},
        "spec": {"selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": spec}},
    })  # fmt: skip

    def run() -> int:
        pods = client.items(
            f"/api/v1/namespaces/{space}/pods", labelSelector=f"app={labels['app']}"
        )
        return sum(runs(pod) for pod in pods)

    wait_until(lambda: run() == pool.size, 90, "an agent is on each node")


def boot_of(client: ApiClient, name: str) -> str:
    return str(client.get(f"/api/v1/nodes/{name}")["status"]["nodeInfo"]["bootID"])


def tell_of_its_end(client: ApiClient, name: str, boot: str) -> None:
    """What its agent says after the boot: the record runs to the end, and memory was ample."""
    line = {"kind": "MemoryAmple", "pods": [], "text": "300 GiB could still be had"}
    at = now(micro=True)
    client.create(path_of(NODE_REPORT), {
        "apiVersion": API_VERSION, "kind": NODE_REPORT.kind, "metadata": {"name": name},
        "spec": {"nodeName": name},
        "report": {
            "at": at, "sequence": 1, "bootID": boot_of(client, name),
            "guard": {"version": "0.1.0", "mode": "observe", "canKill": False, "state": "peace"},
            "lastDeath": {"bootID": boot, "at": at, "ended": "Unclean", "record": [line]},
        },
    })  # fmt: skip


def busy_nodes(scene: ObservedScene, chance: random.Random) -> Object:
    """14: busy nodes die five times as often as idle ones, of nobody's doing."""
    pool = scene.pool("pool")
    busy = pool.names[:12]
    for name in pool.names:
        load = {"metadata": {"labels": {"load": "busy" if name in busy else "idle"}}}
        scene.client.patch(f"/api/v1/nodes/{name}", load)
    for number in range(6):
        spec = pool.spec(f"train-{number}")
        spec["nodeSelector"] = {POOL_LABEL: pool.name, "load": "busy"}
        pool.deploy(f"train-{number}", chance.choice((2, 3, 5, 7)), spec)
    pool.fill(chance, 4)
    pool.wait_until_running()
    died: list[str] = []
    for _ in range(BUSY_DEATHS):
        weights = [(BUSY_TIMES if name in busy else 1) * (name not in died) for name in pool.names]
        (name,) = chance.choices(pool.names, weights)
        scene.nodes.die(name)
        died.append(name)
        time.sleep(INCIDENT_SECONDS)
    scene.wait_until(
        lambda: len(deaths_of(scene.client, pool)) == len(died), 90,
        f"all {len(died)} of {pool.name} are seen",
    )  # fmt: skip
    time.sleep(3)
    suspected = sum("suspected" in said for said in scene.said().values())
    return {"busy": sum(name in busy for name in died), "deaths": len(died),
            "suspected": suspected}  # fmt: skip


INNOCENT: dict[str, Callable[[ObservedScene, random.Random], Object]] = {
    "4 API server away": api_server_away, "7 zone silent": silent_zone,
    "8 companions": companions, "9 planned ends": planned_ends,
    "13 power-cycled job": power_cycled_job, "13 slow power cycles": slow_power_cycles,
    "14 busy nodes": busy_nodes,
}  # fmt: skip
TOGETHER = ("8 companions", "9 planned ends", "13 power-cycled job", "14 busy nodes")
"""They play in pools of their own, and may share a cluster."""
