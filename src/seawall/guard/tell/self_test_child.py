# SPDX-License-Identifier: Apache-2.0
"""A child that puts itself where it is told to and sleeps, so that the guard can prove on it
that it can kill.

Of root's processes a root without CAP_KILL may signal all, and of others none (kill(2)): so it
becomes another's before it says that it is there.
"""

import ctypes
import errno
import json
import os
import signal
from typing import Any, Final, NoReturn

SECONDS: Final = 20
"""Then it ends by itself, whatever became of the test: before the next one after a failure, for
without CAP_KILL nobody else can end it.
"""
NOBODY: Final = 65_534
"""The kernel's overflow uid and gid: not root, and owner of nothing."""
_PR_SET_PDEATHSIG: Final = 1
_NAMES: Final = ("/cgroup.procs", "/tasks")


def serve(request: dict[str, Any], answers: int) -> NoReturn:
    """Never returns: it is killed, or ends after 20 s."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    problem = moved(request.get("cgroup_procs"))
    answer: dict[str, Any] = {"pid": 0, "problem": problem}
    if not problem:
        # After it moved, which takes root; the signal of the parent's end is lost with the user.
        answer |= {"pid": os.getpid(), "still_root": another_user()}
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.write(answers, json.dumps(answer).encode())
    os.close(answers)
    while not problem:
        signal.pause()
    os._exit(1)


def another_user() -> str:
    """Why it is not another user's now; empty: it is."""
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
    except OSError:
        pass  # without CAP_SETGID: who may signal whom is a matter of users alone
    try:
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError as error:
        why = error.strerror or "refused"
        return f"{why}, it needs CAP_SETUID" if error.errno == errno.EPERM else why
    return ""


def moved(paths: Any) -> str:
    """Why it is not in every one of these cgroups; empty: it is."""
    if not isinstance(paths, list) or not paths:
        return "no cgroup was named"
    for path in paths:
        if not isinstance(path, str) or not path.endswith(_NAMES):
            return f"{path!r:.200} is no cgroup.procs"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            os.write(fd, b"%d" % os.getpid())
            os.close(fd)
        except OSError as error:
            return f"{path}: {error.strerror}"
    return ""
