"""A cgroup of one's own in this machine's v1 trees, the same path in each, and what runs in it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seawall.actions.executor import Executor
from seawall.actions.journal import Change, Journal
from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Mounts, Order, Step, Target

ROOT = Path("/sys/fs/cgroup")
PYTHON = "/usr/bin/python3"


def missing() -> str | None:
    """Why no such cgroup can be made here, and what would help."""
    if os.geteuid():
        return "making cgroups needs root: sudo make test-system"
    for tree in ("memory", "freezer", "pids"):
        if not (ROOT / tree / "tasks").exists():
            return f"no v1 {tree} tree is mounted: boot with systemd.unified_cgroup_hierarchy=0"
        if not os.access(ROOT / tree, os.W_OK):
            return f"{ROOT / tree} is read-only: run in a container with --privileged"
    return None


class Group:
    """``path`` in several trees."""

    def __init__(self, path: str, trees: tuple[str, ...]) -> None:
        self.path = path
        self.children: list[subprocess.Popen[bytes]] = []
        self.folders = [ROOT / tree / path[1:] for tree in trees]

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """A process that is in all of them before its program begins."""
        entries = " ".join(f"{folder}/cgroup.procs" for folder in self.folders)
        child = subprocess.Popen(
            ["sh", "-c", f'for f in {entries}; do echo 0 > $f; done; exec "$@"', "sh", *command]
        )
        self.children.append(child)
        return child

    def below(self, name: str) -> "Group":
        """One more inside; its processes are reaped with ours."""
        inner = Group(f"{self.path}/{name}", ("freezer", "memory"))
        inner.children = self.children
        for folder in inner.folders:
            folder.mkdir()
        return inner

    def sleepers(self, count: int) -> "list[subprocess.Popen[bytes]]":
        children = [self.start("sleep", "60") for _ in range(count)]
        wait_until(lambda: len(self.pids()) == count)
        time.sleep(0.05)
        return children

    def pids(self) -> list[int]:
        return [int(word) for word in (self.folders[-1] / "cgroup.procs").read_text().split()]

    def inode(self) -> int:
        return (ROOT / "memory" / self.path[1:]).stat().st_ino

    def order(self, step: Step = "kill") -> Order:
        return Order("b0-1", step, Target(self.path, self.inode(), self.path), "node_short")

    def freezer(self) -> Path:
        return ROOT / "freezer" / self.path[1:] / "freezer.state"


@contextlib.contextmanager
def group(
    path: str, trees: tuple[str, ...] = ("pids", "freezer", "memory"), most: int = 300
) -> Iterator[Group]:
    """Made, bounded to ``most`` processes, and removed with whatever is in it."""
    made = Group(path, trees)
    try:
        for folder in made.folders:
            folder.mkdir()
            if folder.parts[4] == "pids":
                (folder / "pids.max").write_text(str(most))
        yield made
    finally:
        for folder in sorted(made.folders, key=lambda f: f.parts[4] != "freezer"):
            remove(folder)
        for child in made.children:
            child.wait(10)


def remove(folder: Path) -> None:
    """Thaw, kill and remove it and all below it."""
    below = sorted(folder.rglob("cgroup.procs"), key=lambda path: -len(path.parts))
    for _ in range(200):
        for procs in below:
            with contextlib.suppress(OSError):
                (procs.parent / "freezer.state").write_text("THAWED")
            with contextlib.suppress(OSError):
                for pid in procs.read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
        for procs in below:
            with contextlib.suppress(OSError):
                procs.parent.rmdir()
        if not folder.exists():
            return
        time.sleep(0.05)
    pytest.fail(f"{folder} does not go away")


def wait_until(is_so: Callable[[], object], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(0.02)


def mounts() -> Mounts:
    with open("/proc/self/mountinfo") as file:
        return find_mounts(file.read())


def hands(scope: str, folder: Path, **options: float) -> Executor:
    made = Executor(mounts(), (scope,), Journal(str(folder / "guard.undo")), **options)  # type: ignore[arg-type]
    made.prepare()
    return made


def in_force(folder: Path) -> list[Change]:
    """What the journal of ``hands`` holds, as the next guard would read it."""
    journal = Journal(str(folder / "guard.undo"))
    journal.open()
    found = [change for _, change in journal.changes()]
    journal.close()
    return found


FORKS = """
import os, sys, time
left = int(sys.argv[1])
while left > 1 and os.fork() == 0:
    left -= 1
while True:
    try:
        if os.fork() == 0:
            os._exit(0)
        os.waitpid(-1, 0)
    except OSError:
        time.sleep(0.001)
    time.sleep(0.05)
"""
"""A chain of so many, each of which forks without an end."""
