# SPDX-License-Identifier: Apache-2.0
"""A question to a child that is asked now and answered later, while its parent does other things.

The child may hang: at the deadline it is killed and not waited for.
"""

import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from seawall.host.expendable import let_go, unread_for
from seawall.host.host import JSON, Unread

_ANSWER_MOST_BYTES: Final = 16 << 20


class BackgroundQuestion:
    """``answer`` once; whoever does not want it any more calls ``drop``."""

    def __init__(
        self, name: str, ask: Callable[[], JSON], deadline_seconds: float, kept: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """kept: descriptors that the child needs."""
        self._name = name
        self._seconds = deadline_seconds
        self._until = time.monotonic() + deadline_seconds
        self._back, answers = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(answers)
            return
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            let_go({answers, *kept})
            _write_answer(answers, ask)
        finally:
            os._exit(0)

    def answer(self) -> JSON | Unread:
        """What the child said; ``no_answer`` where its time is over."""
        parts: list[bytes] = []
        size = 0
        poll = select.poll()
        poll.register(self._back, select.POLLIN)
        while size <= _ANSWER_MOST_BYTES:
            left = max(0.0, self._until - time.monotonic())
            if not poll.poll(left * 1000):
                self.drop()
                return Unread(self._name, "no_answer", f"no answer in {self._seconds:g} s")
            part = os.read(self._back, 1 << 20)
            if not part:
                break
            parts.append(part)
            size += len(part)
        self.drop()
        try:
            told: JSON = json.loads(b"".join(parts))
        except ValueError:
            return Unread(self._name, "failed", "the child that read it died")
        if isinstance(told, dict) and isinstance(code := told.get("errno"), int):
            return unread_for(self._name, code)
        return told

    def drop(self) -> None:
        """End the child without waiting for it; safe to call twice."""
        if not self._pid:
            return
        os.close(self._back)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, os.WNOHANG)
        self._pid = 0


def _write_answer(fd: int, ask: Callable[[], JSON]) -> None:
    try:
        told: JSON = ask()
    except OSError as error:
        told = {"errno": error.errno or 5}
    data = memoryview(json.dumps(told).encode())
    while data:
        data = data[os.write(fd, data) :]
