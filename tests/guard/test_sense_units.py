"""Workloads below a unit's own cgroup, and what the unit is meanwhile."""

import os
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import ID, UID, FakeTree, container, look, pod, table

from seawall.guard.sense import tree as tree_module
from seawall.guard.sense.details import Details
from seawall.guard.sense.group_table import GroupTable
from seawall.guard.sense.merge import GIVE_UP_SECONDS, Merge
from seawall.guard.sense.residual import TickResidual
from seawall.guard.tick_facts import NOT_TOLD

MIB = 1 << 20
CONTAINERD = "/system.slice/containerd.service"
STEPD = "/system.slice/slurmstepd.scope"


def unsplit(number: int) -> str:
    """As recorded: containerd with the cgroupfs driver, the kubelet with systemd's; cgroup v1."""
    uid = UID(number).replace("-", "_")
    return f"{CONTAINERD}/kubepods-burstable-pod{uid}.slice:cri-containerd:{ID(number)}"


def task(number: int, step: str = "0") -> str:
    return f"{STEPD}/job_{number}/step_{step}/user/task_0"


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def fake(tmp_path: Path, version: int) -> FakeTree:
    return FakeTree(tmp_path / "tree", version)


def charged(fake: FakeTree, path: str, size: int) -> None:
    name = "memory__usage_in_bytes" if "memory.usage_in_bytes" in fake.files else "memory__current"
    fake.make(path, **{name: f"{size * MIB}\n"})


def test_pods_below_the_runtimes_unit_are_groups_and_nothing_counts_twice(
    fake: FakeTree, version: int
) -> None:
    charged(fake, CONTAINERD, 5000)
    for number, size in ((1, 3000), (2, 1500)):
        charged(fake, unsplit(number), size)
    groups = table(fake, version)
    look(groups, 1.0)
    assert set(groups.by_path) == {unsplit(1), unsplit(2)}
    assert sum(group.charge_bytes for group in groups.by_path.values()) == 4500 * MIB
    assert groups.by_path[unsplit(1)].pod == UID(1)
    groups.close()


def test_each_job_is_a_group_with_all_its_steps(fake: FakeTree, version: int) -> None:
    for path in (
        f"{STEPD}/system", task(7), task(7, "batch"), f"{STEPD}/job_7/step_0/slurm", task(8),
        f"{STEPD}/sEKNKTV3WPV500/step_0/user/task_0", "/slurm/uid_1000/job_42/step_0/task_0",
        "/slurm/uid_1000/job_42/step_1", "/slurm/uid_1001/job_43",
        "/system.slice/slurmd.service",
    ):  # fmt: skip
        fake.make(path)
    groups = table(fake, version)
    assert set(groups.by_path) == {
        f"{STEPD}/job_7", f"{STEPD}/job_8", f"{STEPD}/sEKNKTV3WPV500", "/slurm/uid_1000/job_42",
        "/slurm/uid_1001/job_43", "/system.slice/slurmd.service",
    }  # fmt: skip
    groups.close()


