# SPDX-License-Identifier: Apache-2.0
"""The probe ``task_stacks``: every thread that runs or is blocked now, and where in the kernel.

Kernel source: fs/proc/array.c do_task_stat, fs/proc/base.c proc_pid_stack (CAP_SYS_ADMIN),
proc_pid_wchan, proc_pid_schedstat.  ``stat`` takes nobody's lock; ``stack`` waits for a task
that is in the middle of execve, so a thread of its own reads it and may be left behind.

Only threads in state R or D have their stack read.  Addresses never leave this module.
"""

import _thread
import os
import re
import time
from bisect import bisect_left
from functools import cache
from typing import Final, NamedTuple

from seawall.host.host import JSON

SAMPLE_SECONDS: Final = 1.0
_LEAST_THREADS: Final = 500
_MOST_SECONDS: Final = 3.0
"""So many are looked at even where SAMPLE_SECONDS are over: a thrashing node is that slow."""
_SILENCE_SECONDS: Final = 0.2
"""A thread is looked at in microseconds: one that takes so long is in execve, or the machine is
that slow."""
_CLOCK_EVERY: Final = 64  # threads between two looks at the clock
_STACKS_MOST: Final = 4000
_AGAIN_MOST: Final = 2
_FILE_BYTES: Final = 16 << 10
_ADDRESS: Final = re.compile(rb"^\[<[^>\n]*>\] ?", re.MULTILINE)
_WORDS_LEAST: Final = 20  # of stat after comm: up to when it began


class _Thread(NamedTuple):
    pid: int
    tid: int
    state: str
    comm: str
    words: list[bytes]
    """Of stat, from the state on."""

    @property
    def key(self) -> tuple[int, bytes]:
        return self.tid, self.words[19]


class _Memory:
    """Lives as long as the child: where the next scan begins, and who did not answer."""

    def __init__(self) -> None:
        self.begin = (0, 0)
        """A pid, and how many of its threads were seen already."""
        self.silent: set[tuple[int, bytes]] = set()


_MEMORY: Final = _Memory()


def task_stacks() -> JSON:
    """{"tasks": [[pid, tid, comm, state, flags, start, utime, stime, turns, stack, why, wchan],
    ...], "stacks": [text, ...], "threads", "threads_left_out", "processes_left_out",
    "stacks_left_out", "scan_seconds", "is_hidden"}.

    ``stack`` indexes ``stacks``; without one ``why`` tells the reason.  ``turns``: how often it
    got a CPU since it began, null where that is not counted.  Times in ticks.  ``is_hidden``:
    there is no pid 1, so others' processes are not shown (hidepid).
    """
    began = time.monotonic()
    scan = _Scan(began)
    scan.run()
    stacks: dict[str, int] = {}
    return {
        "tasks": [_row(*found, stacks) for found in scan.answers],
        "stacks": list(stacks),
        "threads": scan.count,
        "threads_left_out": scan.threads_left_out,
        "processes_left_out": scan.processes_left_out,
        "stacks_left_out": scan.stacks_left_out,
        "scan_seconds": round(time.monotonic() - began, 4),
        "is_hidden": scan.is_hidden,
    }


class _Answer(NamedTuple):
    """What was read of one thread."""

    stack: str = ""
    why: str = ""
    """There is no stack."""
    wchan: str = ""
    turns: int | None = None
    has_moved: bool = False
    """It got a CPU while it was looked at: this may be of before or after."""


class _Scan:
    """One pass over /proc, by a worker thread that is replaced when somebody holds it; where
    time is over the next one begins.  ``_end`` belongs to the worker that may write here.
    """

    def __init__(self, began: float) -> None:
        self._began = began
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())
        self.is_hidden = 1 not in pids
        begin, skipped = _MEMORY.begin
        at = bisect_left(pids, begin) if begin <= pids[-1] else 0
        self._pids = pids[at:] + pids[:at]
        self._next_pid = 0
        self._threads: list[tuple[int, str]] = []
        self._next_thread = 0
        self._skipped = skipped if self._pids[0] == begin else 0
        self._looking_at: _Thread | None = None
        self._steps = 0
        self._end: _thread.LockType | None = None
        self.answers: list[tuple[_Thread, _Answer]] = []
        self.count = self.threads_left_out = self.processes_left_out = self.stacks_left_out = 0
        self._full_at: tuple[int, int] | None = None

    def _seconds_left(self) -> float:
        most = SAMPLE_SECONDS if self.count >= _LEAST_THREADS else _MOST_SECONDS
        return self._began + most - time.monotonic()

    def run(self) -> None:
        is_done = False
        while not is_done and self._seconds_left() > 0:
            end = self._end = _thread.allocate_lock()
            end.acquire()
            _thread.start_new_thread(self._work, (end,))
            is_done = self._watch(end)
            held = self._looking_at
            if not is_done and held is not None:
                self._end = None
                _MEMORY.silent.add(held.key)
                self.answers.append((held, _Answer(why="no_answer")))
        self._end = None
        self._remember()

    def _watch(self, end: "_thread.LockType") -> bool:
        """False when one thread holds the worker; True when it is done, or time is over."""
        while (left := self._seconds_left()) > 0:
            before = self._steps
            if end.acquire(timeout=min(left, _SILENCE_SECONDS)):
                return True
            if self._steps == before and left > _SILENCE_SECONDS and self._looking_at:
                return False
        return True

    def _remember(self) -> None:
        """Where the next scan begins, and what this one did not reach."""
        left = len(self._threads) - self._next_thread
        self.threads_left_out += max(0, left)
        self.processes_left_out = len(self._pids) - self._next_pid
        _MEMORY.begin = (0, 0)
        if self._full_at is not None:
            _MEMORY.begin = self._full_at
        elif left > 0:
            _MEMORY.begin = (self._threads[0][0], self._skipped + self._next_thread)
        elif self.processes_left_out:
            _MEMORY.begin = (self._pids[self._next_pid], 0)

    def _work(self, end: "_thread.LockType") -> None:
        while self._end is end and self._step(end):
            self._steps += 1
            if self._steps % _CLOCK_EVERY == 0 and self._seconds_left() < 0:
                break
        end.release()

    def _step(self, end: "_thread.LockType") -> bool:
        """The next thread, or the next process; False when there is none."""
        if self._next_thread >= len(self._threads):
            return self._step_process()
        pid, name = self._threads[self._next_thread]
        self._next_thread += 1
        self.count += 1
        thread = _look_at(pid, name)
        if thread is None:
            return True
        if len(self.answers) >= _STACKS_MOST:
            self.stacks_left_out += 1
            self._full_at = self._full_at or (pid, self._skipped + self._next_thread - 1)
            return True
        self._looking_at = thread
        thread, answer = _settled(thread)
        if self._end is not end:
            _MEMORY.silent.discard(thread.key)  # slow, and not held
            return False
        self._looking_at = None
        self.answers.append((thread, answer))
        return True

    def _step_process(self) -> bool:
        if self._next_pid >= len(self._pids):
            return False
        pid = self._pids[self._next_pid]
        self._next_pid += 1
        self._threads, self._next_thread = [], 0
        if pid in own_pids():
            return True
        try:
            names = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return True  # it ended
        self._skipped = self._skipped if self._next_pid == 1 else 0
        self.threads_left_out += min(self._skipped, len(names))
        self._threads = [(pid, name) for name in names[self._skipped :]]
        return True


