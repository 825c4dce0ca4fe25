"""The guard's hands on a real job: all its steps as one, and never slurmstepd."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.slurm.slurm_room import TREES, SlurmRoom

from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Order, Step, Target

pytestmark = pytest.mark.system
NAMED = "import sys,time; open('/proc/self/comm','w').write('slurmstepd'); time.sleep(100)"
"""As its user may name it, in the hope to be spared."""


@pytest.fixture
def hands(room: SlurmRoom, tmp_path: Path) -> Iterator[Executor]:
    mounts = find_mounts(Path("/proc/self/mountinfo").read_text())
    assert mounts
    scope = tuple(f"/slurm_{node}" for node in room.nodes)
    made = Executor(mounts, scope, Journal(str(tmp_path / "guard.undo")))
    made.prepare()
    yield made
    made.undo_all()


def order(room: SlurmRoom, job: int, step: Step) -> Order:
    folder = room.job_folder(job)
    assert folder
    path = f"/{folder.relative_to(TREES / 'memory')}"
    return Order("b0-1", step, Target(path, folder.stat().st_ino, f"slurm:{job}"), "node_short")


def split(room: SlurmRoom, job: int) -> tuple[set[int], set[int]]:
    """(slurmstepd, all others) in the job's memory cgroup, by where Slurm puts them."""
    folder = room.job_folder(job)
    assert folder
    return _pids(folder.glob("step_*/cgroup.procs")), _pids(
        folder.glob("step_*/task_*/cgroup.procs")
    )


def _pids(files: Iterable[Path]) -> set[int]:
    return {int(pid) for file in files for pid in file.read_text().split()}


def running(room: SlurmRoom, user: str = "games") -> int:
    """A job of a script and a step of two tasks, each with a child called as slurmstepd is."""
    job = room.submit(f'srun --ntasks=2 python3 -c "{NAMED}"', "--ntasks=2", user=user)
    room.wait(lambda: room.job_folder(job) and _is_named(room, job), "two tasks")
    return job


def _is_named(room: SlurmRoom, job: int) -> bool:
    names = []
    for pid in split(room, job)[1]:
        try:
            names.append(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:
            return False
    return names.count("slurmstepd") == 2


@pytest.mark.parametrize("step", ["kill", "terminate"])
def test_a_job_is_ended_with_all_its_steps_and_slurm_tells_its_end(
    room: SlurmRoom, hands: Executor, step: Step
) -> None:
    job, neighbour = running(room), running(room, "nobody")
    daemons, others = split(room, job)
    neighbours = split(room, neighbour)
    assert len(daemons) == 3, "of the script, of the step, of extern"

    done = hands.perform(order(room, job, step))

    assert (done.is_done, done.problem) == (True, "")
    assert done.processes == len(others)
    assert done.left == 0
    room.wait(lambda: "JobState=FAILED" in _show(room, job), "the end, as slurmctld has it")
    room.wait(lambda: room.job_folder(job) is None, "its cgroup taken away by slurmstepd")
    assert split(room, neighbour) == neighbours
    room.command("scancel", str(neighbour))


def _show(room: SlurmRoom, job: int) -> str:
    return room.command("scontrol", "-o", "show", "job", str(job))


def test_who_looks_for_the_killed_finds_no_daemon_left(room: SlurmRoom, hands: Executor) -> None:
    """Else each later look would say that somebody is stuck."""
    job = running(room)
    hands.perform(order(room, job, "kill"))
    hands.tend(time.monotonic())
    assert hands.words == []
    room.wait(lambda: room.job_folder(job) is None, "its end")


def test_a_job_that_is_held_still_goes_on_with_its_daemons(
    room: SlurmRoom, hands: Executor
) -> None:
    job = running(room)
    before = split(room, job)
    assert hands.perform(order(room, job, "freeze")).is_done
    assert hands.perform(order(room, job, "thaw")).is_done
    assert split(room, job) == before
    room.command("scancel", str(job))
    room.wait(lambda: room.job_folder(job) is None, "its end")
