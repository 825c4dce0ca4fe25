"""A node that dies of its memory: ``dying_node.py SPEC``; see ``tests/kernels/last_gasp.py``.

Services at work, the guard, the agent as its unit runs it, a kubelet's stand-in, and a hog.  What
is told goes to the console, for nothing else is left of a dead node: what the time is, what the
guard's page says when that is another state, whom its verdicts prove, what the agent logs.
"""

import ctypes
import gc
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import guard_tree
from guard_evidence import Memory, meminfo
from guard_killers import JOURNAL, Killer
from guard_run import KUBELET, PYTHON, Load

sys.path.append("/opt/seawall")
from seawall.agent.culprits import accusation_of
from seawall.agent.guard_page import GuardPage, parse_page
from seawall.agent.node_conditions import is_running_out
from seawall.problems import ParseProblem

PAGE = Path("/run/seawall/status.json")
LOOK_SECONDS, TELL_SECONDS = 0.1, 1.0
READY_SECONDS, SETTLE_SECONDS, PEACE_SECONDS = 60, 3.0, 3.0
MCL_CURRENT_FUTURE = 3
MIN_MIB = {"/seawall-guard.service": 96, "/seawall-agent.service": 32}
"""As ``MemoryMin=`` of the units has it."""
AGENT = "/seawall-agent.service"
KUBELET_ROOT = "/opt/kubelet"
"""Its own copy of the interpreter: that of the others is locked in memory by guard and agent."""


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def unit(path: str) -> None:
    """A cgroup that keeps what its unit's file promises it."""
    guard_tree.make(path)
    guard_tree.write(guard_tree.ROOT / path[1:] / "memory.min", str(MIN_MIB[path] << 20))


class NewLines:
    """Of a file that grows."""

    def __init__(self, path: Path) -> None:
        self.path, self._at, self._rest = path, 0, b""

    def read(self) -> list[bytes]:
        with suppress(OSError), open(self.path, "rb") as file:
            file.seek(self._at)
            data = file.read()
            self._at += len(data)
            *whole, self._rest = (self._rest + data).split(b"\n")
            return whole
        return []


class GuardWords:
    """What the guard says, told when it is something new."""

    def __init__(self) -> None:
        self._mark, self._told = (0, 0), ""
        self._journal = NewLines(JOURNAL)
        self.is_well = False

    def tell(self) -> None:
        with suppress(OSError, ParseProblem):
            found = PAGE.stat()
            if (found.st_ino, found.st_mtime_ns) != self._mark:
                self._mark = (found.st_ino, found.st_mtime_ns)
                self._tell_page(parse_page(PAGE.read_bytes()))
        for line in self._journal.read():
            if said := accusation_of(line):
                at = time.time() - (time.monotonic() - said.seconds)
                say(f"verdict {at:.3f} {' '.join(one.pod_uid for one in said.proved)}")

    def _tell_page(self, page: GuardPage) -> None:
        self.is_well = page.state == "peace"
        words = f"{page.state} {'running-out' if is_running_out(page) else 'well'}"
        if words != self._told:
            self._told = words
            say(f"page {page.unix_seconds:.3f} {words} {(page.headroom_bytes or 0) >> 20}")


class DyingNode:
    """Set up, then watched until it is gone."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.loads = [Load(row, spec["salt"]) for row in spec["loads"]]
        self.hog = next(load for load in self.loads if load.row["is_culprit"])
        self.guard, self.agent = Killer(spec["guard"]), Killer(spec["agent"])
        self.agent_log = NewLines(self.agent.log)
        self.words = GuardWords()
        self.memory = Memory()
        self.short_at = 0.0
        self.has_ended_itself = False

    def set_up(self) -> None:
        for load in self.loads:
            load.start()
        for path in MIN_MIB:
            unit(path)
        guard_tree.write(guard_tree.ROOT / AGENT[1:] / "memory.max", str(96 << 20))
        guard_tree.write(guard_tree.ROOT / AGENT[1:] / "pids.max", "24")
        if not self.guard.start():
            say("NOT READY: the guard\n" + self.guard.log.read_text()[-2000:])
        self.begin_kubelet()
        self.wait_for_peace()
        self.agent.spawn()
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until and not self.is_ready():
            time.sleep(0.1)
        late = [load.name for load in self.loads if not load.is_ready()]
        if not self.is_ready():
            say(f"NOT READY: {late}, {self.agent.log.read_text()[-2000:]}")
        time.sleep(SETTLE_SECONDS)

    def wait_for_peace(self) -> None:
        """While pods start the node looks as if it ran out, for once."""
        until = peace = time.monotonic() + READY_SECONDS
        while (now := time.monotonic()) < min(until, peace):
            self.words.tell()
            is_well = self.words.is_well and all(one.is_ready() for one in self.loads)
            peace = min(peace, now + PEACE_SECONDS) if is_well else until
            time.sleep(0.1)

    def is_ready(self) -> bool:
        text = self.agent.log.read_text()
        return f"node {self.spec['node']}," in text and all(one.is_ready() for one in self.loads)

    def begin_kubelet(self) -> None:
        guard_tree.make(KUBELET)
        if os.fork():
            return
        guard_tree.enter(KUBELET)
        guard_tree.write(Path("/proc/self/oom_score_adj"), "-999")
        os.chroot(KUBELET_ROOT)
        os.chdir("/")
        os.execv(PYTHON[0], [*PYTHON, "kubelet_lease.py", *self.spec["kubelet"]])

    def watch(self) -> None:
        told = 0.0
        while True:
            now = time.monotonic()
            self.words.tell()
            for line in self.agent_log.read():
                say(f"agent: {line.decode(errors='replace')}")
            if now >= told + TELL_SECONDS:
                told = now
                say(f"clock {time.time():.3f} available {meminfo()['MemAvailable'] >> 20}")
                if not self.hog.pod.processes():
                    say("the hog is gone")
            self.memory.look()
            if self.memory.short and not self.short_at:
                self.short_at = self.memory.short[0][0]
                say("short")
            after = self.spec["after_seconds"]
            if self.short_at and after is not None and now >= self.short_at + after:
                self.end(self.spec["how"])
            time.sleep(LOOK_SECONDS)

    def end(self, how: str) -> None:
        if self.has_ended_itself:
            return
        self.has_ended_itself = True
        say(f"ends now: {how}")
        if how == "crash":
            guard_tree.write(Path("/proc/sysrq-trigger"), "c")


def main(path: str) -> None:
    spec = json.loads(Path(path).read_text())
    guard_tree.write(Path("/proc/self/oom_score_adj"), "-1000")
    # What it starts is ordinary.
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    for group in ("/kubepods/burstable", "/kubepods/besteffort"):
        guard_tree.make(group)
    node = DyingNode(spec)
    node.set_up()
    gc.disable()
    ctypes.CDLL(None).mlockall(MCL_CURRENT_FUTURE)
    say(f"hog {node.hog.pod.uid}")
    say("=== go")
    node.hog.go.touch()
    node.watch()


if __name__ == "__main__":
    main(sys.argv[1])