@pytest.mark.skipif(os.getuid() != 0, reason="the files of /proc would have to be root's")
def test_what_slurmstepd_gives_itself_says_nothing_of_its_job(
    fake: FakeTree, version: int, tmp_path: Path
) -> None:
    """slurmstepd has -1000 and its tasks 0; a process of a user's has its name in vain."""
    for pid, name, uid, adj in ((7, "slurmstepd", 0, -1000), (8, "python3", 1000, 0)):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/oom_score_adj").write_text(f"{adj}\n")
        (tmp_path / f"proc/{pid}/status").write_text(
            f"Name:\t{name}\nUmask:\t0022\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        )
    job = "/slurm/uid_1000/job_42"
    fake.make(f"{job}/step_0", cgroup__procs="7\n8\n")
    groups = table(fake, version)
    details = Details(groups.names, str(tmp_path / "proc"))

    def adj() -> int | None:
        details.read(groups.members[job], 1.0, has_swap=False)
        return groups.by_path[job].adj

    assert adj() == 0
    (tmp_path / "proc/8/oom_score_adj").write_text("-1000\n")
    assert adj() == -1000
    (tmp_path / "proc/8/status").write_text("Name:\tslurmstepd\nUid:\t1000\t0\t0\t0\n")
    assert adj() == -1000
    groups.close()


def test_a_sandbox_of_kata_is_a_group_and_so_is_what_else_is_in_a_pod(
    fake: FakeTree, version: int
) -> None:
    vm, overhead, other = f"{pod(1)}/kata_{ID(1)}", f"/kata_overhead/{ID(1)}", f"{pod(2)}/vm"
    for path in (vm, overhead, other, container(2)):
        fake.make(path)
    groups = table(fake, version)
    assert set(groups.by_path) == {vm, overhead, other, container(2)}
    assert [groups.by_path[path].pod for path in (vm, other)] == [UID(1), UID(2)]
    groups.close()


def test_plain_folders_and_others_units_are_not_looked_into(fake: FakeTree, version: int) -> None:
    manager = "/user.slice/user-1000.slice/user@1000.service"
    machine = r"/machine.slice/machine-qemu\x2d1\x2dvm.scope"
    for path in (
        "/system.slice/foo.service/made/below", f"{manager}/x.service/{ID(5)}",
        f"{machine}/libvirt/{ID(6)}", f"/docker/{ID(7)}/x.service/{ID(8)}",
    ):  # fmt: skip
        fake.make(path)
    groups = table(fake, version)
    assert set(groups.by_path) == {
        "/system.slice/foo.service", f"{manager}/x.service", machine, f"/docker/{ID(7)}",
    }  # fmt: skip
    groups.close()


def test_pods_deep_below_a_unit(fake: FakeTree, version: int) -> None:
    fake.make(f"/system.slice/k3s.service{container(1)}")
    fake.make("/system.slice/k3s.service/init")
    groups = table(fake, version)
    assert set(groups.by_path) == {f"/system.slice/k3s.service{container(1)}"}
    groups.close()


def told(groups: GroupTable, path: str, role: str) -> Merge:
    merge = Merge(groups.members, TickResidual())
    inode = groups.tree.folders[path].inode
    row = {"cgroup": path, "inode": inode, "name": "unit:x", "role": role}
    merge.hear({"t": "groups", "rows": [row]}, 1.0)
    return merge


def test_a_unit_is_itself_again_when_its_last_went_and_its_role_was_heard_meanwhile(
    fake: FakeTree, version: int
) -> None:
    charged(fake, STEPD, 900)
    fake.make(task(7))
    groups = table(fake, version)
    merge = told(groups, STEPD, "Slurm")
    look(groups, 1.0)
    assert set(groups.by_path) == {f"{STEPD}/job_7"}
    fake.remove(f"{STEPD}/job_7")
    look(groups, 2.0)
    merge.settle(GIVE_UP_SECONDS + 10.0)
    group = groups.by_path[STEPD]
    assert (group.protected_by, group.name) == ("Slurm", "unit:x")
    assert (group.charge_bytes, group.charge_slope) == (900 * MIB, 0.0), "it did not just grow"
    fake.make(task(8))
    exits = groups.exits
    look(groups, 3.0)
    assert set(groups.by_path) == {f"{STEPD}/job_8"}
    assert groups.by_path[f"{STEPD}/job_8"].protected_by == NOT_TOLD
    assert groups.exits <= exits, "nobody ended"
    fake.remove(STEPD)
    look(groups, 4.0)
    assert not groups.by_path
    assert not groups.members
    groups.close()


def test_a_unit_that_came_again_has_nothing_of_the_one_before(fake: FakeTree, version: int) -> None:
    fake.make(unsplit(1))
    groups = table(fake, version)
    told(groups, CONTAINERD, "container runtime")
    fake.remove(CONTAINERD)
    fake.make("/keeps-the-inode-taken")
    fake.make(CONTAINERD)
    look(groups, 1.0)
    assert groups.by_path[CONTAINERD].protected_by == NOT_TOLD
    fake.make(unsplit(2))
    look(groups, 2.0)
    assert CONTAINERD not in groups.by_path
    groups.close()


def test_what_could_not_swap_and_a_full_limit_are_counted_once(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "tree", 2)
    fake.make(STEPD, memory__swap__max="0\n", memory__current=f"{9 * MIB}\n",
              memory__max=f"{9 * MIB}\n")  # fmt: skip
    fake.make(f"{STEPD}/job_7", memory__current=f"{7 * MIB}\n")
    groups = table(fake)
    look(groups, 1.0)
    look(groups, 20.0)
    assert groups.unswappable_bytes == 7 * MIB
    assert groups.members[STEPD].group.at_limit_seconds == 0.0
    groups.close()


def test_where_no_memory_is_counted_below_the_unit_it_stays_the_group(tmp_path: Path) -> None:
    """Threaded, or a controller that was not passed on (cgroup-v2.rst)."""
    fake = FakeTree(tmp_path / "tree", 2)
    unit = "/system.slice/build.service"
    folder = fake.make(f"{unit}/{ID(1)}")
    (folder / "memory.current").unlink()
    groups = table(fake)
    assert set(groups.by_path) == {unit}
    (folder / "memory.current").write_text("4096\n")
    for number in range(10):
        look(groups, 61.0 + number)
    assert set(groups.by_path) == {f"{unit}/{ID(1)}"}
    groups.close()


def test_too_many_below_a_unit_are_one_and_hide_no_pod(
    fake: FakeTree, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "OF_A_UNIT_MOST", 8)
    monkeypatch.setattr(tree_module, "FOLDERS_MOST", 20)
    unit = "/system.slice/foo.service"
    fake.make(f"{unit}/{ID(1)}")
    groups = table(fake, version)
    assert set(groups.by_path) == {f"{unit}/{ID(1)}"}
    for number in range(2, 30):
        fake.make(f"{unit}/{ID(number)}")
    fake.make(container(99))
    look(groups, 1.0)
    assert set(groups.by_path) == {unit, container(99)}
    assert groups.tree.blind == f"{fake.mount}{unit}: more than 8 cgroups: taken as one"
    groups.close()


def test_a_users_many_take_nothing_from_a_unit_nor_it_from_them(
    fake: FakeTree, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "OF_A_USER_MOST", 8)
    for number in range(20):
        fake.make(unsplit(number))
        fake.make(f"/user.slice/user-1.slice/user@1.service/x{number}")
    groups = table(fake, version)
    assert set(groups.by_path) == {
        "/user.slice/user-1.slice/user@1.service", *(unsplit(number) for number in range(20))
    }  # fmt: skip
    tree = groups.tree
    assert tree._delegated == sum(tree._of_users.values()) == 20
    groups.close()
