"""Seed 1's third experiment: many programs on a slow disk, a hog, and who comes first.

``pins_guest.py`` runs three times on one node: with pins and a guard that only observes,
with pins and a guard that acts, with nothing.  Each time: 16 programs that run 12 MiB of text
between them, a canary that starts a program every 100 ms, and a hog that runs the same text while
it takes memory, as any program runs libraries.  What was seen goes to $OUT/pins.json.
"""

import ctypes
import gc
import json
import mmap
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guard_tree
from guard_evidence import Canary, meminfo
from guard_killers import Killer

OUT = Path(os.environ.get("OUT", "/run/out"))
PYTHON = ["/usr/bin/python3.11", "-I", "-S"]
PROGRAMS, KUBELET, HOG = "/programs.slice", "/system.slice/kubelet.service", "/kubepods/burstable"
TEXTS = [f"/opt/text-{number}" for number in range(8)]
EACH = 2
ROOM = 48 << 20
"""So much is left when the hog begins to run text for what it takes."""
TOUCHES = 256
"""Pages of text for each MiB: a program that works for what it takes."""
MOST_SECONDS = 40
FILL_SECONDS = 150
PINS_SECONDS = 120
TAIL_SECONDS = 5
MCL_CURRENT_FUTURE_ONFAULT = 7
MAP_POPULATE = 0x8000
LIBC = ctypes.CDLL(None, use_errno=True)


def say(words: str) -> None:
    os.write(1, f"--- {words}\n".encode())


def text(path: str) -> mmap.mmap:
    with open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    area.madvise(mmap.MADV_RANDOM)
    return area


def program(path: str) -> None:
    """Runs its text for ever, a page here and a page there."""
    area = text(path)
    os.nice(19)
    random.seed(os.getpid())
    while True:
        for _ in range(32):
            area[random.randrange(0, len(area), mmap.PAGESIZE)]
        time.sleep(0.2)  # an emulated processor is slow: the disk is what they wait for


def hog(go: str) -> None:
    """Takes memory: at once until ROOM is left, then a MiB for TOUCHES pages of text."""
    areas, held = [text(path) for path in TEXTS], []
    while not os.path.exists(go):
        time.sleep(0.05)

    def take(size: int) -> None:
        held.append(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_POPULATE))

    while (left := meminfo()["MemAvailable"] - ROOM) > 0:
        take(min(16 << 20, max(1 << 20, left >> 12 << 12)))
    Path(go + "-slow").touch()
    while True:
        for _ in range(TOUCHES):
            area = random.choice(areas)
            area[random.randrange(0, len(area), mmap.PAGESIZE)]
        take(1 << 20)


def counter(name: str) -> int:
    with open("/proc/vmstat") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + " "))


def major_faults(pids: list[int]) -> int:
    found = 0
    for pid in pids:
        with suppress(OSError):
            text = Path(f"/proc/{pid}/stat").read_text()
            found += int(text.rpartition(")")[2].split()[9])
    return found


def start(group: str, adj: int, *words: str) -> int:
    pid = os.fork()
    if not pid:
        try:
            guard_tree.enter(group)
            guard_tree.write(Path("/proc/self/oom_score_adj"), str(adj))
            os.execv(PYTHON[0], [*PYTHON, *words])
        finally:
            os._exit(127)
    return pid


