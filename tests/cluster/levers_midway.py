"""Six workloads in one cluster, each under a lever of its own, so that one blow of fate meets all
six levers half done.

``with levers_midway(plane) as scene``: they run, each has its quarantine; there is no actor yet.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.cluster.acted_scene import deployment, job, quarantine
from tests.cluster.actor_process import (
    ActorProcess,
    InForceWriter,
    convict,
    opted_in,
    ready_for_actors,
    set_policy,
)
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.audit_log import AuditLog, Request
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.slow_killer import node_report
from tests.cluster.undone_objects import Objects, differences, marks, standing
from tests.cluster.workloads import deploy, pods, runs

from seawall.cluster.actor.pod_hold import HoldStage, hold_stage
from seawall.cluster.objects.api_group import NODE_REPORT, path_of

GONE = ("gone-1", "gone-2")
JOBS = ("train-a", "train-b", "train-c")
COPIES = 5
"""Of the workload whose copies are stopped one each ten seconds."""
LATE_SECONDS = 1200
CANARY_SECONDS = 30
LEVERS = ("hold", "probation", "suspend", "gate", "stopCopies", "moveInnocents")
ALL_OFF = dict.fromkeys(LEVERS, False)
ON = {
    "hold": ("hold",), "probation": ("probation", "stopCopies"), "suspend": ("suspend",),
    "gate": ("gate",), "stopCopies": ("gate", "stopCopies"), "moveInnocents": ("moveInnocents",),
}  # fmt: skip
"""By lever, what is switched on in its workload's namespace."""


@dataclass
class LeversMidway:
    """``is_done[lever]()``: whether it has done all there is to do."""

    plane: ControlPlane
    client: ApiClient
    nodes: KwokNodes
    pools: dict[str, NodePool] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    """Of the quarantines."""
    before: Objects = field(default_factory=dict)
    enforcing: set[str] = field(default_factory=set)
    dying: list[str] = field(default_factory=list)
    innocents: list[str] = field(default_factory=list)
    """Uids of the pods that are to be moved."""
    mark: int = 0

    def pods(self, lever: str, name: str = "hog") -> list[Object]:
        return pods(self.client, self.pools[lever].space, name)

    def running(self, lever: str) -> list[Object]:
        """Copies of the culprit that may kill the next node."""
        return [one for one in self.pods(lever)
                if runs(one) and one["spec"].get("nodeName") in self.nodes.alive]  # fmt: skip

    def stages(self) -> list[HoldStage]:
        return [hold_stage(one["spec"]["tolerations"]) for one in self.pods("hold")]

    def suspended(self) -> list[bool]:
        path = f"/apis/batch/v1/namespaces/{self.pools['suspend'].space}/jobs/{{}}"
        return [self.client.get(path.format(name))["spec"]["suspend"] for name in JOBS]

    def moved(self) -> list[bool]:
        """Of the innocents that were on the dead node; who is moved is being deleted, or gone."""
        there = {one["metadata"]["uid"] for one in self.pods("moveInnocents", "web")
                 if "deletionTimestamp" not in one["metadata"]}  # fmt: skip
        return [uid not in there for uid in self.innocents]

    def is_done(self, lever: str) -> bool:
        """Whether nothing is left of what it has to do."""
        if lever == "hold":
            return set(self.stages()) == {HoldStage.HELD}
        if lever == "suspend":
            return all(self.suspended())
        if lever == "moveInnocents":
            return all(self.moved())
        if lever == "gate":  # who runs may run on
            return quarantine(self.client, self.names_of("gate")[0])["spec"]["mode"] == "gate"
        living = self.running(lever)
        if lever == "probation":
            where = {one["spec"]["nodeName"] for one in living}
            return len(living) == 2 and where <= self.enforcing
        return not living

    def left(self) -> list[str]:
        return [lever for lever in LEVERS if not self.is_done(lever)]

    def names_of(self, lever: str) -> list[str]:
        space = self.pools[lever].space
        return [one for one in self.names
                if quarantine(self.client, one)["spec"]["match"]["namespace"] == space]  # fmt: skip

    def writes(self, user: str) -> list[Request]:
        """Of the actor, on objects of others, that were taken."""
        spaces = {pool.space for pool in self.pools.values()}
        return [one for one in AuditLog(self.plane.audit_path).since(self.mark)
                if one.user == user and one.is_write and one.status < 300
                and one.namespace in spaces and "events" not in one.resource]  # fmt: skip

    def differences(self) -> list[str]:
        """Of what is there still from what it was before."""
        now: Objects = {}
        for pool in self.pools.values():
            now |= standing(self.client, pool.space)
        return differences(self.before, now)

    def marks(self) -> list[str]:
        return [f"{lever}: {name}" for lever, pool in self.pools.items()
                for name in marks(standing(self.client, pool.space))]  # fmt: skip

    def assert_each_write_once(self, user: str) -> None:
        """Of a killed actor and the next one together: no field is written again, nothing deleted
        twice.  A pod that is held has two steps, one whose copy is stopped a claim before.
        """
        counts: dict[tuple[str, str, str, str], int] = {}
        for one in self.writes(user):
            key = (one.verb, one.resource, one.namespace, one.name)
            counts[key] = counts.get(key, 0) + 1
        held = {one["metadata"]["name"] for one in self.pods("hold")}
        for (verb, resource, space, name), count in counts.items():
            is_held = space == self.pools["hold"].space and name in held
            most = 2 if verb == "patch" and is_held else 1
            assert count <= most, f"{count} times {verb} {resource} {space}/{name}"

    def die(self) -> None:
        """The nodes of the hold one after another, so that some of them are half way."""
        for node in self.dying:
            self.nodes.die(node)
            time.sleep(1.5)

    def is_midway(self) -> bool:
        """A hold has made its first step, and of several copies some are stopped."""
        return HoldStage.ENDLESS in self.stages() and 0 < len(self.running("stopCopies")) < COPIES


