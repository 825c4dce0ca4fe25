"""Runs scenarios one after the other on this node: ``guard_run.py SPEC``; see guard_scenarios.

For each: pods and services, the canary, a quiet moment, the culprit's start, and then nothing
but looking, until some seconds after the end.  What was seen goes to $OUT as JSON.  It keeps
itself out of the way: locked in memory, never killed, small.
"""

import ctypes
import gc
import json
import os
import shutil
import signal
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import guard_tree
from guard_calls import GuardCalls
from guard_evidence import Canary, Kernel, Memory, listed, meminfo, process_numbers
from guard_killers import STATUS, Killer

OUT = Path(os.environ.get("OUT", "/run/out"))
BLACKBOX = Path("/var/lib/seawall/blackbox")
PYTHON = ["/usr/bin/python3.11", "-I", "-S"]
LOOK_SECONDS, HELD_LOOK_SECONDS = 0.1, 0.02
READY_SECONDS = 40
ALIVE_SECONDS = 5
BACK_TO_BASE_SECONDS = 15
SLACK_BYTES = 48 << 20
CHANGES_SHOWN = 12
LISTED = "free on processors' lists"
MIB = 1 << 20
MCL_CURRENT_FUTURE_ONFAULT = 7
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
KUBELET = "/system.slice/kubelet.service"


def say(text: str) -> None:
    os.write(1, f"--- {text}\n".encode())


class Load:
    """One workload: its pod, its leader, what became of it."""

    def __init__(self, row: dict[str, Any], salt: str) -> None:
        self.row, self.name = row, row["name"]
        self.pod = guard_tree.Pod(salt, self.name, row["kind"])
        self.said = Path(f"/run/said-{salt}-{self.name}")
        self.go = Path(f"/run/go-{salt}-{self.name}")
        self.progress = Path(f"/run/progress-{salt}-{self.name}")
        self.done_before = 0
        self.pids: set[int] = set()
        self.leader = 0
        self.ended: tuple[float, int] | None = None
        self.empty_at: float | None = None

    def start(self) -> None:
        row = self.row
        self.pod.make(row["limit_mib"], row["cpu"])
        words = [word.replace("GO", str(self.go)) for word in row["program"]]
        said = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.leader = os.fork()
        if self.leader:
            self.pids.add(self.leader)  # of a small one nobody looks further
            os.close(said)
            return
        try:
            guard_tree.enter(self.pod.path)
            adj = row["adj"]
            if adj is None:
                adj = guard_tree.adj(row["kind"], row["request_mib"])
            guard_tree.write(Path("/proc/self/oom_score_adj"), str(adj))
            if row["own_network"] and LIBC.unshare(CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "no network namespace")
            os.environ["PROGRESS"] = str(self.progress)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.setsid()
            if row["is_small"]:  # a hundred interpreters would take a minute
                held = bytearray(int(words[0]) << 20)
                os.write(1, b"ready")
                while held:
                    time.sleep(60)
            os.execv(PYTHON[0], [*PYTHON, *words])
        finally:
            os._exit(127)

    def is_ready(self) -> bool:
        word = "waiting" if self.row["is_culprit"] else "ready"
        return word in self.said.read_text(errors="replace")

    @property
    def is_gone(self) -> bool:
        """Ended by a signal, or nobody is in its pod any more."""
        return self.empty_at is not None or bool(self.ended and self.ended[1])

    def look(self, now: float) -> None:
        if self.row["is_small"] and not self.ended:
            return
        there = self.pod.processes()
        self.pids.update(there[:2000])
        if there:
            self.empty_at = None
        elif self.leader and self.empty_at is None:
            self.empty_at = now

    def left(self) -> list[str]:
        """What whoever watches changed in it and did not put back."""
        found, limit = [], self.pod.limit_bytes()
        if self.pod.is_frozen():
            found.append(f"LEFT frozen: {self.pod.path}")
        if limit is not None and limit != (self.row["limit_mib"] or 0) << 20:
            found.append(f"LEFT with another limit, {limit}: {self.pod.path}")
        return found

    @property
    def done(self) -> int:
        """What an innocent counts: bytes, or processes forked."""
        try:
            data = self.progress.read_bytes()
        except FileNotFoundError:
            return 0
        return sum(value for (value,) in struct.iter_unpack("=Q", data[: len(data) & ~7]))

    def told(self, go: float) -> dict[str, Any]:
        since = None if self.empty_at is None else self.empty_at - go
        return {
            "name": self.name, "path": self.pod.path, "uid": self.pod.uid,
            "is_culprit": self.row["is_culprit"], "empty_at": since,
            "leader_ended": self.ended and (self.ended[0] - go, self.ended[1]),
            "kernel_kills": self.pod.kernel_kills(), "limit_hits": self.pod.limit_hits(),
            "refaults": self.pod.refaults(), "pids": sorted(self.pids)[:3000],
            "said": self.said.read_text(errors="replace")[-300:],
            "done": self.done - self.done_before,
        }  # fmt: skip


