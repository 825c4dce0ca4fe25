"""Whose a job is: by cgroup and processes; what its environment says is kept apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import CaseHost, parse_case

from seawall.host.recording import Round
from seawall.host.sieve import keep_environment, keep_user_names
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.slurm_jobs import (
    SlurmJob,
    SlurmJobClaims,
    claims_of,
    parse_job_environment,
    parse_users,
    read,
    read_owners,
)

MEMORY, FREEZER = "/sys/fs/cgroup/memory", "/sys/fs/cgroup/freezer"
JOB1 = "/slurm/uid_1000/job_7"
JOB2 = "/system.slice/slurmstepd.scope/job_8"
SLUID = "/system.slice/slurmstepd.scope/sEKNKTV3WPV500"
USERS = "root:x:0:0:Root:/root:/bin/sh\nalice:x:1000:1000:Alice A.:/home/alice:/bin/sh\n"


def tree(pids: dict[str, tuple[int, ...]], *, version: int = 1) -> Cgroups:
    paths = {"/"}
    for path in pids:
        while path:
            paths.add(path)
            path = path.rpartition("/")[0]
    if version == 1:
        layout = CgroupLayout(
            v1={"memory": MEMORY, "freezer": FREEZER}, v2=None, v2_controllers=()
        )  # fmt: skip
        return Cgroups(layout, tuple(sorted(paths)), MEMORY, pids, ())
    layout = CgroupLayout(v1={}, v2="/sys/fs/cgroup", v2_controllers=("memory",))
    return Cgroups(layout, tuple(sorted(paths)), "/sys/fs/cgroup", pids, ())


def host(sections: str) -> CaseHost:
    return parse_case(("why: jobs\n" + sections).encode()).rounds[0]


def status(pid: int, uid: int, name: str = "python3") -> str:
    return f"=== /proc/{pid}/status\nName:\t{name}\nPid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"


def environ(pid: int, **variables: str) -> str:
    words = "".join(f"{name}={value}\0" for name, value in variables.items())
    return f"=== /proc/{pid}/environ\n{words}\n"


def job_of(found: object, path: str) -> SlurmJob:
    job = found.by_cgroup[path]  # type: ignore[attr-defined]
    assert isinstance(job, SlurmJob)
    return job


def test_user_is_of_the_path_and_its_name_of_the_node() -> None:
    said = environ(
        50, SLURM_JOB_ID="7", SLURM_JOB_UID="1000", SLURM_JOB_ACCOUNT="physics",
        SLURM_ARRAY_JOB_ID="5", SLURM_ARRAY_TASK_ID="2", SLURM_JOB_USER="root",
    )  # fmt: skip
    case = host(f"=== /etc/passwd\n{USERS}{said}")
    job = job_of(read(case, tree({f"{JOB1}/step_batch/task_0": (50,)})), JOB1)
    assert (job.job, job.uid, job.user, job.owner) == ("7", 1000, "alice", "alice")
    assert job.claims == SlurmJobClaims(account="physics", array_job="5", array_task="2")


def test_user_of_v2_is_of_its_processes_and_never_slurmstepds() -> None:
    pids = {
        f"{JOB2}/step_0/slurm": (40,), f"{JOB2}/step_extern/user/task_special": (41,),
        f"{JOB2}/step_0/user/task_0": (50, 51),
    }  # fmt: skip
    words = status(40, 0, "slurmstepd") + status(50, 0, "sudo") + status(51, 1000)
    case = host(f"=== /etc/passwd\n{USERS}{words}")
    assert job_of(read_owners(case, tree(pids, version=2)), JOB2).owner == "alice"
    alone = tree({f"{JOB2}/step_0/slurm": (40,)}, version=2)
    assert job_of(read_owners(case, alone), JOB2).uid is None


def test_a_user_that_the_node_does_not_know_is_a_number_and_what_he_says() -> None:
    said = {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "1000"}
    cgroups = tree({f"{JOB1}/step_batch/task_0": (50,)})
    case = host("=== /etc/passwd\nroot:x:0:0::/:\n" + environ(50, **said, SLURM_JOB_USER="bob"))
    job = job_of(read(case, cgroups), JOB1)
    assert (job.owner, job.claims.user) == ("1000", "bob")
    liar = host("=== /etc/passwd\nroot:x:0:0::/:\n" + environ(50, **said, SLURM_JOB_USER="root"))
    assert job_of(read(liar, cgroups), JOB1).claims.user is None


@pytest.mark.parametrize(
    "said",
    [
        {"SLURM_JOB_ID": "9"},  # of another job: started before it was adopted
        {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "0"},
        {"SLURM_JOB_ACCOUNT": "physics"},
        {"SLURM_JOB_ID": "seven"},
    ],
)
def test_an_environment_of_another_job_or_user_tells_nothing(said: dict[str, str]) -> None:
    job = SlurmJob(job="7", cgroup=JOB1, uid=1000)
    assert claims_of(job, {"SLURM_JOB_ACCOUNT": "physics"} | said) is None


def test_half_an_array_and_odd_accounts_are_left_out() -> None:
    job = SlurmJob(job="7", cgroup=JOB1, uid=1000)
    said = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "5", "SLURM_JOB_ACCOUNT": "a\x1b[2Jb"}
    assert claims_of(job, said) == SlurmJobClaims()


def test_slurms_own_id_gets_the_number_that_the_job_says() -> None:
    cgroups = tree({f"{SLUID}/step_batch/user/task_0": (50,)}, version=2)
    case = host(f"=== /etc/passwd\n{USERS}{status(50, 1000)}{environ(50, SLURM_JOB_ID='31')}")
    job = job_of(read(case, cgroups), SLUID)
    assert (job.job, job.owner, job.claims.job) == ("sEKNKTV3WPV500", "alice", "31")


def test_silent_address_spaces_are_not_asked_one_after_the_other() -> None:
    jobs = [f"/slurm/uid_1000/job_{n}" for n in range(1, 9)]
    pids = {f"{job}/step_0/task_0": (100 + n,) for n, job in enumerate(jobs)}
    sections = "".join(f"=== /proc/{100 + n}/environ !no_answer\n" for n in range(8))
    found = read(host(f"=== /etc/passwd\n{USERS}{sections}"), tree(pids))
    assert {job.owner for job in found.by_cgroup.values()} == {"alice"}
    assert len(found.unread) == 2


def test_jobs_whose_memory_no_cgroup_counts() -> None:
    case = host(
        f"=== {FREEZER}{JOB1}/cgroup.procs\n50\n=== {FREEZER}/slurm/uid_1000/job_9/cgroup.procs\n"
        f"=== {FREEZER}/other/uid_1/job_3/cgroup.procs\n=== /etc/passwd\n{USERS}"
    )
    found = read(case, tree({f"{JOB1}/step_0/task_0": (50,)}))
    assert [job.job for job in found.uncounted] == ["9"]
    assert list(found.by_cgroup) == [JOB1]
    none = read(case, tree({"/system.slice": (1,)}))
    assert (len(none.by_cgroup), sorted(job.job for job in none.uncounted)) == (0, ["7", "9"])


def test_what_was_known_is_not_asked_again() -> None:
    cgroups = tree({f"{JOB2}/step_0/user/task_0": (51,)}, version=2)
    first = read_owners(host(f"=== /etc/passwd\n{USERS}{status(51, 1000)}"), cgroups)
    later = read_owners(host(""), cgroups, first)
    assert later.by_cgroup == first.by_cgroup
    assert not later.unread


def test_no_job_no_question() -> None:
    class NothingAsked(CaseHost):
        def read(self, path: str, limit_bytes: int = 0) -> bytes:
            raise AssertionError(path)

    case = NothingAsked(Round())
    assert not read(case, tree({"/system.slice": (1,)}, version=2)).by_cgroup


def test_the_sieve_lets_through_what_tells_the_job_and_no_secret() -> None:
    kept = b"SLURM_JOB_ID=7\0SLURM_JOB_ACCOUNT=a"
    environ = b"SLURM_JWT=secret\0" + kept + b"\0SLURM_JOB_NAME=x\0MY_SLURM_JOB_ID=9"
    assert keep_environment(environ) == kept
    assert keep_user_names(USERS.encode()) == b"root:x:0\nalice:x:1000\n"


def test_two_users_of_one_number_and_odd_lines() -> None:
    data = b"alice:x:7:7::/:\nbob:x:7:7::/:\nbad\x1b:x:8:8::/:\n:x:9\n+::::::\nc:x:ten\n\xff:x:1:\n"
    assert parse_users(data) == {7: "alice"}


def test_of_two_variables_the_first_counts_as_getenv_has_it() -> None:
    data = b"SLURM_JOB_ID=7\0SLURM_JOB_ID=8\0PATH=/bin\0SLURM_X"
    assert parse_job_environment(data) == {"SLURM_JOB_ID": "7"}


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    assert all(isinstance(uid, int) for uid in parse_users(data))
    variables = parse_job_environment(data)
    claims_of(SlurmJob(job="7", cgroup=JOB1, uid=None), variables | {"SLURM_JOB_ID": "7"})
