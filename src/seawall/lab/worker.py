# SPDX-License-Identifier: Apache-2.0
"""A child of the lab: it enters the cgroup, proves that it is in, and only then takes memory.

It never returns into the lab's code, dies when the lab dies, and ends by itself if all else
fails.  The interpreter is the lab's, shared by fork: 1,280 of them cost little.
"""

import mmap
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from seawall.lab import uncounted
from seawall.lab.plan import UNCOUNTED, Plan
from seawall.lab.slots import Progress, Slots
from seawall.proc.parent_death import die_with_parent

DONE: Final = 0
NOT_INSIDE: Final = 3
"""Exit status: it could not enter the cgroup, so it took nothing."""
FAILED: Final = 4
"""Exit status: its work failed; the words are in the pipe."""
GRACE_SECONDS: Final = 1.0
"""A child ends itself so long after the end, should the lab be stopped or held up."""
_REPORT_BYTES: Final = 1 << 20
NICE: Final = 10
"""Whoever watches comes first: a machine that cannot be used shows nothing."""
_NOTE_MOST_BYTES: Final = 400  # one write to a pipe of so little is never torn


@dataclass(frozen=True, slots=True)
class Stage:
    """What every child is given; all of it is opened by the lab."""

    plan: Plan
    name: str
    """Of the cgroup."""
    entries: Sequence[str]
    """cgroup.procs of every tree."""
    locks: Sequence[int]
    """What proves that the lab lives; a child lets go of it."""
    lab_pid: int
    until: float
    """The monotonic second at which all ends."""
    notes_fd: int
    """Where a child writes one line when it fails."""
    file_fd: int
    """fill and thrash: the file; else -1."""
    tokens: tuple[int, int]
    """thrash: a pipe; who holds a byte of it may run."""
    slots: Slots
    filler: bytes
    """What is written into the file: the lab's, shared by fork."""


def live(stage: Stage, place: int) -> NoReturn:
    """The child's whole life."""
    status = FAILED
    try:
        _prepare(stage)
        if not _enter(stage):
            status = NOT_INSIDE
        else:
            _become(stage)
            WORKS[stage.plan.kind](stage, place)
            status = DONE
    except BaseException as error:  # noqa: BLE001 - the border of the process
        _note(stage, f"{type(error).__name__}: {error}")
    finally:
        os._exit(status)


def _prepare(stage: Stage) -> None:
    """Dies with the lab; ignores what a terminal sends, for the lab ends it."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(stage.lab_pid)
    for fd in stage.locks:
        os.close(fd)
    os.nice(NICE)
    left = stage.until + GRACE_SECONDS - time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))


def _enter(stage: Stage) -> bool:
    """Whether this process is in the lab's cgroup of every tree, by the kernel's own word."""
    for entry in stage.entries:
        fd = os.open(entry, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"0")
        except OSError as error:
            _note(stage, f"{entry}: {error.strerror}")
            return False
        finally:
            os.close(fd)
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        inside = sum(line.rstrip("\n").endswith(f"/{stage.name}") for line in file)
    return inside >= len(stage.entries)


def _become(stage: Stage) -> None:
    """Another user, and killable like any program: an inherited protection is given up."""
    with suppress(OSError, ValueError):
        with open("/proc/self/oom_score_adj", encoding="ascii") as file:
            inherited = int(file.read())
        if inherited < 0:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("0")
    if stage.plan.uid is not None:
        os.setgroups([])
        os.setgid(stage.plan.uid)
        os.setuid(stage.plan.uid)
        die_with_parent(stage.lab_pid)  # the kernel forgets it when the user changes


def _note(stage: Stage, words: str) -> None:
    with suppress(OSError):
        os.write(stage.notes_fd, words.encode()[:_NOTE_MOST_BYTES].replace(b"\n", b" ") + b"\n")


def _rest() -> None:
    """Hold what was taken, until the lab or the kernel ends it."""
    while True:
        signal.pause()


# --- what they do ----------------------------------------------------------------------


def _take(stage: Stage, place: int) -> None:
    """Anonymous memory, page by page."""
    plan = stage.plan
    area = mmap.mmap(-1, plan.each_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # EINVAL: a kernel without huge pages
        area.madvise(mmap.MADV_NOHUGEPAGE)
    report = min(_REPORT_BYTES, plan.step_bytes or _REPORT_BYTES)
    next_wait = plan.step_bytes
    for at in range(0, plan.each_bytes, mmap.PAGESIZE):
        if at % report < mmap.PAGESIZE:
            stage.slots.write(place, Progress(at, 0, 0.0, is_ready=True))
        if next_wait is not None and at >= next_wait:
            time.sleep(1.0)
            next_wait += plan.step_bytes or 0
        area[at] = 1
    stage.slots.write(place, Progress(plan.each_bytes, 0, 0.0, is_ready=True))
    _rest()


def _fill(stage: Stage, place: int) -> None:
    """Page cache, by writing a file and keeping it open."""
    plan = stage.plan
    _write(stage, place, 0, plan.each_bytes)
    _rest()


def _write(stage: Stage, place: int, begin: int, length: int) -> None:
    done = 0
    while done < length:
        piece = memoryview(stage.filler)[: length - done]
        done += os.pwrite(stage.file_fd, piece, begin + done)
        stage.slots.write(place, Progress(done, 0, 0.0, is_ready=False))


def _run_code(stage: Stage, place: int) -> None:
    """A program with much code: mapped as the loader does, run through when it has a token."""
    size = stage.plan.each_bytes
    begin = place * size
    _write(stage, place, begin, size)
    os.fdatasync(stage.file_fd)  # clean pages can be dropped: it begins with a full cgroup
    code, data = _mapped(stage.file_fd, begin, size)
    progress = Progress(0, 0, 0.0, is_ready=True)
    stage.slots.write(place, progress)
    while True:
        token = os.read(stage.tokens[0], 1)
        began = time.monotonic()
        for at in range(0, size, mmap.PAGESIZE):
            data[at]
            code[at]
            if at % _REPORT_BYTES == 0:
                done = progress.done_bytes + at
                shown = Progress(done, progress.turns, progress.last_turn_seconds, is_ready=True)
                stage.slots.write(place, shown)
        took = time.monotonic() - began
        progress = Progress(progress.done_bytes + size, progress.turns + 1, took, is_ready=True)
        stage.slots.write(place, progress)
        os.write(stage.tokens[1], token)
        time.sleep(0.001)  # else it would be the first to read its own token again


def _mapped(fd: int, begin: int, size: int) -> tuple[mmap.mmap, mmap.mmap]:
    """The same pages twice: as code, and plainly, for reading them page by page.

    Jumps through code are no stream, but recent kernels read around a fault in code whatever
    MADV_RANDOM says; a fault in plain data they do not.
    """
    data = mmap.mmap(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ, offset=begin)
    try:
        code = mmap.mmap(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC, offset=begin)
    except PermissionError:  # a filesystem mounted noexec
        code = data
    for area in (code, data):
        area.madvise(mmap.MADV_RANDOM)
    return code, data


def _take_uncounted(stage: Stage, place: int) -> None:
    uncounted.work(stage.plan, stage.slots, place, lambda words: _note(stage, words))


WORKS: Final[dict[str, Callable[[Stage, int], None]]] = {
    "swarm": _take, "hog": _take, "fill": _fill, "thrash": _run_code,
    **dict.fromkeys(UNCOUNTED, _take_uncounted),
}  # fmt: skip
