"""A real guard beside a real slurmd: it ends the job that took what its cgroup does not count."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import Room, missing
from tests.end_to_end.guard_room import room as guard_room
from tests.end_to_end.innocents import PROGRAM, why_no_rings
from tests.slurm.slurm_room import SlurmRoom

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.skipif(why_no_rings() is not None, reason=why_no_rings() or ""),
]
MIB = 1 << 20
HOLD = "import time; kept = b'x' * (32 << 20); time.sleep(200)"


@pytest.fixture
def guard(room: SlurmRoom, tmp_path: Path) -> Iterator[Room]:
    """Its whole scope are this room's jobs."""
    with guard_room(tmp_path) as made:
        made.write(
            mode="enforce", scope=[f"/slurm_{node}" for node in room.nodes], over_limit="kill",
            over_limit_opt_in=["slurm:*"], over_limit_seconds=1, tick_most_seconds=1,
            job_comment=True, job_end_whole=True, slurm_conf=f"{room.folder}/slurm.conf",
            freeze_seconds=0,
        )  # fmt: skip
        made.begin(tmp_path / "out")
        yield made


def rings(room: SlurmRoom, mib: int = 200) -> str:
    """A program that takes packet rings, which no cgroup counts."""
    program = room.folder / "rings.py"
    program.write_bytes(PROGRAM.read_bytes())
    program.chmod(0o755)
    take = f"python3 -S -E {program} rings {mib * MIB} 0 now"
    return f"sleep 5; unshare --user --map-root-user --net {take}"


def ended(room: SlurmRoom, job: int, state: str) -> bool:
    return f"JobState={state} " in room.command("scontrol", "-o", "show", "job", str(job))


def test_its_user_reads_why_in_the_jobs_own_output(room: SlurmRoom, guard: Room) -> None:
    daemons = {name: part.pid for name, part in room.parts.items()}
    neighbour = room.submit(f'python3 -c "{HOLD}"', "--mem=100", user="nobody")
    job = room.submit(f"echo begins; {rings(room)}", "--mem=64")
    room.wait(lambda: ended(room, job, "FAILED"), "its end, told by slurmstepd")
    room.wait(lambda: "seawall: " in room.output(job), "a line in its output")

    lines = room.output(job).splitlines()
    assert lines[0] == "begins"
    told = next(line for line in lines if line.startswith("seawall: "))
    assert "by seawall guard at 20" in told
    assert ", over_limit)" in told
    assert f"slurm:{job}@games has " in told
    assert "its limit of 64.0 MiB" in told
    assert "uncounted memory" in told
    orders = [order for row in guard.journal() for order in row.get("orders") or ()]
    assert {order["name"] for order in orders} == {f"slurm:{job}@games"}
    assert ended(room, neighbour, "RUNNING")
    assert {name: part.pid for name, part in room.parts.items() if part.poll() is None} == daemons
    room.command("scancel", str(neighbour))


def test_a_job_of_two_nodes_is_ended_on_both_and_no_other_task_of_its_array(
    room: SlurmRoom, guard: Room
) -> None:
    """The last task has the array's own number: ``scancel NUMBER`` would mean all of them."""
    step = f"srun --nodes=1 --ntasks=1 --relative=1 sh -c '{rings(room)}'"
    script = f"[ $SLURM_JOB_ID != $SLURM_ARRAY_JOB_ID ] || {step} & sleep 200"
    array = room.submit(script, "--array=1-2", "--nodes=2", "--ntasks=2", "--mem=64")
    room.wait(lambda: _state(room, f"{array}_2") == "CANCELLED", "the end of the task")

    assert _state(room, f"{array}_1") == "RUNNING"
    comment = _field(room, f"{array}_2", "AdminComment")
    assert "seawall guard" in comment
    decisions = {row["decision"] for row in guard.journal() if row.get("orders")}
    assert any(decision in comment for decision in decisions)
    room.wait(lambda: "seawall: " in room.output(array, 2), "a line in the file of the other node")
    told = next(one for one in room.output(array, 2).splitlines() if one.startswith("seawall: "))
    assert ", over_limit)" in told
    assert "seawall: " not in room.output(array, 1)
    room.wait(lambda: room.job_folder(array) is None, "its end on both nodes")
    room.command("scancel", str(array))


def _state(room: SlurmRoom, job: str) -> str:
    return _field(room, job, "JobState")


def _field(room: SlurmRoom, job: str, name: str) -> str:
    told = room.command("scontrol", "show", "job", job)
    found = re.search(rf"^ *(?:\S.* )?{name}=(.*?)(?: [A-Z]\w+=|$)", told, re.MULTILINE)
    return found[1].strip() if found else ""
