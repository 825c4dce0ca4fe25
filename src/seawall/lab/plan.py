# SPDX-License-Identifier: Apache-2.0
"""What a reproducer will do, as plain values, and when it must not.

Nothing here asks the machine: ``problems`` judges a plan by the facts that it is given.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from seawall.words import count, counted, size

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
    """Of the lab's cgroup."""
    seconds: float
    """At most."""
    step_bytes: int | None = None
    """hog: so much, then a second of waiting.  rings, egl, cuda: so much each second."""
    respawn: bool = False
    """A killed process is replaced, as a supervisor does."""
    uid: int | None = None
    """User of the processes; None: that of the lab."""
    swap: bool = False
    """False: the cgroup may not swap."""
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
class MachineFacts:
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


def problems(plan: Plan, facts: MachineFacts, *, large: bool) -> Iterator[str]:
    """Why this plan must not run here, each in one line: what was asked for, the bound and where
    it comes from, and the largest that would be allowed; none if it may.

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
            f"{size(most)} here (MemTotal and SwapTotal; vm.overcommit_memory): "
            f"{_EACH[plan.kind]} {_option(most)} at most"
        )
    if plan.kind == "thrash" and plan.wanted_bytes <= plan.limit_bytes:
        yield (
            f"{size(plan.wanted_bytes)} of code fit into the limit of {size(plan.limit_bytes)}: "
            "nothing would be pushed out; give more --programs, more --code or a lower --limit"
        )
    if plan.kind in UNCOUNTED:
        yield from _uncounted(plan, facts, large=large)
    yield from _beyond(plan, facts, large=large)
    if not large:
        yield from _too_large(plan, facts)
    yield from _disk_problems(plan, facts, large=large)


_EACH: Final = {
    **dict.fromkeys(("hog", "fill", *UNCOUNTED), "--size"), "swarm": "--each", "thrash": "--code",
}  # fmt: skip
_PROCESSES: Final = {"swarm": "--processes", "thrash": "--programs"}


def _option(bytes_: float) -> str:
    """As an option takes it, rounded down: ``4095MiB``, ``640KiB``."""
    whole = int(bytes_)
    return f"{whole >> 20}MiB" if whole >= 1 << 20 else f"{whole >> 10}KiB"


def _room(plan: Plan, facts: MachineFacts, *, large: bool) -> float:
    """What may be charged to the lab's cgroup, its processes included: the least that
    MemAvailable and the limits above allow.
    """
    rooms: list[float] = [SIZE_MOST_BYTES]
    if facts.available_bytes is not None:
        share = HARD_SHARE if large else ROOM_SHARE
        rooms.append(share * facts.available_bytes - plan.uncounted_bytes)
    if facts.room_bytes is not None:
        rooms.append((1.0 if large else ROOM_SHARE) * facts.room_bytes)
    return min(rooms)


def _limit_most(plan: Plan, facts: MachineFacts, *, large: bool) -> str:
    """The largest ``--limit`` under all bounds of memory; empty where none is large enough."""
    most = _room(plan, facts, large=large) - plan.beside_bytes
    return f"--limit {_option(most)}" if most >= LEAST_LIMIT_BYTES else ""


def _size_most(plan: Plan, facts: MachineFacts, *, large: bool) -> str:
    """The largest ``--size`` of memory that no limit holds, beside this ``--limit``."""
    mosts = [float(SIZE_MOST_BYTES)]
    if facts.available_bytes is not None and plan.uncounted_bytes:
        share = HARD_SHARE if large else ROOM_SHARE
        mosts.append(ROOM_SHARE * facts.available_bytes)
        mosts.append(share * facts.available_bytes - plan.limit_bytes - plan.beside_bytes)
    if plan.driver is not None and plan.driver.free_bytes is not None:
        mosts.append(ROOM_SHARE * plan.driver.free_bytes)
    return f"--size {_option(min(mosts))}" if min(mosts) >= 1 << 20 else ""


def _at_most(plan: Plan, facts: MachineFacts, *, large: bool) -> str:
    """The way out of a bound of memory: what may be asked for."""
    more = "" if large else _limit_most(plan, facts, large=True)
    more = f", or --yes-large and {more} at most" if more else ""
    if words := _limit_most(plan, facts, large=large):
        return f"{words} at most{more}"
    least = f"not even --limit {_option(LEAST_LIMIT_BYTES)} would be left"
    if plan.uncounted_bytes:
        lower = replace(plan, limit_bytes=LEAST_LIMIT_BYTES)
        if words := _size_most(lower, facts, large=large):
            return f"{least}: with it {words} at most{more}"
    elif option := _PROCESSES.get(plan.kind):
        room = _room(plan, facts, large=large) - LEAST_LIMIT_BYTES
        if room >= BESIDE_BYTES:
            return f"{least}: with it {option} {int(room // BESIDE_BYTES)} at most{more}"
    return f"{least}: free memory first{more}"


def _uncounted(plan: Plan, facts: MachineFacts, *, large: bool) -> Iterator[str]:
    """Whatever is said: no limit would stop it, so it never comes near the end of the memory."""
    wanted, available = plan.uncounted_bytes, facts.available_bytes
    instead = _size_most(plan, facts, large=large)
    instead = f"{instead} at most" if instead else "a lower --limit first, or free memory"
    if wanted and available is None:
        yield (
            f"--size {size(wanted)}: MemAvailable could not be read, and no limit would hold this "
            "memory; it is not taken blindly"
        )
    elif available is not None and wanted > ROOM_SHARE * available:
        yield (
            f"--size {size(wanted)}: no limit counts this memory, so it is never more than "
            f"{size(ROOM_SHARE * available)}, half of what this machine has to give "
            f"(MemAvailable {size(available)}): {instead}"
        )
    free = plan.driver.free_bytes if plan.driver else None
    if free is not None and plan.wanted_bytes > ROOM_SHARE * free:
        yield (
            f"--size {size(plan.wanted_bytes)}: more than {size(ROOM_SHARE * free)}, half of what "
            f"the device has free ({size(free)}, as its driver says): {instead}"
        )


def _sum_words(plan: Plan, bound: float, *, with_uncounted: bool) -> str:
    """What is asked for in sum, part by part where ``--limit`` alone is not over the bound."""
    words = f"--limit {size(plan.limit_bytes)}"
    if plan.beside_bytes > 1 << 20 or plan.limit_bytes <= bound < _charged(plan):
        words += f" and {size(plan.beside_bytes)} for the processes themselves"
    if with_uncounted and plan.uncounted_bytes:
        words += f" and --size {size(plan.uncounted_bytes)} beside it"
    return words


def _charged(plan: Plan) -> int:
    """What the cgroups count."""
    return plan.limit_bytes + plan.beside_bytes


def _beyond(plan: Plan, facts: MachineFacts, *, large: bool) -> Iterator[str]:
    """What would reach others: the kernel's killer on the whole machine, or in a cgroup above."""
    available, room = facts.available_bytes, facts.room_bytes
    instead = _at_most(plan, facts, large=large)
    if available is not None:
        bound = HARD_SHARE * available
        if _charged(plan) + plan.uncounted_bytes > bound:
            yield (
                f"{_sum_words(plan, bound, with_uncounted=True)}: more than {size(bound)}, nine "
                f"tenths of what this machine has to give (MemAvailable {size(available)}), and "
                f"the kernel would kill others: {instead}"
            )
    if room is not None and _charged(plan) > room:
        yield (
            f"{_sum_words(plan, room, with_uncounted=False)}: more than the memory limit of "
            f"{facts.room_of} leaves ({size(max(room, 0))}), so the kernel may kill others in it: "
            f"{instead}, or another --parent"
        )
    yield from _processes(plan, facts, HARD_SHARE, "nine tenths", large=large)


