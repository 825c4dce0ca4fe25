# SPDX-License-Identifier: Apache-2.0
"""A question to a child that is asked now and answered later, while its parent does other things.

The child may hang: at the deadline it is killed and not waited for.
"""

import json
import select
import time
from collections.abc import Callable, Iterable
from errno import EIO
from typing import Final

from seawall.host.expendable import unread_for
from seawall.host.host import JSON, Unread
from seawall.proc.forked_child import ForkedChild
from seawall.proc.pipe_frames import FrameParts, write_frame

_ANSWER_MOST_BYTES: Final = 16 << 20


class BackgroundQuestion:
    """``answer`` once; whoever does not want it any more calls ``drop``."""

    def __init__(
        self, name: str, ask: Callable[[], JSON], deadline_seconds: float, kept: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """kept: descriptors that the child needs.  OSError where none can be forked."""
        self._name = name
        self._seconds = deadline_seconds
        self._until = time.monotonic() + deadline_seconds
        self._child = ForkedChild(lambda to: _write_answer(to, ask), kept)
        self._parts = FrameParts(_ANSWER_MOST_BYTES)

    @property
    def is_over(self) -> bool:
        """Whether ``answer`` would not wait long: it has begun to come, or its time is over."""
        poll = select.poll()  # select(2) ends at descriptor 1023
        poll.register(self._child.fd, select.POLLIN)
        return bool(poll.poll(0)) or not self._seconds_left

    @property
    def _seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    @property
    def fd(self) -> int:
        """Can be read once the answer comes, which then is whole in no time."""
        return self._child.fd

    def answer(self) -> JSON | Unread:
        """What the child said; ``no_answer`` where its time is over."""
        poll = select.poll()
        poll.register(self._child.fd, select.POLLIN)
        try:
            while (frame := self._parts.take()) is None:
                if not poll.poll(self._seconds_left * 1000):
                    words = f"no answer in {self._seconds:g} s"
                    return Unread(self._name, "no_answer", words)
                if not self._parts.read(self._child.fd):
                    return Unread(self._name, "failed", "the child that read it died")
        except ValueError:
            return Unread(self._name, "failed", "the child that read it said too much")
        finally:
            self.drop()
        if frame.code:
            return unread_for(self._name, frame.code)
        told: JSON = json.loads(frame.body)
        return told

    def drop(self) -> None:
        """End the child without waiting for it; safe to call twice."""
        self._child.give_up()


def _write_answer(fd: int, ask: Callable[[], JSON]) -> None:
    try:
        write_frame(fd, json.dumps(ask()).encode())
    except OSError as error:
        write_frame(fd, b"", error.errno or EIO)
