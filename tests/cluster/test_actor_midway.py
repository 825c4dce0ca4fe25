"""Whatever befalls an actor or its cluster while a lever is half pulled: afterwards each lever is
complete or was never begun, and all of it can be put back.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.acted_scene import (
    actions,
    deployment,
    event_reasons,
    foreign_writes,
    is_marked,
    release,
    results,
    state,
    until,
)
from tests.cluster.actor_process import (
    ActorProcess,
    PooledActorProcess,
    convict,
    install_actor,
    opted_in,
    set_policy,
    uninstall_actor,
)
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.levers_midway import (
    COPIES,
    GONE,
    JOBS,
    KilledAfterWrites,
    LeversMidway,
    late_tolerations,
    levers_midway,
)
from tests.cluster.node_pool import NodePool
from tests.cluster.observed_scene import WHOLE_SCENARIO
from tests.cluster.plane_build import version_wanted
from tests.cluster.refusing_webhook import WORDS, RefusingWebhook
from tests.cluster.undone_objects import is_gated, undo_all
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pods, runs

from seawall.cluster.actor.pod_hold import HoldStage, hold_stage

MUTATES = tuple(map(int, version_wanted().split("."))) >= (1, 36)
pytestmark = [
    pytest.mark.cluster, pytest.mark.timeout(900),
    pytest.mark.skipif(not MUTATES, reason="no MutatingAdmissionPolicy before 1.36"),
]  # fmt: skip

AWAY_SECONDS = 180.0
KILLS = 12
DONE_SECONDS = 300.0


@pytest.fixture
def scene(slow_plane: ControlPlane) -> Iterator[LeversMidway]:
    with levers_midway(slow_plane) as scene:
        yield scene


def wait_until_done(scene: LeversMidway, actor: ActorProcess) -> None:
    try:
        wait_until(lambda: not scene.left(), DONE_SECONDS, "")
    except AssertionError as problem:
        raise AssertionError(f"{problem}{scene.left()}\n{actor.log()[-6000:]}") from None


def assert_all_is_put_back(scene: LeversMidway) -> None:
    """By the verb; the culprits run again as they did."""
    done = undo_all(scene.plane)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert_all_is_as_before(scene)


def assert_all_is_as_before(scene: LeversMidway) -> None:
    wait_until(lambda: not scene.marks(), 60, f"no mark of ours is left: {scene.marks()}")
    assert scene.differences() == []
    assert scene.suspended() == [False] * len(JOBS)
    for lever, copies in (("probation", 2), ("gate", 2), ("stopCopies", COPIES)):
        wait_until(lambda lever=lever, copies=copies: len(scene.running(lever)) == copies, 60,
                   f"{lever}: all run again")  # fmt: skip


@WHOLE_SCENARIO
def test_an_actor_that_is_killed_after_each_of_its_writes_is_followed_by_one_that_goes_on(
    scene: LeversMidway, slow_plane: ControlPlane, tmp_path: Path
) -> None:
    scene.die()
    with KilledAfterWrites(scene, lambda: ActorProcess(slow_plane, tmp_path), KILLS) as fate:
        wait_until(lambda: len(fate.killed_after) == KILLS or not scene.left(), 400, "killed")
        wait_until_done(scene, fate.actor)
        scene.assert_each_write_once(fate.actor.user)
        print(f"killed {len(fate.killed_after)} times:", *fate.killed_after, sep="\n  ")
        assert len(fate.killed_after) >= KILLS // 2
        assert_all_is_put_back(scene)


@WHOLE_SCENARIO
def test_an_api_server_that_is_away_for_three_minutes_leaves_nothing_half_done(
    scene: LeversMidway, slow_plane: ControlPlane, tmp_path: Path
) -> None:
    """All nodes are silent when it is back, which in a cluster of this size is a storm: that brake
    is set higher here, for it would rightly leave undone what was not begun.
    """
    with PooledActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: 0 < len(scene.running("stopCopies")) < COPIES, 90)
        scene.die()
        until(actor, scene.is_midway, 60)
        left = scene.left()
        with slow_plane.without_apiserver(scene.client):
            time.sleep(AWAY_SECONDS)
        alive = set(scene.nodes.names) - set(scene.dying)
        scene.nodes.come_back(*alive, rebooted=False)
        until(actor, lambda: HoldStage.ENDLESS not in scene.stages(), 60)
        wait_until_done(scene, actor)
        assert actor.leads(), "it is the same process"
        scene.assert_each_write_once(actor.user)
        print(f"half done or not begun when it went: {left}")
        assert_all_is_put_back(scene)


@WHOLE_SCENARIO
def test_an_upgrade_and_its_rollback_midway_pull_no_lever_twice(
    scene: LeversMidway, slow_plane: ControlPlane, tmp_path: Path
) -> None:
    """Each time the next one is there already when the one before is told to end, as in a rollout;
    the third one is the first one's version again.
    """
    first, second, third = (ActorProcess(slow_plane, tmp_path) for _ in range(3))
    with first, second:
        wait_until(lambda: first.leads() or second.leads(), 40, "one leads")
        old, new = (first, second) if first.leads() else (second, first)
        until(old, lambda: 0 < len(scene.running("stopCopies")) < COPIES, 90)
        scene.die()
        until(old, scene.is_midway, 60)
        old.signal(signal.SIGTERM)
        until(new, new.leads, 40)
        with third:
            before = len(scene.writes(new.user))
            until(new, lambda: len(scene.writes(new.user)) > before or not scene.left(), 60)
            new.signal(signal.SIGTERM)
            until(third, third.leads, 40)
            wait_until_done(scene, third)
            scene.assert_each_write_once(third.user)
            assert_all_is_put_back(scene)


@WHOLE_SCENARIO
def test_what_an_uninstalled_actor_left_half_done_is_put_back_by_the_verb(
    scene: LeversMidway, slow_plane: ControlPlane, tmp_path: Path
) -> None:
    """Its rights, fences and policies go with it; our kinds stay.  The next one finds nothing to
    do, for what was undone was released.
    """
    client = scene.client
    with ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: 0 < len(scene.running("stopCopies")) < COPIES, 90)
        scene.die()
        until(actor, scene.is_midway, 60)
        actor.signal(signal.SIGKILL)
    try:
        uninstall_actor(client)
        assert HoldStage.ENDLESS in scene.stages()
        print("half done:", scene.left())
        assert_all_is_put_back(scene)
        assert set(scene.stages()) == {HoldStage.NONE}
    finally:
        install_actor(client)
    mark = AuditLog(slow_plane.audit_path).mark()
    with ActorProcess(slow_plane, tmp_path) as actor:
        wait_until(actor.leads, 30, "it leads")
        time.sleep(15)
        scene.mark = mark
        assert scene.writes(actor.user) == []


# --- somebody who puts it back, and somebody who refuses --------------------------------------


def hold_alone(pool: NodePool, copies: int = 2) -> tuple[str, list[str]]:
    """A culprit whose pods the core leaves on a silent node for 300 s; quarantine and nodes."""
    spec = {**pool.spec("hog"), "tolerations": late_tolerations(300)}
    pool.deploy("hog", copies, spec)
    pool.wait_until_running()
    nodes = sorted(pool.nodes_of("hog"))
    return convict(pool.client, deployment(pool, "hog"), GONE), nodes


def pod_of(pool: NodePool, node: str) -> Object:
    (one,) = [one for one in pods(pool.client, pool.space, "hog")
              if one["spec"].get("nodeName") == node]  # fmt: skip
    return one


def test_a_hold_that_somebody_takes_back_rests(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, levers={"gate": False, "stopCopies": False})
    name, nodes = hold_alone(pool)
    mark = audit.mark()
    with ActorProcess(slow_plane, tmp_path) as actor:
        pool.nodes.die(nodes[0])
        stage = lambda: hold_stage(pod_of(pool, nodes[0])["spec"]["tolerations"])  # noqa: E731
        until(actor, lambda: stage() is HoldStage.HELD, 60)
        pod = pod_of(pool, nodes[0])
        path = f"/api/v1/namespaces/{pool.space}/pods/{pod['metadata']['name']}"
        rows = [{**one, "tolerationSeconds": 300} for one in pod["spec"]["tolerations"]]
        client.patch(path, {"spec": {"tolerations": rows}})
        until(actor, lambda: ("hold", "reverted") in results(client, name), 30)
        time.sleep(12)
        writes = [one.name for one in foreign_writes(audit, mark, actor.user, pool.space)]
        assert writes == [pod["metadata"]["name"]] * 2, "it does not fight"
        assert "LeverReverted" in event_reasons(client, pool.space)
        release(client, name)
        until(actor, lambda: not is_marked(client, path), 20)
        assert client.get(path)["spec"]["tolerations"] == rows


def test_a_gate_that_somebody_opens_ends_the_stopping_of_copies(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """Else it would delete pod after pod, each made anew."""
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, levers={"suspend": False, "hold": False})
    pool.deploy("hog", 4)
    pool.wait_until_running()
    name = convict(client, deployment(pool, "hog"), GONE)
    mark = audit.mark()
    with opened_gates(pool), ActorProcess(slow_plane, tmp_path) as actor:
        until(actor, lambda: ("stopCopies", "refused") in results(client, name), 60)
        time.sleep(22)
        deleted = [one for one in foreign_writes(audit, mark, actor.user, pool.space)
                   if one.verb == "delete"]  # fmt: skip
        assert len(deleted) <= 2
        (line,) = {one["problem"] for one in actions(client, name)
                   if (one["lever"], one["result"]) == ("stopCopies", "refused")}  # fmt: skip
        assert "in spite of the gate" in line
        wait_until(lambda: pool.running("hog") == 4, 20, "nobody is stopped any more")


@contextlib.contextmanager
def opened_gates(pool: NodePool) -> Iterator[None]:
    """Somebody takes our gate off each pod as soon as it waits."""
    ended = threading.Event()

    def run() -> None:
        with pool.nodes.plane.client() as client:
            while not ended.wait(0.2):
                for one in filter(is_gated, pods(client, pool.space, "hog")):
                    path = f"/api/v1/namespaces/{pool.space}/pods/{one['metadata']['name']}"
                    with contextlib.suppress(ApiError):
                        client.patch(path, {"spec": {"schedulingGates": []}})

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_who_is_scaled_up_again_stays_up(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, levers={"scaleToZero": True, "hold": False})
    pool.deploy("hog", 2)
    pool.wait_until_running()
    path = f"/apis/apps/v1/namespaces/{pool.space}/deployments/hog"
    name = convict(client, deployment(pool, "hog"), GONE)
    mark = audit.mark()
    with (
        opted_in(client, "actor.levers.scaleToZero=true"),
        ActorProcess(slow_plane, tmp_path) as actor,
    ):
        until(actor, lambda: client.get(path)["spec"]["replicas"] == 0, 60)
        client.patch(path, {"spec": {"replicas": 2}})
        until(actor, lambda: ("scaleToZero", "reverted") in results(client, name), 30)
        time.sleep(12)
        writes = [(one.verb, one.resource)
                  for one in foreign_writes(audit, mark, actor.user, pool.space)]  # fmt: skip
        assert writes == [("patch", "deployments.apps")], "it does not fight, and deletes nothing"
        assert "LeverReverted" in event_reasons(client, pool.space)
        release(client, name)
        until(actor, lambda: not is_marked(client, path), 20)
        assert client.get(path)["spec"]["replicas"] == 2


def test_pods_that_a_webhook_guards_are_left_and_tried_again(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    """Neither held nor claimed for deletion, and the refusal is told; then both."""
    client, audit = pool.client, AuditLog(slow_plane.audit_path)
    set_policy(client, levers={"suspend": False})
    name, nodes = hold_alone(pool, 3)
    mark = audit.mark()
    with ActorProcess(slow_plane, tmp_path) as actor:
        with RefusingWebhook(client, slow_plane.folder, pool.space, "pods", ""):
            pool.nodes.die(nodes[0])
            until(actor, lambda: {("hold", "refused"), ("stopCopies", "refused")}
                  <= results(client, name), 90)  # fmt: skip
            assert state(client, name) == ("Active", "gate")
            problems = {one.get("problem", "") for one in actions(client, name)}
            assert any(WORDS in problem for problem in problems)
            assert foreign_writes(audit, mark, actor.user, pool.space) == []
            assert hold_stage(pod_of(pool, nodes[0])["spec"]["tolerations"]) is HoldStage.NONE
            assert all(runs(pod) for pod in pods(client, pool.space, "hog"))
        until(
            actor,
            lambda: hold_stage(pod_of(pool, nodes[0])["spec"]["tolerations"]) is HoldStage.HELD,
            90,
        )
        until(actor, lambda: pool.nodes_of("hog") == {nodes[0]}, 90)
        release(client, name)


def test_an_innocent_whose_deletion_a_webhook_refuses_stays_until_it_may_go(
    slow_plane: ControlPlane, pool: NodePool, tmp_path: Path
) -> None:
    client = pool.client
    set_policy(client, levers={"moveInnocents": True, "gate": False, "stopCopies": False,
                               "hold": False})  # fmt: skip
    node = pool.names[0]
    for name in ("hog", "web"):
        spec = {**pool.spec(name), "tolerations": late_tolerations(1200), "nodeName": node}
        pool.deploy(name, 1, spec)
    pool.wait_until_running()
    convict(client, deployment(pool, "hog"), ("gone-1", node))
    (web,) = pods(client, pool.space, "web")
    path = f"/api/v1/namespaces/{pool.space}/pods/{web['metadata']['name']}"
    with (
        opted_in(client, "actor.levers.moveInnocents=true"),
        ActorProcess(slow_plane, tmp_path) as actor,
    ):
        wait_until(actor.leads, 30, "it leads")
        with RefusingWebhook(
            client, slow_plane.folder, pool.space, "pods", "", operations=["DELETE"]
        ) as webhook:
            pool.nodes.die(node)
            until(actor, lambda: webhook.seen, 150)
            time.sleep(5)
            assert "deletionTimestamp" not in client.get(path)["metadata"]
            assert actor.leads()
        until(actor, lambda: is_gone(client, path), 60)


def is_gone(client: ApiClient, path: str) -> bool:
    try:
        return "deletionTimestamp" in client.get(path)["metadata"]
    except ApiError as problem:
        if problem.status != 404:
            raise
        return True
