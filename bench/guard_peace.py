"""What the whole guard costs a node that needs nothing, beside earlyoom in the same run.

The guard runs as ``seawall guard run`` starts it: launcher, guard, aide and watcher, mode
observe, Debian's python3.11 where it is there.  CPU is read from the scheduler's own counters
of every thread (/proc/PID/task/*/schedstat), memory from smaps_rollup.  As root, with a scope
of its own below the memory tree.  ``python -m bench.guard_peace [deep|near|...] [SECONDS]``.
``second`` makes it wake every second; ``near`` leaves so little memory that it looks at everything
as often by itself, as earlyoom does in all of them (gigabytes are taken for that).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.pods import PODS, PYTHON, SOURCES, inhabitants, real_tree

from seawall.guard.sense.sense import glance_seconds

SECONDS = 60
SETTLE_SECONDS = 25
"""The first self-test, the watcher's first ledger and base."""
NEAR_SECONDS = 1.3
EARLYOOM = ("earlyoom", "--dryrun", "-r", "3600")
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from seawall.guard import launcher
launcher.run(sys.argv[2], sys.argv[3])
"""
CASES = {
    # name: (seconds between two ticks at most, pods)
    "deep": (20.0, 0),
    "near": (20.0, 0),
    "second": (1.0, 0),
    "pods": (20.0, PODS),
    "pods_second": (1.0, PODS),
}


@contextmanager
def guard(
    tick_most: float, scope: str = "/seawall-nobody", box: str = ""
) -> Iterator[dict[str, int]]:
    """A guard of this source tree that runs: ``{"guard": pid, "aide": pid, "watcher": pid}``."""
    folder = Path(tempfile.mkdtemp(prefix="seawall-bench-", dir="/run"))
    config = folder / "guard.toml"
    config.write_text(
        f'mode = "observe"\nblackbox = "{box}"\n'
        f'scope = ["{scope}"]\ntick_most_seconds = {tick_most}\n',
        encoding="ascii",
    )
    config.chmod(0o600)
    process = subprocess.Popen(
        [PYTHON, "-I", "-c", _PROGRAM, str(SOURCES), str(config), str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield _settled(process)
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


def _settled(process: "subprocess.Popen[bytes]") -> dict[str, int]:
    until = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        time.sleep(1.0)
        if process.poll() is not None:
            raise RuntimeError(f"the guard ended with status {process.returncode}")
    pid = process.pid
    pids = {"guard": pid}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        pids["watcher" if b"watcher" in words else "aide"] = int(child)
    return pids


def cpu_seconds(pid: int) -> float:
    """Of all its threads, so far."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_bytes().split()[0]) for file in threads) / 1e9


def wakeups(pid: int) -> int:
    """How often it began to sleep by itself, so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("voluntary_ctxt_switches:")[1].split()[0])


def memory(pid: int) -> dict[str, int]:
    """Resident, and its share of it, in KiB."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    table = {row.split(":")[0]: int(row.split()[1]) for row in rows}
    return {"rss_kib": table["Rss"], "pss_kib": table["Pss"], "locked_kib": table["Locked"]}


def faults(pid: int) -> list[int]:
    """Minor and major, so far."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return [int(fields[7]), int(fields[9])]


def measure(case: str, seconds: float = SECONDS) -> dict[str, Any]:
    """Of each process: CPU milliseconds a minute, wake-ups, memory, faults meanwhile."""
    _, pods = CASES[case]
    with real_tree(pods) as mount:
        if mount is None:
            return {"problem": "no cgroups of our own can be made here: run it as root"}
        if not pods:
            return _measure(case, seconds, mount)
        with inhabitants(mount, pods, are_busy=True):
            return _measure(case, seconds, mount)


def _measure(case: str, seconds: float, mount: str) -> dict[str, Any]:
    tick_most, _ = CASES[case]
    scope = "/" + os.path.basename(mount)
    with _little_left(case), _peer() as peer, guard(tick_most, scope) as pids:
        if peer:
            pids["earlyoom"] = peer
        before = {name: _counters(pid) for name, pid in pids.items()}
        began = time.monotonic()
        time.sleep(seconds)
        minutes = (time.monotonic() - began) / 60
        return {
            name: {
                "cpu_ms_per_minute": round(1000 * (cpu_seconds(pid) - was[0]) / minutes, 1),
                "wakeups_per_minute": round((wakeups(pid) - was[1]) / minutes, 1),
                "faults": [now - then for now, then in zip(faults(pid), was[2], strict=True)],
                **memory(pid),
            }
            for (name, pid), was in zip(pids.items(), before.values(), strict=True)
        }


def _counters(pid: int) -> tuple[float, int, list[int]]:
    return cpu_seconds(pid), wakeups(pid), faults(pid)


@contextmanager
def _little_left(case: str) -> Iterator[None]:
    """So much less memory in ``near`` that what is left could be gone in about a second."""
    taken = None
    if case == "near":
        one_gib = glance_seconds(1 << 30, os.cpu_count() or 1)
        rows = Path("/proc/meminfo").read_text().split("MemAvailable:")[1]
        too_much = (int(rows.split()[0]) << 10) - int(NEAR_SECONDS / one_gib * (1 << 30))
        program = (
            f"import sys; held = b'x' * {max(0, too_much)}; print(flush=True); sys.stdin.read()"
        )
        taken = subprocess.Popen(
            [PYTHON, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert taken.stdout
        taken.stdout.readline()
    try:
        yield
    finally:
        if taken is not None:
            taken.kill()
            taken.wait()


@contextmanager
def _peer() -> Iterator[int]:
    """Earlyoom's pid; 0 where it is not installed."""
    path = shutil.which(EARLYOOM[0])
    if path is None:
        yield 0
        return
    peer = subprocess.Popen(
        [path, *EARLYOOM[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield peer.pid
    finally:
        peer.kill()
        peer.wait()


def main(argv: list[str]) -> int:
    """Print what was measured, one JSON document."""
    seconds = float(argv[-1]) if argv and argv[-1][0].isdigit() else SECONDS
    names = [name for name in argv if name in CASES] or list(CASES)
    print(json.dumps({name: measure(name, seconds) for name in names}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
