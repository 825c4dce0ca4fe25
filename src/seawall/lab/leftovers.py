# SPDX-License-Identifier: Apache-2.0
"""What a lab that was killed left behind, found by name and removed.

A run holds locks on what it made (``locks``): what can be locked belongs to no living run.
Nothing is ever killed here.  The children of a dead run died with it, so a process in such a
cgroup is somebody else's, or cannot die yet; either way the cgroup stays, and that is said.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from seawall.lab import locks
from seawall.lab.cgroup_parent import mounted_trees
from seawall.lab.delegation import OUTSIDE, added_of, take_back
from seawall.lab.disk import FOLDERS
from seawall.lab.group import members, remove_folder, why_busy
from seawall.lab.notes import folder_of, own_notes, still_there
from seawall.lab.small_files import read_text

PREFIX: Final = "seawall-lab-"
ONLY_LOOKED: Final = "only looked"
"""Why a thing is still there after a ``--dry-run``."""
_NAME: Final = re.compile(rf"{PREFIX}[0-9]{{1,10}}-[0-9]{{1,20}}(?:{OUTSIDE}[a-z-]{{0,40}})?\Z")
_FOLDERS_MOST: Final = 100_000
_REMOVE_SECONDS: Final = 1.0
_START_FIELD: Final = 19  # of /proc/PID/stat behind the name: field 22, starttime in ticks


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that a run left."""

    path: str
    is_removed: bool
    why: str = ""
    """Why it is still there."""


def own_name() -> str:
    """What this run calls everything that it makes: no other run of this boot is called so."""
    text = read_text("/proc/self/stat")
    words = text[text.rindex(")") + 2 :].split()  # a name may hold spaces and brackets
    return f"{PREFIX}{os.getpid()}-{words[_START_FIELD]}"


def is_ours(name: str) -> bool:
    """Whether a lab gives such names."""
    return _NAME.match(name) is not None


def clean(*, dry: bool = False) -> list[Leftover]:
    """``seawall lab clean``: all that dead runs left, everywhere; what became of each."""
    return _take_away(list(_all_cgroups()), FOLDERS, dry=dry)


def clean_below(parents: Sequence[str], folder: str | None) -> list[Leftover]:
    """At the start of a run: only beside its own cgroup, and in the folder that it will use."""
    found = [path for parent in dict.fromkeys(parents) for path in _ours_in(parent)]
    return _take_away(found, (folder,) if folder else (), dry=False)


def _take_away(cgroups: Sequence[str], folders: Sequence[str], *, dry: bool) -> list[Leftover]:
    rows = []
    for path in sorted(cgroups, key=lambda path: OUTSIDE in path):  # taken back once they are empty
        rows += _one(path, _remove_cgroup, dry=dry)
    notes = [path for path in own_notes() if is_ours(os.path.basename(path))]
    named = [folder for path in notes if (folder := folder_of(path))]
    gone = {row.path for row in rows} if dry else set()
    for path in notes:
        if not set(still_there(path)) - gone:  # else it still tells people what that is
            rows += _one(path, _remove_file, dry=dry)
    for folder in dict.fromkeys(map(os.path.realpath, (*folders, *named))):
        for path in _files_in(folder):
            rows += _one(path, _remove_file, dry=dry)
    return rows


def _one(path: str, remove: Callable[[str], list[Leftover]], *, dry: bool) -> list[Leftover]:
    """Nothing when a living run holds it."""
    try:
        fd = locks.take(path, shared=dry)
    except FileNotFoundError:  # somebody else was faster
        return [] if dry else [Leftover(path, is_removed=True)]
    except OSError as error:
        return [Leftover(path, is_removed=False, why=error.strerror or "")]
    if fd is None:
        return []
    try:
        return [_seen(path)] if dry else remove(path)
    finally:
        os.close(fd)


def _seen(path: str) -> Leftover:
    """``--dry-run``: what would become of it."""
    return Leftover(path, is_removed=False, why=why_busy(path) if members(path) else ONLY_LOOKED)


def _remove_cgroup(path: str) -> list[Leftover]:
    added = added_of(os.path.basename(path))
    rows = _take_back(path, added) if added else []
    if remove_folder(path, _REMOVE_SECONDS):
        return [Leftover(path, is_removed=True), *rows]
    return [Leftover(path, is_removed=False, why=why_busy(path)), *rows]


def _take_back(path: str, added: Sequence[str]) -> list[Leftover]:
    """Controllers that a dead run handed on; not when others may rely on them by now."""
    parent = os.path.dirname(path)
    with suppress(OSError), os.scandir(parent) as entries:
        others = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        others.remove(os.path.basename(path))
        if not others:
            take_back(parent, added)
    control = f"{parent}/cgroup.subtree_control"
    with suppress(OSError):
        if still := [name for name in added if name in read_text(control).split()]:
            why = f"{' '.join(still)} stays: another cgroup may need it by now"
            return [Leftover(control, is_removed=False, why=why)]
    return []


def _remove_file(path: str) -> list[Leftover]:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        return [Leftover(path, is_removed=False, why=error.strerror or "")]
    return [Leftover(path, is_removed=True)]


def _all_cgroups() -> Iterator[str]:
    """Ours in every cgroup tree that is mounted here."""
    trees = (tree for tree in mounted_trees() if tree.version == 2 or tree.controllers)
    for mount in sorted({tree.mount_point for tree in trees}):
        todo, count = [mount], 0
        while todo and count < _FOLDERS_MOST:
            folder = todo.pop()
            count += 1
            yield from _ours_in(folder)
            with suppress(OSError), os.scandir(folder) as entries:
                todo += [e.path for e in entries if e.is_dir(follow_symlinks=False)]


def _ours_in(parent: str) -> list[str]:
    with suppress(OSError), os.scandir(parent) as entries:
        return sorted(
            e.path for e in entries if is_ours(e.name) and e.is_dir(follow_symlinks=False)
        )
    return []


def _files_in(folder: str) -> Iterator[str]:
    """Regular files of this user: what is left for a moment where O_TMPFILE is missing."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_ours(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                        yield entry.path
