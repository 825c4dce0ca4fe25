# SPDX-License-Identifier: Apache-2.0
"""What a reproducer will do, as plain values, and when it must not.

Nothing here asks the machine: ``problems`` judges a plan by the facts that it is given.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from seawall.words import count, size

Kind = Literal["swarm", "fill", "hog", "thrash", "rings", "egl", "cuda-host", "cuda-managed"]
UNCOUNTED: Final = frozenset({"rings", "egl", "cuda-host", "cuda-managed"})
"""What these take is, as a rule, in no cgroup's charge: no limit holds them."""
DRIVEN: Final = UNCOUNTED - {"rings"}
"""These need a driver and its libraries."""

SECONDS: Final = 20.0
SECONDS_MOST: Final = 600.0
LEAST_LIMIT_BYTES: Final = 4 << 20
"""Below it the processes themselves do not fit."""
PROCESSES_MOST: Final = 10_000
BESIDE_BYTES: Final = 160 << 10
"""Page tables, kernel stack and task of one process: 118 KiB measured on 6.18.  The kernel
counts them where the lab was started, for that is where they were allocated."""
PIDS_SPARE: Final = 16
DRIVER_THREADS: Final = 512
"""A driver's libraries start threads of their own: one for each CPU, and a few."""
ROOM_SHARE: Final = 0.5
HARD_SHARE: Final = 0.9
"""Of what the machine has to give, and of the processes: not even when it is meant so."""
SIZE_MOST_BYTES: Final = 1 << 46
"""64 TiB: half of what a process can address."""
SWAP_SHARE: Final = 0.5
"""Of what is free, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What a driver says of itself."""

    name: str
    is_software: bool = False
    """It draws with the CPU, so what it takes is the process's own memory, and counted."""
    free_bytes: int | None = None
    """Free memory of the device; None when it does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.  Bytes and seconds."""

    kind: Kind
    processes: int
    each_bytes: int
    """What one process wants: anonymous memory, file pages written, or code."""
    limit_bytes: int
    seconds: float
    step_bytes: int | None = None
    """hog: so much, then a second of waiting.  rings, egl, cuda: so much each second."""
    respawn: bool = False
    """A killed process is replaced, as a supervisor does."""
    uid: int | None = None
    swap: bool = False
    swap_bytes: int = 0
    """At most so much of it."""
    killer_off: bool = False
    """v1: memory.oom_control 1, so that nobody is killed and the allocation waits."""
    folder: str | None = None
    """Where the file is made, for fill and thrash."""
    iops: int | None = None
    """thrash: reads a second that the disk is held to; None: as fast as it is."""
    driver: Driver | None = None
    """egl, cuda: who will be asked for memory."""

    @property
    def uncounted_bytes(self) -> int:
        """What no limit holds, so that only the plan itself does."""
        is_counted = self.driver is not None and self.driver.is_software
        return self.wanted_bytes if self.kind in UNCOUNTED and not is_counted else 0

    @property
    def wanted_bytes(self) -> int:
        """What all of them want together."""
        return self.processes * self.each_bytes

    @property
    def beside_bytes(self) -> int:
        """At most what is counted beside the limit."""
        return self.processes * BESIDE_BYTES

    @property
    def pids_limit(self) -> int:
        """For the pids controller: nothing of the lab forks on its own."""
        return self.processes + PIDS_SPARE + (DRIVER_THREADS if self.kind in DRIVEN else 0)

    @property
    def file_bytes(self) -> int:
        """What is written on the disk."""
        return self.wanted_bytes if self.kind in ("fill", "thrash") else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the machine has; None where it could not be asked."""

    page_size: int
    available_bytes: int | None
    """MemAvailable."""
    room_bytes: int | None = None
    """The least that the limits of the cgroups above leave; None without any limit."""
    room_of: str = ""
    """The cgroup whose limit that is."""
    pids_left: int | None = None
    mappable_bytes: int | None = None
    """The most that one process may map: MemTotal and SwapTotal; None with vm.overcommit_memory 1,
    which lets it map anything."""
    disk_free_bytes: int | None = None
    folder_fs: str | None = None
    """Filesystem type of the folder."""


NOT_DISKS: Final = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})


def problems(plan: Plan, facts: Facts, *, large: bool) -> Iterator[str]:
    """Why this plan must not run here, each in one line with the way out; none if it may.

    ``large`` lifts what is a question of size alone.
    """
    sizes = (plan.limit_bytes, plan.each_bytes, plan.step_bytes or 0)
    if max(sizes) > SIZE_MOST_BYTES:
        yield f"{max(sizes)} bytes: expected a size of at most {size(SIZE_MOST_BYTES)}"
        return
    if plan.limit_bytes < LEAST_LIMIT_BYTES:
        yield f"--limit {size(plan.limit_bytes)}: expected at least {size(LEAST_LIMIT_BYTES)}"
    if not 1 <= plan.processes <= PROCESSES_MOST:
        yield f"{plan.processes} processes: expected 1 to {count(PROCESSES_MOST)}"
    if plan.each_bytes < facts.page_size:
        yield f"{plan.each_bytes} bytes each: expected at least one page, {facts.page_size}"
    most = facts.mappable_bytes
    if plan.kind in ("hog", "swarm") and most is not None and plan.each_bytes > most:
        yield (
            f"{size(plan.each_bytes)} for one process: the kernel lets it map no more than "
            f"{size(most)} here (vm.overcommit_memory); lower it"
        )
    if plan.kind == "thrash" and plan.wanted_bytes <= plan.limit_bytes:
        yield (
            f"{size(plan.wanted_bytes)} of code fit into the limit of {size(plan.limit_bytes)}: "
            "nothing would be pushed out; give more --programs, more --code or a lower --limit"
        )
    if plan.kind in UNCOUNTED:
        yield from _uncounted(plan, facts)
    yield from _beyond(plan, facts)
    if not large:
        yield from _too_large(plan, facts)
    yield from _disk_problems(plan, facts, large=large)


def _uncounted(plan: Plan, facts: Facts) -> Iterator[str]:
    """Whatever is said: no limit would stop it, so it never comes near the end of the memory."""
    wanted, available = plan.uncounted_bytes, facts.available_bytes
    if wanted and available is None:
        yield (
            f"--size {size(wanted)}: MemAvailable could not be read, and no limit would hold this "
            "memory; it is not taken blindly"
        )
    elif available is not None and wanted > ROOM_SHARE * available:
        yield (
            f"--size {size(wanted)}: no limit counts this memory, so it is never more than half of "
            f"what this machine has to give (MemAvailable {size(available)}); lower it"
        )
    free = plan.driver.free_bytes if plan.driver else None
    if free is not None and plan.wanted_bytes > ROOM_SHARE * free:
        yield (
            f"--size {size(plan.wanted_bytes)}: more than half of what the device has free "
            f"({size(free)}); lower it"
        )


def _needed(plan: Plan) -> tuple[int, str]:
    """What the cgroups count."""
    words = f"--limit {size(plan.limit_bytes)}"
    if plan.beside_bytes > 1 << 20:
        words += f" and {size(plan.beside_bytes)} for the processes themselves"
    return plan.limit_bytes + plan.beside_bytes, words


def _of_machine(plan: Plan) -> tuple[int, str]:
    """What the machine has to give."""
    needed, words = _needed(plan)
    if plan.uncounted_bytes:
        words += f" and --size {size(plan.uncounted_bytes)} beside it"
    return needed + plan.uncounted_bytes, words


def _beyond(plan: Plan, facts: Facts) -> Iterator[str]:
    """What would reach others: the kernel's killer on the whole machine, or in a cgroup above."""
    all_of_it, all_words = _of_machine(plan)
    needed, words = _needed(plan)
    available, room = facts.available_bytes, facts.room_bytes
    if available is not None and all_of_it > HARD_SHARE * available:
        yield (
            f"{all_words}: more than nine tenths of what this machine has to give (MemAvailable "
            f"{size(available)}); the kernel would kill others: lower it"
        )
    if room is not None and needed > room:
        yield (
            f"{words}: more than {facts.room_of} has left ({size(max(room, 0))}), so the kernel "
            "may kill others in it: lower it, or give another --parent"
        )
    if facts.pids_left is not None and plan.processes > HARD_SHARE * facts.pids_left:
        yield (
            f"{count(plan.processes)} processes: more than nine tenths of the "
            f"{count(max(facts.pids_left, 0))} that may still be started here; fewer"
        )


