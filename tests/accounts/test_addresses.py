"""A WORKLOAD as typed: one is meant, or the matches are listed, or what is near."""

import pytest

from seawall.accounts.addresses import resolve
from seawall.accounts.workloads import Workload, Workloads
from seawall.problems import UsageProblem
from seawall.readings.slurm_jobs import SlurmJob, SlurmJobClaims

A, A2, B, C, D = "ab" + "1" * 62, "ab" + "2" * 62, "b" * 64, "c" * 64, "d" * 64
P1, P2 = "/kubepods/pod1", "/kubepods/pod2"


def container(name: str, cgroup: str, key: str, **more: object) -> Workload:
    parts = name.split("/")
    pod = {"namespace": parts[0], "pod": parts[1]} if len(parts) == 3 else {}
    return Workload(kind="container", name=name, cgroup=cgroup, container_id=key, **pod, **more)  # type: ignore[arg-type]


ROWS = [
    Workload(kind="root", name="/", cgroup="/"),
    Workload(kind="slice", name="/kubepods", cgroup="/kubepods"),
    Workload(kind="pod", name="shop/web-0", cgroup=P1, namespace="shop", pod="web-0"),
    container("shop/web-0/app", f"{P1}/{A}", A, container="app"),
    container("shop/web-0/side", f"{P1}/{A2}", A2, container="side"),
    container("shop/web-0/POD", f"{P1}/{D}", D, is_sandbox=True),
    Workload(kind="pod", name="test/web-0", cgroup=P2, namespace="test", pod="web-0"),
    container("test/web-0/app", f"{P2}/{B}", B, container="app"),
    container("docker:redis", f"/docker/{C}", C, runtime="docker", container="redis"),
    container("shop/free/job", "/loose/" + "e" * 64, "e" * 64, container="job"),
    Workload(kind="slice", name="unit:system.slice", cgroup="/system.slice", unit="system.slice"),
    Workload(kind="unit", name="unit:ssh.service", cgroup="/system.slice/ssh.service",
             unit="ssh.service"),
    *(Workload(kind="unit", name=f"unit:user@{n}.service/x.service", cgroup=f"/u/{n}/x.service",
               unit=f"user@{n}.service/x.service") for n in (1000, 1001)),
    Workload(kind="cgroup", name="/batch/job 7", cgroup="/batch/job 7"),
    Workload(kind="slice", name="unit:user-7.slice", cgroup="/user.slice/user-7.slice",
             unit="user-7.slice"),
]  # fmt: skip
BY_CGROUP = {row.cgroup: row for row in ROWS}
WORKLOADS = Workloads(BY_CGROUP, {42: BY_CGROUP[f"{P1}/{A}"]})


