"""Jobs of a real Slurm by name in every verb: job, step, task, user, and what the job says."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.slurm_room import TREES, SlurmRoom, missing

pytestmark = pytest.mark.system
HOLD = "import time; kept = b'x' * (32 << 20); time.sleep(100)"
GREEDY = "kept = b'x' * (400 << 20)"


def seawall(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "seawall", *words], capture_output=True, text=True, check=False,
        timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def document(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(seawall(*words, "--json"))
    return found


@pytest.fixture(scope="module")
def array(room: SlurmRoom) -> Iterator[int]:
    """Task 4 of an array: one step of two tasks beside its script."""
    script = f'srun --ntasks=2 --mem=150 python3 -c "{HOLD}"'
    job = room.submit(script, "--array=4", "--ntasks=2", "--mem=300", SLURM_JOB_ACCOUNT="physics")
    room.wait(lambda: _is_holding(room, job), "two tasks")
    yield job
    room.command("scancel", str(job))
    room.wait(lambda: room.job_folder(job) is None, "its end")


def _is_holding(room: SlurmRoom, job: int) -> bool:
    folder = room.job_folder(job)
    tasks = [] if folder is None else list(folder.glob("step_0/task_*/memory.usage_in_bytes"))
    return len(tasks) == 2 and all(int(task.read_text()) > 32 << 20 for task in tasks)


def test_pods_has_one_row_for_the_job_with_its_user(array: int) -> None:
    found = document("pods", "--limit", "0")
    rows = [row for row in found["workloads"] if "slurm" in row]
    assert [row["name"] for row in rows] == [f"slurm:{array}@games"]
    row = rows[0]
    assert row["slurm"]["uid"] == 5
    assert row["slurm"]["claims"]["array_task"] == "4"
    assert row["slurm"]["claims"]["account"] == "physics"
    assert row["limit_bytes"] == 300 << 20
    assert row["charge_bytes"] > 64 << 20


@pytest.mark.parametrize(
    ("address", "name", "least_mib", "limit_mib"),
    [
        ("slurm:{}", "slurm:{}@games", 64, 300),
        ("slurm:{}_4", "slurm:{}@games", 64, 300),
        ("slurm:{}.0", "slurm:{}.0@games", 64, 150),
        ("slurm:{}.0/1", "slurm:{}.0/1@games", 32, 150),
        ("slurm:{}.batch", "slurm:{}.batch@games", 0, 300),
    ],
)
def test_numbers_of_job_step_and_task(
    array: int, address: str, name: str, least_mib: int, limit_mib: int
) -> None:
    found = document("numbers", address.format(array))
    assert found["workload"] == name.format(array)
    assert found["limit_bytes"] == limit_mib << 20
    own = {row["name"]: row["bytes"] for row in found["values"] if "Slurm" in row["tool"]}
    assert own["RSS by jobacct_gather/cgroup"] >= least_mib << 20
    assert own["MaxRSS of 24.11 and later"] >= own["RSS by jobacct_gather/cgroup"]


def test_other_verbs_tell_of_the_job_that_a_step_is_of(array: int) -> None:
    assert f"slurm:{array}@games " in seawall("why", f"slurm:{array}.0")
    assert (
        seawall("memory", f"slurm:{array}.0/1").splitlines()[1].startswith(f"slurm:{array}@games")
    )


def test_the_guard_knows_the_job_by_its_name(room: SlurmRoom, array: int, tmp_path: Path) -> None:
    settings = tmp_path / "guard.toml"
    settings.write_text(f"scope = {json.dumps([f'/slurm_{node}' for node in room.nodes])}\n")
    found = document("guard", "explain", "--config", str(settings))
    names = [one["name"] for one in found["may_act_on"]]
    assert f"slurm:{array}@games" in names


def test_slurms_own_sample_is_the_number_that_numbers_foretells(
    room: SlurmRoom, array: int
) -> None:
    """sstat's MaxRSS is one task's, and has no page cache: total_rss of that task's cgroup."""
    said = room.command("sstat", "--noheader", "--parsable2", "--format=MaxRSS", f"{array}.0")
    found = document("numbers", f"slurm:{array}.0/1")
    own = {row["name"]: row["bytes"] for row in found["values"] if "Slurm" in row["tool"]}
    assert _bytes(said) == pytest.approx(own["RSS by jobacct_gather/cgroup"], rel=0.1)


def _bytes(text: str) -> int:
    number, unit = text.strip()[:-1], text.strip()[-1]
    return int(float(number) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[unit])


