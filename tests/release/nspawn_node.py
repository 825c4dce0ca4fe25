"""A node with a running systemd: a Debian root that systemd-nspawn has booted, on this kernel."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.release.debian_roots import ENVIRONMENT, WITH_SYSTEMD, kept, run, sheet_over

MOST_SECONDS = 180
"""For what takes seconds, on a machine that others keep busy."""


class NspawnNode:
    """``root``: its files, from outside; ``pid``: its systemd."""

    def __init__(self, root: Path, pid: int) -> None:
        self.root, self.pid = root, pid

    def need(self, *words: str) -> str:
        """The output of a command that has to succeed there."""
        return run(*self._entered(), *words, env=ENVIRONMENT)

    def ask(self, *words: str) -> str:
        """What a command prints there, however it ends."""
        done = subprocess.run(
            [*self._entered(), *words], capture_output=True, text=True, check=False, env=ENVIRONMENT
        )
        return done.stdout.strip()

    def _entered(self) -> tuple[str, ...]:
        return ("nsenter", "-t", str(self.pid), "--all", "--")

    def processes(self) -> dict[str, list[int]]:
        """Pids there by the name of the process, of those that are called after Seawall."""
        found: dict[str, list[int]] = {}
        for line in self.need("ps", "-eo", "pid=,comm=").splitlines():
            pid, name = line.split(maxsplit=1)
            if name.startswith("seawall"):
                found.setdefault(name, []).append(int(pid))
        return found


def until(is_so: Callable[[], bool], why: Callable[[], object]) -> None:
    """Fails with what ``why`` says once MOST_SECONDS are over."""
    end = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < end, why()
        time.sleep(0.2)


def missing() -> str | None:
    """What keeps such a node from booting here, and the command that would provide it."""
    if not shutil.which("systemd-nspawn"):
        return "systemd-nspawn is missing: apt-get install systemd-container"
    return None


@contextlib.contextmanager
def booted(folder: Path) -> Iterator[NspawnNode]:
    """A fresh one."""
    if why := missing():
        pytest.skip(why)
    name = f"seawall-test-{time.time_ns() % 10**9}"
    with sheet_over(kept(*WITH_SYSTEMD), folder) as root, (folder / "console").open("w") as console:
        words = [
            "systemd-nspawn", "--quiet", "--directory", root, "--machine", name, "--boot",
            "--register=no", "--keep-unit", "--capability=all", "--console=pipe",
        ]  # fmt: skip
        nspawn = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=console, stderr=console
        )
        try:
            yield _ready(nspawn, root, folder / "console")
        finally:
            nspawn.terminate()  # nspawn powers it off
            try:
                nspawn.wait(60)
            except subprocess.TimeoutExpired:
                nspawn.kill()
                nspawn.wait()


def _ready(nspawn: "subprocess.Popen[bytes]", root: Path, console: Path) -> NspawnNode:
    made: list[NspawnNode] = []

    def is_up() -> bool:
        assert nspawn.poll() is None, console.read_text()
        children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text().split()
        for pid in children:
            if Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
                made[:] = [NspawnNode(root, int(pid))]
        state = made[0].ask("systemctl", "is-system-running") if made else ""
        return state in {"running", "degraded"}

    until(is_up, lambda: console.read_text()[-4000:])
    return made[0]