def _too_large(plan: Plan, facts: Facts) -> Iterator[str]:
    all_of_it, all_words = _of_machine(plan)
    needed, words = _needed(plan)
    if facts.available_bytes is None:
        yield f"{words}: MemAvailable could not be read; --yes-large goes on without it"
    elif all_of_it > ROOM_SHARE * facts.available_bytes:
        yield (
            f"{all_words}: more than half of what this machine has to give "
            f"(MemAvailable {size(facts.available_bytes)}); lower it, or --yes-large"
        )
    if facts.room_bytes is not None and needed > ROOM_SHARE * facts.room_bytes:
        yield (
            f"{words}: more than half of what {facts.room_of} has left "
            f"({size(max(facts.room_bytes, 0))}), and at its limit the kernel may kill others "
            "in it; lower it, give another --parent, or --yes-large"
        )
    if facts.pids_left is not None and plan.processes > ROOM_SHARE * facts.pids_left:
        yield (
            f"{count(plan.processes)} processes: more than half of the {count(facts.pids_left)} "
            "that may still be started here; fewer, or --yes-large"
        )


def _disk_problems(plan: Plan, facts: Facts, *, large: bool) -> Iterator[str]:
    if not plan.file_bytes:
        return
    if facts.folder_fs in NOT_DISKS:
        yield (
            f"--folder {plan.folder} is {facts.folder_fs}: its pages are memory that cannot be "
            "dropped; give a --folder on a disk"
        )
    free = facts.disk_free_bytes
    if free is not None and plan.file_bytes > (1.0 if large else ROOM_SHARE) * free:
        share = "all" if large else "half of"
        yield (
            f"{size(plan.file_bytes)} to be written: more than {share} what is free in "
            f"{plan.folder} ({size(free)}); give another --folder or a smaller size"
        )
