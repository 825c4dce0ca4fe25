"""Who kills is named, and nobody else: in a large cluster where nodes die of their own, by wrong
clocks, beside a second one, and under new names (scenarios 3 in small, 6, 10 and 11).
"""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_pool import NodePool
from tests.cluster.observed_cluster import counting
from tests.cluster.observed_scene import WHOLE_SCENARIO, ObservedScene, observed_scene
from tests.cluster.observer_process import objects
from tests.cluster.slow_killer import APART_SECONDS, SlowKiller
from tests.host.driver_stand_in import build, needs_compiler

from seawall.cluster.objects.api_group import WORKLOAD_QUARANTINE
from seawall.cluster.objects.workload_quarantine_object import workload_quarantine_object

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(500), WHOLE_SCENARIO]

HOUR = 3600.0
REQUESTS_MOST = 45
RESIDENT_MOST = 64 << 20
WRONG_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += 3600;
    return failed;
}
time_t time(time_t *to) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (to) *to = at.tv_sec;
    return at.tv_sec;
}
int gettimeofday(struct timeval *to, void *zone) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    to->tv_sec = at.tv_sec;
    to->tv_usec = at.tv_nsec / 1000;
    return 0;
}
"""
"""Of the process that it is loaded into: an hour ahead.  An hour behind no certificate of the plane
would be valid yet."""


def wait_until_convicted(scene: ObservedScene, pool: NodePool, name: str, seconds: float) -> None:
    scene.wait_until(
        lambda: scene.clock.standing.get((pool.space, name)) == "convicted", seconds,
        f"{name} is convicted: {scene.clock.standing}",
    )  # fmt: skip


def submit(scene: ObservedScene, pool: NodePool, name: str, number: int) -> None:
    """The same Job under this name, running by the time this returns."""
    spec = pool.spec("train")
    container = {**spec["containers"][0], "args": ["--run", str(number)]}
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget",
                                                       "status": "True"}]}  # fmt: skip
    template = {"metadata": {"labels": {"app": name}},
                "spec": {**spec, "containers": [container], "restartPolicy": "Never"}}  # fmt: skip
    scene.client.create(f"/apis/batch/v1/namespaces/{pool.space}/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"parallelism": 2, "completions": 2, "template": template,
                 "podFailurePolicy": {"rules": [ignore]}},
    })  # fmt: skip
    scene.wait_until(lambda: pool.running(name) == 2, 40, f"{name} runs")


def deaths_named(scene: ObservedScene, pool: NodePool, name: str) -> int:
    """How many deaths stand in its quarantine."""
    (one,) = [one for one in map(workload_quarantine_object, objects(scene.client,
                                                                     WORKLOAD_QUARANTINE))
              if (one.workload.namespace, one.workload.name) == (pool.space, name)]  # fmt: skip
    return len(one.deaths)


def test_it_is_named_among_nodes_that_die_of_their_own(plane: ControlPlane, tmp_path: Path) -> None:
    """Six others die within three minutes, which is much more than 65 a day of 10,000: the
    background rises, so that more deaths are needed.
    """
    chance = random.Random(3)
    with observed_scene(plane, tmp_path) as scene:
        pool = scene.pool("pool", 150)
        pool.fill(chance, 30)
        pool.deploy("hog", 3)
        pool.wait_until_running()
        scene.right.add((pool.space, "hog"))
        with SlowKiller(plane, scene.nodes, pool.space, "hog", chance=chance) as killer:
            killer.kill(7)
            others = chance.sample(pool.names, 40)
            died: list[str] = []
            deadline = time.monotonic() + 7 * APART_SECONDS + 30
            while time.monotonic() < deadline and not scene.convicted():
                spared = {*pool.nodes_of("hog"), *killer.killed, *died}
                if len(died) < 6:
                    name = next(one for one in others if one not in spared)
                    scene.nodes.die(name)
                    died.append(name)
                until = time.monotonic() + 21
                while time.monotonic() < until and not scene.convicted():
                    time.sleep(0.2)
        time.sleep(2)
        assert scene.convicted() == scene.right
        requests, resident = scene.requests_per_death(), scene.observer.resident_bytes()
        assert requests is not None
        assert requests <= REQUESTS_MOST
        assert resident <= RESIDENT_MOST
        assert len(killer.killed) <= 6
        print(f"{len(killer.killed)} deaths of hog, {len(died)} others; {requests:.1f} requests a "
              f"death, {resident >> 20} MiB")  # fmt: skip


@needs_compiler
def test_wrong_clocks_change_no_verdict(plane: ControlPlane, tmp_path: Path) -> None:
    """The observer's is an hour ahead, half of the nodes' an hour ahead, half an hour behind."""
    library = build(WRONG_CLOCK, tmp_path / "wrong_clock.so", "-ldl")
    wrong = {"LD_PRELOAD": str(library)}
    ask = [sys.executable, "-c", "import time; print(time.time())"]
    said = subprocess.run(ask, env={**os.environ, **wrong}, capture_output=True, check=True)
    assert abs(float(said.stdout) - time.time() - HOUR) < 60, "its clock is wrong indeed"
    with observed_scene(plane, tmp_path, wrong) as scene:
        pool = scene.pool("pool", 0)
        pool.names += [*pool.more(12, HOUR), *pool.more(12, -HOUR)]
        pool.fill(random.Random(6))
        pool.deploy("hog", 3)
        pool.wait_until_running()
        scene.right.add((pool.space, "hog"))
        began = time.time()
        with SlowKiller(plane, scene.nodes, pool.space, "hog") as killer:
            killer.kill(3)
            scene.wait_until(lambda: len(counting(scene.client)) == 3, 120, "three deaths")
            wait_until_convicted(scene, pool, "hog", 10)
        assert scene.convicted() == scene.right
        for one in counting(scene.client):
            assert began < one.heartbeat_seconds < time.time() + 1
            assert began < one.observed_seconds < time.time() + 1
        print("clocks of the dead:", [scene.nodes.clocks[name] for name in killer.killed])


def test_two_at_once_are_both_named(plane: ControlPlane, tmp_path: Path) -> None:
    """Each at its own pace; what one does is background for the other until that one is known."""
    chance = random.Random(10)
    with observed_scene(plane, tmp_path) as scene:
        pool = scene.pool("pool", 36)
        pool.fill(chance)
        for name in ("hog-a", "hog-b"):
            pool.deploy(name, 3)
            scene.right.add((pool.space, name))
        pool.wait_until_running()
        with (
            SlowKiller(plane, scene.nodes, pool.space, "hog-a", chance=chance) as first,
            SlowKiller(plane, scene.nodes, pool.space, "hog-b", apart_seconds=33.0,
                       chance=chance) as second,
        ):  # fmt: skip
            first.kill(6)
            second.kill(6)
            wait_until_convicted(scene, pool, "hog-a", 240)
            wait_until_convicted(scene, pool, "hog-b", 240)
        time.sleep(2)
        assert scene.convicted() == scene.right
        counts = {name: deaths_named(scene, pool, name) for name in ("hog-a", "hog-b")}
        print(f"{counts}, killed {len(first.killed)} and {len(second.killed)}")
        assert max(counts.values()) <= 6


@pytest.mark.parametrize(
    ("names", "level"),
    [
        (("train-20261128-x7k2p", "train-20261129-b9fzq", "train-20261130-c4d5f",
          "train-20261201-z2z2z"), 2),
        (("alpha", "bravo", "charlie", "delta"), 3),
    ],
)  # fmt: skip
def test_a_job_under_a_new_name_each_time_is_known_again(
    plane: ControlPlane, tmp_path: Path, names: tuple[str, ...], level: int
) -> None:
    """Whoever sent it in sends it in anew, with other arguments, and each retry counter forgives
    it: ``podFailurePolicy`` ignores pods that went down with their node.
    """
    with observed_scene(plane, tmp_path) as scene:
        pool = scene.pool("pool")
        pool.fill(random.Random(11))
        pool.wait_until_running()
        for number, name in enumerate(names):
            submit(scene, pool, name, number)
            scene.right.add((pool.space, name))
            (node, *_) = sorted(pool.nodes_of(name))
            began = time.monotonic()
            scene.nodes.die(node)
            scene.wait_until(lambda number=number: len(counting(scene.client)) == number + 1, 40,
                             f"{number + 1} deaths")  # fmt: skip
            time.sleep(2)
            if scene.convicted():
                break
            scene.client.delete(f"/apis/batch/v1/namespaces/{pool.space}/jobs/{name}",
                                propagationPolicy="Background")  # fmt: skip
            time.sleep(max(APART_SECONDS - (time.monotonic() - began), 0.0))
        assert scene.convicted()
        assert scene.convicted() <= scene.right
        (one,) = [one for one in map(workload_quarantine_object, objects(scene.client,
                                                                         WORKLOAD_QUARANTINE))
                  if one.status and one.status.verdict.value == "convicted"]  # fmt: skip
        assert one.key.level == level
        assert len(one.deaths) <= 4
        print(f"by key {one.key.level} after {len(one.deaths)} deaths: {one.key.value}")
