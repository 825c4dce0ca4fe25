"""``make cluster-campaign``: scenarios on a real control plane, again and again with other seeds.

``python -m tests.cluster.scenario_campaign --runs 20 --seed 1 --journal FILE [SCENARIO ...]``: a
line of JSON for each run; what stands in the journal is not run again, and counts.  ``--act``: an
actor plays along, which may do without being asked what it can; ``--free``: scenarios 1 and 2 by
the same seeds with nothing of ours.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.cluster.acted_chases import acted_chases, free_chases
from tests.cluster.acted_scene import TOLERATION_SECONDS
from tests.cluster.actor_process import ActorProcess, PooledActorProcess
from tests.cluster.control_plane import TRUE_TIMES, ControlPlane, Times
from tests.cluster.culprit_scenarios import DELIVERED, chases
from tests.cluster.innocent_scenarios import INNOCENT, TOGETHER
from tests.cluster.observed_scene import ObservedScene, observed_scene
from tests.cluster.plane_build import CANNOT, PlaneProblem, programs, version_wanted
from tests.cluster.pooled_actor import POOLS
from tests.kernels.guard_campaign import read_journal

STORM_POOLS_MOST = 3
"""Of so many hogs at a time the deaths are no storm; with more an actor wants a larger one."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Campaign:
    """How it is to be played."""

    plane: ControlPlane
    journal: Path
    seed: int = 1
    has_actor: bool = False
    pools: int = POOLS
    """Scenes at a time, each in a stratum and a zone of its own."""

    def name(self, scenario: str) -> str:
        """In the journal."""
        return f"{scenario}, actor" if self.has_actor else scenario

    def chance(self, scenario: str, number: int) -> random.Random:
        """Of one run, the same with an actor and without anything."""
        return random.Random(f"{scenario} {self.seed} {number}")

    def done(self, name: str) -> int:
        rows = read_journal(self.journal)
        return sum((row["scenario"], row["seed"]) == (name, self.seed) for row in rows)

    def actor(self, folder: Path) -> ActorProcess | None:
        if not self.has_actor:
            return None
        many = self.pools > STORM_POOLS_MOST
        return (PooledActorProcess if many else ActorProcess)(self.plane, folder)


CULPRITS = {"1 agents silent": 0.0, "2 agents deliver": DELIVERED}
SCENARIOS = (*CULPRITS, *INNOCENT)

TRUE_LENGTH = "1 at true length"
"""In the core's own times: a pod is moved 350 s after its node has fallen silent."""
TRUE_APART = (350.0, 480.0)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--runs", type=int, default=20, help="of scenarios 1 and 2")
    parser.add_argument("--innocent-runs", type=int, default=3, help="of those without a culprit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pools", type=int, default=POOLS, help="scenes at a time")
    parser.add_argument("--act", action="store_true", help="with an actor")
    parser.add_argument("--free", action="store_true", help="1 and 2 with nothing of ours")
    parser.add_argument("--journal", type=Path, default=Path("cluster-campaign.jsonl"))
    parser.add_argument(
        "--true-length", action="store_true", help="1 alone, in the core's own times"
    )
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
    if asked.true_length:
        with ControlPlane(program, TRUE_TIMES, kwok=kwok) as plane:
            play_all(Campaign(plane, asked.journal, asked.seed), TRUE_LENGTH, asked.runs)
        return summary(read_journal(asked.journal))
    times = Times(toleration=TOLERATION_SECONDS) if asked.act or asked.free else Times()
    with ControlPlane(program, times, kwok=kwok) as plane:
        campaign = Campaign(plane, asked.journal, asked.seed, asked.act, asked.pools)
        if asked.free:
            for name in (name for name in names if name in CULPRITS):
                play_free(campaign, name, asked.runs)
            return summary(read_journal(asked.journal))
        play_together(campaign, [name for name in names if name in TOGETHER], asked.innocent_runs)
        for name in names:
            play_all(campaign, name, asked.innocent_runs if name in INNOCENT else asked.runs)
    return summary(read_journal(asked.journal))


