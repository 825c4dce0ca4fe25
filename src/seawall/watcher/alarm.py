# SPDX-License-Identifier: Apache-2.0
"""Sleep that ends at once when somebody ends the watcher."""

import os
import select
import signal
from contextlib import suppress
from typing import Final

_ENDS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Alarm:
    """Sleeps until the time is over or somebody ends us."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.is_over = False
        for number in _ENDS:
            signal.signal(number, self._end)

    def _end(self, _number: int, _frame: object) -> None:
        self.is_over = True
        with suppress(BlockingIOError):  # full: somebody is impatient
            os.write(self._write, b"!")

    def sleep(self, seconds: float, *others: int) -> None:
        """At most so long, and until one of the other descriptors can be read."""
        select.select((self._read, *others), (), (), max(0.0, seconds))
