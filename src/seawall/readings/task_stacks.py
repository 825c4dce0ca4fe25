# SPDX-License-Identifier: Apache-2.0
"""The probe ``task_stacks``: threads that run or are blocked, and their kernel stacks.

From /proc/PID/task/TID/{stat,stack,wchan,schedstat}.  ``stack`` needs CAP_SYS_ADMIN and a
kernel with CONFIG_STACKTRACE (every distribution's); functions of the scheduler, mutexes and
semaphores are left out of it by the kernel.  A thread that is on a CPU has an empty one.

>>> parse(b"do_futex+0x1b/0x50\\n[<0>] nvidia_ioctl+0x8/0x20 [nvidia]\\n")[1].module
'nvidia'
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from seawall.host.host import Host, Unread
from seawall.readings.process import PF_KTHREAD

PROBE: Final = "task_stacks"
FRAMES_MOST: Final = 128
_LINE_MOST: Final = 512
_NUMBER_MOST: Final = 1 << 64
_TEXT_MOST: Final = 256
_REASONS: Final = frozenset(("", "refused", "absent", "vanished", "no_answer", "not_reached"))
# Since 5.14 a module may have its build id behind its name.
_FRAME: Final = re.compile(
    rb"(?:\[<[^>]{0,32}>\] )?([A-Za-z_][\w.$]{0,200})\+0x[0-9a-f]{1,16}/0x[0-9a-f]{1,16}"
    rb"(?: \[([\w-]{1,64})(?: [0-9a-f]{1,64})?\])?"
)


class StackFrame(NamedTuple):
    """One function of the kernel; ``module`` is None for the kernel's own."""

    function: str
    module: str | None

    @property
    def text(self) -> str:
        return self.function if self.module is None else f"{self.function} [{self.module}]"


Stack = tuple[StackFrame, ...]
"""Innermost first."""


class StackTask(NamedTuple):
    """One thread at one moment."""

    pid: int
    tid: int
    comm: str
    state: str
    """R or D, as in proc(5)."""
    flags: int
    start_ticks: int
    """Since boot; with the tid it identifies the thread."""
    utime_ticks: int
    stime_ticks: int
    turns: int | None
    """How often it got a CPU since it began; None where the kernel does not count."""
    stack: Stack | None
    """None: not read, see ``why``.  Empty: it is on a CPU."""
    why: str
    wchan: str
    """A function that is told even where the stack is not; empty when it is not."""

    @property
    def is_kernel_thread(self) -> bool:
        return bool(self.flags & PF_KTHREAD)


@dataclass(frozen=True, slots=True)
class TaskStacks:
    """The topic: threads that run or are blocked at one moment, and their kernel stacks."""

    tasks: tuple[StackTask, ...]
    threads: int
    """Looked at."""
    threads_left_out: int
    """Of the processes that were begun, for lack of time."""
    processes_left_out: int
    stacks_left_out: int
    scan_seconds: float
    is_hidden: bool
    """No pid 1 is to be seen: others' processes are hidden (hidepid)."""


def parse(data: bytes) -> Stack:
    """One /proc/PID/stack; lines that are no frames are skipped."""
    frames: list[StackFrame] = []
    for line in data.split(b"\n", FRAMES_MOST * 2):
        found = _FRAME.match(line[:_LINE_MOST])
        if found and len(frames) < FRAMES_MOST:
            frames.append(frame_of(found))
    return tuple(frames)


def frame_of(found: re.Match[bytes]) -> StackFrame:
    """Of a match whose groups 1 and 2 are the function and its module."""
    function, module = found[1].decode("ascii", "replace"), found[2]
    return StackFrame(function, None if module is None else module.decode("ascii", "replace"))


def read(host: Host) -> TaskStacks | Unread:
    """Every thread in state R or D but seawall's own."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    values: dict[str, Any] = answer if isinstance(answer, dict) else {}
    names = ("threads", "threads_left_out", "processes_left_out", "stacks_left_out")
    counts: list[Any] = [values.get(name) for name in names]
    seconds = values.get("scan_seconds")
    rows, texts = values.get("tasks"), values.get("stacks")
    if (
        not all(_is_count(value) for value in counts)
        or not isinstance(seconds, int | float)
        or not isinstance(values.get("is_hidden"), bool)
        or not isinstance(rows, list)
        or not isinstance(texts, list)
    ):
        return Unread(PROBE, "malformed", "expected tasks, stacks and counts")
    stacks = [parse(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str)]
    if len(stacks) < len(texts):
        return Unread(PROBE, "malformed", "expected the text of a stack")
    tasks = tuple(_tasks(rows, stacks))
    if len(tasks) < len(rows):
        return Unread(PROBE, "malformed", "expected twelve values for each thread")
    threads, threads_left_out, processes_left_out, stacks_left_out = counts
    return TaskStacks(
        tasks=tasks,
        threads=threads,
        threads_left_out=threads_left_out,
        processes_left_out=processes_left_out,
        stacks_left_out=stacks_left_out,
        scan_seconds=seconds,
        is_hidden=values["is_hidden"],
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _NUMBER_MOST


def _tasks(rows: list[Any], stacks: list[Stack]) -> Iterator[StackTask]:
    """Up to the first row that is not what it should be."""
    for row in rows:
        if not isinstance(row, list) or len(row) != len(StackTask._fields):
            return
        pid, tid, comm, state, *numbers, turns, index, why, wchan = row
        words = (comm, why, wchan)
        if (
            not all(map(_is_count, (pid, tid, *numbers)))
            or not (turns is None or _is_count(turns))
            or not all(isinstance(word, str) and len(word) <= _TEXT_MOST for word in words)
            or state not in ("R", "D")
            or not (index is None or (_is_count(index) and index < len(stacks)))
        ):
            return
        stack = None if index is None else stacks[index]
        flags, start, utime, stime = numbers
        reason = why if why in _REASONS else "failed"
        yield StackTask(
            pid, tid, comm, state, flags, start, utime, stime, turns, stack, reason, wchan
        )  # fmt: skip