def _too_large(plan: Plan, facts: MachineFacts) -> Iterator[str]:
    available, room = facts.available_bytes, facts.room_bytes
    instead = _at_most(plan, facts, large=False)
    if available is None:
        words = _sum_words(plan, SIZE_MOST_BYTES, with_uncounted=True)
        yield f"{words}: MemAvailable could not be read; --yes-large goes on without it"
    elif _charged(plan) + plan.uncounted_bytes > (bound := ROOM_SHARE * available):
        yield (
            f"{_sum_words(plan, bound, with_uncounted=True)}: more than {size(bound)}, half of "
            f"what this machine has to give (MemAvailable {size(available)}): {instead}"
        )
    if room is not None and _charged(plan) > (bound := ROOM_SHARE * room):
        yield (
            f"{_sum_words(plan, bound, with_uncounted=False)}: more than {size(max(bound, 0))}, "
            f"half of what the memory limit of {facts.room_of} leaves ({size(max(room, 0))}), and "
            f"at that limit the kernel may kill others in it: {instead}, or another --parent"
        )
    yield from _processes(plan, facts, ROOM_SHARE, "half", large=False)


def _processes(
    plan: Plan, facts: MachineFacts, share: float, share_words: str, *, large: bool
) -> Iterator[str]:  # fmt: skip
    left = facts.pids_left
    if left is None or plan.processes <= share * left:
        return
    option = _PROCESSES.get(plan.kind)
    mosts = [int(one * max(left, 0)) for one in (ROOM_SHARE, HARD_SHARE)]
    most = mosts[1] if large else mosts[0]
    instead = f"{option} {most} at most" if option and most else "end others first"
    if option and not large and mosts[1]:
        instead += f", or --yes-large and {option} {mosts[1]} at most"
    asked = counted(plan.processes, "process", "processes")
    yield (
        f"{asked}: more than {count(int(share * max(left, 0)))}, {share_words} of the "
        f"{count(max(left, 0))} that may still be started here (kernel.pid_max, and pids.max "
        f"of the cgroups above): {instead}"
    )


def _disk_problems(plan: Plan, facts: MachineFacts, *, large: bool) -> Iterator[str]:
    if not plan.file_bytes:
        return
    if facts.folder_fs in NOT_DISKS:
        yield (
            f"--folder {plan.folder} is {facts.folder_fs}: its pages are memory that cannot be "
            "dropped; give a --folder on a disk"
        )
    free = facts.disk_free_bytes
    share = 1.0 if large else ROOM_SHARE
    if free is not None and plan.file_bytes > share * free:
        of_it = "all" if large else f"{size(share * free)}, half of"
        each = share * free // plan.processes
        yield (
            f"{size(plan.file_bytes)} to be written: more than {of_it} what is free in "
            f"{plan.folder} ({size(free)}): {_EACH[plan.kind]} {_option(each)} at most, or another "
            "--folder"
        )
