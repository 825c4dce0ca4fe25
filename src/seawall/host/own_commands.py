# SPDX-License-Identifier: Apache-2.0
"""Programs of this host, run as a person would run them: to the end, or to a deadline."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

_KEPT: Final = 4 << 20
_KILLED_SECONDS: Final = 1.0


class Ran(NamedTuple):
    """How a program that was run ended: its status, its output, its last line."""

    status: int | None
    """None: it could not be started, or did not end in time and was killed."""
    out: str
    words: str
    """The last line that it said, or why it was not run."""


def find(name: str) -> str | None:
    """By PATH, and where root's programs are when PATH is an ordinary user's."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def run(command: Sequence[str], seconds: float, given: bytes = b"") -> Ran:
    """With ``given`` on stdin.  In a session of its own, which is killed at the deadline."""
    try:
        child = subprocess.Popen(  # noqa: S603 - no shell; words checked by who asks
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return Ran(None, "", f"{command[0]}: {error.strerror}")
    try:
        out, err = child.communicate(given, timeout=seconds)
    except subprocess.TimeoutExpired:
        _kill(child)
        return Ran(None, "", f"{command[0]} did not end in {seconds:g} s")
    told = (out + b"\n" + err)[-_KEPT:].decode("utf-8", "replace").splitlines()
    last = next((line.strip() for line in reversed(told) if line.strip()), "")
    return Ran(child.returncode, out[:_KEPT].decode("utf-8", "replace"), last[:300])


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """With whoever it started; one in state D is not waited for."""
    os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_KILLED_SECONDS)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
