# SPDX-License-Identifier: Apache-2.0
"""The lab's own cgroup: made, limited, the limit read back, measured, emptied, removed.

Kernel documents: admin-guide/cgroup-v1/memory.rst, pids.rst; admin-guide/cgroup-v2.rst.
"""

import mmap
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from seawall.lab.home import Home
from seawall.lab.plan import Plan
from seawall.lab.small_files import read_number, read_table, read_text, write_text
from seawall.problems import UsageProblem

REMOVE_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.02
_SWAP_BYTES: Final = max(1 << 20, 64 * mmap.PAGESIZE)
"""v1: the limit on memory and swap is so much higher.  The kernel asks it first, in batches; at
the same height it would refuse every charge, and memory.failcnt would tell of none."""
OUTSIDE: Final = "-outside"
"""v2 with a delegated parent: the leaf that the lab itself steps into."""


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


class Group:
    """One cgroup of the same name in every tree that is used."""

    def __init__(self, home: Home, name: str) -> None:
        self.home = home
        self.name = name
        self.version = home.version
        self.by_controller = {
            controller: f"{parent}/{name}" for controller, parent in home.parents.items()
        }
        self.notes: list[str] = []
        """What was not done as planned, and why."""

    @property
    def folder(self) -> str:
        """In the tree that counts memory."""
        return self.by_controller["memory"]

    @property
    def folders(self) -> Sequence[str]:
        """Every folder, once."""
        return tuple(dict.fromkeys(self.by_controller.values()))

    @property
    def path(self) -> str:
        """As ``seawall pods`` shows it."""
        return self.home.path_of(self.folder)

    def make(self, plan: Plan) -> None:
        """Make it with its limits and read them back; UsageProblem when one does not hold."""
        if self.home.delegated:
            self._step_aside()
        for folder in self.folders:
            try:
                os.mkdir(folder, 0o755)
            except OSError as error:
                raise UsageProblem(f"{folder}: cannot be made: {error.strerror}") from error
        if self.version == 1:
            self._limit_v1(plan)
        else:
            self._limit_v2(plan)
        if "pids" in self.by_controller:
            self._set(f"{self.by_controller['pids']}/pids.max", plan.pids_limit)

    def _step_aside(self) -> None:
        """v2: memory is handed on only by a cgroup without processes, so this one moves down."""
        parent = self.home.memory
        try:
            os.mkdir(f"{parent}/{self.name}{OUTSIDE}", 0o755)
            write_text(f"{parent}/{self.name}{OUTSIDE}/cgroup.procs", str(os.getpid()))
            for name in self.home.parents:
                write_text(f"{parent}/cgroup.subtree_control", f"+{name}")
        except OSError as error:
            raise UsageProblem(f"{parent}: cannot hand memory on: {error.strerror}") from error

    def _step_back(self) -> None:
        parent = self.home.memory
        for name in self.home.parents:
            with suppress(OSError):
                write_text(f"{parent}/cgroup.subtree_control", f"-{name}")
        with suppress(OSError):
            write_text(f"{parent}/cgroup.procs", str(os.getpid()))
            os.rmdir(f"{parent}/{self.name}{OUTSIDE}")

    def _limit_v1(self, plan: Plan) -> None:
        # Inherited from the parent: without this a lab below a paused one would wait for ever.
        self._set(f"{self.folder}/memory.oom_control", int(plan.killer_off), "oom_kill_disable")
        self._set(f"{self.folder}/memory.limit_in_bytes", plan.limit_bytes)
        both = f"{self.folder}/memory.memsw.limit_in_bytes"
        if plan.swap:
            return
        if os.path.exists(both):
            self._set(both, plan.limit_bytes + _SWAP_BYTES)
        elif read_table("/proc/meminfo").get("SwapTotal"):
            self._set(f"{self.folder}/memory.swappiness", 0)
            self.notes.append("this kernel limits no swap (swapaccount=1): swappiness is 0 instead")

    def _limit_v2(self, plan: Plan) -> None:
        self._set(f"{self.folder}/memory.max", plan.limit_bytes)
        if not plan.swap and os.path.exists(f"{self.folder}/memory.swap.max"):
            self._set(f"{self.folder}/memory.swap.max", 0)

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
        """Read it now."""
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
            )  # fmt: skip
        events = read_table(f"{self.folder}/memory.events")
        return Measured(
            usage=read_number(f"{self.folder}/memory.current"),
            peak=read_number(f"{self.folder}/memory.peak"),
            limit_hits=events.get("max"), oom_kills=events.get("oom_kill"),
            anon=stat.get("anon"), file=stat.get("file"), dirty=stat.get("file_dirty"),
            major_faults=stat.get("pgmajfault"),
            read_again=stat.get("workingset_refault_file", stat.get("workingset_refault")),
        )  # fmt: skip

    def remove(self) -> list[str]:
        """Kill what is in it, let its cache go, take it away; the folders that stayed."""
        left = [folder for folder in self.folders if not remove_folder(folder)]
        if self.home.delegated:
            self._step_back()
            aside = f"{self.home.memory}/{self.name}{OUTSIDE}"
            left += [aside] if os.path.exists(aside) else []
        return left


def remove_folder(folder: str, seconds: float = REMOVE_SECONDS) -> bool:
    """Whether the cgroup is gone; whatever is in it is killed first."""
    until = time.monotonic() + seconds
    first = True
    while os.path.isdir(folder):
        kill_all(folder)
        if first and not members(folder):
            _drop_cache(folder)
            first = False
        try:
            os.rmdir(folder)
        except OSError:
            # A killed process leaves its cgroup a moment later.
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN_SECONDS)
    return True


def members(folder: str) -> list[int]:
    """Pids in it; 0 stands for a process of another pid namespace."""
    try:
        return [int(word) for word in read_text(f"{folder}/cgroup.procs").split()]
    except OSError:
        return []


def kill_all(folder: str) -> None:
    """One round of SIGKILL; nothing but the lab's own children is ever in this cgroup."""
    with suppress(OSError):
        write_text(f"{folder}/cgroup.kill", "1")  # v2 since 5.14: all of them at once
        return
    for pid in members(folder):
        if pid:
            _kill_member(pid, os.path.basename(folder))


def _kill_member(pid: int, name: str) -> None:
    """Through a pidfd, and only if it still is in the cgroup: pids come again."""
    with suppress(OSError):  # gone meanwhile
        fd = os.pidfd_open(pid)
        try:
            lines = read_text(f"/proc/{pid}/cgroup").splitlines()
            if any(line.endswith(f"/{name}") for line in lines):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)


def _drop_cache(folder: str) -> None:
    """Else the pages outlive the cgroup and keep it as a dying one in the kernel."""
    with suppress(OSError):
        write_text(f"{folder}/memory.force_empty", "0")
    usage = read_number(f"{folder}/memory.current")
    if usage:
        with suppress(OSError):
            write_text(f"{folder}/memory.reclaim", str(usage))