def play_all(campaign: Campaign, name: str, runs: int) -> None:
    while (number := campaign.done(campaign.name(name))) < runs:
        chance = campaign.chance(name, number)
        with written(campaign) as (scene, rows):
            played = play(campaign, name, scene, chance, min(runs - number, campaign.pools))
            rows += [{"scenario": campaign.name(name), "run": number + place, **row}
                     for place, row in enumerate(played)]  # fmt: skip


def play(
    campaign: Campaign, name: str, scene: ObservedScene, chance: random.Random, pools: int
) -> Iterable[Row]:
    if name in INNOCENT:
        return [{**INNOCENT[name](scene, chance), **acts(scene)}]
    if name == TRUE_LENGTH:
        return chases(scene, chance, pools, 0.0, TRUE_APART)
    chased = acted_chases if campaign.has_actor else chases
    return chased(scene, chance, pools, CULPRITS[name])


def play_free(campaign: Campaign, name: str, runs: int) -> None:
    """The twin of a run with an actor."""
    named = f"{name}, nothing of ours"
    while (number := campaign.done(named)) < runs:
        began = time.monotonic()
        with campaign.plane.client() as client:
            pools = min(runs - number, campaign.pools)
            played = free_chases(campaign.plane, client, campaign.chance(name, number), pools)
        rows = [{"scenario": named, "run": number + place, "false_convictions": [], **row}
                for place, row in enumerate(played)]  # fmt: skip
        write(campaign, rows, began)


def play_together(campaign: Campaign, names: Sequence[str], runs: int) -> None:
    """Ten at a time in one cluster, each in a pool of its own and with a view of that alone."""
    due = [(name, number) for number in range(runs) for name in names
           if number >= campaign.done(campaign.name(name))]  # fmt: skip
    for first in range(0, len(due), campaign.pools):
        some = due[first : first + campaign.pools]
        with (
            written(campaign) as (scene, rows),
            ThreadPoolExecutor(max_workers=campaign.pools) as threads,
        ):
            rows += threads.map(lambda one: play_one(campaign, scene, *one), some)


def play_one(campaign: Campaign, scene: ObservedScene, name: str, number: int) -> Row:
    with scene.plane.client() as client:
        view = replace(
            scene, client=client, pools=[], right=set(),
            prefix=f"n{name.split(maxsplit=1)[0]}-{number}-",
        )  # fmt: skip
        try:
            row = INNOCENT[name](view, campaign.chance(name, number))
        except AssertionError as problem:  # the others of the cluster play on
            where = traceback.extract_tb(problem.__traceback__)[-1].line
            row = {"problem": f"{str(problem).partition(chr(10))[0] or where}"[:300]}
        finally:
            scene.pools.extend(view.pools)
            scene.right |= view.right
        wrong = [f"{space}/{who}" for space, who in sorted(view.convicted() - view.right)]
        return {"scenario": campaign.name(name), "run": number, **row, **acts(view),
                "false_convictions": wrong}  # fmt: skip


def acts(scene: ObservedScene) -> Row:
    """Of an actor in the pools of a scene."""
    if scene.actor is None:
        return {}
    held = {(space, name) for space, name in scene.clock.held
            if space in {pool.space for pool in scene.pools}}  # fmt: skip
    return {"held": len(held), "writes": len(scene.actor_writes()),
            "touched_wrongly": scene.touched_wrongly()}  # fmt: skip


@contextlib.contextmanager
def written(campaign: Campaign) -> Iterator[tuple[ObservedScene, list[Row]]]:
    """A scene, and a list whose rows are written down when it is over."""
    rows: list[Row] = []
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        observed_scene(
            campaign.plane, Path(folder), actor=campaign.actor(Path(folder))
        ) as scene,
    ):  # fmt: skip
        yield scene, rows
        requests = scene.requests_per_death()
        tail = {
            "false_convictions": scene.false_convictions(),
            "requests_per_death": None if requests is None else round(requests, 1),
        }  # fmt: skip
    write(campaign, rows, began, **tail)


