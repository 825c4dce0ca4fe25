"""``make cluster-soak``: one observer for hours in a cluster that never stands still.

``python -m tests.cluster.observer_soak --seconds 7200 --journal FILE``: two pools of nodes; twice a
minute a Deployment is replaced and a Job runs, and nodes are cordoned and booted, are away for a
moment, or reset without a plan.  A line of JSON each minute: what the observer holds and how much
it has asked for.  Ends with 1 where it grew, stopped following, or named an innocent.
"""

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.cluster.api_client import ApiClient
from tests.cluster.control_plane import ControlPlane
from tests.cluster.innocent_scenarios import cordon
from tests.cluster.node_pool import NodePool
from tests.cluster.observed_cluster import silent
from tests.cluster.observed_scene import ObservedScene, observed_scene
from tests.cluster.plane_build import CANNOT, PlaneProblem, programs, version_wanted

from seawall.cluster.objects.api_group import NODE_DEATH, WORKLOAD_QUARANTINE, path_of

STEP_SECONDS = 30.0
ROW_SECONDS = 60.0
RESET_EACH = 40
"""A reset without a plan each so many steps: one in twenty minutes among 48 nodes is as many as ten
thousand nodes have in six minutes."""
TOKEN_EACH = 40
GROWTH_MOST_BYTES = 4 << 20
"""From the first third's median to the last third's."""
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
Row = dict[str, Any]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--journal", type=Path, default=Path("observer-soak.jsonl"))
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(words)
    try:
        program, kwok = programs(version_wanted())
    except PlaneProblem as problem:
        print(problem, file=sys.stderr)
        return CANNOT
    with ControlPlane(program, kwok=kwok) as plane, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with observed_scene(plane, Path(folder)) as scene:
            rows = soak(scene, random.Random(asked.seed), asked.seconds, asked.journal)
    problems = judged(rows)
    print("\n".join(problems) or f"{len(rows)} minutes, nothing grew, nobody was named")
    return 1 if problems else 0


def soak(scene: ObservedScene, chance: random.Random, seconds: float, journal: Path) -> list[Row]:
    pools = [scene.pool("soak-a"), scene.pool("soak-b")]
    for pool in pools:
        pool.fill(chance)
    for pool in pools:
        pool.wait_until_running()
    began = time.monotonic()
    rows: list[Row] = []
    for step in itertools.count():
        due = began + step * STEP_SECONDS
        if due - began > seconds:
            return rows
        time.sleep(max(0.0, due - time.monotonic()))
        churn(scene, chance.choice(pools), chance, step)
        if step % TOKEN_EACH == TOKEN_EACH - 1:
            scene.observer.renew_token()
        if step % int(ROW_SECONDS / STEP_SECONDS) == 0:
            rows.append(row_of(scene, time.monotonic() - began))
            with journal.open("a") as file:
                print(json.dumps(rows[-1]), file=file)
    return rows


def churn(scene: ObservedScene, pool: NodePool, chance: random.Random, step: int) -> None:
    """What happens in any cluster in half a minute."""
    client = scene.client
    name = chance.choice(sorted(pool.workloads))
    path = f"/apis/apps/v1/namespaces/{pool.space}/deployments/{name}"
    words = {"spec": {"template": {"metadata": {"annotations": {"step": str(step)}}}}}
    client.patch(path, words)
    job(client, pool, step)
    node = chance.choice(pool.names)
    client.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"step": str(step)}}})
    if node not in scene.nodes.alive:
        return
    if step % RESET_EACH == RESET_EACH - 1:
        scene.nodes.die(node)
        scene.wait_until(lambda: node in silent(client), 60, f"{node} is silent")
        scene.nodes.come_back(node)
    elif step % 4 == 1:
        cordon(client, [node], is_on=True)
        time.sleep(6)
        scene.nodes.die(node)
        scene.wait_until(lambda: node in silent(client), 60, f"{node} is silent")
        scene.nodes.come_back(node)
        cordon(client, [node], is_on=False)
    elif step % 4 == 3:
        scene.nodes.die(node)
        scene.wait_until(lambda: node in silent(client), 60, f"{node} is silent")
        scene.nodes.come_back(node, rebooted=False)


def job(client: ApiClient, pool: NodePool, step: int) -> None:
    """A new name each time; the last one goes."""
    path = JOBS.format(pool.space)
    spec = {**pool.spec("batch", "1"), "restartPolicy": "Never"}
    client.create(path, {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"batch-{step}"},
        "spec": {"template": {"spec": spec}, "ttlSecondsAfterFinished": 60},
    })  # fmt: skip
    for one in client.items(path)[:-3]:
        client.delete(f"{path}/{one['metadata']['name']}", propagationPolicy="Background")


def row_of(scene: ObservedScene, seconds: float) -> Row:
    process = scene.observer.process
    assert process is not None
    stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    numbers = scene.observer.metrics()
    restarts = sum(value for name, value in numbers.items()
                   if name.startswith("seawall_watch_restarts_total"))  # fmt: skip
    stale = max((value for name, value in numbers.items()
                 if name.startswith("seawall_watch_staleness_seconds")), default=None)  # fmt: skip
    asked = sum(value for name, value in numbers.items()
                if name.startswith("seawall_api_requests_total"))  # fmt: skip
    return {
        "seconds": round(seconds), "leads": numbers.get("seawall_leader"),
        "resident_bytes": scene.observer.resident_bytes(),
        "cpu_seconds": (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"),
        "threads": len(os.listdir(f"/proc/{process.pid}/task")),
        "descriptors": len(os.listdir(f"/proc/{process.pid}/fd")),
        "requests": asked, "watch_restarts": restarts, "staleness_seconds": stale,
        "deaths": len(scene.client.items(path_of(NODE_DEATH))),
        "quarantines": len(scene.client.items(path_of(WORKLOAD_QUARANTINE))),
        "false_convictions": scene.false_convictions(),
    }  # fmt: skip


def judged(rows: list[Row]) -> list[str]:
    """What is wrong with them, in words."""
    problems = []
    third = max(1, len(rows) // 3)

    def growth(key: str) -> float:
        first, last = (median(row[key] for row in some) for some in (rows[:third], rows[-third:]))
        return float(last - first)

    if growth("resident_bytes") > GROWTH_MOST_BYTES:
        problems.append(f"it grew by {growth('resident_bytes') / 1e6:.1f} MB")
    problems += [f"more {key} at the end: {growth(key):g}" for key in ("threads", "descriptors")
                 if growth(key) > 1]  # fmt: skip
    if rows[-1]["deaths"] <= rows[0]["deaths"]:
        problems.append("it wrote down no death")
    if any(row["leads"] != 1.0 for row in rows[1:]):
        problems.append("it did not lead all the time")
    if rows[-1]["false_convictions"]:
        problems.append(f"innocents were convicted: {rows[-1]['false_convictions']}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
