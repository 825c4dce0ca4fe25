# SPDX-License-Identifier: Apache-2.0
"""The lab's own cgroup: made, limited, the limit read back, measured, removed.

Kernel documents: admin-guide/cgroup-v1/memory.rst, pids.rst; admin-guide/cgroup-v2.rst.
"""

import mmap
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from seawall.lab import locks
from seawall.lab.cgroup_parent import CgroupParent
from seawall.lab.delegation import Delegation
from seawall.lab.plan import Plan
from seawall.lab.small_files import read_number, read_table, read_text, write_text
from seawall.problems import UsageProblem

REMOVE_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 0.02
_SWAP_BYTES: Final = max(1 << 20, 64 * mmap.PAGESIZE)
"""v1: the limit on memory and swap is so much higher.  The kernel asks it first, in batches; at
the same height it would refuse every charge, and memory.failcnt would tell of none."""
_NO_SWAP_LIMIT: Final = "this kernel limits no swap per cgroup: boot with swapaccount=1, or without"
_FIRST_PID_NAMESPACE: Final = 0xEFFFFFFC
"""Inode of the pid namespace of the machine itself (include/linux/proc_ns.h)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The cgroup at one moment, in bytes and events since it was made; None: not told here."""

    usage: int | None
    peak: int | None
    limit_hits: int | None
    """v1 memory.failcnt; v2 memory.events max."""
    oom_kills: int | None
    anon: int | None
    file: int | None
    dirty: int | None
    major_faults: int | None
    read_again: int | None
    """workingset_refault_file: pages that had been dropped and were read back."""
    droppable: int | None = None
    """active_file and inactive_file less what is dirty: tmpfs is not in it, cache of files is."""


class LabGroup:
    """One cgroup of the same name in every tree that is used."""

    def __init__(self, home: CgroupParent, name: str) -> None:
        self.home = home
        self.name = name
        self.version = home.version
        self.by_controller = {
            controller: f"{parent}/{name}" for controller, parent in home.parents.items()
        }
        self._made: dict[str, int] = {}  # folder -> the fd that holds its lock
        self._aside = Delegation(home.memory, name, tuple(home.parents)) if home.delegated else None
        self.notes: list[str] = []
        """What was not done as planned, and why."""

    @property
    def folder(self) -> str:
        """In the tree that counts memory."""
        return self.by_controller["memory"]

    @property
    def folders(self) -> Sequence[str]:
        """The lab's cgroup folder in every hierarchy that is used, each folder once."""
        return tuple(dict.fromkeys(self.by_controller.values()))

    @property
    def path(self) -> str:
        """As ``seawall pods`` shows it."""
        return self.home.path_of(self.folder)

    @property
    def locks(self) -> Sequence[int]:
        """What proves that this run lives: fds, held from ``make`` to ``remove``."""
        return (*self._made.values(), *(self._aside.lock if self._aside else ()))

    @property
    def handed_on(self) -> Sequence[str]:
        """v2, delegated: the controllers that its parent hands on for the lab alone."""
        return self._aside.added if self._aside else ()

    def make(self, plan: Plan) -> None:
        """Make it with its limits and read them back; UsageProblem when one does not hold."""
        if self._aside:
            self._aside.step()
        for folder in self.folders:
            try:
                self._made[folder] = locks.make_held(folder, locks.make_folder)
            except OSError as error:
                raise UsageProblem(f"{folder}: cannot be made: {error.strerror}") from error
        if self.version == 1:
            self._limit_v1(plan)
        else:
            self._limit_v2(plan)
        if "pids" in self.by_controller:
            self._set(f"{self.by_controller['pids']}/pids.max", plan.pids_limit)

    def check(self) -> None:
        """UsageProblem when somebody took it away: then nothing holds what is started next."""
        for folder, fd in self._made.items():
            if not locks.is_same(fd, folder):
                raise UsageProblem(f"somebody removed the lab's cgroup {folder}")

    def _limit_v1(self, plan: Plan) -> None:
        # Inherited from the parent: without this a lab below a paused one would wait for ever.
        self._set(f"{self.folder}/memory.oom_control", int(plan.killer_off), "oom_kill_disable")
        self._set(f"{self.folder}/memory.limit_in_bytes", plan.limit_bytes)
        both = f"{self.folder}/memory.memsw.limit_in_bytes"
        if os.path.exists(both):
            self._set(both, plan.limit_bytes + plan.swap_bytes + _SWAP_BYTES)
        elif has_swap():
            if plan.swap:
                raise UsageProblem(f"--swap: {_NO_SWAP_LIMIT}")
            self._set(f"{self.folder}/memory.swappiness", 0)
            self.notes.append("this kernel limits no swap (swapaccount=1): swappiness is 0 instead")

    def _limit_v2(self, plan: Plan) -> None:
        self._set(f"{self.folder}/memory.max", plan.limit_bytes)
        if os.path.exists(f"{self.folder}/memory.swap.max"):
            self._set(f"{self.folder}/memory.swap.max", plan.swap_bytes)
        elif plan.swap and has_swap():
            raise UsageProblem(f"--swap: {_NO_SWAP_LIMIT}")

    def _set(self, path: str, value: int, key: str = "") -> None:
        """Write, and believe only what is read back."""
        try:
            write_text(path, str(value))
        except OSError as error:
            raise UsageProblem(f"{path}: {value} was refused: {error.strerror}") from error
        held = read_table(path).get(key) if key else read_number(path)
        if held != value:
            raise UsageProblem(f"{path}: {value} was written and {held} is there; nothing started")

    def measured(self) -> Measured:
        """The counters of the lab's cgroup, read now; None for those that this kernel does not
        have.
        """
        stat = read_table(f"{self.folder}/memory.stat")
        if self.version == 1:
            control = read_table(f"{self.folder}/memory.oom_control")
            return Measured(
                usage=read_number(f"{self.folder}/memory.usage_in_bytes"),
                peak=read_number(f"{self.folder}/memory.max_usage_in_bytes"),
                limit_hits=read_number(f"{self.folder}/memory.failcnt"),
                oom_kills=control.get("oom_kill"),
                anon=stat.get("total_rss"), file=stat.get("total_cache"),
                dirty=stat.get("total_dirty"), major_faults=stat.get("total_pgmajfault"),
                read_again=stat.get("workingset_refault_file"),
                droppable=_droppable(stat, "total_", "dirty"),
            )  # fmt: skip
        events = read_table(f"{self.folder}/memory.events")
        return Measured(
            usage=read_number(f"{self.folder}/memory.current"),
            peak=read_number(f"{self.folder}/memory.peak"),
            limit_hits=events.get("max"), oom_kills=events.get("oom_kill"),
            anon=stat.get("anon"), file=stat.get("file"), dirty=stat.get("file_dirty"),
            major_faults=stat.get("pgmajfault"),
            read_again=stat.get("workingset_refault_file", stat.get("workingset_refault")),
            droppable=_droppable(stat, "", "file_dirty"),
        )  # fmt: skip

    def remove(self) -> list[str]:
        """Let its cache go and take it away; the folders that stayed.  Nothing is killed here."""
        left = []
        for folder, fd in self._made.items():
            if locks.is_same(fd, folder) and not remove_folder(folder, REMOVE_SECONDS):
                left.append(folder)
                self.notes.append(f"{folder}: {why_busy(folder)}")
            os.close(fd)
        self._made.clear()
        return left + (self._aside.back() if self._aside else [])


