"""The guard's judge over 250 workloads of 5,000 processes: a tick in peace, and a whole ranking.

The judge looks at cgroups only; processes count where details of those that lead are read
(bench/guard_tick.py).  So 5,000 processes cost it nothing, which is the point.
"""

import time

from seawall.guard.facts import BURSTABLE, Group, Node, Outside
from seawall.guard.judge.judge import Judge
from seawall.guard.settings import Settings

GROUPS = 250
PROCESSES = 5_000
ROUNDS = 30
MARK_RANKING_SECONDS = 0.050
MARK_PEACE_SECONDS = 0.001
MIB = 1 << 20


def groups_of() -> dict[str, Group]:
    """Pods of all sizes; one of them holds driver memory."""
    found = {}
    for number in range(GROUPS):
        group = Group(f"/kubepods/burstable/pod{number:04d}/c", number + 1, f"ns/pod{number}/c")
        group.class_rank, group.adj = BURSTABLE, 900
        group.charge_bytes = group.gives_back_bytes = (number % 50 + 5) * MIB
        group.limit_bytes = 100 * MIB
        group.processes = PROCESSES // GROUPS
        found[group.path] = group
    return found


def node_at(seconds: float, headroom: int) -> Node:
    return Node(
        seconds, 16384 * MIB, headroom * MIB, headroom * MIB, 0, 0, headroom * MIB,
        300.0 * MIB, 500 * MIB, 400 * MIB, 200.0 * MIB, 0, headroom < 900, headroom < 900,
        20.0 * (headroom < 900), 0.0, 0.0, 0, 0, 0, 0.5,
    )  # fmt: skip


def measure() -> dict[str, float]:
    """Seconds, the best of ROUNDS."""
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


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:18} {value * 1000:8.3f} ms")
