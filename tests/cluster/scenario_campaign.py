"""``make cluster-campaign``: scenarios on a real control plane, again and again with other seeds.

``python -m tests.cluster.scenario_campaign --runs 20 --seed 1 --journal FILE [SCENARIO ...]``: a
line of JSON for each run; what stands in the journal is not run again, and counts.
"""

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.cluster.control_plane import ControlPlane
from tests.cluster.culprit_scenarios import DELIVERED, chases
from tests.cluster.innocent_scenarios import INNOCENT, TOGETHER
from tests.cluster.observed_scene import ObservedScene, observed_scene
from tests.cluster.plane_build import CANNOT, PlaneProblem, programs, version_wanted
from tests.kernels.guard_campaign import read_journal

POOLS = 10
"""Hogs at a time, each in a stratum and a zone of its own."""
Row = dict[str, Any]


def silent_agents(scene: ObservedScene, chance: random.Random, runs: int) -> Iterable[Row]:
    return chases(scene, chance, min(runs, POOLS), 0.0)


def agents_deliver(scene: ObservedScene, chance: random.Random, runs: int) -> Iterable[Row]:
    return chases(scene, chance, min(runs, POOLS), DELIVERED)


def innocent(
    play: Callable[[ObservedScene, random.Random], Row],
) -> Callable[[ObservedScene, random.Random, int], Iterable[Row]]:
    return lambda scene, chance, _: [play(scene, chance)]


SCENARIOS: dict[str, Callable[[ObservedScene, random.Random, int], Iterable[Row]]] = {
    "1 agents silent": silent_agents, "2 agents deliver": agents_deliver,
    **{name: innocent(play) for name, play in INNOCENT.items()},
}  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--runs", type=int, default=20, help="of scenarios 1 and 2")
    parser.add_argument("--innocent-runs", type=int, default=3, help="of those without a culprit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--journal", type=Path, default=Path("cluster-campaign.jsonl"))
    parser.add_argument("--summary", action="store_true", help="of the journal; nothing is run")
    asked = parser.parse_args(words)
    if asked.summary:
        return summary(read_journal(asked.journal))
    names = [name for name in SCENARIOS
             if not asked.scenarios or name.partition(" ")[0] in asked.scenarios]  # fmt: skip
    try:
        program, kwok = programs(version_wanted())
    except PlaneProblem as problem:
        print(problem, file=sys.stderr)
        return CANNOT
    with ControlPlane(program, kwok=kwok) as plane:
        together = [name for name in names if name in TOGETHER]
        play_together(plane, together, asked.innocent_runs, asked.seed, asked.journal)
        for name in names:
            runs = asked.innocent_runs if name in INNOCENT else asked.runs
            play_all(plane, name, runs, asked.seed, asked.journal)
    return summary(read_journal(asked.journal))


def play_all(plane: ControlPlane, name: str, runs: int, seed: int, journal: Path) -> None:
    while True:
        number = done(journal, name, seed)
        if number >= runs:
            return
        chance = random.Random(f"{name} {seed} {number}")
        with written(plane, journal, seed) as (scene, rows):
            played = SCENARIOS[name](scene, chance, runs - number)
            rows += [{"scenario": name, "run": number + place, **row}
                     for place, row in enumerate(played)]  # fmt: skip


def play_together(
    plane: ControlPlane, names: Sequence[str], runs: int, seed: int, journal: Path
) -> None:
    """Ten at a time in one cluster, each in a pool of its own and with a view of that alone."""
    due = [(name, number) for number in range(runs) for name in names
           if number >= done(journal, name, seed)]  # fmt: skip
    for first in range(0, len(due), POOLS):
        some = due[first : first + POOLS]
        with (
            written(plane, journal, seed) as (scene, rows),
            ThreadPoolExecutor(max_workers=POOLS) as threads,
        ):
            rows += threads.map(lambda one: play_one(scene, seed, *one), some)


def play_one(scene: ObservedScene, seed: int, name: str, number: int) -> Row:
    with scene.plane.client() as client:
        view = replace(
            scene, client=client, pools=[], prefix=f"n{name.split(maxsplit=1)[0]}-{number}-"
        )
        try:
            row = INNOCENT[name](view, random.Random(f"{name} {seed} {number}"))
        finally:
            scene.pools.extend(view.pools)
        wrong = [f"{space}/{who}" for space, who in sorted(view.convicted() - view.right)]
        return {"scenario": name, "run": number, **row, "false_convictions": wrong}


@contextlib.contextmanager
def written(
    plane: ControlPlane, journal: Path, seed: int
) -> Iterator[tuple[ObservedScene, list[Row]]]:
    """A scene, and a list whose rows are written down when it is over."""
    rows: list[Row] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, observed_scene(plane, Path(folder)) as scene:
        yield scene, rows
        requests = scene.requests_per_death()
        tail = {
            "seed": seed, "commit": commit(), "kubernetes": version_wanted(),
            "false_convictions": scene.false_convictions(),
            "requests_per_death": None if requests is None else round(requests, 1),
            "at_once": len(rows), "wall_seconds": round(time.monotonic() - began),
        }  # fmt: skip
    with open(journal, "a") as file:
        for row in rows:
            line = json.dumps({**tail, **row})
            file.write(line + "\n")
            print(line, flush=True)


def done(journal: Path, name: str, seed: int) -> int:
    return sum((row["scenario"], row["seed"]) == (name, seed) for row in read_journal(journal))


def commit() -> str:
    """Of the sources that run; ``+`` where they differ from it."""
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def summary(rows: list[Row]) -> int:
    """1: somebody was convicted wrongly."""
    for name in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == name]
        false = sorted({one for row in own for one in row["false_convictions"]})
        print(f"{name}: {len(own)} runs; convicted wrongly: {', '.join(false) or 'nobody'}")
        if "convicted_after" in own[0]:
            told = [row["convicted_after"] or 99 for row in own]
            named = [row["named_seconds"] for row in own if row["named_seconds"] is not None]
            print(f"  deaths until convicted: median {median(told):g}, p95 {upper(told):g}, "
                  f"worst {max(told)}; named after {median(named):.2f} s, worst {max(named)}"
                  )  # fmt: skip
    return int(any(row["false_convictions"] for row in rows))


def upper(values: Sequence[float], share: float = 0.95) -> float:
    """The least value that so many are not above (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(-(-len(ordered) * round(100 * share) // 100) - 1, 0)]


if __name__ == "__main__":
    sys.exit(main())