def _droppable(stat: Mapping[str, int], prefix: str, dirty: str) -> int | None:
    names = (f"{prefix}active_file", f"{prefix}inactive_file", f"{prefix}{dirty}")
    active, inactive, unwritten = (stat.get(name) for name in names)
    if active is None or inactive is None or unwritten is None:
        return None
    return max(active + inactive - unwritten, 0)


def has_swap() -> bool:
    """Whether anything could be swapped at all."""
    return bool(read_table("/proc/meminfo").get("SwapTotal"))


def remove_folder(folder: str, seconds: float) -> bool:
    """Whether the cgroup is gone, after that many seconds at most; whoever is in it stays."""
    until = time.monotonic() + seconds
    is_cache_gone = False
    while True:
        if not is_cache_gone and _is_empty(folder):
            _drop_cache(folder)
            is_cache_gone = True
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            # A killed process leaves its cgroup a moment later.
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN_SECONDS)
        else:
            return True


def members(folder: str) -> list[int]:
    """Pids in it.  v2 has 0 for a process of another pid namespace; v1 leaves it out."""
    try:
        return [int(word) for word in read_text(f"{folder}/cgroup.procs").split()]
    except OSError:
        return []


def _is_empty(folder: str) -> bool:
    """Whether certainly no process is in it or below it."""
    populated = read_table(f"{folder}/cgroup.events").get("populated")
    if populated is not None:
        return populated == 0
    try:
        sees_all = os.stat("/proc/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE
    except OSError:
        return False
    return sees_all and not members(folder) and not _below(folder)


def _below(folder: str) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def why_busy(folder: str) -> str:
    """Why a cgroup cannot be removed."""
    if inside := members(folder):
        what = "1 process" if len(inside) == 1 else f"{len(inside)} processes"
        first = inside[0] or "one of another pid namespace"
        return f"{what} in it, first {first}"
    if below := _below(folder):
        return f"another cgroup is in it: {below[0]}"
    if not os.access(os.path.dirname(folder), os.W_OK):
        return "not writable for this user"
    return "the kernel is not done with it, or a process of another pid namespace is in it"


def _drop_cache(folder: str) -> None:
    """Else the pages outlive the cgroup and keep it as a dying one in the kernel."""
    with suppress(OSError):
        write_text(f"{folder}/memory.force_empty", "0")
    usage = read_number(f"{folder}/memory.current")
    if usage:
        with suppress(OSError):
            write_text(f"{folder}/memory.reclaim", str(usage))
