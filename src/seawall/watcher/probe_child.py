# SPDX-License-Identifier: Apache-2.0
"""A child process that answers probes which may hang, while the watcher goes on.

What lies behind another process's mmap_lock, or takes half a second on a large node, is asked
here alone.  A child that does not answer in time is killed and left behind (a task in state D
dies when it wakes); the next question gets a new one.
"""

import json
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from seawall import own_process
from seawall.host.expendable import let_go
from seawall.host.host import JSON, Unread

_HEAD: Final = struct.Struct("=q")
_ANSWER_MOST: Final = 16 << 20
_QUESTION_MOST: Final = 64 << 10
_CHUNK: Final = 1 << 16

Answers = Callable[[str, str], JSON]
"""(probe, argument) -> its answer; may raise OSError, and may hang."""


class Question(NamedTuple):
    """What a probe's child is being asked: the probe's name and its argument."""

    probe: str
    argument: str


class ProbeChild:
    """Owner of at most one child, which has one question at a time."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._pid = 0
        self._to = self._back = -1
        self._asked: Question | None = None
        self._until = 0.0
        self._got = bytearray()
        self.losses = 0
        """Children that never answered."""

    @property
    def is_free(self) -> bool:
        """Whether it may be asked now."""
        return self._asked is None

    def start(self) -> None:
        """Fork the child now rather than when memory is short."""
        if not self._pid:
            self._fork()

    def ask(self, question: Question, seconds: float) -> bool:
        """Whether the question went out."""
        if self._asked is not None:
            return False
        data = json.dumps(question).encode()
        try:
            self.start()
            os.write(self._to, _HEAD.pack(len(data)) + data[:_QUESTION_MOST])
        except OSError:
            self._drop()
            return False
        self._asked, self._until = question, time.monotonic() + seconds
        return True

    def take(self) -> tuple[Question, JSON | Unread] | None:
        """The answer, when it is there or its time is over; never waits."""
        asked = self._asked
        if asked is None:
            return None
        try:
            told = self._received()
        except (OSError, EOFError, ValueError):
            self._drop()
            return asked, Unread(asked.probe, "failed", "the child that was asked died")
        if told is not None:
            self._asked = None
            return asked, told
        if time.monotonic() < self._until:
            return None
        self.losses += 1
        self._drop()
        return asked, Unread(asked.probe, "no_answer", "a process did not let go, or no time")

    def _received(self) -> JSON | Unread | None:
        while select.select((self._back,), (), (), 0)[0]:
            part = os.read(self._back, _CHUNK)
            if not part:
                raise EOFError
            self._got += part
            if len(self._got) > _ANSWER_MOST:
                raise ValueError("too much")
        if len(self._got) < _HEAD.size:
            return None
        (size,) = _HEAD.unpack_from(self._got)
        if len(self._got) < _HEAD.size + size:
            return None
        told = json.loads(bytes(self._got[_HEAD.size : _HEAD.size + size]))
        self._got = bytearray()
        if "error" in told:
            return Unread("", "failed", str(told["error"]))
        answer: JSON = told["answer"]
        return answer

    def close(self) -> None:
        """End the child; safe to call twice."""
        self._drop()

    def _drop(self) -> None:
        self._asked, self._got = None, bytearray()
        if not self._pid:
            return
        os.close(self._to)
        os.close(self._back)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, os.WNOHANG)
        self._pid = 0

    def _fork(self) -> None:
        requests, self._to = os.pipe2(os.O_CLOEXEC)
        self._back, answers = os.pipe2(os.O_CLOEXEC)
        self._pid = os.fork()
        if self._pid:
            os.close(requests)
            os.close(answers)
            return
        try:
            let_go({requests, answers})
            # Its answers are evidence, and are wanted most where nothing else gets on.
            own_process.lock()
            own_process.go_first()
            _serve(requests, answers, self._answers)
        finally:
            os._exit(0)


def reap() -> None:
    """Children that were left behind and have ended since."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(requests: int, answers: int, answer: Answers) -> None:
    """The child's whole life."""
    while len(head := os.read(requests, _HEAD.size)) == _HEAD.size:
        data = os.read(requests, _HEAD.unpack(head)[0])
        told: dict[str, JSON] = {}
        try:
            probe, argument = json.loads(data)
            told["answer"] = answer(probe, argument)
        except Exception as error:  # noqa: BLE001 - whatever it is, the watcher goes on
            told = {"error": f"{type(error).__name__}: {error}"[:200]}
        body = json.dumps(told).encode()
        view = memoryview(_HEAD.pack(len(body)) + body)
        while view:
            view = view[os.write(answers, view) :]
