# SPDX-License-Identifier: Apache-2.0
"""Killed cgroups in which somebody still is: looked at from tick to tick until they are gone.

A large process is listed until its memory is freed, one that is stuck in the kernel until what it
waits for comes.  Who was forked while there was no freezer gets his signal here.
"""

import os
import signal
from typing import Final

from seawall.actions.mrelease_effects import Releases
from seawall.actions.plan import Order
from seawall.actions.signal_effects import Signals
from seawall.actions.work import Refused, Work

MOST: Final = 16
SECONDS_MOST: Final = 60.0


class _One:
    __slots__ = ("began", "fd", "order")

    def __init__(self, fd: int, order: Order, began: float) -> None:
        self.fd = fd
        self.order = order
        self.began = began


class Pursuits:
    """At most 16 at a time, each for a minute."""

    __slots__ = ("_ones", "_releases", "_signals", "_version")

    def __init__(self, signals: Signals, releases: Releases, version: int) -> None:
        self._ones: list[_One] = []
        self._signals = signals
        self._releases = releases
        self._version = version

    def take(self, folder: int, work: Work) -> None:
        """After a kill that left somebody; the oldest makes room."""
        if len(self._ones) >= MOST:
            os.close(self._ones.pop(0).fd)
        self._ones.append(_One(os.dup(folder), work.order, work.began))

    def tend(self, now: float) -> list[str]:
        """What became of them, in words; a signal for who is there still."""
        words = []
        for one in list(self._ones):
            left = self._look(one)
            passed = now - one.began
            if not left:
                words.append(f"{one.order.target.name}: all are gone after {passed:.1f} s")
            elif passed > SECONDS_MOST:
                words.append(
                    f"{one.order.target.name}: {left} killed processes are stuck in the kernel"
                )
            else:
                continue
            self._ones.remove(one)
            os.close(one.fd)
        return words

    def _look(self, one: _One) -> int:
        work = Work(one.order)
        try:
            pids = self._signals.send(one.fd, self._version, signal.SIGKILL, work)
            if pids:
                self._releases.take(one.fd, self._version, self._signals.members)
        except (Refused, OSError):
            return 1  # asked again until its time is over
        return len(pids) + self._signals.members.strangers
