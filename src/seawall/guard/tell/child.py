# SPDX-License-Identifier: Apache-2.0
"""One job of the aide: a child with a deadline, which tells what it found through a pipe."""

import ctypes
import json
import os
import signal
import time
from typing import Any, Final

from seawall.guard.tell import kill_command
from seawall.guard.tell.own_programs import config_answer

LIMITS: Final = {
    "self_test_child": (2, 60.0),
    "run": (4, kill_command.SECONDS),
    "hook": (2, kill_command.SECONDS),
    "termination_message": (4, 10.0),
    "job_output": (4, 10.0),
    "job_command": (2, 30.0),
    "textfile": (1, 20.0),
    "rivals": (1, 20.0),
    "config": (1, 20.0),
    "quarantine": (1, 20.0),
    "watcher": (8, float("inf")),
    "recorder": (8, float("inf")),
    "kmsg": (8, 20.0),
}
"""At most so many children at once, and so many seconds for each."""
_SYS_IOPRIO_SET: Final = {
    "x86_64": 251, "aarch64": 30, "riscv64": 30, "ppc64le": 273, "s390x": 282,
}  # fmt: skip
_IOPRIO_WHO_PROCESS: Final = 1
_IOPRIO_NONE: Final = 0
"""As its nice value says: best effort."""
COMPANIONS: Final = ("watcher", "recorder")
COMMANDS: Final = ("run", "hook")
"""Programs of the owner's: after a kill, at a decision.  Many reports must not keep a kill's from
its place."""


class Child:
    """A child process of the aide that does one job, until its deadline."""

    __slots__ = ("answers", "deadline", "decision", "is_given_up", "is_heard", "kind", "pid",
                 "said")  # fmt: skip

    def __init__(self, kind: str, pid: int, answers: int, decision: str) -> None:
        self.kind, self.pid, self.answers, self.decision = kind, pid, answers, decision
        self.deadline = time.monotonic() + LIMITS[kind][1]
        self.said = b""
        self.is_heard = kind != "self_test_child"
        """Nothing is expected from it before it ends."""
        self.is_given_up = False
        """It was killed, does not end, and that was answered."""

    def end(self) -> None:
        """Only as long as it was not waited for, for then its number may be another's.  Who
        oversees a command is told to: killed, it would leave behind what it has to end.
        """
        try:
            os.kill(self.pid, signal.SIGTERM if self.kind in COMMANDS else signal.SIGKILL)
        except OSError:
            return

    def ended(self) -> int | None:
        """Its wait status; None: it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return status if pid else None


def ending(child: Child, status: int, now: float) -> dict[str, Any]:
    """How a child ended, in what its request is answered with."""
    code = os.waitstatus_to_exitcode(status)
    if child.kind in COMMANDS:
        code = parsed(child.said).get("status", code)
    late = f"took over {LIMITS[child.kind][1]:g} s: killed" if now >= child.deadline else ""
    if child.kind == "config":
        return config_answer(child.said, code, late)
    if late:
        return {"status": code, "problem": late}
    if child.kind in COMMANDS:
        return {"status": code, "problem": kill_command.problem_of(code)}
    if child.said:
        return parsed(child.said)
    return {"problem": "" if code == 0 else f"failed with status {code}"}


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object; empty when it is none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def be_gentle(kind: str) -> None:
    """A child is nobody special: no real-time priority, at the disk neither, and the kernel may
    kill it.  But a watcher is as the guard is, and a recorder sees to that itself.
    """
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if kind in COMPANIONS:
        return
    if call := _SYS_IOPRIO_SET.get(os.uname().machine, 0):
        ctypes.CDLL(None).syscall(call, _IOPRIO_WHO_PROCESS, 0, _IOPRIO_NONE)
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, 0 if kind in ("run", "self_test_child") else 5)
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"0")
    except OSError:
        return