@contextlib.contextmanager
def levers_midway(plane: ControlPlane, *, is_released: bool = False) -> Iterator[LeversMidway]:
    """``is_released``: helm has installed what is not ours alone, the right to move included."""
    with (
        plane.client() as client, KwokNodes(plane) as nodes, InForceWriter(plane),
        contextlib.ExitStack() as stack,
    ):  # fmt: skip
        if not is_released:
            ready_for_actors(client)
        scene = LeversMidway(plane, client, nodes)
        for lever in LEVERS:
            scene.pools[lever] = NodePool(client, nodes, f"{lever.lower()}-mid", 6)
        stack.callback(remove_spaces, scene)
        policies = [{"name": pool.space, "levers": {**ALL_OFF, **dict.fromkeys(ON[lever], True)}}
                    for lever, pool in scene.pools.items()]  # fmt: skip
        brakes = {"quarantinesPerHour": 30, "quarantinesPerDay": 100, "heldPodsShare": 1.0}
        set_policy(client, levers=ALL_OFF, namespaces=policies, brakes=brakes,
                   canarySeconds=CANARY_SECONDS)  # fmt: skip
        if not is_released:
            stack.enter_context(opted_in(client, "actor.levers.moveInnocents=true"))
        start(scene)
        for pool in scene.pools.values():
            scene.before |= standing(client, pool.space)
        scene.mark = AuditLog(plane.audit_path).mark()
        accuse(scene)
        yield scene


def remove_spaces(scene: LeversMidway) -> None:
    for pool in scene.pools.values():
        scene.client.delete(f"/api/v1/namespaces/{pool.space}")
    with contextlib.suppress(ApiError):  # a kind that is gone
        for report in scene.client.items(path_of(NODE_REPORT)):
            scene.client.delete(path_of(NODE_REPORT, report["metadata"]["name"]))


