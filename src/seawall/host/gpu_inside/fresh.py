# SPDX-License-Identifier: Apache-2.0
"""Starting that interpreter, listening to it until the deadline, and seeing that it is gone.

It is executed from a sealed copy in memory (memfd_create(2), 3.17+): whoever can look at
/proc/PID/exe in the container finds no file of the host there that it could write to.  Its
environment is empty, and its memory knows only what the question holds.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from errno import EACCES
from typing import Any, Final

import seawall
from seawall.host.gpu_inside.container_entry import ANSWER, PROCESS, QUESTION, WORDS
from seawall.host.host import JSON
from seawall.proc.memory_file import MFD_ALLOW_SEALING, MFD_CLOEXEC, memory_file

_ANSWER_MOST: Final = 1 << 20
_PART_BYTES: Final = 64 << 10
_GRACE_SECONDS: Final = 1.0  # for the killed to die; one in state D may take for ever
_FIRST_FREE: Final = 16  # descriptors that no dup2 below lands on
_PR_SET_CHILD_SUBREAPER: Final = 36  # 3.4+
_MFD_EXEC: Final = 0x10  # 6.3+
_SEALS: Final = (
    fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
)  # fmt: skip
_RUN: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from seawall.host.gpu_inside.container_entry import main; main()"
)


class Fresh:
    """One such interpreter, until ``close``."""

    def __init__(self, question: dict[str, JSON], process: int) -> None:
        self.words: dict[str, Any] = {}
        """What it said on its way: ``libraries``, ``problem``, ``pid``, ``ended``."""
        self.answer = b""
        self._said = b""
        # Should the one that watches be killed, the one inside becomes ours to wait for.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        ours, theirs = _pipes()
        self._to, self._answers, self._words = ours
        program = sealed_interpreter()
        try:
            actions: list[tuple[int, int, int]] = [
                (os.POSIX_SPAWN_DUP2, fd, number)
                for fd, number in zip(
                    (*theirs, _high(process)), (QUESTION, ANSWER, WORDS, PROCESS), strict=True
                )
            ]
            self.pid = os.posix_spawn(
                f"/proc/self/fd/{program}",
                [sys.executable or "python3", "-I", "-S", "-c", _RUN, _home()],
                {},
                file_actions=actions,
            )
        except PermissionError:
            words = "a program in memory may not be executed here (sysctl vm.memfd_noexec)"
            raise PermissionError(EACCES, words) from None
        finally:
            os.close(program)
            for _, fd, _ in actions:
                os.close(fd)
        line = json.dumps({**question, "parent": os.getpid()}).encode() + b"\n"
        with suppress(BrokenPipeError):
            os.write(self._to, line)

    def listen(self, seconds: float) -> bool:
        """Whether it was over before the deadline: answered, or said why not."""
        until = time.monotonic() + seconds
        open_ones = {self._answers, self._words}
        while open_ones and not (self.words.keys() & {"problem", "ended"}):
            left = until - time.monotonic()
            if left <= 0:
                return False
            for fd in select.select(open_ones, (), (), left)[0]:
                part = os.read(fd, _PART_BYTES)
                if not part or not self._take(fd, part):
                    open_ones.discard(fd)
        while self._answers in open_ones and select.select([self._answers], (), (), 0)[0]:
            part = os.read(self._answers, _PART_BYTES)
            if not part or not self._take(self._answers, part):
                break
        return True

    def _take(self, fd: int, part: bytes) -> bool:
        """False when it said more than anybody needs."""
        if fd == self._answers:
            self.answer += part
            return len(self.answer) <= _ANSWER_MOST
        self._said += part
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            self.words |= json.loads(line)
        return len(self._said) <= _ANSWER_MOST

    def close(self) -> list[int]:
        """End both; pids that are left behind, because the kernel does not let go of them."""
        inside: int = self.words.get("pid", 0)
        if inside and "ended" not in self.words:
            with suppress(ProcessLookupError):  # its number is its own until it is waited for
                os.kill(inside, signal.SIGKILL)
            self._wait_for_words()
        has_ended = "ended" in self.words
        for fd in (self._to, self._answers, self._words):
            os.close(fd)
        if not has_ended:
            os.kill(self.pid, signal.SIGKILL)
        if not _is_gone(self.pid):
            os.kill(self.pid, signal.SIGKILL)
            return [self.pid] if has_ended or not inside else [inside, self.pid]
        return [inside] if inside and not _is_gone(inside) else []

    def _wait_for_words(self) -> None:
        until = time.monotonic() + _GRACE_SECONDS
        while "ended" not in self.words and (left := until - time.monotonic()) > 0:
            if select.select([self._words], (), (), left)[0]:
                part = os.read(self._words, _PART_BYTES)
                if not part or not self._take(self._words, part):
                    return


def _is_gone(pid: int) -> bool:
    """A child of ours, or one that its parent left to us: waited for, for a moment."""
    until = time.monotonic() + _GRACE_SECONDS
    with suppress(ChildProcessError):
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() > until:
                return False
            time.sleep(0.002)
    return True


def sealed_interpreter() -> int:
    """A copy of this interpreter's program that nobody can change."""
    try:
        copy = memory_file("seawall", MFD_CLOEXEC | MFD_ALLOW_SEALING | _MFD_EXEC)
    except OSError:
        copy = memory_file("seawall", MFD_CLOEXEC | MFD_ALLOW_SEALING)
    source = os.open("/proc/self/exe", os.O_RDONLY | os.O_CLOEXEC)
    try:
        while os.sendfile(copy, source, None, 1 << 20):
            pass
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
        return _high(copy)
    finally:
        os.close(source)
        os.close(copy)


def _high(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """(our ends, theirs) of question, answer, words."""
    pairs = [os.pipe() for _ in range(3)]
    high = [(_high(one), _high(other)) for one, other in pairs]
    for pair in pairs:
        os.close(pair[0])
        os.close(pair[1])
    question, answer, words = high
    return (question[1], answer[0], words[0]), (question[0], answer[1], words[1])


def _home() -> str:
    """The folder, or archive, in which this package lies."""
    return os.path.dirname(os.path.dirname(os.path.abspath(seawall.__file__)))