class Run:
    """One of the three."""

    def __init__(self, name: str, keys: dict[str, Any]) -> None:
        self.name, self.keys = name, keys
        self.go = f"/run/go-{name.replace(' ', '-')}"
        self.hog_group = f"{HOG}/pod-{name.replace(' ', '-')}/hog"

    def set_up(self) -> None:
        for path in (*TEXTS, "/opt/canary/text", "/opt/canary/program"):
            Path(path).read_bytes()  # a node in peace has its programs in memory
        for group in (PROGRAMS, KUBELET, self.hog_group):
            guard_tree.make(group)
        self.programs = [
            start(PROGRAMS, -998, "pins_guest.py", "program", path)
            for path in TEXTS for _ in range(EACH)
        ]  # fmt: skip
        guard_tree.weigh(self.hog_group, 1000)
        self.canary = Canary(str(OUT / "canary"))
        self.canary_pid = start(KUBELET, -998, "guard_canary.py", self.canary.path)
        self.hog = start(self.hog_group, 500, "pins_guest.py", "hog", self.go)
        say(f"{self.name}: programs run, {meminfo()['MemAvailable'] >> 20} MiB available")
        time.sleep(6)
        self.killer = None
        if self.keys:
            rows = "".join(f"{key} = {json.dumps(value)}\n" for key, value in self.keys.items())
            Path("/etc/seawall/guard.toml").write_text(rows)
            self.killer = Killer(SPEC)
            self.killer.start()
            say(f"guard ready after {self.killer.ready_seconds:.1f} s")
            self.pins = self.wait_for_pins()
            say(f"{self.pins.get('pinned_bytes')} bytes pinned")

    def wait_for_pins(self) -> dict[str, Any]:
        until, page = time.monotonic() + PINS_SECONDS, {}
        while time.monotonic() < until:
            with suppress(OSError, ValueError):
                page = json.loads(Path("/run/seawall/pins").read_text())
                if page["round"] > 1:
                    break
            time.sleep(0.5)
        return {name: row for name, row in page.items() if name != "files"}

    def watch(self) -> dict[str, Any]:
        began = time.monotonic()
        Path(self.go).touch()
        kills, slow_at, over, ended = counter("oom_kill"), 0.0, None, None
        faults = everyones = 0
        told = began
        while True:
            now = time.monotonic()
            if not slow_at and os.path.exists(self.go + "-slow"):
                slow_at, faults = now, major_faults([*self.programs, self.canary_pid])
                everyones = counter("pgmajfault")
                say(f"slow after {now - began:.1f} s")
            if now - told > 10:
                told = now
                say(f"{now - began:.0f} s: {meminfo()['MemAvailable'] >> 20} MiB available")
            if ended is None and (killed := self.is_hog_gone()):
                ended = now
                over = now
            most = MOST_SECONDS if slow_at else FILL_SECONDS
            if over is None and now - (slow_at or began) > most:
                over = now
            if over is not None and now - over > TAIL_SECONDS:
                break
            time.sleep(0.1)
        end = time.monotonic()
        slow = slow_at or began
        return {
            "name": self.name, "fill_seconds": slow - began, "seconds": (over or end) - slow,
            "hog_gone_after": None if ended is None else ended - slow,
            "hog_ended_by": killed if ended else None,
            "kernel_kills": counter("oom_kill") - kills,
            "majors": major_faults([*self.programs, self.canary_pid]) - faults,
            "node_majors": counter("pgmajfault") - everyones,
            "programs_alive": sum(os.path.exists(f"/proc/{pid}/maps") for pid in self.programs),
            "canary": self.canary.told(began, end), "pins": getattr(self, "pins", None),
            "resident": {path: resident(path) for path in (*TEXTS, "/opt/canary/text")},
            "pins_after": self.pins_now(), "low": low_of(PROGRAMS),
        }  # fmt: skip

    def is_hog_gone(self) -> int:
        """The signal that ended it."""
        pid, status = os.waitpid(self.hog, os.WNOHANG)
        return (status & 0x7F) or 255 if pid else 0

    def pins_now(self) -> dict[str, Any] | None:
        with suppress(OSError, ValueError):
            page = json.loads(Path("/run/seawall/pins").read_text())
            return {name: page[name] for name in ("pinned_bytes", "by_kernel_bytes", "budget_bytes",
                    "round", "round_seconds", "round_cpu_seconds", "hung")}  # fmt: skip
        return None

    def tear_down(self) -> None:
        if self.killer:
            self.killer.stop()
        for pid in (*self.programs, self.canary_pid, self.hog):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            time.sleep(0.05)


def low_of(group: str) -> int | None:
    """Its memory.low, bytes; None under cgroup v1."""
    with suppress(OSError):
        return int((guard_tree.MEMORY / group[1:] / "memory.low").read_text())
    return None


def resident(path: str) -> float:
    """The share that is in memory."""
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    LIBC.mmap.restype = ctypes.c_void_p
    at = ctypes.c_void_p(LIBC.mmap(None, ctypes.c_size_t(size), 1, 1, fd, ctypes.c_long(0)))
    pages = (ctypes.c_ubyte * (size // mmap.PAGESIZE))()
    LIBC.mincore(at, ctypes.c_size_t(size), pages)
    LIBC.munmap(at, ctypes.c_size_t(size))
    os.close(fd)
    return sum(page & 1 for page in pages) / len(pages)


PIN = ["/system.slice/kubelet.service", "/programs.slice", "/opt/canary/program"]
SPEC = json.loads(os.environ.get("KILLER", "{}"))
RUNS = {
    "pins": {"mode": "observe", "pin": PIN, "pin_slices": [PROGRAMS]},
    "guard and pins": {"mode": "enforce", "pin": PIN},
    "nothing": {},
}
"""The last one leaves a node that can hardly tell of it."""


def main() -> None:
    guard_tree.write(Path("/proc/self/oom_score_adj"), "-1000")
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    gc.disable()
    LIBC.mlockall(MCL_CURRENT_FUTURE_ONFAULT)
    told = []
    for name in SPEC.get("runs", RUNS):
        run = Run(name, RUNS[name])
        run.set_up()
        told.append(run.watch())
        run.tear_down()
        told[-1]["low_left"] = low_of(PROGRAMS)
        say(json.dumps({**told[-1], "pins": None}))
        (OUT / "pins.json").write_text(json.dumps(told))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["program", path]:
            program(path)
        case ["hog", path]:
            hog(path)
        case _:
            main()