class Scenario:
    """One scenario from its first pod to the last check."""

    def __init__(self, spec: dict[str, Any], killer: Killer, calls: GuardCalls) -> None:
        self.spec, self.killer, self.calls = spec, killer, calls
        self.salt = spec["salt"]
        self.loads = [Load(row, self.salt) for row in spec["loads"]]
        self.by_leader: dict[int, Load] = {}
        self.kernel = Kernel()
        self.canary = Canary(str(OUT / "canary"))
        self.canary_pid = 0
        self.canary_died: float | None = None
        self.late = 0.0
        self.helpers: list[int] = []
        self.notes: list[str] = []
        self.acts: list[tuple[float | str, str]] = []

    def run(self, *, is_first: bool) -> dict[str, Any]:
        """``is_first``: whoever watches still takes what it needs; nobody waits for that."""
        before = {**meminfo(), LISTED: listed()}
        began = time.monotonic()
        self.set_up()
        self.set_up_seconds = time.monotonic() - began
        time.sleep(self.spec["settle_seconds"])
        self.memory = Memory()
        self.go = time.monotonic()
        for load in self.loads:
            load.done_before = load.done
            if load.row["is_culprit"]:
                load.go.touch()
        self.watch()
        report = self.report()
        began = time.monotonic()
        self.tear_down(None if is_first else before)
        return {**report, "notes": self.notes, "set_up_seconds": self.set_up_seconds,
                "tear_down_seconds": time.monotonic() - began}  # fmt: skip

    def set_up(self) -> None:
        for words in self.spec["helpers"]:
            self.helpers.append(self.help(words))
        for load in self.loads:
            load.start()
            self.by_leader[load.leader] = load
        until = time.monotonic() + READY_SECONDS
        while not all(load.is_ready() for load in self.loads):
            if time.monotonic() > until:
                late = [load.name for load in self.loads if not load.is_ready()]
                self.notes.append(f"not ready: {late}")
                break
            time.sleep(0.05)
        self.canary_pid = os.fork()
        if not self.canary_pid:
            guard_tree.enter(KUBELET)
            guard_tree.write(Path("/proc/self/oom_score_adj"), "-999")
            os.execv(PYTHON[0], [*PYTHON, "guard_canary.py", self.canary.path])

    def help(self, words: list[str]) -> int:
        """A daemon of the node, in no pod."""
        pid = os.fork()
        if not pid:
            guard_tree.enter("/system.slice/helper.service")
            guard_tree.write(Path("/proc/self/oom_score_adj"), "-999")
            os.execv(PYTHON[0], [*PYTHON, *words])
        return pid

    def watch(self) -> None:
        """Until the right victims are gone and memory is back, and some seconds more."""
        last = self.go + self.spec["most_seconds"]
        over: float | None = None
        self.ended_at = last
        acts = self.acts = list(self.spec["acts"])
        while True:
            began = time.monotonic()
            self.look(began)
            while acts and self.is_due(acts[0][0], began):
                self.act(acts.pop(0)[1])
            if over is None and (began >= last or self.is_over()):
                self.ended_at = over = began
            if over is not None and began >= over + self.spec["tail_seconds"]:
                return
            time.sleep(HELD_LOOK_SECONDS if acts and acts[0][0] == "held" else LOOK_SECONDS)
            self.late = max(self.late, time.monotonic() - began - LOOK_SECONDS)

    def is_due(self, when: float | str, now: float) -> bool:
        """``held``: somebody stands still, or has another limit than it came with."""
        if when != "held":
            return now - self.go >= float(when)
        return any(load.row["is_culprit"] and load.left() for load in self.loads)

    def look(self, now: float) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                if pid == self.canary_pid:
                    self.canary_died = now
                elif pid in self.by_leader:
                    self.by_leader[pid].ended = (now, status)
        for load in self.loads:
            load.look(now)
        self.kernel.read()
        self.memory.look()

    def is_over(self) -> bool:
        victims = [load for load in self.loads if load.name in self.spec["victims"]]
        return bool(victims) and all(v.is_gone for v in victims) and self.memory.is_back

    def act(self, what: str) -> None:
        if what == "murder":
            self.killer.murder()
        elif what == "restart":
            self.killer.spawn()
        elif what == "cat status":
            began = time.monotonic()
            pid = os.posix_spawn("/bin/cat", ["cat", str(STATUS)], {}, file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])  # fmt: skip
            os.waitpid(pid, 0)
            self.notes.append(f"cat status: {time.monotonic() - began:.3f} s")

    def report(self) -> dict[str, Any]:
        end = time.monotonic()
        memory = self.memory

        def since(at: float | None) -> float | None:
            return None if at is None else at - self.go

        return {
            "name": self.spec["name"], "seed": self.spec["seed"], "killer": self.killer.name,
            "seconds": end - self.go, "ended_at": self.ended_at - self.go,
            "loads": [load.told(self.go) for load in self.loads],
            "kernel": [(at - self.go, text) for at, text in self.kernel.lines],
            "invokers": [{**row, "at": row["at"] - self.go} for row in self.kernel.invokers],
            "canary": {**self.canary.told(self.go, end), "died_at": since(self.canary_died),
                       "pids": [self.canary_pid], "path": KUBELET},
            "memory": {
                "base": memory.base, "least": memory.least, "least_free": memory.least_free,
                "low_at": since(memory.low_at), "back_at": since(memory.back_at),
                "is_back": memory.is_back, "swap_least": memory.swap_least,
                "huge_least": memory.huge_least,
                "short": [[at - self.go for at in span] for span in memory.short],
            },
            "calls": [(at - self.go, *rest) for at, *rest in self.calls.told() if at >= self.go],
            "calls_missing": self.calls.missing,
            "killer_processes": self.killer.numbers(), "killer_at_ready": self.killer.at_ready,
            "killer_ready_seconds": self.killer.ready_seconds,
            "killer_files": self.killer.told(), "go": self.go,
            "killer_major_faults": self.killer.faults(),
            "never_held": any(when == "held" for when, _ in self.acts),
            "late_seconds": self.late, "self": process_numbers(os.getpid()),
        }  # fmt: skip

    def tear_down(self, before: dict[str, int] | None) -> None:
        """``before``: what is to come back to; None: nobody waits for it."""
        if self.canary_died is None:
            os.kill(self.canary_pid, signal.SIGKILL)
        for pid in self.helpers:
            with suppress(ProcessLookupError):  # one that had ended was reaped with the others
                os.kill(pid, signal.SIGKILL)
        for load in self.loads:
            self.notes += load.left()
            if not load.pod.remove():
                self.notes.append(f"could not be removed: {load.pod.path}")
            for path in (load.said, load.go, load.progress):
                path.unlink(missing_ok=True)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        until = time.monotonic() + BACK_TO_BASE_SECONDS
        while before is not None and (left := _missing(before)) > SLACK_BYTES:
            if time.monotonic() > until:
                more = _changes(before)
                words = ", ".join(f"{name} {size / MIB:+.0f}" for name, size in more.items())
                left >>= 20
                self.notes.append(f"memory is not back to base: {left} MiB are missing ({words})")
                break
            time.sleep(0.1)


