"""A node of files, for tests of who is who."""

import json
from pathlib import Path
from typing import Any

from seawall.host.live import LiveHost
from seawall.watcher.workload_inventory import WorkloadInventory

GIB = 1 << 30
UID, STATIC = "3f0c9a4e-0b1d-4c61-9f4e-2d8a1c6b7e50", "5d41402abc4b2a76b9719d911017c592"
IDS = {name: f"{number:064x}" for number, name in enumerate(("web", "plugin", "etcd", "dind"), 1)}
PODS = "kubepods.slice/kubepods-burstable.slice"
POD = f"{PODS}/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
STATIC_POD = f"{PODS}/kubepods-burstable-pod{STATIC}.slice"
LINKS = "var/log/containers"
TASKS = "run/containerd/io.containerd.runtime.v2.task/k8s.io"


class Node:
    """A tree of files that looks like a node."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._pid = 100
        self.write("proc/1/mounts", "")
        self.write("proc/meminfo", f"MemTotal: {16 << 20} kB\nMemFree: 1 kB\n")
        self.write(
            "proc/1/mountinfo",
            "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        )
        self.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
        self.write("sys/fs/cgroup/cgroup.procs", "")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def cgroup(self, path: str, adj: int | None = None, limit: str = "max") -> None:
        """One with a process, if ``adj`` is given."""
        home = f"sys/fs/cgroup/{path}"
        self.write(f"{home}/memory.max", f"{limit}\n")
        self.write(f"{home}/memory.min", "0\n")
        self.write(f"{home}/memory.low", "0\n")
        self.write(f"{home}/memory.current", "4096\n")
        procs = ""
        if adj is not None:
            self._pid += 1
            procs = f"{self._pid}\n"
            self.write(f"proc/{self._pid}/oom_score_adj", f"{adj}\n")
        self.write(f"{home}/cgroup.procs", procs)

    def container(self, pod: str, name: str, adj: int, **told: Any) -> str:
        path = f"{pod}/{told.get('runtime', 'cri-containerd')}-{IDS[name]}.scope"
        self.cgroup(path, adj, told.get("limit", "max"))
        pod_name, space = told.get("owner", "cart"), told.get("namespace", "shop")
        self.write(f"{LINKS}/{pod_name}_{space}_{name}-{IDS[name]}.log", "")
        mounts = [{"source": source} for source in told.get("mounts", ())]
        tasks = told.get("tasks", TASKS)
        self.write(f"{tasks}/{IDS[name]}/config.json", json.dumps({"mounts": mounts}))
        return "/" + path

    def inventory(self) -> WorkloadInventory:
        return WorkloadInventory(LiveHost(str(self.root)))

    @classmethod
    def usual(cls, root: Path) -> "Node":
        """With the slices of a kubelet's."""
        node = cls(root)
        for folder in (PODS, POD, STATIC_POD, "system.slice", "kubepods.slice"):
            node.cgroup(folder)
        return node


def rows(inventory: WorkloadInventory) -> dict[str, dict[str, Any]]:
    inventory.refresh()
    assert inventory.problem == ""
    return {row["cgroup"]: row for row in inventory.row_updates()[0]}
