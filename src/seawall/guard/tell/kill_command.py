# SPDX-License-Identifier: Apache-2.0
"""A command that is run after a kill or at a decision: no shell, a session, a deadline, no output.

The decision stands as JSON on its standard input.  A child of the aide oversees it: whatever the
command starts and leaves behind, in another session too, becomes that child's (prctl(2)
PR_SET_CHILD_SUBREAPER, Linux 3.4), and is killed once the command has ended or has to.
"""

import ctypes
import json
import os
import signal
from typing import Any, Final, NoReturn

SECONDS: Final = 30.0
STDIN_MOST: Final = 60_000
"""A pipe holds 64 KiB, so nobody waits for the command to read."""
NOT_FOUND: Final = 127
_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
}  # fmt: skip
FDS_MOST: Final = 1024
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_HEARD: Final = (signal.SIGTERM, signal.SIGCHLD)
_AGAIN_SECONDS: Final = 0.5


def oversee(request: dict[str, Any], answers: int) -> NoReturn:
    """In the aide's child, until nothing of the command is left; SIGTERM ends it.  ``answers``
    gets the command's ``status``.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # the end of the aide
    command = os.fork()
    if not command:
        _become(request)
    is_over, code = False, 0
    while True:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == command:
                    is_over, code = True, os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            # Not before: without an aide there is no reader, and SIGPIPE ends us.
            os.write(answers, json.dumps({"status": code}).encode())
            os._exit(0)
        for pid in _children() if is_over else ():
            os.kill(pid, signal.SIGKILL)
        heard = signal.sigtimedwait(_HEARD, _AGAIN_SECONDS)
        is_over = is_over or (heard is not None and heard.si_signo == signal.SIGTERM)


def _children() -> list[int]:
    """Ours; by looking at everybody where the kernel does not list them (CONFIG_PROC_CHILDREN)."""
    try:
        with open("/proc/thread-self/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _is_child(pid)]


def _is_child(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1]) == os.getpid()
    except OSError:
        return False


def _become(request: dict[str, Any]) -> NoReturn:
    """Exec it, or end with status 127."""
    import shlex  # noqa: PLC0415 - in the child only: the aide stays small

    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        argv = shlex.split(str(request.get("command", "")))
        ours, theirs = os.pipe()
        os.write(theirs, str(request.get("stdin", "")).encode()[:STDIN_MOST])
        nothing = os.open("/dev/null", os.O_WRONLY)
        os.dup2(ours, 0)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.closerange(3, FDS_MOST)
        os.chdir("/")
        environment = {**_ENVIRONMENT, "SEAWALL_DECISION": decision_of(request)}
        if how := str(request.get("how", "")):
            environment["SEAWALL_HOW"] = how
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell: what is wanted
    except (OSError, ValueError, IndexError):
        os._exit(NOT_FOUND)


def decision_of(request: dict[str, Any]) -> str:
    """Its id; nothing that an environment could not hold."""
    return str(request.get("decision", "")).replace("\0", "")[:64]


def problem_of(code: int) -> str:
    """In words; empty when it ended well."""
    if code == 0:
        return ""
    if code == NOT_FOUND:
        return "the command was not found, or could not be run"
    if code < 0:
        return f"the command was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"the command failed with status {code}"
