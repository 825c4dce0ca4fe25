# SPDX-License-Identifier: Apache-2.0
"""A child that may hang, so that nobody else does.

It reads one file at a time for its parent.  When no answer comes before the deadline the
child is killed and left behind (a task in state D dies when it wakes), a new one is forked
at the next question, and the missing answer is itself evidence.  After a few such losses of
one kind, further questions of that kind are refused at once: a verb must end.  Whoever asks for
weeks has them lapse, or a bad minute would blind it for good.
"""

import errno
import math
import os
import select
import signal
import struct
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Final

from seawall.host.blocking import KERNEL_LOG
from seawall.host.host import Unread

LOSSES_BEFORE_REFUSAL: Final = 5
LAPSE_SECONDS: Final = 300.0
"""So long a loss counts for whoever asks for weeks: five of 2 s each are a thirtieth of that."""
_CONTROL_PATH: Final = "/proc/self/cmdline"
_PATH_MOST: Final = 8192  # twice PATH_MAX
QUESTION_MOST: Final = 1 << 20  # bytes of a probe's question
_HEAD: Final = struct.Struct("=iq")  # errno or 0 or -1 for too big; length

Reader = Callable[[str, int], bytes]
"""Reads ``(path, limit_bytes)``; raises OSError, EFBIG for a file over the limit."""


class Expendable:
    """Owner of at most one reading child."""

    def __init__(
        self, reader: Reader, kept: Callable[[], Iterable[int]] = tuple,
        lapse_seconds: float = math.inf,
    ) -> None:  # fmt: skip
        """``kept``: descriptors that the reader needs in the child, e.g. its root.
        ``lapse_seconds``: so long a loss counts.
        """
        self._reader = reader
        self._lapse_seconds = lapse_seconds
        self._kept = kept
        self._pid = 0
        self._to = self._back = -1
        self._owner = os.getpid()
        self.losses: dict[str, list[float]] = {}
        """By kind: when (monotonic); no more of each than refuse."""

    def read(self, path: str, limit_bytes: int, deadline_seconds: float) -> bytes | Unread:
        """The content of ``path``, or ``no_answer`` after ``deadline_seconds``.

        A process is blamed only when it is silent twice while the child's own address space
        answers in between: on a thrashing node the child itself may be what is slow.
        """
        kind = _kind(path)
        if (lost := self._lost(kind)) >= LOSSES_BEFORE_REFUSAL:
            words = f"not asked: {lost} {kind} reads before it did not come back"
            return Unread(path, "no_answer", words)
        answer = self._ask(path, limit_bytes, deadline_seconds)
        if kind == "process" and answer is None:
            if self._ask(_CONTROL_PATH, limit_bytes, deadline_seconds) is None:
                self._lose(kind)
                return Unread(path, "no_answer", "the reading child itself was too slow to tell")
            answer = self._ask(path, limit_bytes, deadline_seconds)
        if answer is not None:
            return answer
        self._lose(kind)
        return Unread(path, "no_answer", f"{_meaning(path)}; no answer in {deadline_seconds:g} s")

    def _lose(self, kind: str) -> None:
        self.losses.setdefault(kind, []).append(time.monotonic())

    def _lost(self, kind: str) -> int:
        """How many of a kind count now."""
        if not (times := self.losses.get(kind)):
            return 0
        since = time.monotonic() - self._lapse_seconds
        times[:] = [lost_at for lost_at in times if lost_at > since]
        return len(times)

    def _ask(self, path: str, limit_bytes: int, deadline_seconds: float) -> bytes | Unread | None:
        """One try; None when the deadline passed and the child was given up."""
        if not self._pid or self._owner != os.getpid():
            self._fork()
        try:
            request = os.fsencode(path)
        except ValueError:  # a character that no file name can have
            return unread_for(path, errno.EINVAL)
        if len(request) > (QUESTION_MOST if path.startswith("\0") else _PATH_MOST):
            return unread_for(path, errno.ENAMETOOLONG)
        try:
            question = struct.pack("=qi", limit_bytes, len(request)) + request
            is_put = self._put(question, deadline_seconds)
            head = self._take(_HEAD.size, deadline_seconds) if is_put else None
            code, length = _HEAD.unpack(head) if head else (0, 0)
            body = self._take(length, max(deadline_seconds, 1.0)) if head else None
        except (BrokenPipeError, EOFError):
            self._drop()
            return Unread(path, "failed", "the reading child died")
        if body is None:
            self._drop()
            return None
        return body if code == 0 else unread_for(path, code)

    @property
    def is_running(self) -> bool:
        """Whether a child waits for the next question; else it is forked then."""
        return bool(self._pid) and self._owner == os.getpid()

    def close(self) -> None:
        """End the child; safe to call twice."""
        self._drop()

    def _put(self, question: bytes, deadline_seconds: float) -> bool:
        """The pipe takes 64 KiB at once; more only as fast as the child reads."""
        poll = select.poll()
        poll.register(self._to, select.POLLOUT)
        view = memoryview(question)
        while view:
            if not poll.poll(deadline_seconds * 1000):
                return False
            view = view[os.write(self._to, view) :]
        return True

    def _take(self, size: int, deadline_seconds: float) -> bytes | None:
        """Exactly ``size`` bytes from the child, or None at the deadline."""
        parts: list[bytes] = []
        poll = select.poll()
        poll.register(self._back, select.POLLIN)
        while size:
            if not poll.poll(deadline_seconds * 1000):
                return None
            part = os.read(self._back, min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _drop(self) -> None:
        """Kill the child without waiting for it."""
        if self._pid and self._owner == os.getpid():
            os.close(self._to)
            os.close(self._back)
            try:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):
                pass
        self._pid = 0

    def _fork(self) -> None:
        requests, self._to = os.pipe()
        self._back, answers = os.pipe()
        self._owner = os.getpid()
        self._pid = os.fork()
        if self._pid:
            os.close(requests)
            os.close(answers)
            os.set_blocking(self._to, False)
            return
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            let_go({requests, answers, *self._kept()})
            _serve(requests, answers, self._reader)
        finally:
            os._exit(0)


