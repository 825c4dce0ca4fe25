# SPDX-License-Identifier: Apache-2.0
"""A guard with a real recorder process at the other end."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.recorder.pair import Guard

from seawall.blackbox.reader import Box
from seawall.guard.entry import recorder_argv

SIZE = 4 << 20


class Recorder(Guard):
    """With a real recorder at the other end."""

    def __init__(
        self, path: Path, argv: Callable[[list[str]], list[str]] = list, folder: str = ""
    ) -> None:
        super().__init__()
        fd = self.theirs.fileno()
        words = recorder_argv(fd, str(path), SIZE, folder)
        self.child = subprocess.Popen(argv(words), pass_fds=(fd,))
        self.theirs.close()

    def ticks(self, count: int, state: str = "peace", every: float = 0.1) -> int:
        """So many; the number of the last."""
        number = 0
        for _ in range(count):
            number = self.tick(state)
            time.sleep(every)
        return number

    def end(self, number: signal.Signals | None = None) -> int:
        """By a word, or a signal."""
        if number is None:
            self.link.bye()
        else:
            self.child.send_signal(number)
        return self.child.wait(20)

    def until_tick(self, path: Path, number: int) -> None:
        """Where the machine is busy the first frame may come before the first tick, and the next
        ten seconds later.
        """
        until = time.monotonic() + 30
        while not any(h.kind == "tick" and h.tick >= number for h in Box.open(str(path)).heads):
            assert time.monotonic() < until
            self.ticks(5)
