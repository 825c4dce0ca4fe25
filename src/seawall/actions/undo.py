# SPDX-License-Identifier: Apache-2.0
"""Put back what the journal says is changed: at each start, each stop, by ``guard undo``.

By inode, so a path that came again is left alone; by the value that we wrote, so what somebody
changed since stays theirs; and only what we froze is thawed.
"""

import os
from collections.abc import Collection
from typing import Final

from seawall.actions import cgroup_files, signal_journal
from seawall.actions.freeze_effects import KIND, is_frozen
from seawall.actions.identity import FOLDER
from seawall.actions.journal import Change, Journal
from seawall.actions.work import refusal

_LIMITS: Final = {"clamp": "memory.max", "low": "memory.low"}
"""Files whose number was changed."""
THAWED: Final = "thawed"
_KINDS: Final = {*KIND.values(), *_LIMITS}
UNKNOWN: Final = "another version changed it, in a way that this one does not know"
NOT_HERE: Final = "no such cgroup tree is mounted there, as this process sees it"


def undo(journal: Journal, but: Collection[int] = ()) -> list[str]:
    """A sentence per change: what was put back, or why it was left.  OSError: no journal.

    ``but``: numbers of those that stay in it.
    """
    journal.open()
    words = []
    for number, change in journal.changes():
        if number in but or change.kind == signal_journal.KIND:
            continue
        if change.kind not in _KINDS:
            words.append(f"not undone: {change.folder}: {change.old}: {UNKNOWN}")
            continue
        try:
            text = undo_one(change)
        except OSError as problem:
            is_away = isinstance(problem, FileNotFoundError)
            why = NOT_HERE if is_away else refusal(problem)
            words.append(f"not undone: {change.folder}: {_value(change)}: {why}")
            continue
        journal.end(number)
        words.append(f"{change.folder}: {text}")
    return words


def undo_one(change: Change) -> str:
    """What became of it, in words; OSError when it is refused: then it stays in the journal.

    FileNotFoundError: its tree is elsewhere, as in a container that saw it below another path.
    """
    try:
        fd = os.open(change.folder, FOLDER)
    except FileNotFoundError:
        if not _is_tree_there(change):
            raise
        return "is gone, nothing to put back"
    try:
        if os.fstat(fd).st_ino != change.inode:
            return "is another cgroup by now, left alone"
        if change.kind in _LIMITS:
            return _put_back(fd, change, _LIMITS[change.kind])
        return _thaw(fd, change)
    finally:
        os.close(fd)


def _is_tree_there(change: Change) -> bool:
    """Whether what is left of its path ends in a cgroup, of its version: only v1 has ``tasks``."""
    above = os.path.dirname(change.folder)
    while above != "/" and not os.path.lexists(above):
        above = os.path.dirname(above)
    is_v1 = os.path.lexists(f"{above}/tasks")
    return os.path.lexists(f"{above}/cgroup.procs") and is_v1 is (change.kind == "freeze1")


def _thaw(fd: int, change: Change) -> str:
    version = 1 if change.kind == "freeze1" else 2
    if not is_frozen(fd, version):
        return "was thawed already"
    name = "freezer.state" if version == 1 else "cgroup.freeze"
    cgroup_files.write(fd, name, change.old)
    return THAWED


def _put_back(fd: int, change: Change, name: str) -> str:
    now = cgroup_files.read(fd, name)
    if now != change.new:
        return f"{name} is {now}, which somebody wrote since: left"
    cgroup_files.write(fd, name, change.old)
    return f"{name} is {change.old} again"


def _value(change: Change) -> str:
    name = _LIMITS.get(change.kind)
    return f"{name} {change.old}" if name else change.old
