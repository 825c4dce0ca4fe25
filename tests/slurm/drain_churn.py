"""Jobs that begin and end for an hour while every node checks itself and may drain: it may not.

``python -m tests.slurm.drain_churn --ends 2000 --seconds 3600 --journal FILE``: one line a minute,
a last one with the sum.  slurmd starts the check itself, as HealthCheckProgram, with every check
that a node can be drained for set to ``drain``.  At the end one job really leaves processes behind,
and the node must drain: a check that sees nothing would pass the hour too.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.slurm.slurm_room import SlurmRoom, missing

from seawall.cli.node_look import NAMES, OFF_UNLESS_ASKED
from seawall.cli.slurm_file import NEVER_DRAINED_FOR

SOURCE = Path(__file__).parents[2] / "src"
USERS = ("games", "nobody", "news")
AT_ONCE = 12
INTERVAL_SECONDS = 20
JOBS = (
    "sleep 0.3",
    "sleep 0.2 & sleep 0.4; wait",
    "for i in 1 2 3 4; do (sleep 0.5 &); done; sleep 0.6",
    "setsid sleep 0.8 & sleep 0.2",
    "head -c 300000000 /dev/zero > /dev/shm/$SLURM_JOB_ID; sleep 1; rm /dev/shm/$SLURM_JOB_ID",
    "trap '' TERM; sleep 1",
    "python3 -c 'import os; [os.fork() for _ in range(4)]; import time; time.sleep(1)'",
    "srun sleep 0.5",
)
"""Ends as they come: with children that outlive the script, with files in /dev/shm."""


@dataclass
class Churn:
    """A room in which jobs come and go."""

    room: SlurmRoom
    folder: Path
    chance: random.Random
    rate: float
    submitted: int = 0
    began: float = field(default_factory=time.monotonic)

    def fill(self) -> int:
        """Submit until enough are there; how many have ended."""
        there = len(self.room.command("squeue", "--noheader", "--format=%i", seconds=60).split())
        due = (time.monotonic() - self.began) * self.rate
        while there < AT_ONCE and self.submitted < due:
            script, user = self.chance.choice(JOBS), self.chance.choice(USERS)
            self.room.submit(script, "--mem=400", "--cpus-per-task=2", user=user)
            there, self.submitted = there + 1, self.submitted + 1
        return self.submitted - there

    def checks(self) -> int:
        return sum(
            path.read_text().count("\nstatus ") for path in self.folder.glob("out-*")
        )  # fmt: skip

    def drains(self) -> list[str]:
        """What any node ever decided to do, by its own record."""
        found = []
        for path in self.folder.glob("records/*.json"):
            for _, words in json.loads(path.read_text())["decisions"]:
                if words.startswith("drained: "):
                    found.append(f"{path.stem}: {words}")
        return found


@contextmanager
def health_program(folder: Path) -> Iterator[Path]:
    """The page's script, on a copy of the sources: what is edited meanwhile changes nothing."""
    shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    modes = [
        f'{name} = "drain"' for name in NAMES if name not in NEVER_DRAINED_FOR | OFF_UNLESS_ASKED
    ]
    (folder / "slurm.toml").write_text(
        "[checks]\n" + "\n".join(modes)
        + '\n[wanted]\nmounts = ["/"]\n'
        + f'[slurm]\nrecords = "{folder}/records"\nseconds = 15\n'
    )  # fmt: skip
    path = Path(f"/run/seawall-churn-{os.getpid()}")  # where root alone can write
    path.write_text(
        f"#!/bin/sh\nPYTHONPATH={folder}/src {sys.executable} -m seawall check --slurm --config"
        f" {folder}/slurm.toml >> {folder}/out-$SLURMD_NODENAME 2>&1\n"
        f'echo "status $?" >> {folder}/out-$SLURMD_NODENAME\n'
    )
    path.chmod(0o755)
    try:
        yield path
    finally:
        path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ends", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--journal", required=True)
    parser.add_argument("--rate", type=float, default=100, help="jobs a second at most")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if why := missing():
        sys.stderr.write(f"skipped: {why}\n")
        return 75
    folder = Path(tempfile.mkdtemp(prefix="seawall-churn-"))
    folder.chmod(0o755)
    journal = open(given.journal, "a", buffering=1)  # noqa: SIM115 - for the whole run
    with health_program(folder) as program, SlurmRoom(
        health=program, interval_seconds=INTERVAL_SECONDS, settings="MinJobAge=10\n"
    ) as room:  # fmt: skip
        with open(folder / "slurm.toml", "a") as file:
            file.write(f'conf = "{room.folder}/slurm.conf"\n')
        churn = Churn(room, folder, random.Random(given.seed), given.rate)
        row = churn_for(churn, given.ends, given.seconds, journal)
        row |= {"seed": given.seed, "commit": commit()} | left_behind(churn)
        journal.write(json.dumps(row) + "\n")
        sys.stdout.write(json.dumps(row, indent=1) + "\n")
    is_good = row["false_drains"] == [] and row["drained_for_what_was_left"]
    if is_good:
        shutil.rmtree(folder)
    return 0 if is_good else 1


def commit() -> str:
    done = subprocess.run(
        ["git", "-C", SOURCE, "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip()


def churn_for(churn: Churn, ends: int, seconds: float, journal: Any) -> dict[str, Any]:
    began, said, ended = time.monotonic(), 0.0, 0
    while ended < ends and time.monotonic() - began < seconds:
        ended = churn.fill()
        at = time.monotonic() - began
        if at - said > 60:
            said = at
            row = {"seconds": round(at), "ends": ended, "checks": churn.checks(),
                   "drains": churn.drains(), "load": os.getloadavg()[0]}  # fmt: skip
            journal.write(json.dumps(row) + "\n")
        time.sleep(0.5)
    return {
        "what": "churn", "seconds": round(time.monotonic() - began), "ends": ended,
        "checks": churn.checks(), "false_drains": churn.drains(),
        "states": sorted(set(churn.room.states().values())),
    }  # fmt: skip


def left_behind(churn: Churn) -> dict[str, Any]:
    """A job whose slurmstepd is killed leaves its processes, and its node drains."""
    room = churn.room
    room.wait(lambda: not room.command("squeue", "--noheader").strip(), "the end of all jobs", 300)
    node = room.nodes[0]
    job = room.submit("sleep 900 & sleep 900", f"--nodelist={node}")
    room.wait(lambda: len(room.pids(node)) > 3, "its processes", 120)
    for pid in room.pids(node):
        if Path(f"/proc/{pid}/comm").read_text() == "slurmstepd\n":
            os.kill(pid, 9)
    began = time.monotonic()
    while not churn.drains() and time.monotonic() - began < 300:
        time.sleep(1)
    return {
        "job": job, "drained_for_what_was_left": churn.drains(),
        "after_seconds": round(time.monotonic() - began),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