def _missing(before: dict[str, int]) -> int:
    return before["MemAvailable"] + before[LISTED] - meminfo()["MemAvailable"] - listed()


def _changes(before: dict[str, int]) -> dict[str, int]:
    """What has changed most, in bytes."""
    now = {**meminfo(), LISTED: listed()}
    more = {name: size - before.get(name, 0) for name, size in now.items()}
    most = sorted(more, key=lambda name: -abs(more[name]))[:CHANGES_SHOWN]
    return {name: more[name] for name in ("MemAvailable", LISTED, *most)}


def main(path: str) -> None:
    spec = json.loads(Path(path).read_text())
    guard_tree.write(Path("/proc/self/oom_score_adj"), "-1000")
    # What it starts is ordinary.
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    if not guard_tree.IS_SYSTEMD:
        for group in ("/kubepods/burstable", "/kubepods/besteffort"):
            guard_tree.make(group)
    guard_tree.make(KUBELET)
    guard_tree.make("/system.slice/helper.service")
    killer = Killer(spec["killer"])
    gc.disable()
    signal.signal(signal.SIGALRM, lambda *_: say("alive"))
    signal.setitimer(signal.ITIMER_REAL, ALIVE_SECONDS, ALIVE_SECONDS)
    LIBC.mlockall(MCL_CURRENT_FUTURE_ONFAULT)
    calls = GuardCalls()
    is_up = killer.start()
    if spec.get("follows_forks"):
        calls.begin()
    say(f"{killer.name} {'ready' if is_up else 'NOT READY'} after {killer.ready_seconds:.1f} s")
    for number, row in enumerate(spec["scenarios"]):
        say(f"scenario {row['name']} seed {row['seed']}")
        began = time.monotonic()
        report = Scenario(row, killer, calls).run(is_first=not number and bool(killer.command))
        report["is_up"] = is_up
        report["whole_seconds"] = time.monotonic() - began
        (OUT / f"{number:03}.json").write_text(json.dumps(report))
        say(f"took {report['whole_seconds']:.1f} s, served {report['canary']['served']} of "
            f"{report['canary']['slots']}")  # fmt: skip
    killer.stop()
    with suppress(OSError):
        shutil.copy(BLACKBOX, OUT / BLACKBOX.name)


if __name__ == "__main__":
    main(sys.argv[1])
