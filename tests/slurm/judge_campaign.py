"""Runs of one scenario after the other in one real Slurm: an array of 200 tasks kills nodes among
other users' jobs.  ``python -m tests.slurm.judge_campaign RUNS JOURNAL [records]``; a line a run.
With ``records`` each node that dies leaves one that names the array's task.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.slurm.judged_room import (
    KILLER,
    NODES,
    NodeKiller,
    SlurmJudge,
    is_held,
    judge_of,
    judged_room,
    rows,
    start_innocents,
)
from tests.slurm.slurm_room import SlurmRoom, missing

NODES_MOST = 3
NODES_WITH_RECORD = 2
ALIVE = ("RUNNING", "PENDING", "COMPLETING", "CONFIGURING", "REQUEUED", "NODE_FAIL")
RUN_SECONDS = 420
NAMES = (
    "train-20261128", "x AdminComment=seawall: held as x, priority before 1; JobState=DONE",
    "y\nJobId=1 JobName=z UserId=root(0) NodeList=n1", "\x1b[31mred~0f~", "a" * 200,
)  # fmt: skip


def other_jobs(room: SlurmRoom, numbers: list[int]) -> dict[int, tuple[str, str, str]]:
    """Priority, AdminComment and state of each that is there."""
    told = room.command(
        "squeue", "--noheader", "--all", "--states=all",
        "--Format=JobID:0~,PriorityLong:0~,admin_comment:0~,State:0",
    )  # fmt: skip
    found = {}
    for line in told.splitlines():
        fields = line.split("~")
        if len(fields) == 4 and fields[0].isdigit() and int(fields[0]) in numbers:
            found[int(fields[0])] = (fields[1], fields[2], fields[3])
    return found


def touched(
    before: dict[int, tuple[str, str, str]], after: dict[int, tuple[str, str, str]]
) -> dict[int, tuple[str, str, str]]:
    """Jobs that were held, commented on or ended; a node's death alone requeues them, and then they
    are COMPLETING for a while.
    """
    found = {}
    for number, (_, comment, _) in before.items():
        now = after.get(number, ("", "", "GONE"))
        if now[0] == "0" or now[1] != comment or now[2] not in ALIVE:
            found[number] = now
    return found


def play(
    room: SlurmRoom, judge: SlurmJudge, innocents: list[int], number: int, evidence: Path | None
) -> dict[str, Any]:
    before = other_jobs(room, innocents)
    judge.start()
    room.wait(judge.read, "the first look")
    array = room.submit(
        "exec sleep 500", "--array=1-200%1", "--mem=50", "--time=60",
        f"--job-name={NAMES[number % len(NAMES)]}", user=KILLER,
    )  # fmt: skip
    began = time.monotonic()
    with NodeKiller(room, reboots=False, evidence=evidence) as killer:
        while time.monotonic() - began < RUN_SECONDS and not is_held(room):
            time.sleep(1.0)
        held = is_held(room)
        seconds = round(time.monotonic() - began, 1)
        time.sleep(5.0)
        after = other_jobs(room, innocents)
        killed = list(killer.killed)
        deaths = judge.read().get("deaths", ())
        states = judge.states()
        status = judge.stop()
        undone = judge.verb("undo", "--all")
        left = rows(room, KILLER)
        room.command("scancel", f"--user={KILLER}")
        killer.reboot(whole=True)
    room.command("scancel", *map(str, innocents))
    room.wait(lambda: set(room.states().values()) == {"idle"}, "idle nodes", 180)
    hit = touched(before, after)
    most = NODES_MOST if evidence is None else NODES_WITH_RECORD
    quick = 0 < len(killed) <= most
    return {
        "log": [] if quick and not hit else judge.log().splitlines()[-30:], "left": left[:4],
        "run": number, "quick": quick, "array": array, "name": NAMES[number % len(NAMES)],
        "held": held, "nodes_killed": len(killed), "deaths_seen": len(deaths),
        "with_record": evidence is not None,
        "records": [one["record"] is not None for one in deaths], "seconds": seconds,
        "others": len(before), "others_touched": len(hit), "touched": hit,
        "quarantines": sorted(states.values()), "undo_status": undone.returncode,
        "released": bool(left) and all(priority > 0 for *_, priority in left),
        "ended_with": status, "nodes": NODES, "commit": commit(),
    }  # fmt: skip


def commit() -> str:
    """Of the sources; with a plus where they differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main(runs: int, journal: Path, *, has_records: bool) -> int:
    if why := missing():
        sys.stdout.write(f"skipped: {why}\n")
        return 75
    bad = 0
    with judged_room() as room:
        for number in range(runs):
            innocents = start_innocents(room, NODES)
            evidence = room.folder / f"evidence-{number}" if has_records else None
            if evidence is not None:
                evidence.mkdir(mode=0o755)
            with judge_of(room, evidence=evidence) as judge:
                row = play(room, judge, innocents, number, evidence)
            is_good = row["held"] and row["quick"] and not row["others_touched"]
            bad += not is_good
            with journal.open("a") as out:
                out.write(json.dumps(row) + "\n")
            sys.stdout.write(("ok  " if is_good else "BAD ") + json.dumps(row)[:300] + "\n")
            sys.stdout.flush()
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2]), has_records="records" in sys.argv[3:]))
