"""The Slurm that the other tests of this folder rely on is a real one, and leaves nothing."""

import subprocess

import pytest
from tests.slurm.slurm_room import TREES, SlurmRoom, missing

pytestmark = pytest.mark.system


def test_an_array_runs_on_four_nodes(room: SlurmRoom) -> None:
    job = room.submit(
        "echo $SLURMD_NODENAME; sleep 1", "--array=1-20", "--cpus-per-task=4", "--mem=50"
    )
    room.wait(lambda: all(room.output(job, task) for task in range(1, 21)), "20 outputs")

    told = {room.output(job, task).strip() for task in range(1, 21)}
    assert told == set(room.nodes)


def test_a_job_has_the_limit_that_it_asked_for(room: SlurmRoom) -> None:
    job = room.submit("sleep 60", "--mem=64")
    room.wait(lambda: room.job_folder(job), "its cgroup")

    folder = room.job_folder(job)
    assert folder
    room.wait(lambda: (folder / "memory.limit_in_bytes").read_text() == f"{64 << 20}\n", "limit")
    room.command("scancel", str(job))
    room.wait(lambda: not folder.exists(), "its end")


def test_a_room_that_is_left_leaves_no_process_and_no_cgroup() -> None:
    if why := missing():
        pytest.skip(why)
    with SlurmRoom(constrains=False) as room:
        job = room.submit("sleep 60", "--nodes=4")
        room.wait(lambda: room.job_folder(job, "freezer"), "its cgroup")
        parts = list(room.parts.values())
        pids = {pid for node in room.nodes for pid in room.pids(node)}
        assert pids

    assert all(part.poll() is not None for part in parts)
    assert not room.folder.exists()
    assert not list(TREES.glob(f"*/slurm_{room.name}*"))
    lines = subprocess.run(
        ["ps", "-eo", "pid,stat,args"], capture_output=True, text=True, check=True
    )
    assert room.folder.name not in lines.stdout
    rows = [line.split() for line in lines.stdout.splitlines()[1:]]
    assert not pids & {int(row[0]) for row in rows if row[1][0] != "Z"}
