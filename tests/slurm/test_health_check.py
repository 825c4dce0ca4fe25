"""``seawall check --slurm`` on a real node: as HealthCheckProgram, in churn, and what is left."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.slurm.slurm_room import SlurmRoom, missing

pytestmark = pytest.mark.system
SHM_BYTES = 300 << 20
CPU_SECONDS_MOST = 0.2


def check(node: str = "") -> tuple[int, str]:
    """``node``: its jobs alone; another room on this machine may have left some."""
    variables = {"SLURMD_NODENAME": node} if node else {}
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "check", "--slurm"], capture_output=True, text=True,
        check=False, timeout=30, env=os.environ | variables,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_processes_that_outlive_their_slurmstepd(room: SlurmRoom) -> None:
    job = room.submit("sleep 100 & sleep 100", "--mem=50", f"--job-name={room.name}")
    room.wait(lambda: _pids(room, job, "sleep"), "its processes")
    assert f"job {job}" not in check()[1]

    for pid in _pids(room, job, "slurmstepd"):
        os.kill(pid, 9)
    room.wait(lambda: not _pids(room, job, "slurmstepd"), "the end of its slurmstepd")
    status, told = check()
    assert status == 1
    assert f"of job {job} of uid 5 left: no slurmstepd is with it" in told

    for pid in _pids(room, job, "sleep"):
        os.kill(pid, 9)
    room.wait(lambda: f"job {job}" not in check()[1], "nothing left")
    room.command("scancel", str(job))  # slurmctld takes it for running until it asks
    room.wait(lambda: not room.command("squeue", "--noheader", f"--name={room.name}"), "its end")


def _pids(room: SlurmRoom, job: int, name: str) -> list[int]:
    folder = room.job_folder(job)
    found = []
    for file in folder.rglob("cgroup.procs") if folder else ():
        for pid in file.read_text().split():
            status = Path(f"/proc/{pid}/status").read_text()
            if status.startswith(f"Name:\t{name}\n") and "\nState:\tZ" not in status:
                found.append(int(pid))
    return found


def test_shm_that_a_job_left_is_told_unless_its_user_has_another(room: SlurmRoom) -> None:
    path = f"/dev/shm/{room.name}"
    job = room.submit(
        f"head -c {SHM_BYTES} /dev/zero > {path}; sleep 100", "--mem=600", user="nobody"
    )
    try:
        room.wait(lambda: os.path.exists(path) and os.stat(path).st_size == SHM_BYTES, "shm")
        uid = os.stat(path).st_uid
        assert f"uid {uid}" not in check()[1]
        second = room.submit("sleep 100", user="nobody")
        room.wait(lambda: _pids(room, second, "sleep"), "another job of that user")
        room.command("scancel", str(job))
        room.wait(lambda: room.job_folder(job) is None, "the end of the first")
        assert f"uid {uid}" not in check()[1], "whose it is cannot be told while he has another"
        room.command("scancel", str(second))
        room.wait(lambda: room.job_folder(second) is None, "the end of the second")
        status, told = check()
        assert (status, f"in /dev/shm of uid {uid}, who has no job" in told) == (1, True)
    finally:
        os.unlink(path)


def test_hundred_job_ends_and_no_false_word(room: SlurmRoom) -> None:
    job = room.submit(
        "sleep 0.1 & sleep 0.2; wait", "--array=1-100", "--cpus-per-task=2", "--mem=50"
    )
    looks = 0
    while room.command("squeue", "--noheader", "--job", str(job)).strip():
        status, told = check(room.nodes[looks % len(room.nodes)])
        looks += 1
        assert status != 1, told
        assert "left" not in told.replace("nothing is left behind", "")
    assert looks > 5


def test_it_takes_a_fifth_of_a_second_of_processor_at_most() -> None:
    best = min(_cpu_seconds() for _ in range(5))
    assert best < CPU_SECONDS_MOST


def _cpu_seconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    check()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_slurmd_runs_it_and_has_its_words_in_the_log(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    with _program() as program, SlurmRoom(health=program) as room:
        node = room.nodes[0]
        room.wait(lambda: "health_check" in room.log(node), "slurmd's word of it")
        assert set(room.states().values()) == {"idle"}, "it only tells"


@contextmanager
def _program() -> Iterator[Path]:
    """As docs/slurm.md has it, with this interpreter; where root alone can write."""
    path = Path(f"/run/seawall-health-{os.getpid()}-{time.monotonic_ns()}")
    source = Path(__file__).parents[2] / "src"
    path.write_text(
        f"#!/bin/sh\nPYTHONPATH={source} exec {sys.executable} -m seawall check --slurm\n"
    )
    path.chmod(0o755)
    try:
        yield path
    finally:
        path.unlink()
