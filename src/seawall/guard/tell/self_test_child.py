# SPDX-License-Identifier: Apache-2.0
"""A child that puts itself where it is told to and sleeps, so that the guard can prove on it
that it can kill.
"""

import ctypes
import json
import os
import signal
from typing import Any, Final, NoReturn

SECONDS: Final = 60
"""Then it ends by itself, whatever became of the test."""
_PR_SET_PDEATHSIG: Final = 1
_NAMES: Final = ("/cgroup.procs", "/tasks")


def serve(request: dict[str, Any], answers: int) -> NoReturn:
    """Never returns: it is killed, or ends after a minute."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    problem = moved(request.get("cgroup_procs"))
    answer = {"pid": 0, "problem": problem} if problem else {"pid": os.getpid(), "problem": ""}
    os.write(answers, json.dumps(answer).encode())
    os.close(answers)
    while not problem:
        signal.pause()
    os._exit(1)


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
