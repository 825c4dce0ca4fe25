"""A place for a real guard beside whatever guards this machine: its own ``/run/seawall``, and a
subtree of cgroups that is its whole scope.

The room is a mount namespace with a tmpfs over ``/run/seawall``; it outlives the guards in it, as
``/run`` does.  Nothing outside the subtree can be acted on.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.end_to_end import cgroups
from tests.end_to_end.innocents import PROGRAM
from tests.end_to_end.verbs import SOURCES

FREEZER = Path("/sys/fs/cgroup/freezer")
_MOUNT = "mkdir -p /run/seawall && mount -t tmpfs -o size=16m,mode=750 none /run/seawall"


def missing() -> str | None:
    """Why there can be no such room here, and what would help."""
    if (why := cgroups.missing()) is not None:
        return why
    if not shutil.which("nsenter"):
        return "nsenter is missing: apt-get install util-linux"
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", _MOUNT], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else f"no mount namespace: {tried.stderr.strip()}"


def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.05)
    return is_so()


class Room:
    """``enter`` before a command; ``scope`` is the guard's, and lies in each tree that is used."""

    def __init__(self, keeper: "subprocess.Popen[bytes]", folder: Path, scope: str) -> None:
        self.run = Path(f"/proc/{keeper.pid}/root/run/seawall")
        self.enter = ("nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt", "--")
        self.config = folder / "guard.toml"
        self.scope = scope
        self.trees = [home for home in (cgroups.memory_home(), FREEZER) if home and home.is_dir()]
        self.processes: list[subprocess.Popen[str]] = []

    # --- cgroups -----------------------------------------------------------------------------

    def folders(self, name: str = "") -> list[Path]:
        path = f"{self.scope[1:]}/{name}".rstrip("/")
        return [tree / path for tree in self.trees]

    def make(self, name: str, limit_bytes: int | None = None) -> list[Path]:
        """A cgroup in the scope, in each tree."""
        for folder in self.folders(name):
            folder.mkdir()
        if limit_bytes is not None:
            memory = self.folders(name)[0]
            is_v1 = (memory / "memory.limit_in_bytes").exists()
            file = "memory.limit_in_bytes" if is_v1 else "memory.max"
            (memory / file).write_text(str(limit_bytes))
        return self.folders(name)

    def start(
        self, name: str, *words: str, own_network: bool = False, progress: Path | None = None
    ) -> "subprocess.Popen[str]":
        """A program of ``kernel_loads`` in the cgroup of that name."""
        entries = [str(folder / "cgroup.procs") for folder in self.folders(name)]
        network = ["unshare", "--net"] if own_network else []
        process = subprocess.Popen(
            [*network, sys.executable, "-S", "-E", str(PROGRAM), "enter", *entries, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | ({"PROGRESS": str(progress)} if progress else {}),
        )  # fmt: skip
        self.processes.append(process)
        return process

    def state(self, name: str) -> str:
        """Frozen or not, as the kernel says it."""
        folder = self.folders(name)[-1]
        v1 = folder / "freezer.state"
        return (v1 if v1.exists() else folder / "cgroup.freeze").read_text().strip()

    # --- the guard ---------------------------------------------------------------------------

    def write(self, **keys: object) -> None:
        """The guard's file; ``scope`` is ours unless it is given, and there is no black box."""
        rows = {"scope": [self.scope], "blackbox": "", **keys}
        self.config.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in rows.items()))
        self.config.chmod(0o600)

    def guard(self, *words: str, timeout: float = 30.0) -> "subprocess.CompletedProcess[str]":
        """``seawall guard WORDS`` in the room, to its end."""
        return subprocess.run(
            [*self.enter, sys.executable, "-m", "seawall", "guard", *words], text=True,
            capture_output=True, check=False, env=own_environment(), timeout=timeout,
        )  # fmt: skip

    def begin(self, out: Path) -> "subprocess.Popen[str]":
        """A guard that is ready and has proved that it can kill; its pid is the process's."""
        with out.open("w") as file:
            process = subprocess.Popen(
                [*self.enter, sys.executable, "-m", "seawall", "guard", "run", "--config",
                 str(self.config)],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, text=True,
                env=own_environment(),
            )  # fmt: skip
        self.processes.append(process)

        def is_ready() -> bool:
            page = self.page()
            return page.get("pid") == process.pid and page.get("can_kill") is True

        assert within(90, is_ready), (out.read_text(), self.text())
        return process

    def text(self) -> str:
        return (self.run / "status").read_text() if (self.run / "status").exists() else ""

    def page(self) -> dict[str, Any]:
        path = self.run / "status.json"
        text = path.read_text().strip() if path.exists() else ""
        found = json.loads(text or "{}")  # a page that was just made is empty
        assert isinstance(found, dict)
        return found

    def journal(self) -> list[dict[str, Any]]:
        path = self.run / "decisions.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def sentences(self) -> str:
        return "\n".join(row["sentence"] for row in self.journal())

    def child(self, pid: int, what: str) -> int:
        """The pid of the guard's watcher, recorder or aide; 0: there is none."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _parent(entry) == pid:
                words = _read(entry / "cmdline").split("\0")
                kind = next((k for k in ("watcher", "recorder") if k in words), "aide")
                if "entry.py" in " ".join(words) and kind == what:
                    return int(entry.name)
        return 0


def own_environment() -> dict[str, str]:
    unwanted = ("SEAWALL_CONFIG", "NOTIFY_SOCKET")
    kept = {k: v for k, v in os.environ.items() if k not in unwanted}
    return {**kept, "PYTHONPATH": str(SOURCES)}


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _parent(entry: Path) -> int:
    words = _read(entry / "stat").rpartition(")")[2].split()
    return int(words[1]) if len(words) > 1 else 0


@contextlib.contextmanager
def room(folder: Path) -> Iterator[Room]:
    """All of it is taken away at the end, whatever is left in it killed."""
    scope = f"/seawall-TEST-{os.getpid()}-{secrets.token_hex(3)}"
    keeper = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", f"{_MOUNT} && echo ready && exec sleep 600"],
        stdout=subprocess.PIPE,
    )
    assert keeper.stdout
    own = Room(keeper, folder, scope)
    try:
        assert keeper.stdout.readline() == b"ready\n"
        own.make("")
        yield own
    finally:
        _end(own, keeper)


def _end(own: Room, keeper: "subprocess.Popen[bytes]") -> None:
    for process in own.processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    for process in own.processes:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()
    keeper.kill()
    keeper.communicate()
    assert within(10, lambda: _is_removed(own)), f"{own.scope} is still in use"


def _is_removed(own: Room) -> bool:
    for top in own.folders():
        for folder, _, _ in os.walk(top, topdown=False):
            _empty(Path(folder))
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    return not any(top.exists() for top in own.folders())


def _empty(folder: Path) -> None:
    """Thaw first: what is frozen on v1 does not die."""
    for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        with contextlib.suppress(OSError):
            if (folder / name).exists():
                (folder / name).write_text(word)
    for pid in _read(folder / "cgroup.procs").split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