def write(campaign: Campaign, rows: Iterable[Row], began: float, **tail: object) -> None:
    whole = list(rows)
    common = {
        "seed": campaign.seed, "commit": commit(), "kubernetes": version_wanted(), **tail,
        "at_once": len(whole), "wall_seconds": round(time.monotonic() - began),
        "load": [round(one, 1) for one in os.getloadavg()],
    }  # fmt: skip
    with open(campaign.journal, "a") as file:
        for row in whole:
            line = json.dumps({**common, **row})
            file.write(line + "\n")
            print(line, flush=True)


def commit() -> str:
    """Of the sources that run; ``+`` where they differ from it."""
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def summary(rows: list[Row]) -> int:
    """1: somebody was convicted, held or touched wrongly, or a run went otherwise than its scenario
    says.
    """
    for name in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == name]
        print(f"{name}: {len(own)} runs; convicted wrongly: {those(own, 'false_convictions')}")
        for row in own:
            if "problem" in row:
                print(f"  run {row['run']} of seed {row['seed']}: {row['problem']}")
        if "convicted_after" in own[0]:
            told = [row["convicted_after"] or 99 for row in own]
            print(f"  deaths until convicted: median {median(told):g}, p95 {upper(told):g}, "
                  f"worst {max(told)}")  # fmt: skip
        if "named_seconds" in own[0]:
            named = [row["named_seconds"] for row in own if row["named_seconds"] is not None]
            print(f"  named after {median(named):.2f} s, worst {max(named)}")
        if "window_seconds" in own[0]:
            lost = [row["nodes_lost"] for row in own]
            print(f"  nodes lost in {own[0]['window_seconds']:g} s: least {min(lost)}, median "
                  f"{median(lost):g}, p95 {upper(lost):g}, worst {max(lost)}")  # fmt: skip
        if "touched_wrongly" in own[0]:
            print(f"  touched wrongly: {those(own, 'touched_wrongly')}; "
                  f"{sum(row['writes'] for row in own)} writes")  # fmt: skip
        if starved := sum(row.get("silent_by_themselves", 0) > 0 for row in own):
            print(f"  {starved} of them in a cluster of which nodes were silent that nobody killed")
        if "held_seconds" in own[0]:
            # Before 0: the node was silent already when it was killed.
            held = [one for row in own if min(row["visible_seconds"], default=0) >= 0
                    for one in row["held_seconds"]]  # fmt: skip
            print(f"  {len(held)} held after: median {median(held):.2f} s, p95 {upper(held):.2f}, "
                  f"worst {max(held):.2f}; not held: {sum(row['not_held'] for row in own)}; "
                  f"wrongly: {those(own, 'held_wrongly')}")  # fmt: skip
            same = sum(row["compared"] for row in own)
            print(f"  after undo {same} objects compared, not as before: "
                  f"{those(own, 'not_as_before')}; marks left: {those(own, 'marks_left')}; all "
                  f"copies count as running: {sum(map(is_whole, own))}")  # fmt: skip
    wrong = ("false_convictions", "touched_wrongly", "held_wrongly", "problem")
    return int(any(row.get(name) for row in rows for name in wrong))


def is_whole(row: Row) -> bool:
    return bool(row["copies_alive"] + row["copies_on_dead_nodes"] == row["replicas"])


def those(rows: list[Row], name: str) -> str:
    return ", ".join(sorted({one for row in rows for one in row[name]})) or "nobody"


def upper(values: Sequence[float], share: float = 0.95) -> float:
    """The least value that so many are not above (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(-(-len(ordered) * round(100 * share) // 100) - 1, 0)]


if __name__ == "__main__":
    sys.exit(main())
