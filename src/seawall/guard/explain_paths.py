# SPDX-License-Identifier: Apache-2.0
"""The paths that the guard's file names, as they are on this machine: is there what it will need?

A guard would find that out at its first kill.  Looked at from where this process is: the unit's
sandbox or a container may see something else there.
"""

import errno
import os
import shlex
import stat
from typing import Final, NamedTuple

from seawall.guard.settings import Settings

_HOST: Final = "/proc/1/root"
"""Where the aide looks for messages next (``tell/termination``): no mount is needed for that."""
_GONE: Final = (errno.ENOENT, errno.ENOTDIR)


class Named(NamedTuple):
    """What one key names."""

    key: str
    path: str
    """That was looked at: the command's program, the file's folder, the kubelet's pods."""
    problem: str
    """In words; empty: it is as the guard needs it, as far as can be seen."""


def named_paths(settings: Settings) -> tuple[Named, ...]:
    """Of the keys that are set, in the order of the file."""
    rows = []
    if settings.run_after_kill:
        program = shlex.split(settings.run_after_kill)[0]
        rows.append(Named("run_after_kill", program, _problem(program, is_program=True)))
    if settings.textfile:
        folder = settings.textfile.rpartition("/")[0] or "/"
        rows.append(Named("textfile", folder, _problem(folder)))
    if settings.kubelet_root:
        pods = f"{settings.kubelet_root}/pods"
        problem = _problem(pods)
        rows.append(Named("kubelet_root", pods, problem and _problem(_HOST + pods) and problem))
    return tuple(rows)


def _problem(path: str, *, is_program: bool = False) -> str:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno in _GONE:
            return "is not there"
        return f"could not be looked at: {error.strerror}"
    if not is_program:
        return "" if stat.S_ISDIR(mode) else "is no folder"
    # By its bits, not by access(2): the guard is root, whoever asks.
    is_executable = stat.S_ISREG(mode) and mode & 0o111
    return "" if is_executable else "is not executable"
