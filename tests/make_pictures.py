"""The pictures of README and docs, from real runs on this very machine: ``make pictures``.

As root, with tmux, on cgroup v1: a few containers (cgroups of our own), in one of which ``seawall
lab`` takes packet rings, which no cgroup counts, and one that is killed at its limit again and
again; ``seawall top`` and ``seawall why`` of it on a terminal of 80x24.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.terminal_picture import picture

REPOSITORY = Path(__file__).parents[1]
PICTURES = REPOSITORY / "docs/pictures"
TREE = Path("/sys/fs/cgroup/memory")
POD = "kubepods/burstable/pod{0:08x}-3b1f-4c55-9d0e-5a7c1f2e8b90"
LIMITS_MIB = {"rings": 200, "crash": 64, "web": 128, "db": 512}
HELD_MIB = {"web": 96, "db": 300}
HOLD = "import sys, time; x = bytearray(int(sys.argv[1]) << 20); time.sleep(600)"
COMMAND = f"PYTHONPATH={shlex.quote(str(REPOSITORY / 'src'))} {sys.executable} -m seawall"
IN_NAMES = "c0de"
"""In each id, so that ``--filter`` leaves these alone."""


def seawall(*words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "seawall", *words], stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )  # fmt: skip


@contextmanager
def containers() -> Iterator[dict[str, str]]:
    """Name -> cgroup, each with a limit of its own."""
    made: list[Path] = []
    found = {}
    try:
        for number, (name, mib) in enumerate(LIMITS_MIB.items()):
            own = f"{uuid.uuid4().hex[:8]}{IN_NAMES}{uuid.uuid4().hex}{'0' * 20}"
            path = f"{POD.format(number + 0x2D1C)}/{own}"
            for part in (*reversed(Path(path).parents), Path(path)):
                if part.name and not (TREE / part).exists():
                    (TREE / part).mkdir()
                    made.append(TREE / part)
            (TREE / path / "memory.limit_in_bytes").write_text(str(mib << 20))
            found[name] = f"/{path}"
        yield found
    finally:
        for folder in reversed(made):
            for pid in (folder / "cgroup.procs").read_text().split():  # of a shell that has ended
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            for _ in range(50):
                with suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.1)


@contextmanager
def loads(cgroups: dict[str, str]) -> Iterator[None]:
    """Two that are well, one beyond its limit outside of its charge, one that is killed."""
    with ExitStack() as stack:
        for name, mib in HELD_MIB.items():
            enter = f"echo 0 > {TREE}{cgroups[name]}/cgroup.procs; exec {sys.executable}"
            words = ["sh", "-c", f'{enter} -c "$0" "$1"', HOLD, str(mib)]
            stack.callback(_end, subprocess.Popen(words))
        crash = (
            f"echo 0 > {TREE}{cgroups['crash']}/cgroup.procs; while sleep 5; do {sys.executable}"
        )
        stack.callback(_end, subprocess.Popen(["sh", "-c", f'{crash} -c "$0" 90; done', HOLD]))
        rings = ("lab", "rings", "--size", "640MiB", "--limit", "90MiB", "--rate", "64MiB")
        stack.callback(
            _end, seawall(*rings, "--for", "180", "--parent", cgroups["rings"])
        )  # fmt: skip
        time.sleep(15)
        yield


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait(30)


def screen(words: str, sign: str, settle_seconds: float) -> str:
    """What stands on a terminal of 80x24 so long after ``sign`` came, with its colours."""
    server = ["tmux", "-L", f"seawall-{uuid.uuid4().hex[:8]}", "-f", "/dev/null"]
    shell = f"{COMMAND} {words}; sleep 60"
    subprocess.run(
        [*server, "new-session", "-d", "-x80", "-y24", "sh", "-c", shell],
        check=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while sign not in _pane(server):
            if time.monotonic() > until:
                raise RuntimeError(f"{sign!r} never came:\n{_pane(server)}")
            time.sleep(0.5)
        time.sleep(settle_seconds)
        return _pane(server)
    finally:
        subprocess.run([*server, "kill-server"], check=False)


def _pane(server: list[str]) -> str:
    done = subprocess.run(
        [*server, "capture-pane", "-e", "-p"], capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with containers() as cgroups, loads(cgroups):
        rings = cgroups["rings"]
        name = f"container:{rings.rpartition('/')[2][:12]}"
        node = os.uname().nodename
        for file, title, text in (
            ("top.svg", "seawall top", screen(f"top --filter {IN_NAMES}", "of it held by", 12)),
            ("why.svg", f"seawall why {name}", screen(f"why {name} --color always", node, 25)),
        ):
            (PICTURES / file).write_bytes(picture(text.rstrip("\n"), title) + b"\n")
            sys.stdout.write(f"{PICTURES / file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