def _look_at(pid: int, name: str) -> _Thread | None:
    """The thread when it runs or is blocked; None as well when it has ended."""
    try:
        data = _read(f"/proc/{pid}/task/{name}/stat")
    except OSError:
        return None
    end = data.rfind(b") ")
    state = data[end + 2 : end + 3]
    if state not in (b"R", b"D"):
        return None
    comm = data[data.find(b"(") + 1 : end].decode("utf-8", "surrogateescape")
    words = data[end + 2 :].split()
    if len(words) < _WORDS_LEAST:
        return None
    return _Thread(pid, int(name), state.decode(), comm, words)


def _settled(thread: _Thread) -> tuple[_Thread, _Answer]:
    """What is of one moment: it is looked at again when it got a CPU meanwhile."""
    answer = _answer(thread)
    for _ in range(_AGAIN_MOST):
        again = _look_at(thread.pid, str(thread.tid)) if answer.has_moved else None
        if again is None:
            break
        thread, answer = again, _answer(again)
    return thread, answer


def _answer(thread: _Thread) -> _Answer:
    folder = f"/proc/{thread.pid}/task/{thread.tid}/"
    try:
        turns = _turns(_read(folder + "schedstat"))
        wchan = _read(folder + "wchan").strip().decode("utf-8", "surrogateescape")
        # A kernel without symbols prints an address; 0 is nothing.
        wchan = "" if wchan == "0" or wchan.startswith(("0x", "ffff")) else wchan[:128]
        if thread.key in _MEMORY.silent:
            return _Answer(why="no_answer", wchan=wchan, turns=turns)
        stack, why = _stack(folder + "stack")
        has_moved = _turns(_read(folder + "schedstat")) != turns
    except (FileNotFoundError, ProcessLookupError):
        return _Answer(why="vanished")
    except OSError:
        return _Answer(why="failed")
    return _Answer(stack, why, wchan, turns, has_moved)


def _stack(path: str) -> tuple[str, str]:
    try:
        data = _read(path)
    except PermissionError:
        return "", "refused"
    except FileNotFoundError:
        return "", "vanished" if os.path.exists("/proc/self/stack") else "absent"
    return _ADDRESS.sub(b"", data).decode("utf-8", "surrogateescape"), ""


def _turns(schedstat: bytes) -> int | None:
    """The third number; all three are 0 where the kernel does not count."""
    words = schedstat.split()
    if len(words) != 3 or words == [b"0"] * 3 or not words[2].isdigit():
        return None
    return int(words[2])


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _FILE_BYTES)
    finally:
        os.close(fd)


def _row(thread: _Thread, answer: _Answer, stacks: dict[str, int]) -> JSON:
    words = thread.words
    state = "R" if answer.has_moved else thread.state
    stack = None if answer.why else stacks.setdefault(answer.stack, len(stacks))
    numbers = [int(words[6]), int(words[19]), int(words[11]), int(words[12])]
    names: list[JSON] = [thread.pid, thread.tid, thread.comm, state]
    return [*names, *numbers, answer.turns, stack, answer.why, answer.wchan]


# Which processes are seawall's own: nobody wants to see the looker among what is looked at.

STARTSTACK: Final = 25  # of /proc/PID/stat's words after comm: the same after a fork alone


def own_pids() -> frozenset[int]:
    """Of a reading child: itself, its parent, and the watchdog above when it is of the same
    execve; a shell above it is not.
    """
    return _own_pids(os.getpid())


@cache
def _own_pids(pid: int) -> frozenset[int]:
    parent = os.getppid()
    above, mark = ppid_and_mark(parent)
    is_ours = above > 1 and mark not in (b"", b"0") and ppid_and_mark(above)[1] == mark
    return frozenset({pid, parent, above} if is_ours else {pid, parent})


def ppid_and_mark(pid: int) -> tuple[int, bytes]:
    """Its parent, and where its stack began: random, and new at each execve."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            words = stat.read().rpartition(b") ")[2].split()
    except OSError:
        return 0, b""
    return int(words[1]), words[STARTSTACK]
