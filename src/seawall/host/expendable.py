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
import struct
import time
from collections.abc import Callable, Iterable
from typing import Final

from seawall.host.blocking import KERNEL_LOG
from seawall.host.host import Unread
from seawall.proc.serving_child import ChildDied, ServingChild, TooManyHang

LOSSES_BEFORE_REFUSAL: Final = 5
LAPSE_SECONDS: Final = 300.0
"""So long a loss counts for whoever asks for weeks: five of 2 s each are a thirtieth of that."""
_CONTROL_PATH: Final = "/proc/self/cmdline"
_PATH_MOST: Final = 8192  # twice PATH_MAX
QUESTION_MOST: Final = 1 << 20  # bytes of a probe's question
_LIMIT: Final = struct.Struct("=q")

Reader = Callable[[str, int], bytes]
"""Reads ``(path, limit_bytes)``; raises OSError, EFBIG for a file over the limit."""


class Expendable:
    """Owner of at most one reading child."""

    def __init__(
        self, reader: Reader, kept: Callable[[], Iterable[int]] = tuple,
        lapse_seconds: float = math.inf, child: ServingChild | None = None,
    ) -> None:  # fmt: skip
        """``kept``: descriptors that the reader needs in the child, e.g. its root.
        ``lapse_seconds``: so long a loss counts.  ``child``: one that answers others too.
        """
        self._reader = reader
        self._lapse_seconds = lapse_seconds
        self._child = child or ServingChild(keep=kept)
        self._lane = self._child.lane(self._answer)
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
        try:
            request = os.fsencode(path)
        except ValueError:  # a character that no file name can have
            return unread_for(path, errno.EINVAL)
        if len(request) > (QUESTION_MOST if path.startswith("\0") else _PATH_MOST):
            return unread_for(path, errno.ENAMETOOLONG)
        try:
            answer = self._lane.ask(_LIMIT.pack(limit_bytes) + request, deadline_seconds)
        except ChildDied:
            return Unread(path, "failed", "the reading child died")
        except TooManyHang as problem:
            return Unread(path, "no_answer", f"not asked: {problem}")
        except OSError as error:
            return Unread(path, "failed", f"no reading child: {error.strerror}")
        if answer is None:
            return None
        return answer.body if answer.code == 0 else unread_for(path, answer.code)

    def _answer(self, question: bytes) -> bytes:
        """In the child."""
        (limit_bytes,) = _LIMIT.unpack_from(question)
        return self._reader(os.fsdecode(question[_LIMIT.size :]), limit_bytes)

    @property
    def is_running(self) -> bool:
        """Whether a child waits for the next question; else it is forked then."""
        return self._child.is_running

    def close(self) -> None:
        """End the child; safe to call twice."""
        self._child.give_up()


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
