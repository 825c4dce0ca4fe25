# SPDX-License-Identifier: Apache-2.0
"""What a lab that was killed left behind, found by name and removed.

The name of everything that a lab makes holds its pid and its start time, so a run that is
still alive is never taken for a dead one, and a pid that came again never for a living run.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from seawall.lab.group import OUTSIDE, members, remove_folder
from seawall.lab.home import mounted_trees
from seawall.lab.small_files import read_text, write_text

PREFIX: Final = "seawall-lab-"
_NAME: Final = re.compile(rf"{PREFIX}([0-9]{{1,10}})-([0-9]{{1,20}})(?:{OUTSIDE})?\Z")
_FOLDERS_MOST: Final = 100_000
_REMOVE_SECONDS: Final = 5.0
_START_FIELD: Final = 19  # of /proc/PID/stat behind the name: field 22, starttime in ticks


@dataclass(frozen=True, slots=True)
class Left:
    """One thing that a run left."""

    path: str
    is_removed: bool
    why: str = ""
    """Why it is still there."""


def own_name() -> str:
    """What this run calls everything that it makes."""
    pid = os.getpid()
    return f"{PREFIX}{pid}-{_start_of(str(pid))}"


def state_folder() -> str | None:
    """Where runs are noted down; None for an ordinary user without a place of its own."""
    if os.geteuid() == 0:
        return "/run/seawall/lab"
    own = os.environ.get("XDG_RUNTIME_DIR")
    return f"{own}/seawall/lab" if own else None


def write_state(name: str, words: str) -> str | None:
    """Note down what this run is, for people who find its cgroup; None where that cannot be."""
    folder = state_folder()
    if folder is None:
        return None
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.stat(folder).st_uid != os.geteuid():
            return None
        fd = os.open(
            f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600
        )
        os.close(fd)
        write_text(f"{folder}/{name}", words)
    except OSError:
        return None
    return f"{folder}/{name}"


def find_leftovers(extra: str | None = None) -> Iterator[tuple[str, bool]]:
    """(path, whether it is a cgroup) of all that dead runs left in every mounted tree, in the
    notes and in ``extra``, a folder in which a file may be left.
    """
    for path in _cgroup_folders():
        if not is_alive(os.path.basename(path)):
            yield path, True
    for path in _files(extra):
        if not is_alive(os.path.basename(path)):
            yield path, False


def remove_leftovers(extra: str | None = None) -> list[Left]:
    """Remove them; what became of each."""
    found = list(find_leftovers(extra))
    return [_remove_cgroup(p) if is_cgroup else _remove_file(p) for p, is_cgroup in found]


def is_alive(name: str) -> bool:
    """Whether the run of that name still goes on; a name that is none of ours counts as alive."""
    match = _NAME.match(name)
    if match is None:
        return True
    pid, start = match[1], match[2]
    if _start_of(pid) == start:
        return True
    # In a container its pid is another one; the start time is the same everywhere.
    for other in os.listdir("/proc"):
        if other.isdigit() and _start_of(other) == start and pid in _pids_of(other):
            return True
    return False


def _start_of(pid: str) -> str | None:
    """Start time in clock ticks since the boot; None when there is no such process."""
    try:
        text = read_text(f"/proc/{pid}/stat")
    except OSError:
        return None
    words = text[text.rindex(")") + 2 :].split()  # a name may hold spaces and brackets
    return words[_START_FIELD] if words[0] not in "ZX" else None


def _pids_of(pid: str) -> list[str]:
    """In every pid namespace that it is in."""
    with suppress(OSError):
        for line in read_text(f"/proc/{pid}/status").splitlines():
            if line.startswith("NSpid:"):
                return line.split()[1:]
    return []


def _cgroup_folders() -> Iterator[str]:
    """Ours in every cgroup tree that is mounted here, the deepest first."""
    trees = (tree for tree in mounted_trees() if tree.version == 2 or tree.controllers)
    for mount in sorted({tree.mount_point for tree in trees}):
        todo, count = [mount], 0
        found = []
        while todo and count < _FOLDERS_MOST:
            folder = todo.pop()
            count += 1
            with suppress(OSError), os.scandir(folder) as entries:
                below = [e.path for e in entries if e.is_dir(follow_symlinks=False)]
                todo += below
                found += [path for path in below if _NAME.match(os.path.basename(path))]
        yield from sorted(found, reverse=True)


def _remove_cgroup(path: str) -> Left:
    if 0 in members(path):
        return Left(path, is_removed=False, why="its processes are of another pid namespace")
    if remove_folder(path, _REMOVE_SECONDS):
        return Left(path, is_removed=True)
    return Left(path, is_removed=False, why=_why_busy(path))


def _why_busy(path: str) -> str:
    inside = members(path)
    if inside:
        return f"{len(inside)} processes in it cannot die yet, as {inside[0]}"
    return "the kernel is not done with it, or its folder is not ours to remove"


def _files(extra: str | None) -> Iterator[str]:
    for folder in filter(None, dict.fromkeys([state_folder(), extra])):
        with suppress(OSError):
            for name in os.listdir(folder):
                path = f"{folder}/{name}"
                if _NAME.match(name) and os.lstat(path).st_uid == os.geteuid():
                    yield path


def _remove_file(path: str) -> Left:
    try:
        os.unlink(path)
    except OSError as error:
        return Left(path, is_removed=False, why=error.strerror or "")
    return Left(path, is_removed=True)
