"""A lab that goes on beside the test, and what it leaves."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.end_to_end.verbs import ENVIRONMENT

NOTES = Path("/run/seawall/lab")


def left() -> list[str]:
    """Cgroups, notes and processes of any lab."""
    found = [str(p) for p in Path("/sys/fs/cgroup").glob("*/**/seawall-lab-*")]
    found += [str(p) for p in Path("/sys/fs/cgroup").glob("seawall-lab-*")]
    return found + [str(p) for p in NOTES.glob("*")]


def start(*words: str) -> subprocess.Popen[bytes]:
    """A run that goes on; its first row has been printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "seawall", "lab", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stdout
    for line in process.stdout:
        if line.lstrip().startswith(b"0 s "):
            return process
    raise AssertionError(process.communicate()[1].decode())


def cgroup_of(process: subprocess.Popen[bytes]) -> Path:
    """The run's folder in the tree that counts memory."""
    pattern = f"**/seawall-lab-{process.pid}-*/memory.stat"
    (found,) = [p.parent for p in Path("/sys/fs/cgroup").glob(pattern)]
    return found


def pids_in(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "cgroup.procs").read_text().split()]


def wait_for(what: str, true: Any, seconds: float = 15) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
