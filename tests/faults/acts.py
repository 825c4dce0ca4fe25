"""Whole acts of the guard's hands beside its helper, each ended or failed at one system call.

strace does it (``--inject``): SIGKILL or SIGSTOP to the guard, or an error in the place of what the
kernel would have answered.  A run without a fault says which calls there are; each fault has a run
of its own, on real cgroups of its own: ``culprit``, on whom it acts, and ``innocent`` beside it.

A program of its own, for it runs in an emulated node too: ``acts.py OUT [--few]``.
"""

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from seawall.actions import cgroup_files
from seawall.actions.executor import Executor
from seawall.actions.freeze_effects import is_frozen
from seawall.actions.journal import Journal, in_force
from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Mounts, Order, Target
from seawall.actions.signal_journal import SignalJournal
from seawall.actions.undo import undo
from seawall.guard import aide_process
from seawall.guard.tell import errands  # noqa: F401 - the helper's, so that it need not import it

FREEZE_SECONDS: Final = 0.5
STEPS: Final = {
    "hold": ("freeze", "tend", "thaw"),
    "kill": ("freeze", "terminate", "kill", "tend"),
    "clamp": ("clamp", "tend", "unclamp"),
}
"""Each act; ``tend`` is a tick of the guard's loop."""
ERRORS: Final = ("EIO", "ENOMEM", "ENOSPC", "ESTALE", "EMFILE", "EINTR")
ENDS: Final = ("SIGKILL", "SIGSTOP")
FEW: Final = frozenset(
    {"write", "sendto", "pidfd_send_signal", "pidfd_open", "getdents64", "fcntl"}
)
"""Calls that change something, or tell it, and what they need: a pidfd, a list, a descriptor."""
UNTOUCHED: Final = frozenset({"exit_group", "exit", "rt_sigreturn", "restart_syscall", "futex",
    "rt_sigprocmask", "munmap", "brk", "madvise", "clock_nanosleep", "sched_yield"})  # fmt: skip
"""Calls that no kernel fails with one of these errors."""
HOLD = "import time\nheld = bytearray(b'x') * (12 << 20)\ntime.sleep(600)"
_SPARE = re.compile(r"^\w+\(\d+</>")
_CALL = re.compile(r"(\w+)\((.*)")
UNIFIED: Final = "/sys/fs/cgroup/unified"
"""Of a hybrid host: version 2, without the controllers that version 1 has."""
with open("/proc/self/mountinfo", encoding="utf-8") as mountinfo:
    MOUNTS = find_mounts(mountinfo.read())
if "--unified" in sys.argv:
    MOUNTS = Mounts(UNIFIED, 2, None, UNIFIED)
HAS_LIMITS: Final = MOUNTS.version == 2 and MOUNTS.memory != UNIFIED
TOP: Final = f"/seawall-TEST-faults-{os.getpid()}"


class Fault(NamedTuple):
    """What comes instead, and at which call: the ``number``-th of its name."""

    what: str
    """A signal or an errno; empty: none."""
    call: str = ""
    number: int = 0

    @property
    def words(self) -> list[str]:
        if not self.what:
            return []
        kind = "signal" if self.what.startswith("SIG") else "error"
        return ["-e", f"inject={self.call}:{kind}={self.what}:when={self.number}"]


