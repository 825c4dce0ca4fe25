# SPDX-License-Identifier: Apache-2.0
"""PSI triggers: the kernel wakes the guard when somebody stands still.

Documentation/accounting/psi.rst, since 5.2: a threshold and a window in microseconds are
written to a file that stays open, and ``poll`` answers POLLPRI, at most once a window.  Windows
are 500 ms to 10 s with CAP_SYS_RESOURCE; without it only multiples of 2 s (6.5), and EINVAL
for others.  A trigger only wakes: a container at its own limit raises the host's pressure too,
so it is never evidence that the node is short.

A trigger that could not be had is tried again each minute, as long as its file may come back: the
kernel had no memory for it just then, or no descriptor was left.
"""

import os
import select
from collections.abc import Sequence
from typing import Final

from seawall.guard.sense.cadence import Cadence
from seawall.guard.sense.files import GONE, open_quietly
from seawall.guard.sense.group_pressure import words_of

_FORMS: Final = (b"some 50000 500000\0", b"some 150000 2000000\0")
_PROTECTED_FORMS: Final = (b"full 25000 500000\0", b"full 100000 2000000\0")
_AGAIN_SECONDS: Final = 60.0


class Triggers:
    """Some triggers in one poll object, with other descriptors beside them."""

    __slots__ = ("_again", "_missed", "_others", "_poll", "by_fd")

    def __init__(self) -> None:
        self._poll = select.poll()
        self.by_fd: dict[int, str] = {}
        """The trigger's file."""
        self._others: set[int] = set()
        self._missed: dict[str, tuple[bool, str]] = {}
        """Files without a trigger: whether somebody protected is behind it, and why."""
        self._again = Cadence(_AGAIN_SECONDS)

    @property
    def problem(self) -> str:
        """Why one of them cannot be had; empty: none is missing."""
        return next(iter(self._missed.values()))[1] if self._missed else ""

    def follow(self, fresh: list[str], now: float) -> None:
        """Each tick: triggers on those protected that were found, and on those missed."""
        for path in fresh:
            self.add(path, is_protected=True)
        fresh.clear()
        if self._missed and self._again.is_due(now, is_near=False):
            for path, (is_protected, _) in list(self._missed.items()):
                self.add(path, is_protected=is_protected)

    def add(self, path: str, *, is_protected: bool = False) -> bool:
        """A trigger on ``path``; the shortest window that this kernel and we may have."""
        forms = _PROTECTED_FORMS if is_protected else _FORMS
        number = 0
        for form in forms:
            fd = open_quietly(path, os.O_RDWR | os.O_NONBLOCK)
            if fd < 0:
                number = -fd
                break
            try:
                os.write(fd, form)
            except OSError as error:
                os.close(fd)
                number = error.errno or 0
                continue
            self.by_fd[fd] = path
            self._poll.register(fd, select.POLLPRI)
            self._missed.pop(path, None)
            return True
        if is_protected and number in GONE and not os.path.isdir(os.path.dirname(path)):
            self._missed.pop(path, None)  # its cgroup has ended
        else:
            self._missed[path] = is_protected, words_of(path, number)
        return False

    def drop(self, path: str) -> None:
        """Forget the triggers on ``path``."""
        self._missed.pop(path, None)
        for fd in [fd for fd, there in self.by_fd.items() if there == path]:
            self._forget(fd)

    def sleep(self, seconds: float) -> list[tuple[int, int]]:
        """What cut the sleep short, as poll says it; empty: nothing did."""
        # Rounded up: poll() counts milliseconds, and an early end would be a busy loop.
        return self._poll.poll(int(seconds * 1000) + 1)

    def ready(self, found: list[tuple[int, int]]) -> list[int]:
        """Those of the descriptors listened to that can be read."""
        ready = []
        for fd, event in found:
            if fd in self._others:
                ready.append(fd)
            elif event & ~select.POLLPRI:
                self._forget(fd)  # its cgroup is gone
        return ready

    def listen(self, fds: Sequence[int]) -> None:
        """These descriptors beside the triggers, and no others."""
        for fd in fds:
            if fd not in self._others:
                self._others.add(fd)
                self._poll.register(fd, select.POLLIN)
        if len(self._others) > len(fds):
            for fd in [fd for fd in self._others if fd not in fds]:
                self._others.discard(fd)
                self._poll.unregister(fd)

    def _forget(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self.by_fd[fd]
        os.close(fd)

    def close(self) -> None:
        """Give all triggers back."""
        for fd in list(self.by_fd):
            self._forget(fd)
