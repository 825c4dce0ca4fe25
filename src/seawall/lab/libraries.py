# SPDX-License-Identifier: Apache-2.0
"""A driver's libraries by ctypes, asked first in a process of its own.

A library that hangs, crashes or starts threads does so in a child: the lab itself never loads
one.  Nothing of a driver may be loaded before the fork, for drivers do not survive it.
"""

import ctypes
import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from seawall.proc.parent_death import die_with_parent

ASK_SECONDS: Final = 30.0
"""A driver that was never used since boot loads its modules now."""
_END_SECONDS: Final = 2.0
_MOST_BYTES: Final = 1 << 16
_QUIET: Final = {
    "MESA_SHADER_CACHE_DISABLE": "true",
    "__GL_SHADER_DISK_CACHE": "0",
    "CUDA_CACHE_DISABLE": "1",
}
"""Nothing is left in anybody's home."""


class DriverProblem(OSError):
    """A driver is missing, or said no; in words."""

    def __str__(self) -> str:
        return str(self.args[0])


def load(name: str, provided_by: str) -> ctypes.CDLL:
    """A shared library; DriverProblem with what provides it."""
    os.environ.update(_QUIET)
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        if str(error).startswith(f"{name}: cannot open shared object file"):
            raise DriverProblem(f"{name} is missing: {provided_by}") from error
        raise DriverProblem(f"{name} cannot be loaded: {error}") from error


def function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    """One of its functions with its types; DriverProblem when it has none of that name."""
    try:
        found = getattr(library, name)
    except AttributeError as error:
        raise DriverProblem(f"the driver's library is too old: it has no {name}") from error
    found.restype, found.argtypes = result, list(arguments)
    return found


def answer_in_child(question: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """``question()`` in a child; its answer, or {"problem": words}."""
    reading, writing = os.pipe()
    asker, child = os.getpid(), os.fork()
    if not child:
        _answer(question, writing, asker)
    os.close(writing)
    try:
        raw = _read(reading, time.monotonic() + ASK_SECONDS)
    finally:
        os.close(reading)
        code = _end(child)
    if raw is None:
        still = "" if code is not None else f"; the driver holds process {child}, it cannot end yet"
        return {"problem": f"the driver's library did not answer in {ASK_SECONDS:g} s{still}"}
    try:
        answer = json.loads(raw)
    except ValueError:
        return {"problem": f"the driver's library ended the process that asked it ({code})"}
    return answer if isinstance(answer, dict) else {"problem": "no answer"}


def _end(child: int) -> int | None:
    """Kill and reap it; how it ended, or None while it hangs in the kernel."""
    os.kill(child, signal.SIGKILL)  # not reaped yet, so the pid is still its own
    until = time.monotonic() + _END_SECONDS
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.005)


def _answer(question: Callable[[], Mapping[str, Any]], writing: int, asker: int) -> None:
    """The child's whole life."""
    try:
        die_with_parent(asker)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.alarm(int(ASK_SECONDS) + 1)
        try:
            answer = dict(question())
        except DriverProblem as problem:
            answer = {"problem": str(problem)}
        os.write(writing, json.dumps(answer).encode()[:_MOST_BYTES])
    finally:
        os._exit(0)


def _read(fd: int, until: float) -> bytes | None:
    """To the end, or None when the time is over."""
    parts = b""
    while (left := until - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            data = os.read(fd, _MOST_BYTES)
            if not data:
                return parts
            parts += data
    return None
