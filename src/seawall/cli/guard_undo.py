# SPDX-License-Identifier: Apache-2.0
"""``seawall guard undo``: what a guard changed and that can be taken back, taken back.

Works without a guard, after one was killed, and twice.  It also sweeps the tracing that a killed
watcher left; ``--all`` removes the guard's own files, and lets no guard start meanwhile.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from seawall.actions.journal import Journal
from seawall.actions.mounts import find_mounts
from seawall.actions.undo import undo as undo_journal
from seawall.cli import statuses
from seawall.guard.lock_file import FOLDER, NAME, SECOND, Lock, hold
from seawall.guard.self_test import remove_leftovers
from seawall.guard.tell.paths import FILES, REHEARSAL, REHEARSAL_FILES, REHEARSAL_TREE
from seawall.host.page_trace.instances import sweep
from seawall.host.page_trace.kprobes import sweep_probes
from seawall.host.page_trace.tracefs import attach
from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.pinner.pin_request import FILES as PIN_FILES
from seawall.pinner.pin_request import LOCK, UNDO
from seawall.problems import UsageProblem
from seawall.proc.file_lock import try_lock
from seawall.replaced_file import parts_of
from seawall.views.terminal import plain

JOURNAL: Final = "guard.undo"
_WATCH_LOCK: Final = "watch.lock"
_WATCHERS: Final = ("claims", "base.json", _WATCH_LOCK)
"""What a watcher leaves.  Bundles, the black box and notes of the lab lie there too: evidence."""


def undo(*, everything: bool, is_after_stop: bool = False, folder: str = FOLDER) -> int:
    """Say what was taken back, a line each; status 2 when something could not be.

    ``is_after_stop``: what a guard that lives has in force is left to it.
    """
    if everything:
        told = _undo_everything(folder)
    elif is_after_stop:
        told = _undo_after_stop(folder)
    else:
        told = _undo_journals(folder) + _swept()
    for line in told:
        print(plain(line))
    if not told:
        print("Nothing was left to undo.")
    return statuses.USAGE if any(map(_is_failure, told)) else 0


def _undo_journals(folder: str, other: str = "") -> list[str]:
    """``other``: the guard to which its own one is left, in words."""
    told = [f"{other}: what it froze or lowered is left to it"] if other else []
    told += [] if other else _undo_journal(f"{folder}/{JOURNAL}")
    return told + ([] if is_held(f"{folder}/{LOCK}") else _undo_journal(f"{folder}/{UNDO}"))


def _swept() -> list[str]:
    return [f"removed the trace instance {name}" for name in sweep_tracing()]


def _undo_after_stop(folder: str) -> list[str]:
    try:
        lock = hold(folder) if os.path.isdir(folder) else Lock(-1, 0)
    except OSError:  # a full /run is no reason to let anybody stand still
        lock = Lock(-1, 0)
    try:
        # The unit's own, which is stuck in the kernel, takes nothing back any more.
        is_other = lock.other_pid and str(lock.other_pid) != os.environ.get("MAINPID")
        told = _undo_journals(folder, _words(lock) if is_other else "")
    finally:
        _let_go([lock])
    return told + _swept()


def _undo_everything(folder: str) -> list[str]:
    """No guard starts meanwhile: what it writes would be removed under it, its lock too."""
    both = [place for place in (f"{folder}/{SECOND}", folder) if os.path.isdir(place)]
    places = {place: os.path.lexists(f"{place}/{NAME}") for place in both}
    locks: list[Lock] = []
    try:
        locks.extend(map(_hold, places))
        told = _undo_journals(folder) + _swept() + _remove_cgroups()
        return told + _remove_files(folder, places, keeps=any(map(_is_failure, told)))
    finally:
        _let_go(locks)


def _hold(place: str) -> Lock:
    try:
        lock = hold(place)
    except OSError as error:
        raise UsageProblem(f"{place}/{NAME}: {error.strerror}; undo needs root") from error
    if lock.other_pid:
        raise UsageProblem(
            f"{_words(lock)}: stop it first, with systemctl stop seawall-guard; "
            "undo without --all takes back what it froze or lowered"
        )
    return lock


def _words(lock: Lock) -> str:
    return "a guard runs" + (f" (pid {lock.other_pid})" if lock.other_pid > 0 else "")


def _let_go(locks: Iterable[Lock]) -> None:
    for lock in locks:
        if lock.fd >= 0:
            os.close(lock.fd)


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


def sweep_tracing() -> list[str]:
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


def _remove_files(folder: str, places: Mapping[str, bool], *, keeps: bool) -> list[str]:
    """What a guard, its watcher and its pinner make, also half of it, and nothing else that lies
    there nor of one that lives; the folders if they are empty then.  ``places``: whose lock is
    held, which goes last, and whether it was there before that.  ``keeps`` the journals: something
    in them is still to be undone.
    """
    names = [*FILES, JOURNAL]
    if not is_held(f"{folder}/{LOCK}"):
        names += PIN_FILES
    if not is_held(f"{folder}/{_WATCH_LOCK}"):
        names += _WATCHERS
    if keeps:
        names = [name for name in names if name not in (JOURNAL, UNDO)]
    told = []
    for place, had_lock in places.items():
        for path in [f"{place}/{name}" for name in names]:
            told += _removed(os.unlink, [path, *parts_of(path)])
        told += _remove_rehearsal(place)
        lock = _removed(os.unlink, [f"{place}/{NAME}"])
        told += lock if had_lock else []
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
        return not try_lock(fd)
    finally:
        os.close(fd)
