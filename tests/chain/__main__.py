"""`make chain`: the incident on real kubelets in QEMU, phase by phase, written down.

``python -m tests.chain --phases alone guarded --nodes 2 --journal FILE --records FOLDER``: a
line of JSON for each run, and the text that a page can show.  Ends with 2 where it cannot run here.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chain.chain_cluster import chain_cluster
from tests.chain.chain_image import image
from tests.chain.chain_phases import PHASES, Phase, shown
from tests.chain.chain_record import record
from tests.cluster.plane_build import PlaneProblem, build, version_wanted
from tests.kernels.guard_boots import say
from tests.kernels.guard_campaign import commit
from tests.kernels.vm import Image


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phases", nargs="+", choices=list(PHASES), default=list(PHASES))
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--together", action="store_true", help="all in one cluster")
    parser.add_argument("--runs", type=int, default=5, help="of the guard that enforces")
    parser.add_argument("--journal", type=Path, help="a line of JSON for each run")
    parser.add_argument("--records", type=Path, help="a folder for the texts")
    parser.add_argument("--consoles", type=Path, help="a folder for what the nodes said")
    given = parser.parse_args()
    try:
        program, disk = build(version_wanted(), "plane"), image()
    except PlaneProblem as problem:
        say(str(problem))
        return 2
    groups = [given.phases] if given.together else [[name] for name in given.phases]
    for names in groups:
        play_all(given, program, disk, [(name, PHASES[name]) for name in names])
    return 0


def play_all(
    given: argparse.Namespace, program: Path, disk: Image, phases: Sequence[tuple[str, Phase]]
) -> None:
    """One after the other in one cluster, whose nodes have the first one's file."""
    began, first = time.monotonic(), phases[0][1]
    nodes = [f"n{number}" for number in range(1, (first.nodes or given.nodes) + 1)]
    with (
        tempfile.TemporaryDirectory(prefix="seawall-chain-") as folder,
        chain_cluster(
            program, disk, Path(folder), nodes, first.guard,
            with_actor=any(phase.with_actor for _, phase in phases),
            keeps_disk=first.before is not None, before=first.before,
        ) as cluster,
    ):  # fmt: skip
        say(f"{len(nodes)} nodes Ready after {time.monotonic() - began:.0f} s")
        runs = [(name, phase, number) for name, phase in phases
                for number in range(given.runs if name == "guarded" else 1)]  # fmt: skip
        for name, phase, number in runs:
            if phase.before is None:
                cluster.delete_hog()
            if phase.guard is not None:
                cluster.use_guard(phase.guard)
            try:
                figures = phase.play(cluster)
            except Exception as problem:  # what was seen is written down first
                figures = {"problem": repr(problem)}
                raise
            finally:
                write(given, name, phase.title, number + 1, figures, cluster.watch.rows)
                for node in cluster.nodes.values() if given.consoles else ():
                    given.consoles.mkdir(parents=True, exist_ok=True)
                    (given.consoles / f"{name}-{node.name}").write_text(node.console)


def write(
    given: argparse.Namespace, name: str, title: str, number: int, figures: dict[str, Any],
    rows: list[dict[str, Any]],
) -> None:  # fmt: skip
    row = {"phase": name, "run": number, "nodes": given.nodes, "version": commit(),
           "load": round(os.getloadavg()[0], 1), **figures, "rows": rows}  # fmt: skip
    if given.journal:
        with given.journal.open("a") as file:
            file.write(json.dumps(row) + "\n")
    text = record(f"{name}: {title}", rows, shown(figures))
    say(text)
    if given.records:
        given.records.mkdir(parents=True, exist_ok=True)
        (given.records / f"{name}-{number}.txt").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