class Place:
    """Cgroups of one run, in each tree that is used."""

    def __init__(self, name: str, *, holds: bool) -> None:
        """``holds``: the culprit holds memory that a limit can be lowered below."""
        self.holds = holds
        self.scope = f"{TOP}/{name}"
        self.path = f"{self.scope}/culprit"
        trees = [MOUNTS.memory, *([MOUNTS.freezer] if MOUNTS.freezer else [])]
        self.trees = list(dict.fromkeys(trees))
        self.children: dict[str, list[subprocess.Popen[bytes]]] = {}
        for tree in self.trees:
            os.makedirs(f"{tree}{self.scope}", exist_ok=True)
        if HAS_LIMITS:
            controllers(f"{MOUNTS.memory}{TOP}", f"{MOUNTS.memory}{self.scope}")
        for who in ("culprit", "innocent"):
            for tree in self.trees:
                os.makedirs(f"{tree}{self.scope}/{who}", exist_ok=True)
            self.children[who] = [self._start(who), self._start(who)]
        if holds:  # else a limit would have the kernel end one of two
            with open(
                f"{MOUNTS.memory}{self.path}/memory.oom.group", "w", encoding="ascii"
            ) as file:
                file.write("1")
        for who in self.children.values():
            for child in who:
                assert child.stdout
                assert child.stdout.readline() == b"held\n"
        if holds:
            assert within(20, lambda: self.counted_bytes() > 24 << 20) is not None

    def _start(self, who: str) -> "subprocess.Popen[bytes]":
        entries = " ".join(f"{tree}{self.scope}/{who}/cgroup.procs" for tree in self.trees)
        line = f'for f in {entries}; do echo 0 > $f; done; exec "$@"'
        program = ["sleep", "600"]
        if self.holds and who == "culprit":
            program = [sys.executable, "-I", "-S", "-c", HOLD]
        # Who ends at SIGTERM is not killed.
        line = line.replace("exec", "trap '' TERM; echo held; exec")
        return subprocess.Popen(["sh", "-c", line, "sh", *program], stdout=subprocess.PIPE)

    def folder(self, who: str = "culprit") -> str:
        """Where it is frozen."""
        return f"{self.trees[-1]}{self.scope}/{who}"

    def is_frozen(self, who: str = "culprit") -> bool:
        fd = os.open(self.folder(who), os.O_RDONLY)
        try:
            return bool(is_frozen(fd, 1 if MOUNTS.freezer else 2))
        finally:
            os.close(fd)

    def limit(self) -> str:
        fd = os.open(f"{MOUNTS.memory}{self.path}", os.O_RDONLY)
        try:
            return cgroup_files.read(fd, "memory.max") or ""
        finally:
            os.close(fd)

    def counted_bytes(self) -> int:
        return int(read(f"{MOUNTS.memory}{self.path}/memory.current"))

    def count(self, who: str) -> int:
        """How many of its two live."""
        return sum(child.poll() is None for child in self.children[who])

    def remove(self) -> None:
        for who, children in self.children.items():
            for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                path = f"{self.folder(who)}/{name}"
                if os.path.exists(path):
                    with open(path, "w", encoding="ascii") as file:
                        file.write(word)
            for child in children:
                child.kill()
                child.communicate()
        for tree in self.trees:
            for who in ("/culprit", "/innocent", ""):
                within(5, lambda gone=f"{tree}{self.scope}{who}": removed(gone))


def controllers(*folders: str) -> None:
    for folder in folders:
        with open(f"{folder}/cgroup.subtree_control", "w", encoding="ascii") as file:
            file.write("+memory")


def removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return not os.path.exists(folder)
    return True


def within(seconds: float, is_so: Callable[[], object]) -> float | None:
    """After how long it was so; None: not in that time."""
    began = time.monotonic()
    while True:
        if is_so():
            return time.monotonic() - began
        if time.monotonic() - began > seconds:
            return None
        time.sleep(0.01)


# --- the guard ---------------------------------------------------------------------------


def guard(place: Place, act: str, folder: str, go: int, said: int) -> None:
    """In a process of its own: the hands and the helper, as ``guard/assembly`` joins them."""
    aide = aide_process.start()
    hands = Executor(
        MOUNTS, (place.scope,), Journal(f"{folder}/guard.undo"), freeze_seconds=FREEZE_SECONDS,
        never=frozenset({aide.pid}), own_cgroup=f"{TOP}-own", tell=aide.frozen,
    )  # fmt: skip
    hands.prepare()
    hands.rehearse()
    inode = os.stat(f"{MOUNTS.memory}{place.path}").st_ino
    os.write(said, json.dumps({"aide": aide.pid}).encode())
    os.read(go, 1)
    told: dict[str, Any] = {"raised": "", "outcomes": []}
    try:
        for step in STEPS[act]:
            perform(hands, Target(place.path, inode, "culprit"), step, told["outcomes"])
        if (
            act == "clamp"
            and told["outcomes"][0]["is_done"]
            and not told["outcomes"][-1]["is_done"]
        ):
            # The judge asks again, too.
            perform(hands, Target(place.path, inode, "culprit"), "unclamp", told["outcomes"])
        hands.signal_journal.settle()
    except Exception as error:  # noqa: BLE001 - that one escapes is what is looked for
        told["raised"] = repr(error)
    os.write(said, json.dumps(told).encode())
    while not select.select([go], [], [], 0.02)[0]:
        hands.tend(time.monotonic())


def perform(hands: Executor, target: Target, step: str, outcomes: list[dict[str, Any]]) -> None:
    if step == "tend":
        hands.tend(time.monotonic())
        return
    limit = 4 << 20 if step == "clamp" else None
    outcome = hands.perform(Order("b0-1", step, target, "node_short", 0, limit))  # type: ignore[arg-type]
    outcomes.append({"step": step, "is_done": outcome.is_done, "problem": outcome.problem,
                     "left": outcome.left})  # fmt: skip


