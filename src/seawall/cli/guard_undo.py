# SPDX-License-Identifier: Apache-2.0
"""``seawall guard undo``: what a guard changed and that can be taken back, taken back.

Works without a guard, after one was killed, and twice.  It also sweeps the tracing that a killed
watcher left; ``--all`` removes the guard's own files.
"""

import fcntl
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from seawall.actions.journal import Journal
from seawall.actions.mounts import find_mounts
from seawall.actions.undo import undo as undo_journal
from seawall.cli import statuses
from seawall.guard.lock_file import FOLDER, NAME, SECOND, holder
from seawall.guard.self_test import remove_leftovers
from seawall.guard.tell.paths import FILES, REHEARSAL, REHEARSAL_FILES, REHEARSAL_TREE
from seawall.host.page_trace.instances import sweep
from seawall.host.page_trace.kprobes import sweep_probes
from seawall.host.page_trace.problems import TracingProblem
from seawall.host.page_trace.tracefs import attach
from seawall.pinner.asked import FILES as PIN_FILES
from seawall.pinner.asked import LOCK, UNDO
from seawall.problems import UsageProblem
from seawall.views.terminal import plain

JOURNAL: Final = "guard.undo"
_WATCH_LOCK: Final = "watch.lock"
_WATCHERS: Final = ("claims", "base.json", _WATCH_LOCK)
"""What a watcher leaves.  Bundles, the black box and notes of the lab lie there too: evidence."""


def undo(*, everything: bool, folder: str = FOLDER) -> int:
    """Say what was taken back, a line each; status 2 when something could not be."""
    pid = holder(folder) or holder(f"{folder}/{SECOND}")
    if everything and pid:
        who = f" (pid {pid})" if pid > 0 else ""
        raise UsageProblem(
            f"a guard runs{who}: stop it first, with systemctl stop seawall-guard; "
            "undo without --all takes back what it froze or lowered"
        )
    path = f"{folder}/{JOURNAL}"
    told = _undo_journal(path)
    told += [] if is_held(f"{folder}/{LOCK}") else _undo_journal(f"{folder}/{UNDO}")
    told += [f"removed the trace instance {name}" for name in _sweep_tracing()]
    if everything:
        told += _remove_cgroups() + _remove_files(folder, keeps=any(map(_is_failure, told)))
    for line in told:
        print(plain(line))
    if not told:
        print("Nothing was left to undo.")
    return statuses.USAGE if any(map(_is_failure, told)) else 0


def _is_failure(line: str) -> bool:
    """``actions/undo`` says the one, ``_remove_files`` the other."""
    return line.startswith("not undone: ") or "could not be removed" in line


def _undo_journal(path: str) -> list[str]:
    try:
        os.stat(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}; undo needs root") from error
    if not os.access(path, os.R_OK | os.W_OK):
        raise UsageProblem(f"{path}: Permission denied; undo needs root")
    journal = Journal(path)
    try:
        return undo_journal(journal)
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}") from error
    finally:
        journal.close()


def _sweep_tracing() -> list[str]:
    """Of watchers that were killed; those that live hold a lock on theirs."""
    try:
        root = attach()
    except (TracingProblem, OSError):
        return []
    try:
        with suppress(OSError):
            removed = list(sweep(root))
            sweep_probes(root)
            return removed
        return []
    finally:
        os.close(root)


def _remove_cgroups() -> list[str]:
    """Of the self-test of a guard that was killed; nobody may be in them."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = find_mounts(file.read())
    except (OSError, UsageProblem):
        return []
    return [f"removed {folder}" for folder in remove_leftovers(mounts)]


def _remove_files(folder: str, *, keeps: bool) -> list[str]:
    """What a guard and its watcher make, and nothing else that lies there; the folders if they
    are empty then.  ``keeps`` the journals: something in them is still to be undone.
    """
    names = [*FILES, JOURNAL, *PIN_FILES]
    if keeps:
        names = [name for name in names if name not in (JOURNAL, UNDO)]
    if not is_held(f"{folder}/{_WATCH_LOCK}"):
        names += _WATCHERS
    told = []
    for place in (f"{folder}/{SECOND}", folder):
        told += _removed(os.unlink, [f"{place}/{name}" for name in (*names, NAME)])
        told += _remove_rehearsal(place)
        with suppress(OSError):
            os.rmdir(place)
    return told


def _remove_rehearsal(place: str) -> list[str]:
    """Of a guard that was killed in it; what else lies there is somebody's."""
    folder = f"{place}/{REHEARSAL}"
    told = _removed(os.unlink, [f"{folder}/{name}" for name in REHEARSAL_FILES])
    return told + _removed(os.rmdir, [folder, *(f"{place}/{name}" for name in REHEARSAL_TREE)])


def _removed(remove: Callable[[str], None], paths: Iterable[str]) -> list[str]:
    """A line for each that was there."""
    told = []
    for path in paths:
        try:
            remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            told.append(f"{path} could not be removed: {error.strerror}")
        else:
            told.append(f"removed {path}")
    return told


def is_held(path: str) -> bool:
    """Whether a process that lives holds this lock: a watcher, or a pinner."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
