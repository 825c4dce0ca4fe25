# SPDX-License-Identifier: Apache-2.0
"""The pinner as a process of its own, started by the guard's launcher: ``python -I -S``.

A round every half minute, and soon after a process of the set has ended (pidfd), so that a
restarted program is held anew and an unmount does not wait long for what was let go.  Its own
memory is locked, it is spared by the kernel's OOM killer, and it ends with the guard (prctl(2),
PR_SET_PDEATHSIG).  What it does is told in /run/seawall/pins.  There is one on a machine.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Final, NoReturn

from seawall import own_process
from seawall.actions.journal import Journal
from seawall.companion import settle
from seawall.pinner import pin_request as asking
from seawall.pinner.holding import LockedRanges
from seawall.pinner.memory_low_setting import MemoryLowSetting
from seawall.pinner.node_programs import SHELLS
from seawall.pinner.pin_request import PinRequest
from seawall.pinner.pinner_rounds import Rounds
from seawall.pinner.program_choice import task_of
from seawall.proc.file_lock import pid_in, try_lock, write_pid
from seawall.proc.parent_death import die_with_parent
from seawall.replaced_file import replace_file

ROUND_SECONDS: Final = 30.0
AFTER_END_SECONDS: Final = 1.0
"""After a process has ended: what takes its place starts within that, mostly."""
SOON_SECONDS: Final = 5.0
"""From such a round, and from the first one, to the next."""
APART_SECONDS: Final = 3.0
"""Where processes of the set end all the time, rounds are so far apart."""
_CONFIG_SECONDS: Final = 20.0
_TAKE_OVER_SECONDS: Final = 5.0


def main(fd: int) -> int:
    """The whole life of the process; ``fd`` is for ``asked.take``."""
    parent = os.getppid()
    # So that what was made is taken away, and what waits is written.
    die_with_parent(parent, signal.SIGTERM)
    own_process.be_ordinary()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    os.umask(0o027)
    asked = asking.take(fd)
    lock = _take_lock(f"{asked.folder}/{asking.LOCK}", parent)
    if lock < 0:
        return 1
    pinner = Pinner(asked, parent)
    try:
        pinner.run()
    finally:
        pinner.close()
        os.close(lock)
    return 0


def _end(_number: int, _frame: object) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


class Pinner:
    """Rounds, and what they are told in."""

    def __init__(self, asked: PinRequest, guard_pid: int) -> None:
        self._path = f"{asked.folder}/{asking.FILE}"
        self._since = time.time()
        self._config_seen = _stamp(asked.config_path)
        self._problems: list[str] = []
        self._config_problem: tuple[str, ...] = ()
        self._journal = Journal(f"{asked.folder}/{asking.UNDO}")
        self._lows = MemoryLowSetting(
            self._journal, asked.memory, asked.version, asking.memory_total_bytes()
        )
        self._rounds = Rounds(asked, LockedRanges(), guard_pid)

    def run(self) -> NoReturn:
        """Until a signal ends it."""
        self._settle()
        pause = SOON_SECONDS
        while True:
            began = time.monotonic()
            self._look_at_config()
            self._round()
            has_ended = self._wait(pause)
            pause = SOON_SECONDS if has_ended else ROUND_SECONDS
            if has_ended:
                since = time.monotonic() - began
                time.sleep(max(AFTER_END_SECONDS, APART_SECONDS - since))

    def close(self) -> None:
        """Everything is let go and put back."""
        self._lows.close()
        self._journal.close()
        self._rounds.close()
        with suppress(OSError):
            os.unlink(self._path)

    def _settle(self) -> None:
        """What lives on is locked; what another pinner left in force is put back first."""
        try:
            self._journal.open()
            self._lows.close()
        except OSError as problem:
            self._problems.append(f"{self._journal.path}: {problem.strerror}")
        settle()
        for what, why in (("its memory is not locked", own_process.lock()),
                          ("the kernel may kill it", own_process.be_spared())):  # fmt: skip
            if why:
                self._problems.append(f"{what}: {why}")

    def _round(self) -> None:
        told = self._rounds.run()
        self._lows.keep(self._rounds.request.pin_slices)
        told |= {"slices": self._lows.rows, "problems": [*self._problems, *self._config_problem],
                 "since_unix_seconds": self._since}  # fmt: skip
        _publish(self._path, told)

    def _wait(self, seconds: float) -> bool:
        """Whether a process of the set has ended; else after ``seconds``."""
        poll, fds = select.poll(), []
        lasting = [one for one in self._rounds.programs if one.word != "node" or one.rank < SHELLS]
        try:
            for one in lasting:
                with suppress(OSError):
                    fds.append(os.pidfd_open(one.pid))
                    poll.register(fds[-1], select.POLLIN)
            if any(_is_another(one.pid, one.starttime) for one in lasting):
                return True
            return bool(poll.poll(seconds * 1000))
        finally:
            for fd in fds:
                os.close(fd)

    def _look_at_config(self) -> None:
        """The file is read by a child that ends; a wrong one changes nothing."""
        asked = self._rounds.request
        stamp = _stamp(asked.config_path)
        if stamp == self._config_seen or not asked.config_argv:
            return
        self._config_seen = stamp
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter and file
                asked.config_argv, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=_CONFIG_SECONDS, check=True,
            )  # fmt: skip
            self._rounds.request = asked.with_settings(json.loads(done.stdout))
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
            self._config_problem = (f"{asked.config_path} could not be read: what was holds",)
        else:
            self._config_problem = ()


def _is_another(pid: int, starttime: int) -> bool:
    """Whether the process has gone, and the number may be somebody else's."""
    task = task_of(pid)
    return task is None or task.starttime != starttime


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _publish(path: str, told: dict[str, Any]) -> None:
    """Whole or not at all: mode 0640."""
    try:
        replace_file(path, json.dumps(told).encode())
    except OSError as problem:
        sys.stderr.write(f"seawall pinner: {path}: {problem.strerror}\n")


def _take_lock(path: str, parent: int) -> int:
    """The lock, or -1.  A pinner of the same guard, which started afresh, makes room."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    until = time.monotonic() + _TAKE_OVER_SECONDS
    while not try_lock(fd):
        pid = pid_in(fd)
        other = task_of(pid) if pid else None
        if other is not None and other.parent == parent:
            with suppress(ProcessLookupError):
                os.kill(other.pid, signal.SIGTERM)
        if time.monotonic() > until:
            sys.stderr.write(f"seawall pinner: another one runs: {path} is locked\n")
            os.close(fd)
            return -1
        time.sleep(0.1)
    write_pid(fd)
    return fd