class Run:
    """One act with one fault; ``told`` is a row of the table."""

    def __init__(
        self, name: str, act: str, fault: Fault, home: str, clock_seconds: float = 0.0
    ) -> None:
        """``clock_seconds``: by so much the wall clock jumps while the guard stands."""
        self.act, self.fault, self.clock_seconds = act, fault, clock_seconds
        self.folder = f"{home}/{name}"
        os.makedirs(self.folder)
        self.log = f"{self.folder}/strace"
        self.told: dict[str, Any] = {"act": act, **fault._asdict()}
        self.place = Place(name, holds=act == "clamp")
        try:
            self._run()
        finally:
            self.place.remove()

    def _run(self) -> None:
        go, goes = os.pipe()
        said, says = os.pipe()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.close(goes)
                os.close(said)
                guard(self.place, self.act, self.folder, go, says)
                status = 0
            finally:
                os._exit(status)
        os.close(go)
        os.close(says)
        aide = int(json.loads(os.read(said, 4096))["aide"])
        strace = subprocess.Popen(
            ["strace", "-y", "-o", self.log, *self.fault.words, "-p", str(pid)],
            stderr=subprocess.PIPE,
        )
        try:
            assert within(20, lambda: is_traced(pid)) is not None
            os.write(goes, b"1")
            self._watch(pid, said, strace)
        finally:
            os.close(goes)  # it ends now, if it still lives
            os.kill(pid, signal.SIGCONT)
            ended = within(
                10, lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            )
            if ended is None:
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            strace.communicate(timeout=20)
            os.close(said)
        self.told["aide_ended"] = within(5, lambda: state_of(aide) in "ZX") is not None
        self._next_guard()

    def _watch(self, pid: int, said: int, strace: "subprocess.Popen[bytes]") -> None:
        """Until the fault has done what it does, and whoever has to has put it right."""
        ready = select.select([said], [], [], 0)[0]
        until = time.monotonic() + 20
        while not ready and time.monotonic() < until and not self._stands():
            ready = select.select([said], [], [], 0.005)[0]
        self.told["state"] = state_of(pid)
        self.told["was_frozen"] = self.place.is_frozen()
        self.told["lowered_to"] = self.place.limit()
        self.told["clock_seconds"] = self.clock_seconds
        if self.clock_seconds:
            set_clock(self.clock_seconds)
        self.told["thawed_seconds"] = within(6, lambda: not self.place.is_frozen())
        is_stopped = self._stands()
        if is_stopped:
            strace.kill()  # which may keep it stopped for ever else (6.1)
            strace.wait()
        # More than once: a stop that was still on its way comes behind the first.
        while is_stopped and not select.select([said], [], [], 0.1)[0]:
            os.kill(pid, signal.SIGCONT)
        text = os.read(said, 1 << 16)
        self.told["guard"] = json.loads(text) if text else None
        self.told["is_reached"] = is_stopped or not text
        if text:  # it lives, and its next ticks put right what was left
            within(6, lambda: not self._in_force() and not self.place.is_frozen())
            self.told["in_force_of_living"] = self._in_force()
            within(2, lambda: not self.place.count("culprit") or self.act == "hold")

    def _stands(self) -> bool:
        """Each call that is traced looks like it for a moment: strace says when it is one."""
        return self.fault.what == "SIGSTOP" and "--- stopped by SIGSTOP" in read(self.log)

    def _in_force(self) -> list[str]:
        return [change.kind for change in in_force(f"{self.folder}/guard.undo")]

    def _next_guard(self) -> None:
        """What it finds, and leaves."""
        journal = Journal(f"{self.folder}/guard.undo")
        words = undo(journal)
        words += SignalJournal(journal, MOUNTS.memory).cut_short()
        place = self.place
        self.told |= {
            "next_guard": words, "left_in_force": [c.kind for _, c in journal.changes()],
            "still_frozen": [w for w in place.children if place.is_frozen(w)],
            "culprits": place.count("culprit"), "innocents": place.count("innocent"),
            "limit": place.limit(), "innocent_named": any("/innocent" in text for text in words),
        }  # fmt: skip
        if not self.fault.what.startswith("SIG"):
            self.told["is_reached"] = "(INJECTED)" in read(self.log) or not self.fault.what
        journal.close()


def set_clock(seconds: float) -> None:
    """On a node of its own alone: this is the clock of all that runs there."""
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def is_traced(pid: int) -> bool:
    return "TracerPid:\t0\n" not in read(f"/proc/{pid}/status")


