"""Paths and the node's files together: what people call what runs here."""

from seawall.accounts.workloads import Workload, Workloads, account
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.container_files import ContainerFile, ContainerFiles
from seawall.readings.slurm_jobs import SlurmJob, SlurmJobs

A, B, C = (digit * 64 for digit in "abc")
UID = "1858680e-b044-4fd5-9dd4-f137e30e2180"
POD = f"/kubepods/burstable/pod{UID}"


def cgroups_of(pids: dict[str, tuple[int, ...]]) -> Cgroups:
    """A v1 tree with these cgroups and everything above them."""
    paths = {"/"}
    for path in pids:
        while path:
            paths.add(path)
            path = path.rpartition("/")[0]
    mount = "/sys/fs/cgroup/memory"
    layout = CgroupLayout(v1={"memory": mount}, v2=None, v2_controllers=())
    return Cgroups(layout, tuple(sorted(paths)), mount, pids, ())


def files_of(*files: ContainerFile, **pods: tuple[str, str]) -> ContainerFiles:
    return ContainerFiles({f.container_id: f for f in files}, pods, ())


def found(pids: dict[str, tuple[int, ...]], files: ContainerFiles) -> Workloads:
    return account(cgroups_of(pids), files)


APP = ContainerFile(container_id=A, namespace="shop", pod="web-0", container="app")
PAUSE = ContainerFile(
    container_id=B, namespace="shop", pod="web-0", pod_uid=UID, is_sandbox=True,
    runtime="containerd",
)  # fmt: skip
PODS = {UID: ("shop", "web-0")}


def test_pod_with_container_and_sandbox() -> None:
    got = found({f"{POD}/{A}": (10, 11), f"{POD}/{B}": (9,)}, files_of(APP, PAUSE, **PODS))
    app = got.by_cgroup[f"{POD}/{A}"]
    assert app == Workload(
        kind="container", name="shop/web-0/app", cgroup=f"{POD}/{A}", container_id=A,
        namespace="shop", pod="web-0", pod_uid=UID, container="app", qos="Burstable",
        is_tenant=True,
    )  # fmt: skip
    assert got.by_pid[10] is app
    pause = got.by_pid[9]
    assert (pause.name, pause.is_sandbox) == ("shop/web-0/POD", True)
    pod = got.by_cgroup[POD]
    assert (pod.kind, pod.name, pod.is_tenant) == ("pod", "shop/web-0", True)
    assert got.by_cgroup["/kubepods/burstable"].kind == "slice"
    assert got.by_cgroup["/"].kind == "root"


def test_nothing_known_but_the_path() -> None:
    got = found({f"{POD}/{A}": (10,)}, files_of())
    assert got.by_pid[10].name == f"container:{A[:12]}"
    assert got.by_pid[10].pod_uid == UID
    assert got.by_cgroup[POD].name == POD


def test_pod_known_container_not() -> None:
    got = found({f"{POD}/{A}": (10,)}, files_of(**PODS))
    assert got.by_pid[10].name == f"shop/web-0/{A[:12]}"


def test_names_of_each_runtime() -> None:
    got = found(
        {
            f"/docker/{A}": (1,), f"/machine.slice/libpod-{B}.scope/container": (2,),
            "/lxc.payload.ci/init.scope": (3,), "/system.slice/ssh.service": (4,), "/plain/x": (5,),
        },
        files_of(
            ContainerFile(container_id=A, runtime="docker", name="web"),
            ContainerFile(container_id=B, runtime="podman", name="db"),
        ),
    )  # fmt: skip
    assert [got.by_pid[pid].name for pid in (1, 2, 3, 4, 5)] == [
        "docker:web", "podman:db", "lxc:ci", "unit:ssh.service", "/plain/x",
    ]  # fmt: skip
    assert got.by_pid[2].cgroup == f"/machine.slice/libpod-{B}.scope"
    assert f"/machine.slice/libpod-{B}.scope/container" not in got.by_cgroup
    assert [got.by_pid[pid].is_tenant for pid in (1, 3, 4, 5)] == [True, True, False, False]


