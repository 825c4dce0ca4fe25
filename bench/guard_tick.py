"""What the guard's own eyes cost: one tick with 250 pods, growth, faults, CPU beside earlyoom.

Each figure comes from a process of its own as the guard is started: Debian's python3.11 with
``-I -S``, memory locked ONFAULT, gc frozen and off after a rehearsal.  As root the pods are real
cgroups of this machine's memory tree, below one of their own, with 5,000 processes in them in
``tick``; else, and for the long run, a tree of files that looks like one.
``python -m bench.guard_tick [tick|growth|peace]``.
"""

import json
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.pods import (
    FILES,
    PODS,
    PYTHON,
    SOURCES,
    compile_sources,
    file_tree,
    inhabitants,
    some_tree,
)  # fmt: skip

TICKS = 300
GROWTH_TICKS = 100_000
CHURN = 5
PEACE_SECONDS = 60

_BEGIN = """
import ctypes, gc, json, os, sys, time
sys.path.insert(0, {sources!r})
from seawall.actions.orders import Mounts
from seawall.guard.sense.sense import Sense
from seawall.guard.settings import Settings
def resident(name="Rss:"):
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))
def faults():
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[7]), int(fields[9])
def cpu():
    with open("/proc/self/schedstat", "rb") as file:
        return int(file.read().split()[0]) / 1e9
locked = ctypes.CDLL(None).mlockall(1 | 2 | 4) == 0
sense = Sense(Settings(**{settings!r}), Mounts({mount!r}, {version}), "/")
sense.open()
def rehearse(ticks):
    for _ in range(ticks):
        sense.look(time.monotonic())
    for group in list(sense.groups.values())[:8]:
        sense.detail(group)
rehearse(30)
gc.collect(); gc.freeze(); gc.disable()
found = {{"locked": locked, "groups": len(sense.groups)}}
"""
_TICK = """
def ticks(pause):
    times = []
    for _ in range({ticks} if not pause else 20):
        time.sleep(pause)
        began = time.perf_counter()
        sense.look(time.monotonic())
        times.append(time.perf_counter() - began)
    times.sort()
    return [times[len(times) // 2], times[int(len(times) * 0.99)]]
found["hot"], found["cold"] = ticks(0), ticks(1.0)
sense._settle_pace = lambda *_: None
sense._is_near = True
sense.look(time.monotonic())
found["near"] = ticks(0)
found["rss_kib"] = resident()
found["blind"] = sense.blind
print(json.dumps(found))
"""
_PEACE = """
before, was = cpu(), faults()
until = time.monotonic() + {seconds}
count = 0
while (left := until - time.monotonic()) > 0:
    sense.wait(min(sense.pause_seconds(), left), ())
    sense.look(time.monotonic())
    count += 1
found["cpu"], found["ticks"] = cpu() - before, count
found["faults"] = [b - a for a, b in zip(was, faults())]
found["rss_kib"] = resident()
print(json.dumps(found))
"""
# Each tick: pods come (the last five), pods go (the five before), and one look at all.
_GROWTH = """
mount, files = {mount!r}, {files!r}
def make(pod):
    container = pod + "/" + "%064x" % (hash(pod) % (1 << 61))
    for folder in (pod, container):
        os.mkdir(folder)
        for name, text in files.items():
            fd = os.open(folder + "/" + name, os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(fd, text)
            os.close(fd)
    return pod, container
def remove(made):
    for folder in reversed(made):
        for name in files:
            os.unlink(folder + "/" + name)
        os.rmdir(folder)
def churn(first, count):
    last = []
    for tick in range(first, first + count):
        now = [make(mount + "/kubepods/burstable/pod%08x-%d" % (tick, i)) for i in range({churn})]
        for made in last:
            remove(made)
        last = now
        sense.look(float(tick))
    for made in last:
        remove(made)
    sense.look(float(first + count))
churn(1000, 5000)
found["before"], was = [resident(), resident("Anonymous:")], faults()
steps = []
for part in range(10):
    churn(1_000_000 * (part + 1), {ticks} // 10)
    steps.append([resident(), resident("Anonymous:")])
found["after"] = [resident(), resident("Anonymous:")]
found["steps"] = steps
found["faults"] = [b - a for a, b in zip(was, faults())]
found["left"] = [len(sense.groups), len(sense.table.members), len(sense.table.tree.folders),
                 len(sense.table.tree.watches.by_watch), len(os.listdir("/proc/self/fd"))]
found["dropped"] = gc.collect()
print(json.dumps(found))
"""


def run(program: str, mount: str, version: int, **told: object) -> dict[str, Any]:
    """What such a process found; ``told`` fills the program's own braces."""
    settings = {"scope": ("/",), "tick_most_seconds": 15.0}
    text = _BEGIN.format(
        sources=str(SOURCES), settings=settings, mount=mount, version=version
    ) + program.format(mount=mount, **told)
    compile_sources()
    output = subprocess.run(
        [PYTHON, "-I", "-S", "-c", text], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    answer: dict[str, Any] = json.loads(output)
    return answer


def measure_tick(pods: int = PODS) -> dict[str, Any]:
    """Seconds of a tick: median and p99, one after the other, at 1 s, and near the end."""
    with ExitStack() as stack:
        mount, kind = stack.enter_context(some_tree(pods))
        is_real = kind == "real cgroups"
        lives = stack.enter_context(inhabitants(mount, pods, are_busy=True)) if is_real else 0
        return {"tree": kind, "processes": lives, **run(_TICK, mount, 1, ticks=TICKS)}


def measure_growth(ticks: int = GROWTH_TICKS) -> dict[str, Any]:
    """KiB and objects before and after; what is left of pods that went."""
    with file_tree(10) as mount:
        return run(_GROWTH, mount, 1, ticks=ticks, churn=CHURN, files=FILES)


def measure_peace(seconds: int = PEACE_SECONDS) -> dict[str, Any]:
    """CPU seconds a minute at the pace of peace: with 250 pods, with this machine's, earlyoom's."""
    answers: dict[str, Any] = {}
    peer = _earlyoom()
    began = _cpu_of(peer.pid) if peer else 0.0
    with some_tree(PODS) as (mount, kind):
        answers["tree"] = kind
        answers["pods"] = run(_PEACE, mount, 1, seconds=seconds)
    if peer:
        answers["earlyoom"] = _cpu_of(peer.pid) - began
        began = _cpu_of(peer.pid)
    with file_tree(1) as mount:
        answers["alone"] = run(_PEACE, mount, 1, seconds=seconds)
    if peer:
        answers["earlyoom_beside_alone"] = _cpu_of(peer.pid) - began
        peer.kill()
        peer.wait()
    return answers


def _earlyoom() -> "subprocess.Popen[bytes] | None":
    path = shutil.which("earlyoom")
    if path is None:
        return None
    peer = subprocess.Popen(
        [path, "--dryrun", "-r", "3600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(1.0)
    return peer


def _cpu_of(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[0]) / 1e9


def main(argv: list[str]) -> int:
    for name, measure in (
        ("tick", measure_tick), ("growth", measure_growth), ("peace", measure_peace)
    ):  # fmt: skip
        if not argv or name in argv:
            print(name, json.dumps(measure(), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