def let_go(keep: Collection[int]) -> None:
    """Close what was inherited: a child that hangs must hold nobody's pipe or terminal."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            with suppress(OSError):
                os.close(int(name))
    null = os.open(os.devnull, os.O_RDWR)  # lands on the lowest number, which is free now
    for number in (0, 1, 2):
        if number not in keep and number != null:
            os.dup2(null, number)


def _serve(requests: int, answers: int, reader: Reader) -> None:
    """The child's whole life."""
    while True:
        head = os.read(requests, 12)
        if len(head) < 12:
            return
        limit_bytes, length = struct.unpack("=qi", head)
        path = os.fsdecode(_read_all(requests, length))
        code, body = 0, b""
        try:
            body = reader(path, limit_bytes)
        except OSError as error:
            code = error.errno or errno.EIO
        except ValueError:
            code = errno.EINVAL  # a NUL in a name
        data = memoryview(_HEAD.pack(code, len(body)) + body)
        while data:
            data = data[os.write(answers, data) :]


def _read_all(requests: int, length: int) -> bytes:
    """A pipe gives a page at a time when it likes."""
    data = b""
    while len(data) < length:
        part = os.read(requests, length - len(data))
        if not part:
            break
        data += part
    return data


def unread_for(path: str, code: int) -> Unread:
    """The reason that an errno stands for."""
    detail = os.strerror(code)
    if code in (errno.ENOENT, errno.ENOTDIR, errno.EOPNOTSUPP):
        return Unread(path, "absent", detail)
    if code in (errno.EACCES, errno.EPERM):
        return Unread(path, "refused", detail)
    if code in (errno.ESRCH, errno.ENODEV):
        return Unread(path, "vanished", detail)
    if code == errno.EFBIG:
        return Unread(path, "too_big", "larger than its reader's limit")
    return Unread(path, "failed", detail)


def _kind(path: str) -> str:
    if path.startswith("\0ask "):
        return path.split(" ")[1]  # a probe that hangs says nothing of disks
    if path.startswith("/proc/"):
        return "process" if path[6:7].isdecimal() else "kernel"
    return "kernel" if path == KERNEL_LOG or path.startswith("/sys/") else "disk"


def _meaning(path: str) -> str:
    """What it says about the machine when this file does not answer."""
    kind = _kind(path)
    if kind == "process":
        return f"pid {path.split('/')[2]}: address space locked"
    return "kernel lock held" if kind == "kernel" else "the disk under it does not answer"
