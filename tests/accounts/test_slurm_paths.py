"""Job, step, task and user of a path: forms of Slurm's cgroup_v1.c, cgroup_v2.c and log.c."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.slurm_paths import jobs_among, part_of

STEPD = "/system.slice/slurmstepd.scope"
SLUID = "sEKNKTV3WPV500"
V1 = "/slurm/uid_1000/job_42"


@pytest.mark.parametrize(
    ("path", "address", "uid"),
    [
        (V1, "42", 1000),
        (f"{V1}/step_batch", "42.batch", 1000),
        (f"{V1}/step_batch/task_0", "42.batch/0", 1000),
        (f"{V1}/step_0/task_17", "42.0/17", 1000),
        (f"{V1}/step_extern/task_0", "42.extern/0", 1000),
        ("/slurm_node1/uid_0/job_42/step_3", "42.3", 0),  # several slurmd on one host
        (f"{STEPD}/job_7", "7", None),
        (f"{STEPD}/job_7/step_0/user/task_1", "7.0/1", None),
        (f"{STEPD}/job_7/step_0/user/task_1/mine", "7.0/1", None),
        (f"{STEPD}/job_7/step_0+2/user/task_1", "7.0+2/1", None),  # heterogeneous
        (f"{STEPD}/job_7/step_interactive/user/task_special", "7.interactive/other", None),
        (f"{STEPD}/job_7/step_0/user/task_4294967293", "7.0/other", None),
        (f"/system.slice/node1_slurmstepd.scope/{SLUID}/step_batch", f"{SLUID}.batch", None),
        # What is no step of Slurm's is told as its job.
        (f"{V1}/step_x/task_0", "42", 1000),
        (f"{V1}/apptainer-9", "42", 1000),
    ],
)
def test_what_a_path_tells(path: str, address: str, uid: int | None) -> None:
    part = part_of(path)
    assert part is not None
    assert (part.address, part.uid, part.is_daemons) == (address, uid, False)
    assert path.startswith(part.cgroup)


def test_the_daemons_part_of_a_step_is_told() -> None:
    part = part_of(f"{STEPD}/job_7/step_0/slurm")
    assert part is not None
    assert (part.address, part.is_daemons) == ("7.0", True)


@pytest.mark.parametrize(
    "path",
    [
        "/", f"{STEPD}/system", "/slurm/uid_1000", "/slurm/job_7", "/user.slice/slurm/job_7",
        # Names that a container or a user made up.
        f"/docker/{'a' * 64}/slurm/uid_0/job_7", f"{STEPD}/job_7/step_0/user/task_0/{'b' * 64}",
        "/user.slice/user-7.slice/user@7.service/slurm/uid_0/job_7",
    ],
)  # fmt: skip
def test_what_is_in_no_job(path: str) -> None:
    assert part_of(path) is None


def test_only_jobs_themselves_are_among_paths() -> None:
    paths = ["/", "/slurm", V1, f"{V1}/step_0", f"{STEPD}/job_7", f"{STEPD}/job_7/step_0/user"]
    assert {path: part.job for path, part in jobs_among(paths).items()} == {
        V1: "42", f"{STEPD}/job_7": "7",
    }  # fmt: skip


@given(st.lists(st.sampled_from([
    "slurm", "system.slice", "slurmstepd.scope", "uid_7", "job_7", "step_0", "user", "task_0",
    "job_", "step_", "task_x", "slurm_n", "..", "\x1b[2J", "job_99999999999999999999",
]), max_size=9))  # fmt: skip
def test_no_path_is_more_than_it_says(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    part = part_of(path)
    if part is not None:
        assert path == part.cgroup or path.startswith(part.cgroup + "/")
        assert "\x1b" not in part.address
        assert part.job in path
