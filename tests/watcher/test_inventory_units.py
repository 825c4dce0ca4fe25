"""Workloads below a unit: whom the guard sees there the watcher names, on one and the same tree."""

import json
from pathlib import Path

import pytest
from tests.watcher.inventory_node import IDS, LINKS, TASKS, UID, Node, rows

from seawall.actions.orders import Mounts
from seawall.guard.sense.group_table import GroupTable
from seawall.guard.sense.merge import Merge
from seawall.guard.sense.residual import TickResidual

CONTAINERD = "system.slice/containerd.service"
STEPD = "system.slice/slurmstepd.scope"
WEB = f"{CONTAINERD}/kubepods-burstable-pod{UID.replace('-', '_')}.slice:cri-containerd:"
POD = f"kubepods/burstable/pod{UID}"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    for folder in (
        "system.slice", f"{STEPD}/job_7", f"{STEPD}/job_7/step_0", f"{STEPD}/job_7/step_0/user",
        "kubepods", "kubepods/burstable", POD,
    ):  # fmt: skip
        node.cgroup(folder)
    node.cgroup(CONTAINERD, -999)
    node.cgroup(STEPD)
    node.cgroup(f"{STEPD}/system", 0)
    return node


def program(node: Node, cgroup: str, path: str) -> None:
    """The last process of ``cgroup`` runs it."""
    pid = (node.root / "sys/fs/cgroup" / cgroup / "cgroup.procs").read_text().strip()
    for at, target in ((f"{pid}/exe", path), (f"{pid}/ns/mnt", "mnt:[1]"), ("1/ns/mnt", "mnt:[1]")):
        link = node.root / "proc" / at
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(target)


def named(node: Node) -> dict[str, tuple[str, str, str]]:
    """Of the guard's groups, after the watcher spoke: name, first word of the role, pod."""
    found = list(rows(node.inventory()).values())
    groups = GroupTable(Mounts(str(node.root / "sys/fs/cgroup"), 2))
    groups.open(0.0)
    Merge(groups.members, TickResidual()).hear({"t": "groups", "rows": found}, 1.0)
    groups.close()
    assert groups.members["/" + CONTAINERD].group.protected_by.startswith("container runtime")
    assert groups.members["/" + STEPD].group.protected_by.startswith("Slurm")
    return {
        path: (group.name, group.protected_by.partition(" ")[0], group.pod)
        for path, group in groups.by_path.items()
    }


def test_pods_and_jobs_below_units_and_a_sandbox_of_kata(node: Node) -> None:
    web, vm = WEB + IDS["web"], f"{POD}/kata_{IDS['dind']}"
    for path, name in ((web, "web"), (vm, "dind")):
        node.cgroup(path, 900)
        node.write(f"{LINKS}/cart_shop_{name}-{IDS[name]}.log", "")
        node.write(f"{TASKS}/{IDS[name]}/config.json", json.dumps({"mounts": []}))
    for folder, what in (("user/task_0", "/usr/sbin/sshd"), ("slurm", "/usr/sbin/slurmstepd")):
        node.cgroup(f"{STEPD}/job_7/step_0/{folder}", 0)
        program(node, f"{STEPD}/job_7/step_0/{folder}", what)
    job = f"/{STEPD}/job_7"
    assert named(node) == {
        "/" + web: ("shop/cart/web", "", UID),
        "/" + vm: ("shop/cart/dind", "", UID),
        job: ("slurm:7", "", ""),  # whatever its user called the programs in it
    }


def test_a_static_pod_in_kata_or_below_a_unit_stays_protected(node: Node) -> None:
    static = "5d41402abc4b2a76b9719d911017c592"
    vm = f"kubepods/burstable/pod{static}/kata_{IDS['etcd']}"
    plain = f"{CONTAINERD}/kubepods-burstable-pod{static}.slice:cri-containerd:{IDS['plugin']}"
    for path in (f"kubepods/burstable/pod{static}", vm, plain, f"{STEPD}/job_7"):
        node.cgroup(path, 500)
    found = named(node)
    assert (found["/" + vm][1], found["/" + plain][1]) == ("static", "static")
