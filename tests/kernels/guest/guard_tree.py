"""The cgroups of a node as a kubelet makes them (cgroup driver cgroupfs), on v1, v2 or both."""

import hashlib
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

CAPACITY_MIB = 1536
V1 = ("memory", "freezer", "pids", "cpu,cpuacct")
PERIOD = 100_000
ROOT = Path("/sys/fs/cgroup")
IS_V1 = (ROOT / "memory").is_dir()
UNIFIED = ROOT / "unified"
"""Of a hybrid host: runtimes put everybody there too, under the same path, without controllers."""
TREES = [ROOT / name for name in V1] if IS_V1 else [ROOT]
if UNIFIED.is_dir():
    TREES.append(UNIFIED)
MEMORY = TREES[0]
CONTROLLERS = "+memory +pids +io +cpu"
FOLDERS = {"guaranteed": "", "burstable": "burstable", "besteffort": "besteffort"}
IS_SYSTEMD = Path("/run/systemd/system").is_dir()


def adj(kind: str, request_mib: int) -> int:
    """As the kubelet sets it."""
    if kind == "guaranteed":
        return -997
    if kind == "besteffort":
        return 1000
    return min(max(2, 1000 - 1000 * request_mib // CAPACITY_MIB), 999)


def write(path: Path, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def make(path: str) -> None:
    """A cgroup and those above it in every tree, with all controllers (v2)."""
    for tree in TREES:
        here = tree
        for part in path.strip("/").split("/"):
            if not IS_V1:
                write(here / "cgroup.subtree_control", CONTROLLERS)
            here /= part
            here.mkdir(exist_ok=True)


def limit(path: str, *, memory_mib: int | None = None, cpu: float | None = None) -> None:
    here = path.strip("/")
    if memory_mib:
        name = "memory.limit_in_bytes" if IS_V1 else "memory.max"
        write(MEMORY / here / name, str(memory_mib << 20))
    if cpu and IS_V1:
        write(TREES[3] / here / "cpu.cfs_quota_us", str(int(cpu * PERIOD)))
    elif cpu:
        write(ROOT / here / "cpu.max", f"{int(cpu * PERIOD)} {PERIOD}")


def weigh(path: str, weight: int) -> None:
    """As systemd's ``CPUWeight=`` (100 is usual)."""
    here = path.strip("/")
    if IS_V1:
        write(TREES[3] / here / "cpu.shares", str(weight * 1024 // 100))
    else:
        write(ROOT / here / "cpu.weight", str(weight))


def enter(path: str) -> None:
    """This very process goes in."""
    for tree in TREES:
        write(tree / path.strip("/") / "cgroup.procs", "0")


def entries(path: str) -> list[str]:
    return [str(tree / path.strip("/") / "cgroup.procs") for tree in TREES]


class Pod:
    """One container in its pod."""

    def __init__(self, salt: str, name: str, kind: str) -> None:
        self.name = name
        digest = hashlib.sha256(f"{salt}/{name}".encode()).hexdigest()
        self.uid = str(uuid.UUID(digest[:32]))
        self.folder = "/".join(x for x in ("/kubepods", FOLDERS[kind], f"pod{self.uid}") if x)
        self.path = f"{self.folder}/{digest}"
        if IS_SYSTEMD:  # the kubelet's other cgroup driver
            kinds = ["kubepods", *filter(None, [FOLDERS[kind]]), "pod" + self.uid.replace("-", "_")]
            names = ["-".join(kinds[: n + 1]) + ".slice" for n in range(len(kinds))]
            self.folder = "/" + "/".join(names)
            self.path = f"{self.folder}/cri-containerd-{digest}.scope"

    def make(self, memory_mib: int | None, cpu: float | None) -> None:
        make(self.path)
        limit(self.folder, memory_mib=memory_mib)
        limit(self.path, memory_mib=memory_mib, cpu=cpu)
        # Where the kubelet keeps what a pod and its containers are called.
        Path(f"/var/log/pods/test_{self.name}_{self.uid}/{self.name}").mkdir(parents=True)

    def processes(self) -> list[int]:
        """Of the whole pod, and of what it made below itself."""
        found: list[int] = []
        for folder, _, files in os.walk(MEMORY / self.folder.strip("/")):
            if "cgroup.procs" in files:
                with suppress(OSError), open(f"{folder}/cgroup.procs") as file:
                    # v2 has 0 for one that is reaped just then: to signal it is to signal us.
                    found += filter(None, map(int, file.read().split()))
        return found

    def kernel_kills(self) -> int:
        """OOM kills that the kernel counted in it."""
        return self._count("memory.oom_control" if IS_V1 else "memory.events", "oom_kill ")

    def limit_hits(self) -> int:
        """How often its own limit refused a page at first; mostly that of the pod, to which the
        container's cgroup is charged too.
        """
        name, key = ("memory.failcnt", "") if IS_V1 else ("memory.events", "max ")
        return self._count(name, key) + self._count(name, key, self.folder)

    def refaults(self) -> int:
        """Pages that were read back soon after they had to go."""
        return self._count("memory.stat", "workingset_refault")

    def _count(self, name: str, key: str, path: str = "") -> int:
        """The sum of the lines that begin so, of the container; 0: it is gone."""
        with suppress(OSError), open(MEMORY / (path or self.path).strip("/") / name) as file:
            return sum(int(line.split()[-1]) for line in file if line.startswith(key))
        return 0

    def is_frozen(self) -> bool:
        """By anybody, in any tree."""
        for tree in TREES:
            here = tree / self.path.strip("/")
            for name, words in (
                ("freezer.state", ("FROZEN", "FREEZING")),
                ("cgroup.freeze", ("1",)),
            ):
                with suppress(OSError):
                    if (here / name).read_text().strip() in words:
                        return True
        return False

    def limit_bytes(self) -> int | None:
        """That of the container; None: none is set, or it is gone."""
        name = "memory.limit_in_bytes" if IS_V1 else "memory.max"
        with suppress(OSError, ValueError):
            limit = int((MEMORY / self.path.strip("/") / name).read_text())
            return None if limit >= 1 << 60 else limit
        return None

    def remove(self) -> bool:
        """Kill what is in it and take the folders away; False: something could not be ended."""
        for tree in TREES:
            frozen = tree / self.path.strip("/") / ("freezer.state" if IS_V1 else "cgroup.freeze")
            with suppress(OSError):
                write(frozen, "THAWED" if IS_V1 else "0")
        until = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < until:
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, 9)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.05)
        for tree in TREES:
            for folder, _, _ in os.walk(tree / self.folder.strip("/"), topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)
        return not left and not (MEMORY / self.folder.strip("/")).exists()