def state_of(pid: int) -> str:
    return read(f"/proc/{pid}/stat").rpartition(")")[2].strip()[:1]


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


# --- the matrix --------------------------------------------------------------------------


def calls(log: str) -> list[tuple[str, bool]]:
    """In order, those between the word to go and the answer: name, and whether it is one of a row
    that all do the same (descriptors held in reserve), and not the first.
    """
    found, before = [], ""
    for line in log.splitlines():
        if not (match := _CALL.match(line)):
            continue
        if "outcomes" in line:
            return found[1:]
        same = match[1] if _SPARE.search(line) else ""
        found.append((match[1], bool(same) and same == before))
        before = same
    raise AssertionError(f"it never answered:\n{log[-2000:]}")


def faults(names: Iterable[tuple[str, bool]], *, is_few: bool) -> list[Fault]:
    """Of each kind at each call; ``is_few``: at those alone that change something."""
    counted: Counter[str] = Counter({"read": 1})  # the word to go
    made = list[Fault]()
    for name, is_same in names:
        counted[name] += 1
        if is_same or (is_few and name not in FEW):
            continue
        errors = ERRORS if name in FEW and not is_few else ERRORS[:1]
        kinds = ENDS if name in UNTOUCHED else (*ENDS, *errors)
        made += [Fault(what, name, counted[name]) for what in kinds]
    return made


def matrix(home: str, acts: Iterable[str], *, is_few: bool, at_once: int) -> list[dict[str, Any]]:
    """Rows of all runs; first, for each act, the one without a fault."""
    rows, todo = [], []
    for act in acts:
        run = Run(f"{act}-plain", act, Fault(""), home)
        rows.append(run.told)
        todo += [(act, fault) for fault in faults(calls(read(run.log)), is_few=is_few)]
    # Processes, for each run forks: beside a thread that would copy somebody's locks.
    workers = [
        worker(f"{home}/rows-{first}", todo[first::at_once], home) for first in range(at_once)
    ]
    for pid, path in workers:
        os.waitpid(pid, 0)
        rows += map(json.loads, read(path).splitlines())
    return rows


def give_up(*_: object) -> None:
    raise TimeoutError("a minute was not enough")


def worker(path: str, todo: Iterable[tuple[str, Fault]], home: str) -> tuple[int, str]:
    """Its pid, and the file of its rows."""
    pid = os.fork()
    if pid:
        return pid, path
    with open(path, "w", encoding="utf-8") as file:
        for act, fault in todo:
            name = f"{act}-{fault.call}-{fault.number}-{fault.what}"
            signal.signal(signal.SIGALRM, give_up)
            signal.alarm(60)
            try:
                told = Run(name, act, fault, home).told
            except Exception:  # noqa: BLE001 - of this one run, and told
                told = {"act": act, **fault._asdict(), "failed": traceback.format_exc()}
            file.write(json.dumps(told) + "\n")
            file.flush()
    os._exit(0)


def clock_rows(home: str) -> list[dict[str, Any]]:
    """The wall clock jumps while a guard that stands holds somebody, a day, ten years, and back."""
    stopped = Fault("SIGSTOP", "write", 1)  # the word that freezes
    jumps = (86_400.0, -86_400.0, 3.2e8, -3.2e8)
    return [Run(f"clock-{jump}", "hold", stopped, home, jump).told for jump in jumps]


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("out")
    options.add_argument("--few", action="store_true", help="at those calls that change something")
    options.add_argument("--unified", action="store_true", help=f"version 2, in {UNIFIED}")
    options.add_argument("--clock", action="store_true", help="in an emulated node alone")
    options.add_argument("--at-once", type=int, default=6)
    given = options.parse_args()
    home = f"{given.out}.runs"
    os.makedirs(home)
    for tree in dict.fromkeys([MOUNTS.memory, MOUNTS.freezer or MOUNTS.memory]):
        os.makedirs(f"{tree}{TOP}-own")
        os.makedirs(f"{tree}{TOP}")
    every = ("clamp",) if HAS_LIMITS else ("hold", "kill")
    try:
        rows = matrix(home, every, is_few=given.few, at_once=given.at_once)
        rows += clock_rows(home) if given.clock else []
    finally:
        for tree in dict.fromkeys([MOUNTS.memory, MOUNTS.freezer or MOUNTS.memory]):
            removed(f"{tree}{TOP}-own")
            removed(f"{tree}{TOP}")
    with open(given.out, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