def start(scene: LeversMidway) -> None:
    pools = scene.pools
    late = late_tolerations(LATE_SECONDS)
    for lever, copies in (("probation", 2), ("gate", 2), ("stopCopies", COPIES)):
        pools[lever].deploy("hog", copies)
    spec = {**pools["hold"].spec("hog"), "tolerations": late_tolerations(300)}
    pools["hold"].deploy("hog", 3, spec)
    for name in JOBS:
        job(pools["suspend"], name, 1)
        pools["suspend"].workloads[name] = 1
    dead = pools["moveInnocents"].names[0]
    for name, copies in (("hog", 1), ("web", 3)):
        spec = {**pools["moveInnocents"].spec(name), "tolerations": late, "nodeName": dead}
        deploy(scene.client, pools["moveInnocents"].space, name, copies, spec)
        pools["moveInnocents"].workloads[name] = copies
    for pool in pools.values():
        pool.wait_until_running()
    free = sorted(set(pools["probation"].names) - pools["probation"].nodes_of("hog"))[:2]
    for node in free:
        body = node_report(scene.client, node, [])
        body["report"]["guard"] |= {"mode": "enforce", "canKill": True}
        scene.client.create(path_of(NODE_REPORT), body)
    scene.enforcing = set(free)
    scene.innocents = [one["metadata"]["uid"] for one in scene.pods("moveInnocents", "web")]
    scene.dying = [dead, *sorted(pools["hold"].nodes_of("hog"))]


def late_tolerations(seconds: int) -> list[Object]:
    """As the API server gives them to pods in life; this plane's are shorter."""
    return [
        {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": seconds} for word in ("unreachable", "not-ready")
    ]  # fmt: skip


def accuse(scene: LeversMidway) -> None:
    """Each by a quarantine as the observer writes it; on probation by a person's word."""
    for lever, pool in scene.pools.items():
        if lever == "suspend":
            for name in JOBS:
                path = f"/apis/batch/v1/namespaces/{pool.space}/jobs/{name}"
                one = {"kind": "Job", **scene.client.get(path)}
                scene.names.append(convict(scene.client, one, GONE))
            continue
        more: dict[str, str] = {}
        if lever == "probation":
            more = {"state": "Active", "mode": "probation", "approvedBy": "someone"}
        nodes = ("gone-1", scene.dying[0]) if lever == "moveInnocents" else GONE
        scene.names.append(convict(scene.client, deployment(pool, "hog"), nodes, **more))


class KilledAfterWrites:
    """``with KilledAfterWrites(scene, folder, most) as fate``: an actor that is killed by SIGKILL
    right after it wrote to somebody's object, and the next one, and the next, so many times; then
    one that lives.  Its lease goes with it, so that nobody waits for its end.
    """

    LEASE = "/apis/coordination.k8s.io/v1/namespaces/seawall/leases/seawall-actor"

    def __init__(self, scene: LeversMidway, make: Callable[[], ActorProcess], most: int) -> None:
        self.scene, self.make, self.most = scene, make, most
        self.killed_after: list[str] = []
        self.actor = make()
        self.ended = threading.Event()
        self.problem: Exception | None = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self) -> "KilledAfterWrites":  # noqa: PYI034 - Self is of 3.11
        self.actor.__enter__()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.actor.__exit__()
        if self.problem:
            raise self.problem

    def run(self) -> None:
        try:
            with self.scene.plane.client() as client:
                seen = 0
                while len(self.killed_after) < self.most and not self.ended.wait(0.02):
                    writes = self.scene.writes(self.actor.user)
                    if len(writes) > seen:
                        self.kill(client)
                        writes = self.scene.writes(self.actor.user)
                        self.killed_after.append(f"{writes[-1].verb} {writes[-1].name}")
                        seen = len(writes)
        except Exception as problem:  # noqa: BLE001 - is raised where it is waited for
            self.problem = problem

    def kill(self, client: ApiClient) -> None:
        assert self.actor.process is not None
        self.actor.process.kill()
        self.actor.process.wait()
        client.delete(self.LEASE)
        self.actor = self.make()
        self.actor.__enter__()