def test_containers_that_only_their_config_knows() -> None:
    """Names without hex: containerd's ``ctr run``, runc with a cgroup of its own choice."""
    got = found(
        {"/default/redis": (1,), "/default/redis/worker": (2,), "/odd/place": (3,)},
        files_of(
            ContainerFile(
                container_id="redis", runtime="containerd", cgroups_path="/default/redis"
            ),
            ContainerFile(
                container_id="w1", runtime="runc", cgroup_folder="/sys/fs/cgroup/memory/odd/place"
            ),
        ),
    )
    assert got.by_pid[1].name == "container:redis"
    assert got.by_pid[2] is got.by_pid[1]
    assert (got.by_pid[3].kind, got.by_pid[3].container_id) == ("container", "w1")


def test_a_container_cannot_take_another_ones_name() -> None:
    """Inside a container or below a user's manager anyone may make these folders."""
    user = "/user.slice/user-1000.slice/user@1000.service"
    for outer in (f"/docker/{C}", user, "/lxc.payload.x"):
        fake = f"{outer}{POD}/{A}"
        got = found({fake: (66,), f"{POD}/{A}": (10,)}, files_of(APP, **PODS))
        assert got.by_pid[10].name == "shop/web-0/app"
        assert got.by_pid[66].name == f"container:{A[:12]}"
        assert got.by_pid[66].namespace is None
        assert got.by_cgroup[f"{outer}{POD}"].name == f"{outer}{POD}"


def test_a_claimed_cgroup_inside_a_container_stays_its_own() -> None:
    lie = ContainerFile(container_id="x", cgroups_path=f"/docker/{A}/sub", runtime="runc")
    got = found({f"/docker/{A}/sub": (1,)}, files_of(lie))
    assert got.by_pid[1].cgroup == f"/docker/{A}"


def test_nearest_workload_of_any_path() -> None:
    got = found({f"/docker/{A}/a/b": (1,)}, files_of())
    assert got.of_cgroup(f"/docker/{A}/a/b/c") is got.by_cgroup[f"/docker/{A}"]
    assert got.of_cgroup("/nowhere/at/all") is got.by_cgroup["/"]
    assert Workloads({}, {}).of_cgroup("/x") is None


def test_two_thousand_containers_are_quick() -> None:
    pids = {f"/kubepods/burstable/pod{n:08x}-0000-0000-0000-000000000000/{n:064x}": (n,)
            for n in range(1, 2001)}  # fmt: skip
    got = found(pids, files_of())
    assert len(got.by_pid) == 2000
    assert sum(w.kind == "container" for w in got.by_cgroup.values()) == 2000


def test_a_job_is_a_workload_and_its_steps_are_parts_of_it() -> None:
    job = "/slurm/uid_1000/job_7"
    pids = {
        f"{job}/step_batch": (20,),
        f"{job}/step_batch/task_0": (21,),
        f"{job}/step_0/task_1": (22,),
    }
    jobs = SlurmJobs({job: SlurmJob(job="7", cgroup=job, uid=1000, user="alice")})
    got = account(cgroups_of(pids), files_of(), jobs)
    whole = got.by_cgroup[job]
    assert (whole.name, whole.kind, whole.is_tenant) == ("slurm:7@alice", "cgroup", True)
    assert {got.by_pid[pid] for pid in (20, 21, 22)} == {whole}
    names = {path.removeprefix(job): part.name for path, part in got.job_parts.items()}
    assert names == {
        "/step_batch": "slurm:7.batch@alice", "/step_batch/task_0": "slurm:7.batch/0@alice",
        "/step_0": "slurm:7.0@alice", "/step_0/task_1": "slurm:7.0/1@alice",
    }  # fmt: skip
    assert got.of_cgroup(f"{job}/step_0/task_1") is whole
    assert not got.by_cgroup["/slurm/uid_1000"].is_tenant


def test_a_container_in_a_job_is_its_own_workload() -> None:
    job = "/system.slice/slurmstepd.scope/job_7"
    got = found({f"{job}/step_0/user/task_0/{A}": (30,)}, files_of(APP))
    assert got.by_pid[30].kind == "container"
    assert got.by_pid[30].namespace is None, "whoever runs in the job chose that name"
    assert got.by_cgroup[job].name == "slurm:7"