def test_a_job_is_named_by_a_process_of_it(room: SlurmRoom, array: int) -> None:
    folder = room.job_folder(array)
    assert folder
    pid = (folder / "step_0/task_0/cgroup.procs").read_text().split()[0]
    text = seawall("numbers", f"pid:{pid}")
    assert text.splitlines()[1].startswith(f"slurm:{array}@games: ")
    assert f"Slurm job {array}, of games (uid 5)" in text


def test_a_process_that_is_adopted_counts_to_the_job(room: SlurmRoom, array: int) -> None:
    """As pam_slurm_adopt moves a session: into step_extern (src/slurmd/slurmstepd/req.c)."""
    folder = room.job_folder(array)
    assert folder
    session = subprocess.Popen(["sleep", "100"], user="games")
    try:
        (folder / "step_extern/task_0/cgroup.procs").write_text(str(session.pid))
        assert document("numbers", f"pid:{session.pid}")["workload"] == f"slurm:{array}@games"
    finally:
        session.kill()
        session.wait()


def test_what_a_job_says_of_itself_never_names_it(room: SlurmRoom) -> None:
    """Its user writes his environment as he likes; the cgroup is root's."""
    lie = "exec env SLURM_JOB_ID=1 SLURM_JOB_UID=0 SLURM_JOB_ACCOUNT=root python3 -c"
    job = room.submit(f'{lie} "{HOLD}"', "--mem=100", user="nobody")
    folder = _folder(room, job)
    room.wait(lambda: int((folder / "memory.usage_in_bytes").read_text()) > 32 << 20, "memory")
    found = document("numbers", f"slurm:{job}")
    assert found["workload"] == f"slurm:{job}@nobody"
    assert found["slurm"]["claims"]["account"] is None
    room.command("scancel", str(job))


def _folder(room: SlurmRoom, job: int) -> Path:
    room.wait(lambda: room.job_folder(job), "its cgroup")
    found = room.job_folder(job)
    assert found
    return found


def test_an_oom_kill_is_explained_by_the_kernels_lines_and_slurms(
    room: SlurmRoom, tmp_path: Path
) -> None:
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    job = room.submit(f'srun --mem=64 python3 -c "{GREEDY}"; sleep 1', "--mem=200")
    room.wait(lambda: "oom" in room.output(job), "slurmstepd's words")
    log = tmp_path / "log"
    log.write_text(kernel_log(began) + room.output(job))
    found = seawall("oom", "explain", str(log))
    assert f"Slurm job {job} step 0 of uid 5 reached its limit of 64.0 MiB" in _joined(found)
    assert f"Slurm step {job}.0 ran out of its memory limit" in _joined(found)

    log.write_text(room.output(job))  # what the user has
    assert f"Slurm step {job}.0 ran out of its memory limit" in _joined(
        seawall("oom", "explain", str(log))
    )


def kernel_log(began: float) -> str:
    """Its lines since then: others die on this machine, too."""
    told = subprocess.run(["dmesg"], capture_output=True, text=True, check=False, errors="replace")
    if told.returncode:
        pytest.skip(f"no kernel log: {told.stderr.strip()}")
    lines = (re.match(r"\[ *(\d+\.\d+)\] ", line) for line in told.stdout.splitlines())
    return "".join(f"{line.string}\n" for line in lines if line and float(line[1]) >= began - 1)


def _joined(text: str) -> str:
    return " ".join(text.split())


def test_jobs_without_a_memory_cgroup_are_told_by_number() -> None:
    """V1 with jobacct_gather/linux and no ConstrainRAMSpace: the freezer's tree alone has them."""
    if why := missing():
        pytest.skip(why)
    with SlurmRoom(constrains=False, gathers="linux") as room:
        job = room.submit("sleep 100")
        room.wait(lambda: room.job_folder(job, "freezer"), "its cgroup")
        assert not list((TREES / "memory").glob(f"slurm_{room.name}*/uid_*"))
        unseen = document("pods", "--limit", "0")["could_not_see"]
    assert [row["what"] for row in unseen if "Slurm" in row["what"]] == [
        f"memory of Slurm jobs {job}"
    ]


def test_without_constraints_a_job_has_its_numbers_and_no_limit() -> None:
    if why := missing():
        pytest.skip(why)
    with SlurmRoom(constrains=False) as room:
        job = room.submit(f'python3 -c "{HOLD}"', "--mem=100")
        folder = _folder(room, job)
        room.wait(lambda: int((folder / "memory.usage_in_bytes").read_text()) > 32 << 20, "memory")
        found = document("numbers", f"slurm:{job}")
    assert found["workload"] == f"slurm:{job}@games"
    assert found["limit_bytes"] is None