@pytest.mark.parametrize(
    ("text", "cgroup"),
    [
        ("shop/web-0", P1),
        ("shop/web-0/app", f"{P1}/{A}"),
        ("shop/web-0/POD", f"{P1}/{D}"),
        ("shop/free", "/loose/" + "e" * 64),
        ("ab1", f"{P1}/{A}"),
        (A, f"{P1}/{A}"),
        (f"container:{B[:12]}", f"{P2}/{B}"),
        ("docker:redis", f"/docker/{C}"),
        ("redis", f"/docker/{C}"),
        ("pid:42", f"{P1}/{A}"),
        ("unit:ssh.service", "/system.slice/ssh.service"),
        ("unit:ssh", "/system.slice/ssh.service"),
        ("ssh", "/system.slice/ssh.service"),
        ("unit:user@1001.service/x.service", "/u/1001/x.service"),
        ("user:7", "/user.slice/user-7.slice"),
        ("user:7@alice", "/user.slice/user-7.slice"),
        ("/batch/job 7", "/batch/job 7"),
        ("/batch/job 7/", "/batch/job 7"),
        (f"/sys/fs/cgroup/memory{P1}/{A}", f"{P1}/{A}"),
        (f"/sys/fs/cgroup{P1}", P1),
        (f"/docker/{C}/nested/deeper", f"/docker/{C}"),
        ("system.slice/ssh.service", "/system.slice/ssh.service"),
        ("/", "/"),
    ],
)
def test_each_form(text: str, cgroup: str) -> None:
    assert resolve(text, WORKLOADS).cgroup == cgroup


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ab", ["shop/web-0/app", "shop/web-0/side"]),
        ("web-0", ["shop/web-0", "test/web-0"]),
        ("unit:x", ["user@1000.service/x.service", "user@1001.service/x.service"]),
    ],
)
def test_ambiguous_ones_list_the_matches(text: str, named: list[str]) -> None:
    with pytest.raises(UsageProblem) as caught:
        resolve(text, WORKLOADS)
    for name in named:
        assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shop/web-0/ap", "near: shop/web-0/app"),
        ("shop/web-1", "shop/web-0"),
        ("pid:43", "no process 43"),
        ("unit:sshd", "unit:ssh.service"),
        ("/kubepods/pod1/typo", "no workload"),
        ("/nowhere", "no workload"),
        ("", "expected namespace/pod"),
        ("container:", "no workload"),
        ("unit:", "no workload"),
        ("zzzzqqqq", "expected namespace/pod"),
        ("shop/web-0/app/x", "near: shop/web-0/app"),
    ],
)
def test_none_tells_what_is_near(text: str, words: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        resolve(text, WORKLOADS)
    assert words in str(caught.value)


def test_a_long_list_is_cut() -> None:
    many = {f"/c/{n}": container(f"container:{n:012x}", f"/c/{n}", f"{n:064x}") for n in range(50)}
    with pytest.raises(UsageProblem) as caught:
        resolve("000", Workloads(many, {}))
    assert "42 more" in str(caught.value)


def test_a_name_that_begins_another_ones_id_lists_both() -> None:
    named = container("docker:db", f"/docker/{C}", C, container="db")
    begun = container("docker:cache", "/docker/db99", "db99" + "0" * 60, container="cache")
    both = Workloads({w.cgroup: w for w in (named, begun)}, {})
    with pytest.raises(UsageProblem) as caught:
        resolve("db", both)
    assert named.cgroup in str(caught.value)
    assert begun.cgroup in str(caught.value)
    assert resolve("db9", both) is begun
    assert resolve("docker:db", both) is named
    assert resolve("container:db", both) is begun


def job(number: str, user: str = "alice", **claims: str) -> SlurmJob:
    uid = 1000 if user == "alice" else 1001
    return SlurmJob(
        job=number, cgroup=f"/slurm/uid_{uid}/job_{number}", uid=uid, user=user,
        claims=SlurmJobClaims(**claims),
    )  # fmt: skip


def part(owner: SlurmJob, address: str, below: str = "") -> Workload:
    name = f"slurm:{address}@{owner.user}"
    return Workload(kind="cgroup", name=name, cgroup=owner.cgroup + below, slurm=owner)


def jobs() -> Workloads:
    """An array's task, and one of another user that says it is that task."""
    real = job("6", array_job="5", array_task="2")
    liar = job("9", "mallory", array_job="6", array_task="1")
    wholes = [part(real, "6"), part(liar, "9")]
    parts = [part(real, "6.0", "/step_0"), part(real, "6.0/1", "/step_0/task_1")]
    return Workloads(
        {one.cgroup: one for one in wholes}, {}, {one.cgroup: one for one in parts}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("slurm:6", "slurm:6@alice"),
        ("slurm:6@alice", "slurm:6@alice"),
        ("slurm:6.0", "slurm:6.0@alice"),
        ("slurm:6.0/1", "slurm:6.0/1@alice"),
        ("/slurm/uid_1000/job_6/step_0", "slurm:6.0@alice"),
        ("slurm:5_2", "slurm:6@alice"),
        ("slurm:5_2.0", "slurm:6.0@alice"),
        ("slurm:6_1", "slurm:9@mallory"),  # as it says of itself; the real 6 keeps its name
    ],
)
def test_a_job_by_its_number_its_step_or_its_array(text: str, name: str) -> None:
    assert resolve(text, jobs()).name == name


@pytest.mark.parametrize("text", ["slurm:", "slurm:7", "slurm:6@mallory", "slurm:6.1"])
def test_no_such_job(text: str) -> None:
    with pytest.raises(UsageProblem):
        resolve(text, jobs())
