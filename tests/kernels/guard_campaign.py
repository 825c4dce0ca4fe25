"""`make campaign`: hundreds of randomised nodes with the guard on; ends with a bound.

``python -m tests.kernels.guard_campaign --runs 300 --seed 1 --journal FILE``.  Some hours, which
need not be in one piece: what stands in the journal is not run again, and counts.
``--quiet SECONDS``: nodes without a culprit, each so long, on which nothing may be done.
"""

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.kernels import built_modules, guard_peers, vm
from tests.kernels.guard_boots import run_all, say
from tests.kernels.guard_node import Report
from tests.kernels.guard_scenarios import ALL, MIB, SHORT_TAIL_SECONDS, Scenario, mixed, on, quiet

CONFIDENCE = 0.95
A_BOOT = 8
NODES = (
    {"systemd": True}, {"systemd": True}, {"cgroup": "v2"}, {"cgroup": "v1"}, {"cgroup": "v1"},
    {"swap": "disk"}, {"swap": "zram"}, {"cgroup": "v1", "swap": "zram"}, {"cgroup": "hybrid"},
)  # fmt: skip


def drawn(runs: int, seed: int, tail: float = SHORT_TAIL_SECONDS) -> list[Scenario]:
    """Scenarios with a right victim, each on a node that a seed chose; special nodes stay.

    The canary is served for ``tail`` seconds more.
    """
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
    return [on(scenario, tail_seconds=tail) for scenario in found]


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
    parser.add_argument("--journal", type=Path, help="a line of JSON for each run; is gone on with")
    parser.add_argument("--keep", type=Path, help="a folder for black boxes of runs gone wrong")
    parser.add_argument("--vms", type=int, default=1, help="at a time; one has two CPUs")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no boot after that")
    parser.add_argument("--tail", type=float, default=SHORT_TAIL_SECONDS,
                        help="seconds for which the canary is served after the end")  # fmt: skip
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds; no culprits")
    given = parser.parse_args()
    if why := vm.missing() or built_modules.missing() or guard_peers.missing(guard_peers.SYSTEMD):
        say(why)
        return 2
    rows = read_journal(given.journal)
    done, version = {row["id"] for row in rows}, commit()
    wanted = quiet(given.quiet) if given.quiet else drawn(given.runs, given.seed, given.tail)
    left = [one for one in wanted if one.id not in done]
    until, chance = time.monotonic() + given.seconds, random.Random(given.seed)
    for report in reports(left, given.vms, until, chance):
        rows.append({**summary(report), "version": version})
        say(f"{len(rows):3} {rows[-1]['line'] if report.raw else report.scenario.id}")
        if given.journal:
            with open(given.journal, "a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        if given.keep and (report.lost_console or not rows[-1].get("is_right")):
            keep(report, given.keep)
    return conclude_quiet(rows) if given.quiet else conclude(rows)


def reports(
    scenarios: Sequence[Scenario], vms: int, until: float, chance: random.Random
) -> Iterator[Report]:
    with tempfile.TemporaryDirectory(prefix="seawall-campaign-") as folder:
        image = vm.build_image(Path(folder) / "image", guard_peers.add_systemd)
        yield from run_all(image, scenarios, vms=vms, a_boot=A_BOOT, until=until, chance=chance)


def keep(report: Report, folder: Path) -> None:
    """What is too large for the journal: the boot's black box, what came back, the consoles."""
    folder.mkdir(parents=True, exist_ok=True)
    start = folder / f"{report.scenario.seed}"
    start.with_suffix(".json").write_text(json.dumps(report.raw))
    start.with_suffix(".console").write_text(report.console)
    if report.lost_console:
        start.with_suffix(".lost").write_text(report.lost_console)
    if report.blackbox:
        start.with_suffix(".box").write_bytes(report.blackbox)


def read_journal(path: Path | None) -> list[dict[str, Any]]:
    """Rows of runs before; a line that was cut off is run again."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def commit() -> str:
    """The last that changed the sources, with a mark where they differ; empty: it is not known."""
    return git("log", "-1", "--format=%h") + ("-dirty" if git("status", "--porcelain") else "")


def git(*words: str) -> str:
    """What it says of the sources."""
    command = ["git", *words, "--", "."]
    told = subprocess.run(command, capture_output=True, text=True, check=False, cwd=vm.SOURCES)
    return told.stdout.strip()


def summary(report: Report) -> dict[str, Any]:
    """What is kept of a run: enough to run it again, and to see why it went as it did."""
    row: dict[str, Any] = {
        "id": report.scenario.id, "seed": report.scenario.seed, "came_back": bool(report.raw),
        "line": report.console[-2000:], "is_second_boot": bool(report.lost_console),
    }  # fmt: skip
    if not report.raw or not report.is_right:
        row["log"] = report.log_tail
    if report.lost_console:
        row["lost"] = report.lost_console[-2000:]
    if not report.raw:
        return row
    canary = report.told["canary"]
    return {
        **row, "is_right": report.is_right, "line": report.line(),
        "innocents": {death.name: death.by for death in report.innocents},
        "served": canary["served"], "slots": canary["slots"], "guard": own(report),
        "acted": len(report.actions), "not_reached": report.not_reached,
        "rates": report.rates, "seconds": report.told["seconds"],
    }  # fmt: skip


def nodes_of(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Kinds of nodes by their runs: ``v2, systemd``."""
    kinds = Counter(re.sub(r", (all burstable|hog \w+).*", "", row["id"].partition("[")[2])
                    for row in rows)  # fmt: skip
    return kinds.most_common()


def own(report: Report) -> dict[str, Any]:
    """The guard's faults and growth since it was ready in that boot; empty: it is not that one."""
    try:
        began, ended = report.guard_numbers
    except AssertionError:
        return {}
    then, now = began["mapped_kib"], ended["mapped_kib"]
    grown = {name: now.get(name, 0) - then.get(name, 0) for name in {*then, *now}}
    return {
        "major_faults": ended["major_faults"] - began["major_faults"],
        "read_bytes": ended["read_bytes"] - began["read_bytes"],
        "faulted": report.guard_faults,
        "resident_kib": ended["resident_kib"],
        "grown_kib": {name: more for name, more in sorted(grown.items()) if more},
    }


def conclude(rows: list[dict[str, Any]]) -> int:
    """Print the bound; 1 when somebody died who should not have."""
    came = [row for row in rows if row["came_back"]]
    harmed = [row for row in came if row["innocents"]]
    by_guard = [row for row in harmed if "guard" in row["innocents"].values()]
    missing = [row for row in came if not row["innocents"] and not row["is_right"]]
    again = sum(row.get("is_second_boot", False) for row in rows)
    slots = max(1, sum(row["slots"] for row in came))
    versions = ", ".join(sorted({row.get("version") or "unknown sources" for row in rows}))
    say(
        f"{len(came)} runs of {len(rows)} came back, {again} only from a second boot; "
        f"innocents died in {len(harmed)} (the guard killed them in {len(by_guard)}): "
        f"with {CONFIDENCE:.0%} confidence in at most "
        f"{bound(len(harmed), max(1, len(came))):.2%} of runs, by the guard in at most "
        f"{bound(len(by_guard), max(1, len(came))):.2%}; the culprit stayed in {len(missing)}; "
        f"{sum(row['served'] for row in came) / slots:.2%} of slots served; of {versions}"
    )
    for row in harmed:
        say(f"  {row['line']}")
    say(", ".join(f"{count} of {node}" for node, count in nodes_of(came)))
    told = [row["guard"] for row in came if row.get("guard")]
    if told:
        grown = [sum(one["grown_kib"].values()) for one in told]
        say(
            f"the guard itself: at most {max(one['major_faults'] for one in told)} major faults "
            f"since it was ready in its boot, {max(grown)} KiB more than then, "
            f"{max(one['resident_kib'] for one in told)} KiB resident ({len(told)} runs)"
        )
    for name in sorted({name for row in came for name in row.get("rates", {})}):
        rates = [row["rates"][name] for row in came if name in row.get("rates", {})]
        amount = f"{median(rates):.1f}" if name == "forker" else f"{median(rates) / MIB:.1f} MiB"
        say(f"{name}: {amount} a second, the median of {len(rates)} runs")
    return int(bool(harmed) or len(came) < len(rows))


def conclude_quiet(rows: list[dict[str, Any]]) -> int:
    """1 when anybody was acted on, or a node was not in the state that it was to be in."""
    came = [row for row in rows if row["came_back"]]
    acted = sum(row["acted"] for row in came)
    minutes = sum(row["seconds"] for row in came) / 60
    vain = [row for row in came if row.get("not_reached")]
    say(f"{acted} actions in {minutes:.0f} minutes of {len(came)} nodes of {len(rows)}")
    for row in vain:
        say(f"  {row['id']}: not reached: {row['not_reached']}")
    return int(bool(acted or vain) or len(came) < len(rows))


if __name__ == "__main__":
    sys.exit(main())
