# SPDX-License-Identifier: Apache-2.0
"""The note of each run: what it is, for people who find its cgroup, and for ``lab clean``."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from seawall.lab import locks
from seawall.lab.small_files import read_text
from seawall.problems import UsageProblem


def state_folder() -> str | None:
    """Where runs are noted down; None for an ordinary user without a place of its own."""
    if os.geteuid() == 0:
        return "/run/seawall/lab"
    own = os.environ.get("XDG_RUNTIME_DIR")
    return f"{own}/seawall/lab" if own else None


def write_note(name: str, words: Mapping[str, Any]) -> tuple[str, int] | None:
    """Its path and the fd that holds its lock; None where it cannot be written, and then
    nothing of it is there.
    """
    folder = state_folder()
    if folder is None:
        return None
    path = f"{folder}/{name}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.stat(folder).st_uid != os.geteuid():
            return None
        fd = locks.make_held(path, _make_file)
    except (OSError, UsageProblem):
        return None
    data = json.dumps(words).encode() + b"\n"
    with suppress(OSError):
        if os.write(fd, data) == len(data):
            return path, fd
    with suppress(OSError):
        os.unlink(path)
    os.close(fd)
    return None


def _make_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def own_notes() -> list[str]:
    """Paths of the notes that runs of this user left in the state folder."""
    folder = state_folder()
    if folder is None:
        return []
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(
            entry.path
            for entry in entries
            if entry.is_file(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    return []


def still_there(path: str) -> Sequence[str]:
    """Cgroups of that note that exist."""
    cgroups = _words(path).get("cgroups")
    if not isinstance(cgroups, list):
        return ()
    return [c for c in cgroups if isinstance(c, str) and "\0" not in c and os.path.isdir(c)]


def folder_of(path: str) -> str | None:
    """Where that run wrote its file; None when it wrote none."""
    folder = _words(path).get("folder")
    is_path = isinstance(folder, str) and os.path.isabs(folder) and "\0" not in folder
    return folder if is_path else None


def _words(path: str) -> Mapping[str, Any]:
    """What it says; nothing when it is gone or torn."""
    try:
        words = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return words if isinstance(words, dict) else {}
