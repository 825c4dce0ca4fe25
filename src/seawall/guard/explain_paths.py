# SPDX-License-Identifier: Apache-2.0
"""What the guard's file names, as it is on this machine: is there what it will need?

A guard would find that out at its first kill.  Looked at from where this process is: the unit's
sandbox or a container may see something else there.
"""

import errno
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from seawall.actions.orders import Mounts
from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths

_HOST: Final = "/proc/1/root"
"""Where the aide looks for messages next (``tell/termination``): no mount is needed for that."""
_GONE: Final = (errno.ENOENT, errno.ENOTDIR)
_PMSG: Final = Paths().pmsg


class NamedPath(NamedTuple):
    """A path that a key names."""

    key: str
    path: str
    """That was looked at: the command's program, the file's folder, the kubelet's pods."""
    problem: str
    """In words; empty: it is as the guard needs it, as far as can be seen."""


def named_paths(settings: Settings) -> tuple[NamedPath, ...]:
    """Of the keys that are set, in the order of the file."""
    rows = []
    for key in ("run_after_kill", "run_on_decision"):
        if command := getattr(settings, key):
            program = shlex.split(command)[0]
            rows.append(NamedPath(key, program, _problem(program, _no_program)))
    if settings.textfile:
        folder = settings.textfile.rpartition("/")[0] or "/"
        rows.append(NamedPath("textfile", folder, _problem(folder)))
    if settings.kubelet_root:
        pods = f"{settings.kubelet_root}/pods"
        problem = _problem(pods)
        rows.append(NamedPath("kubelet_root", pods, problem and _problem(_HOST + pods) and problem))
    if settings.slurm_commands:
        program = f"{settings.slurm_commands}/scontrol"
        rows.append(NamedPath("slurm_commands", program, _problem(program, _no_program)))
    if settings.slurm_conf:
        rows.append(
            NamedPath("slurm_conf", settings.slurm_conf, _problem(settings.slurm_conf, _no_file))
        )
    return tuple(rows)


def cannot_work(settings: Settings, mounts: Mounts | None, pmsg: str = _PMSG) -> Iterator[str]:
    """What other keys ask for and this machine does not give."""
    if mounts is not None:
        for path in settings.stalled:
            if problem := _no_pressure(path, mounts):
                yield f"count the standstill of {path}: {problem} (stalled)"
        if settings.pin_slices and mounts.version == 1:
            yield "protect what slices use: cgroup v1 has no memory.low (pin_slices)"
    if settings.pmsg and (problem := _problem(pmsg, _no_device)):
        yield f"keep a line over a reset: {pmsg} {problem} (pmsg)"


def _no_pressure(path: str, mounts: Mounts) -> str:
    if mounts.unified is None:
        return "cgroup v1 has no memory.pressure"
    folder = f"{mounts.unified}{path}"
    if problem := _problem(folder):
        return f"{folder} {problem}"
    return "" if os.path.exists(f"{folder}/memory.pressure") else "it has no memory.pressure"


def _no_file(mode: int) -> str:
    return "" if stat.S_ISREG(mode) else "is no file"


def _no_folder(mode: int) -> str:
    return "" if stat.S_ISDIR(mode) else "is no folder"


def _no_device(mode: int) -> str:
    return "" if stat.S_ISCHR(mode) else "is no device"


def _no_program(mode: int) -> str:
    """By its bits, not by access(2): the guard is root, whoever asks."""
    return "" if stat.S_ISREG(mode) and mode & 0o111 else "is not executable"


def _problem(path: str, why_not: Callable[[int], str] = _no_folder) -> str:
    try:
        return why_not(os.stat(path).st_mode)
    except OSError as error:
        if error.errno in _GONE:
            return "is not there"
        return f"could not be looked at: {error.strerror}"
