"""A memory cgroup of one's own, version 1 or 2, whichever this machine has."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")


def missing() -> str | None:
    """Why no memory cgroup can be made here, and what would help."""
    if os.geteuid():
        return "making a cgroup needs root: sudo make test-system"
    home = memory_home()
    if home is None:
        return "no memory cgroup is mounted: mount -t cgroup2 cgroup2 /sys/fs/cgroup"
    if not os.access(home, os.W_OK):
        return f"{home} is read-only: run in a container with --privileged"
    return None


def memory_home() -> Path | None:
    if (V1 / "memory.limit_in_bytes").exists() or (V1 / "memory.usage_in_bytes").exists():
        return V1
    controllers = V2 / "cgroup.controllers"
    return V2 if controllers.exists() and "memory" in controllers.read_text() else None


@dataclass(frozen=True)
class Cgroup:
    """A group that exists; processes enter it by its file."""

    path: Path

    @property
    def entry(self) -> str:
        return str(self.path / "cgroup.procs")

    def add(self, pid: int) -> None:
        Path(self.entry).write_text(str(pid))

    def usage_bytes(self) -> int:
        for name in ("memory.usage_in_bytes", "memory.current"):
            if (self.path / name).exists():
                return int((self.path / name).read_text())
        raise AssertionError(f"{self.path} counts no memory")

    def limit_hits(self) -> int:
        """How often the limit was reached since the group was made."""
        failcnt = self.path / "memory.failcnt"
        if failcnt.exists():
            return int(failcnt.read_text())
        rows = (self.path / "memory.events").read_text().split()
        return int(rows[rows.index("max") + 1])


@contextlib.contextmanager
def cgroup(name: str, limit_bytes: int) -> Iterator[Cgroup]:
    """``name`` below the root, limited; whatever is left in it is killed at the end."""
    home = memory_home()
    assert home
    path = home / name
    path.mkdir()
    try:
        if home == V1:
            (path / "memory.limit_in_bytes").write_text(str(limit_bytes))
        else:
            (path / "memory.max").write_text(str(limit_bytes))
        yield Cgroup(path)
    finally:
        remove(path)


def remove(path: Path) -> None:
    for _ in range(100):
        for pid in (path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        try:
            path.rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"{path} is still in use")
