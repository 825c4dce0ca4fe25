# SPDX-License-Identifier: Apache-2.0
"""Children of the aide that were forked while the node had memory, and wait for their request: they
write what is told of a kill while the node is short and nothing is forked.

A spare has given up its rights and the aide's descriptors beforehand: a filter of seccomp(2) takes
memory of the kernel's.  New ones are forked when the node is not short.
"""

import gc
import json
import os
import select
import signal
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, NoReturn

from seawall.proc.own_name import take_name

KINDS: Final = {"termination_message": 1}
"""So many of each: the kubelet reads that file within a second.  Each holds 1 MB of its own, so the
aide writes lines to the kernel's log itself then.
"""
NAME: Final = "seawall-spare"
"""In ``ps``, while it waits and while it writes."""
_REQUEST_MOST: Final = 60_000

Run = Callable[[str, int, int], NoReturn]
"""(kind, where the request comes from, where the answer goes), in the child."""


class SpareChild(NamedTuple):
    """One that waits: its pid, our end of the pipe to it and of that back."""

    pid: int
    requests: int
    answers: int


class SpareChildren:
    """``prepare`` in peace, ``take`` at any time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._spares: dict[str, deque[SpareChild]] = {kind: deque() for kind in KINDS}

    def prepare(self) -> None:
        """Fork what is missing, as far as there is memory for it."""
        for kind, spares in self._spares.items():
            while len(spares) < KINDS[kind]:
                try:
                    spares.append(self._fork(kind))
                except OSError:
                    return

    def has(self, kind: str) -> bool:
        """Whether one of this kind waits."""
        return bool(self._spares.get(kind))

    def take(self, kind: str, request: dict[str, Any]) -> SpareChild | None:
        """One that has its request; None: there is none."""
        spares = self._spares.get(kind)
        while spares:
            spare = spares.popleft()
            is_alive = not select.select((spare.answers,), (), (), 0)[0]
            with suppress(OSError):
                if is_alive:
                    os.write(spare.requests, json.dumps(request).encode())
                    os.close(spare.requests)
                    return spare
            self._end(spare)
        return None

    def close(self) -> None:
        """End all of them."""
        for spares in self._spares.values():
            while spares:
                self._end(spares.pop())

    def _fork(self, kind: str) -> SpareChild:
        asked, requests = os.pipe2(os.O_CLOEXEC)
        answers, told = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            pid = os.fork()
        except OSError:
            for fd in (asked, requests, answers, told):
                os.close(fd)
            raise
        if not pid:
            gc.disable()  # a collection would write to every page, and each would become a copy
            gc.freeze()
            take_name(NAME)
            self._run(kind, asked, told)
        os.close(asked)
        os.close(told)
        return SpareChild(pid, requests, answers)

    def _end(self, spare: SpareChild) -> None:
        for fd in (spare.requests, spare.answers):
            with suppress(OSError):
                os.close(fd)
        with suppress(OSError):
            os.kill(spare.pid, signal.SIGKILL)
            os.waitpid(spare.pid, 0)


def awaited(requests: int) -> dict[str, Any]:
    """In the child: its request, which comes whole; none comes where the aide has ended."""
    data = b""
    while piece := os.read(requests, _REQUEST_MOST):
        data += piece
    if not data:
        os._exit(0)
    return dict(json.loads(data))
