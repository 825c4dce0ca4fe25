"""The guard's judge over 250 workloads of 5,000 processes: a tick in peace, and a whole ranking.

``python -m bench.guard_ranking``.  On numbers, the judge alone; and as root on real cgroups of
this machine's memory tree, twenty real processes in each: from the look of a tick to its verdict,
with all that is read of those that lead (their processes, their oom_score_adj, what their end
gives back).
"""

import json
import subprocess
import time
from typing import Any

from bench.pods import PODS, PROCESSES, PYTHON, SOURCES, compile_sources, inhabitants, real_tree

from seawall.guard.judge.judge import Judge
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BURSTABLE, Group, Node, Outside

ROUNDS = 30
MARK_RANKING_SECONDS = 0.050
MARK_PEACE_SECONDS = 0.001
MIB = 1 << 20

_REAL = """
import json, sys, time
sys.path.insert(0, {sources!r})
from seawall.actions.orders import Mounts
from seawall.guard.tick_facts import BURSTABLE, Outside
from seawall.guard.judge.judge import Judge
from seawall.guard.sense.sense import Sense
from seawall.guard.settings import Settings
MIB = 1 << 20
settings = Settings(mode="enforce", scope=("/",))
sense = Sense(settings, Mounts({mount!r}, 1), "/")
sense.open()
sense.look(time.monotonic())
times, counts = [], []
for _ in range({rounds}):
    judge = Judge(settings, "5eed0000")
    node = sense.look(time.monotonic())
    groups = sense.groups
    for number, group in enumerate(groups.values()):
        group.protected_by, group.class_rank, group.name = "", BURSTABLE, "ns/pod%d/c" % number
        group.outside = Outside(0, 0, 0, "")
    calm = node._replace(
        headroom_bytes=9000 * MIB, comparable_bytes=9000 * MIB, claims_seconds=0.5
    )
    judge.step(calm, groups)
    culprit = groups[sorted(groups)[7]]
    culprit.limit_bytes = 100 * MIB
    culprit.outside = Outside(4000 * MIB, 4000 * MIB, 4000 * MIB, "packet rings")
    short = node._replace(
        seconds=node.seconds + 1.0, headroom_bytes=200 * MIB, free_bytes=200 * MIB,
        comparable_bytes=200 * MIB, slope_bytes_per_second=300.0 * MIB, is_low=True, is_min=True,
        stalls_per_second=20.0, claims_seconds=0.5,
    )
    began = time.perf_counter()
    sense.look(time.monotonic())
    for group in groups.values():
        group.protected_by = ""
    culprit.outside = Outside(4000 * MIB, 4000 * MIB, 4000 * MIB, "packet rings")
    wanted = judge.wants(short, groups)
    sense.detail_all(wanted)
    verdict = judge.step(short, groups)
    times.append(time.perf_counter() - began)
    counts.append(sum(group.processes or 0 for group in wanted))
    if verdict is None or verdict.orders[0].target.path != culprit.path:
        raise RuntimeError("the culprit was not chosen")
times.sort()
print(json.dumps(dict(median=times[len(times) // 2], most=times[-1], groups=len(groups),
                      processes_read=max(counts))))
"""


def measure_real() -> dict[str, Any] | None:
    """Seconds from the look to the verdict; None where one may not make cgroups."""
    compile_sources()
    with real_tree(PODS) as mount:
        if mount is None:
            return None
        with inhabitants(mount) as count:
            text = _REAL.format(sources=str(SOURCES), mount=mount, rounds=ROUNDS)
            output = subprocess.run(
                [PYTHON, "-I", "-S", "-c", text], check=True, stdout=subprocess.PIPE, text=True
            ).stdout
    return {"processes": count, **json.loads(output)}


def groups_of() -> dict[str, Group]:
    """Pods of all sizes; one of them holds driver memory."""
    found = {}
    for number in range(PODS):
        group = Group(f"/kubepods/burstable/pod{number:04d}/c", number + 1, f"ns/pod{number}/c")
        group.class_rank, group.adj = BURSTABLE, 900
        group.charge_bytes = group.gives_back_bytes = (number % 50 + 5) * MIB
        group.limit_bytes = 100 * MIB
        group.processes = PROCESSES // PODS
        found[group.path] = group
    return found


def node_at(seconds: float, headroom: int) -> Node:
    return Node(
        seconds, 16384 * MIB, headroom * MIB, headroom * MIB, 0, 0, headroom * MIB,
        300.0 * MIB, 500 * MIB, 400 * MIB, 200.0 * MIB, 0, headroom < 900, headroom < 900,
        20.0 * (headroom < 900), 0.0, 0.0, 0, 0, 0, 0.5,
    )  # fmt: skip


def measure() -> dict[str, float]:
    """Seconds of the judge alone, the best of ROUNDS."""
    groups = groups_of()
    settings = Settings(mode="enforce")
    rankings, peace = [], []
    for _ in range(ROUNDS):
        judge = Judge(settings, "5eed0000")
        calm = node_at(1000.0, 9000)._replace(slope_bytes_per_second=0.0)
        groups["/kubepods/burstable/pod0007/c"].outside = Outside(0, 0, 0, "")
        judge.step(calm, groups)
        began = time.perf_counter()
        judge.wants(calm._replace(seconds=1001.0), groups)
        judge.step(calm._replace(seconds=1001.0), groups)
        peace.append(time.perf_counter() - began)
        groups["/kubepods/burstable/pod0007/c"].outside = Outside(
            4000 * MIB, 4000 * MIB, 4000 * MIB, "packet rings"
        )
        short = node_at(1002.0, 200)
        began = time.perf_counter()
        judge.wants(short, groups)
        verdict = judge.step(short, groups)
        rankings.append(time.perf_counter() - began)
        if verdict is None or verdict.orders[0].target.name != "ns/pod7/c":
            raise RuntimeError("the culprit was not chosen")
    return {
        "peace_seconds": min(peace), "ranking_seconds": min(rankings),
        "mark_peace": MARK_PEACE_SECONDS, "mark_ranking": MARK_RANKING_SECONDS,
    }  # fmt: skip


def main() -> None:
    for name, value in measure().items():
        print(f"{name:24} {value * 1000:8.3f} ms")
    real = measure_real()
    if real is None:
        print("look to verdict, over real processes: needs root and a memory cgroup (v1)")
        return
    where = f"{real['groups']} cgroups, {real['processes']} processes"
    print(
        f"look to verdict, {where}, {real['processes_read']} of them in those that lead: "
        f"median {real['median'] * 1000:.1f} ms, most {real['most'] * 1000:.1f} ms"
    )


if __name__ == "__main__":
    main()
