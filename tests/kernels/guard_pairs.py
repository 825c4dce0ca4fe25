"""`make guard-pairs`: two and three culprits at once, with the guard and without any.

``python -m tests.kernels.guard_pairs --journal FILE``: the first two situations 20 times, the
others 5 times, and each ``--without`` times without a guard.  A row of the journal is one run; what
stands in it is not run again.  Ends with 1 where the guard killed an innocent, or stood behind
``invoked oom-killer``.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.kernels import built_modules, vm
from tests.kernels.guard_boots import run_all, say
from tests.kernels.guard_campaign import commit, keep, read_journal, summary
from tests.kernels.guard_node import GUARD, NOBODY, Killer, Report, add_to_image
from tests.kernels.guard_scenarios import PAIRS, SHORT_TAIL_SECONDS, Scenario

OFTEN, SELDOM = 20, 5
"""Runs of the two that went wrong before, and of each other one."""


def wanted(without: int) -> list[tuple[Scenario, Killer]]:
    """All runs, the situations in turn: who breaks off has some of each."""
    runs = [
        (replace(scenario, seed=seed, tail_seconds=SHORT_TAIL_SECONDS, follows_forks=True), killer)
        for at, scenario in enumerate(PAIRS)
        for killer, most in ((GUARD, OFTEN if at < 2 else SELDOM), (NOBODY, without))
        for seed in range(1, most + 1)
    ]
    return sorted(runs, key=lambda run: run[0].seed)


def row_of(report: Report) -> dict[str, Any]:
    row = summary(report) | {"killer": report.killer, "version": commit(),
                             "load": round(os.getloadavg()[0], 1)}  # fmt: skip
    if not report.raw:
        return row
    return row | {
        "deaths": [[death.name, round(death.seconds, 1), death.by] for death in report.deaths],
        "evidence": evidence(report), "invokers": report.invokers,
        "guard_invokers": report.guard_invokers, "forks_while_short": report.calls_while_short,
        "signalled": sorted(report.signalled),
    }  # fmt: skip


def evidence(report: Report) -> dict[str, float]:
    """Culprit -> seconds from the guard's first line that names it, in a decision's ranking or
    orders, to its end; only of those that ended after one.
    """
    paths = {row["path"]: row["name"] for row in report.told["loads"] if row["is_culprit"]}
    first: dict[str, float] = {}
    for row in report.decisions:
        named = [*row.get("orders", []), *row.get("ranking", [])]
        for path in {one.get("cgroup") for one in named if isinstance(one, dict)} & set(paths):
            first.setdefault(paths[path], row["seconds"] - report.told["go"])
    return {death.name: round(death.seconds - first[death.name], 2) for death in report.deaths
            if death.name in first and death.seconds >= first[death.name]}  # fmt: skip


def conclude(rows: Sequence[dict[str, Any]]) -> int:
    """A line for each situation and killer; 1 when the guard did what it never may."""
    came = [row for row in rows if row["came_back"]]
    for key in dict.fromkeys((row["id"].partition(" [")[0], row["killer"]) for row in came):
        say(line(*key, [row for row in came
                        if (row["id"].partition(" [")[0], row["killer"]) == key]))  # fmt: skip
    wrong = [row for row in came if row["guard_invokers"] or "guard" in row["innocents"].values()]
    forked = sum(bool(row["forks_while_short"]) for row in came if row["killer"] == "guard")
    say(f"{len(came)} of {len(rows)} runs came back; in {len(wrong)} the guard killed an innocent "
        f"or invoked the OOM killer; in {forked} it forked while the node was short")  # fmt: skip
    return int(bool(wrong))


def line(name: str, killer: str, rows: Sequence[dict[str, Any]]) -> str:
    """Innocents by whose hand, culprits by whose, and how long it took."""
    innocents = [by for row in rows for by in row["innocents"].values()]
    others = {name for row in rows for name in row["innocents"]}
    culprits = [(at, by) for row in rows for who, at, by in row["deaths"] if who not in others]
    took = [seconds for row in rows for seconds in row["evidence"].values()]
    first = f"{median(took):.1f} s (at most {max(took):.1f})" if took else "-"
    ends = f"{median(at for at, _ in culprits):.1f} s" if culprits else "-"
    return (
        f"{name:20} {killer:7} {len(rows):3} runs, {sum(row['is_right'] for row in rows):3} right; "
        f"innocents: {innocents.count('guard')} by the guard, "
        f"{sum(by.startswith('kernel') for by in innocents)} by the kernel; culprits: "
        f"{sum(by == 'guard' for _, by in culprits)} by the guard, "
        f"{sum(by.startswith('kernel') for _, by in culprits)} by the kernel, after {ends}, "
        f"from the first evidence {first}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--journal", type=Path, help="a line of JSON for each run; is gone on with")
    parser.add_argument("--keep", type=Path, help="a folder for what went wrong")
    parser.add_argument("--without", type=int, default=3, help="runs of each without a guard")
    parser.add_argument("--a-boot", type=int, default=4, help="runs in one boot")
    parser.add_argument("--boots", type=int, default=0, help="so many and no more; 0: all")
    given = parser.parse_args()
    rows = read_journal(given.journal)
    if why := vm.missing() or built_modules.missing():
        say(why)
        return 2
    done = {(row["id"], row["killer"]) for row in rows if row["came_back"]}
    left = [(one, by) for one, by in wanted(given.without) if (one.id, by.name) not in done]
    begun = 0
    with tempfile.TemporaryDirectory(prefix="seawall-pairs-") as folder:
        image = vm.build_image(Path(folder) / "image", add_to_image)
        while left and (not given.boots or begun < given.boots):
            killer = left[0][1]
            group = [run for run in left if run[1] is killer][: given.a_boot]
            left = [run for run in left if run not in group]
            begun += 1
            scenarios = [scenario for scenario, _ in group]
            for report in run_all(image, scenarios, (killer,), vms=1, a_boot=given.a_boot):
                rows.append(row_of(report))
                say(f"{len(rows):3} {rows[-1]['line'] if report.raw else report.scenario.id}")
                if given.journal:
                    with given.journal.open("a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
                if given.keep and not rows[-1].get("is_right"):
                    keep(report, given.keep)
    return conclude(rows)


if __name__ == "__main__":
    sys.exit(main())
