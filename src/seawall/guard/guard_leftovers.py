# SPDX-License-Identifier: Apache-2.0
"""What a guard changed and what it left, taken back: without a guard, after one was killed, twice.

The tracing that a killed watcher left is swept too.  Each function tells a line for each thing.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.actions.journal import Journal
from seawall.actions.mounts import find_mounts
from seawall.actions.undo import undo as undo_journal
from seawall.guard.lock_file import NAME, SECOND, Lock, hold
from seawall.guard.order_files import ORDERS, QUARANTINE, RESCUE
from seawall.guard.self_test import remove_leftovers
from seawall.guard.tell.paths import FILES, REHEARSAL, REHEARSAL_FILES, REHEARSAL_TREE
from seawall.host.page_trace.instances import sweep
from seawall.host.page_trace.kprobes import sweep_probes
from seawall.host.page_trace.tracefs import attach
from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.problems import UsageProblem
from seawall.proc.file_lock import try_lock
from seawall.replaced_file import parts_of

JOURNAL: Final = "guard.undo"


class Neighbour(NamedTuple):
    """Who else has files in the guard's folder, while it lives with a lock on one of them."""

    lock: str
    files: tuple[str, ...]
    journal: str = ""
    """Of what it changed; empty: it changes nothing."""


WATCHER: Final = Neighbour("watch.lock", ("claims", "base.json", "watch.lock"))
"""Bundles, the black box and notes of the lab lie there too: evidence, which stays."""


def undo_changes(folder: str, neighbours: Iterable[Neighbour], other: str = "") -> list[str]:
    """``other``: the guard to which its own journal is left, in words."""
    told = [f"{other}: what it froze or lowered is left to it"] if other else []
    told += [] if other else _undo_journal(f"{folder}/{JOURNAL}")
    for one in neighbours:
        if one.journal and not is_held(f"{folder}/{one.lock}"):
            told += _undo_journal(f"{folder}/{one.journal}")
    return told + [f"removed the trace instance {name}" for name in sweep_tracing()]


def undo_after_stop(folder: str, neighbours: Iterable[Neighbour]) -> list[str]:
    """What a guard that lives has in force is left to it."""
    try:
        lock = hold(folder) if os.path.isdir(folder) else Lock(-1, 0)
    except OSError:  # a full /run is no reason to let anybody stand still
        lock = Lock(-1, 0)
    try:
        # The unit's own, which is stuck in the kernel, takes nothing back any more.
        is_other = lock.other_pid and str(lock.other_pid) != os.environ.get("MAINPID")
        return undo_changes(folder, neighbours, _words(lock) if is_other else "")
    finally:
        _let_go([lock])


def undo_everything(folder: str, neighbours: Sequence[Neighbour]) -> list[str]:
    """And its files.  No guard starts meanwhile: what it writes would be removed under it, its
    lock too.
    """
    both = [place for place in (f"{folder}/{SECOND}", folder) if os.path.isdir(place)]
    places = {place: os.path.lexists(f"{place}/{NAME}") for place in both}
    locks: list[Lock] = []
    try:
        locks.extend(map(_hold, places))
        told = undo_changes(folder, neighbours) + _remove_cgroups()
        names = _names(folder, neighbours, keeps=any(map(is_failure, told)))
        return told + _remove_files(places, names)
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


def is_failure(line: str) -> bool:
    """Whether a line tells of something that could not be taken back or removed."""
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


def _names(folder: str, neighbours: Iterable[Neighbour], *, keeps: bool) -> list[str]:
    """What a guard and its neighbours make, of none that lives.  ``keeps`` the journals: something
    in them is still to be undone.
    """
    names, journals = [*FILES, JOURNAL], {JOURNAL}
    for one in neighbours:
        names += () if is_held(f"{folder}/{one.lock}") else one.files
        journals.add(one.journal)
    return [name for name in names if not (keeps and name in journals)]


def _remove_files(places: Mapping[str, bool], names: Iterable[str]) -> list[str]:
    """Also half of them, and nothing else that lies there; the folders if they are empty then.
    ``places``: whose lock is held, which goes last, and whether it was there before that.
    """
    told = []
    for place, had_lock in places.items():
        for path in [f"{place}/{name}" for name in names]:
            told += _removed(os.unlink, [path, *parts_of(path)])
        told += _remove_rehearsal(place) + _remove_orders(place)
        lock = _removed(os.unlink, [f"{place}/{NAME}"])
        told += lock if had_lock else []
        with suppress(OSError):
            os.rmdir(place)
    return told


def _remove_orders(place: str) -> list[str]:
    """But for a brake that is on: no guard that is installed again may miss it."""
    folder = f"{place}/{ORDERS}"
    told = _removed(os.unlink, [f"{folder}/{name}" for name in (RESCUE, QUARANTINE)])
    with suppress(OSError):
        os.rmdir(folder)
        told.append(f"removed {folder}")
    return told


def _remove_rehearsal(place: str) -> list[str]:
    """Of a guard that was killed in it; what else lies there is somebody's."""
    folder = f"{place}/{REHEARSAL}"
    told = _removed(os.unlink, [f"{folder}/{name}" for name in REHEARSAL_FILES])
    told += _removed(os.rmdir, [f"{folder}/{ORDERS}"])
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
