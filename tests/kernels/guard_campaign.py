"""`make campaign`: hundreds of randomised nodes with the guard on; ends with a bound.

``python -m tests.kernels.guard_campaign --runs 300 --seed 1 [--journal FILE]``.  Some hours.
"""

import argparse
import json
import math
import random
import sys
import tempfile
from pathlib import Path

from tests.kernels import built_modules, guard_peers, vm
from tests.kernels.guard_boots import run_all, say
from tests.kernels.guard_node import Report
from tests.kernels.guard_scenarios import ALL, Scenario, mixed, on

CONFIDENCE = 0.95
NODES = (
    {"systemd": True}, {"systemd": True}, {"cgroup": "v2"}, {"cgroup": "v1"}, {"cgroup": "v1"},
    {"swap": "disk"}, {"swap": "zram"}, {"cgroup": "v1", "swap": "zram"},
)  # fmt: skip


def drawn(runs: int, seed: int) -> list[Scenario]:
    """Scenarios with a right victim, each on a node that a seed chose; special nodes stay."""
    chance = random.Random(seed)
    free = [s for s in ALL.values() if s.victims and s.node == ALL["rings fast"].node]
    rest = [s for s in ALL.values() if s.victims and s.node != ALL["rings fast"].node]
    found = []
    for number in range(runs):
        run = seed * 10_000 + number
        if rest and chance.random() < 0.25:
            found.append(mixed(chance.choice(rest), run))
        else:
            found.append(on(mixed(chance.choice(free), run), **chance.choice(NODES)))
    return found


def bound(wrong: int, runs: int, confidence: float = CONFIDENCE) -> float:
    """The share of wrong runs that is excluded with so much confidence (Clopper-Pearson)."""
    if wrong >= runs:
        return 1.0
    low, high = wrong / runs, 1.0
    for _ in range(60):
        share = (low + high) / 2
        seen = sum(
            math.comb(runs, k) * share**k * (1 - share) ** (runs - k) for k in range(wrong + 1)
        )
        low, high = (share, high) if seen > 1 - confidence else (low, share)
    return high


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--journal", type=Path, help="a line of JSON for each run")
    given = parser.parse_args()
    if why := vm.missing() or built_modules.missing() or guard_peers.missing(guard_peers.SYSTEMD):
        say(why)
        return 2
    reports: list[Report] = []
    with tempfile.TemporaryDirectory(prefix="seawall-campaign-") as folder:
        image = vm.build_image(Path(folder) / "image", guard_peers.add_systemd)
        for report in run_all(image, drawn(given.runs, given.seed)):
            reports.append(report)
            say(f"{len(reports):3} {report.line() if report.raw else report.scenario.id}")
            if given.journal:
                with open(given.journal, "a") as file:
                    file.write(json.dumps(summary(report)) + "\n")
    return conclude(reports)


def summary(report: Report) -> dict[str, object]:
    """What is kept of a run: enough to run it again, and to see why it went as it did."""
    return {
        "id": report.scenario.id, "seed": report.scenario.seed, "came_back": bool(report.raw),
        "is_right": bool(report.raw) and report.is_right,
        "line": report.line() if report.raw else report.console[-2000:],
        "log": report.log_tail,
    }  # fmt: skip


def conclude(reports: list[Report]) -> int:
    """Print the bound; 1 when somebody died who should not have."""
    came = [report for report in reports if report.raw]
    harmed = [report for report in came if report.innocents]
    missing = [report for report in came if not report.innocents and not report.is_right]
    canaries = [report.told["canary"] for report in came]
    slots = max(1, sum(canary["slots"] for canary in canaries))
    say(
        f"{len(came)} runs of {len(reports)} came back; innocents died in {len(harmed)}: at most "
        f"{bound(len(harmed), max(1, len(came))):.2%} of runs, with {CONFIDENCE:.0%} confidence; "
        f"the culprit stayed in {len(missing)}; "
        f"{sum(canary['served'] for canary in canaries) / slots:.2%} of slots served"
    )
    for report in harmed:
        say(f"  {report.line()}")
    return int(bool(harmed) or len(came) < len(reports))


if __name__ == "__main__":
    sys.exit(main())
