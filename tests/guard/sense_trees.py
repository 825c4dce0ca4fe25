"""Cgroup trees made of files, as the guard sees them."""

import os
from pathlib import Path

from seawall.actions.orders import Mounts
from seawall.guard.sense.group_table import GroupTable

GIB = 1 << 30
V1 = {
    "memory.usage_in_bytes": "1048576\n", "memory.limit_in_bytes": "9223372036854771712\n",
    "memory.memsw.usage_in_bytes": "1048576\n",
    "memory.failcnt": "0\n", "cgroup.procs": "", "memory.stat": "total_rss 0\n",
}  # fmt: skip
V2 = {
    "memory.current": "1048576\n", "memory.max": "max\n", "memory.min": "0\n", "memory.low": "0\n",
    "memory.swap.max": "max\n", "memory.swap.current": "0\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    "memory.pressure": "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n",
    "cgroup.procs": "", "cgroup.events": "populated 1\nfrozen 0\n", "memory.stat": "anon 0\n",
}  # fmt: skip
ID = "{:064x}".format
UID = "0a1b2c3d-0000-4000-8000-{:012x}".format


class FakeTree:
    """Makes and removes cgroups under ``mount``."""

    def __init__(self, mount: Path, version: int) -> None:
        self.mount = mount
        self.files = V2 if version == 2 else V1
        mount.mkdir(exist_ok=True)

    def make(self, path: str, **changed: str) -> Path:
        """A cgroup, those above it too; ``memory__max="5"`` sets a file."""
        folder = self.mount
        for part in path.strip("/").split("/"):
            folder = folder / part
            if not folder.exists():
                folder.mkdir()
                for name, text in self.files.items():
                    (folder / name).write_text(text)
        for name, text in changed.items():
            (folder / name.replace("__", ".")).write_text(text)
        return folder

    def remove(self, path: str) -> None:
        """It and all below it, from within, as a runtime does."""
        for folder, folders, files in os.walk(self.mount / path.strip("/"), topdown=False):
            for name in files:
                os.unlink(os.path.join(folder, name))
            for name in folders:
                os.rmdir(os.path.join(folder, name))
        os.rmdir(self.mount / path.strip("/"))


def pod(number: int, qos: str = "burstable") -> str:
    return f"/kubepods/{qos}/pod{UID(number)}"


def container(number: int, qos: str = "burstable") -> str:
    return f"{pod(number, qos)}/{ID(number)}"


def table(fake: FakeTree, version: int = 2) -> GroupTable:
    groups = GroupTable(Mounts(str(fake.mount), version))
    groups.open(0.0)
    return groups


def look(
    groups: GroupTable, now: float, *, is_near: bool = False, swap_cached: int | None = None
) -> None:  # fmt: skip
    groups.look(now, GIB, is_near=is_near, has_swap=True, swap_cached=swap_cached)
