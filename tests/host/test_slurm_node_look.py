"""One look at a tree of files: who is slurmstepd, whose memory is in /dev/shm."""

import os
from pathlib import Path

import pytest

from seawall.host.slurm_node_look import look

MEMORY = "sys/fs/cgroup/memory"
V2 = "sys/fs/cgroup"


def group(root: Path, tree: str, path: str, *pids: int) -> None:
    folder = root / tree
    for part in ("", *path.split("/")):
        folder = folder / part
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "cgroup.procs").exists():
            (folder / "cgroup.procs").write_text("")
    (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))


def process(root: Path, pid: int, name: str, uid: int, state: str = "S") -> None:
    folder = root / f"proc/{pid}"
    folder.mkdir(parents=True)
    words = "\t".join([str(uid)] * 4)
    (folder / "status").write_text(
        f"Name:\t{name}\nUmask:\t0022\nState:\t{state} (x)\nPid:\t{pid}\nUid:\t{words}\n"
    )


def test_v1_counts_processes_and_knows_roots_slurmstepd(tmp_path: Path) -> None:
    group(tmp_path, MEMORY, "slurm/uid_1000/job_7/step_batch", 40)
    group(tmp_path, MEMORY, "slurm/uid_1000/job_7/step_batch/task_0", 41, 42, 43)
    process(tmp_path, 40, "slurmstepd", 0)
    process(tmp_path, 41, "python3", 1000)
    process(tmp_path, 42, "slurmstepd", 1000)  # whoever calls himself so
    process(tmp_path, 43, "gone", 1000, state="Z")
    (job,) = look(str(tmp_path)).jobs
    assert (job.part.job, job.part.uid, job.users, job.has_stepd) == ("7", 1000, 2, True)


def test_v2_with_several_slurmd_and_its_own_slice(tmp_path: Path) -> None:
    for number, scope in (
        (7, "system.slice/n1_slurmstepd.scope"),
        (8, "batch.slice/slurmstepd.scope"),
    ):
        group(tmp_path, V2, f"{scope}/job_{number}/step_0/slurm", 100 + number)
        group(tmp_path, V2, f"{scope}/job_{number}/step_0/user/task_0", 200 + number)
        process(tmp_path, 200 + number, "a.out", 1000)
    process(tmp_path, 107, "slurmstepd", 0)
    found = {job.part.job: (job.users, job.has_stepd) for job in look(str(tmp_path)).jobs}
    assert found == {"7": (1, True), "8": (1, False)}


def test_what_a_container_calls_a_job_is_none(tmp_path: Path) -> None:
    group(tmp_path, V2, f"system.slice/docker-{'a' * 64}.scope/slurm/uid_0/job_7", 50)
    group(tmp_path, V2, "slurm.slice/uid_0/job_7", 50)
    process(tmp_path, 50, "x", 0)
    assert not look(str(tmp_path)).jobs


def test_no_tree_is_told(tmp_path: Path) -> None:
    found = look(str(tmp_path))
    assert not found.jobs
    assert found.unseen


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: files of other users are to be made")
def test_shm_by_owner_and_users_asked_only_where_it_matters(tmp_path: Path) -> None:
    group(tmp_path, MEMORY, "slurm")
    folder = tmp_path / "dev/shm/sub"
    folder.mkdir(parents=True)
    for name, uid in (("a", 1000), ("sub/b", 1000), ("c", 0)):
        path = tmp_path / "dev/shm" / name
        path.write_bytes(b"x" * 8192)
        os.chown(path, uid, uid)
    (tmp_path / "dev/shm/link").symlink_to("/etc/passwd")
    process(tmp_path, 60, "x", 1001)
    found = look(str(tmp_path), shm_least_bytes=1 << 20)
    assert (set(found.shm_bytes), found.uids) == ({1000}, None)
    assert found.shm_bytes[1000] >= 16384
    assert look(str(tmp_path), shm_least_bytes=4096).uids == {1001}


def test_a_job_that_has_no_cgroup_of_memory_is_seen_by_its_slurmstepd(tmp_path: Path) -> None:
    group(tmp_path, MEMORY, "system.slice/slurmd.service", 40)
    process(tmp_path, 40, "slurmd", 0)
    (tmp_path / "proc/40/comm").write_text("slurmd\n")
    assert look(str(tmp_path)).is_idle
    process(tmp_path, 41, "slurmstepd", 1000)
    (tmp_path / "proc/41/comm").write_text("slurmstepd\n")
    assert look(str(tmp_path)).is_idle, "whoever calls himself so"
    process(tmp_path, 42, "slurmstepd", 0)
    (tmp_path / "proc/42/comm").write_text("slurmstepd\n")
    assert not look(str(tmp_path)).is_idle
    (tmp_path / "proc/42/cgroup").write_text("4:freezer:/slurm_n2/uid_5/job_7/step_0\n")
    assert look(str(tmp_path), node="n1").is_idle
    assert not look(str(tmp_path), node="n2").is_idle


def test_of_several_slurmd_on_a_host_one_is_asked_for(tmp_path: Path) -> None:
    group(tmp_path, MEMORY, "slurm_n1/uid_1000/job_7", 50)
    group(tmp_path, MEMORY, "slurm_n2/uid_1000/job_8", 51)
    for pid in (50, 51):
        process(tmp_path, pid, "a.out", 1000)
    assert [job.part.job for job in look(str(tmp_path), node="n2").jobs] == ["8"]
    assert len(look(str(tmp_path)).jobs) == 2
