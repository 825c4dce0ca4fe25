# SPDX-License-Identifier: Apache-2.0
"""A child that outlives us for a moment: when we die, however, it removes what we traced with.

It waits in one read of a pipe whose other end only we hold.  When both are killed at once, the
kernel stops the recording (``free_buffer``) and the next run sweeps the instances.
"""

import os
import select
import signal
import time
from contextlib import suppress
from typing import Final

from seawall.host.page_trace import tracefs
from seawall.host.page_trace.instances import PREFIX, names_of_ours, sweep
from seawall.host.page_trace.kprobes import sweep_probes
from seawall.proc.forked_child import ForkedChild

_TRIES: Final = 10
_WAIT_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 2
_END_SECONDS: Final = 5
_END_LOOK_SECONDS: Final = 0.005


class Keeper:
    """Owner of the child; ``end`` when there is nothing left to keep."""

    def __init__(self, root: int) -> None:
        """Before anything is made: the child's copy of descriptors would hold it."""
        waits, self._pipe = os.pipe2(os.O_CLOEXEC)
        owner = os.getpid()
        try:
            self._child = ForkedChild(
                lambda _: _keep(waits, root, owner), (waits, root), name="seawall-keeper",
                survives=True,
            )  # fmt: skip
        finally:
            os.close(waits)

    @property
    def pid(self) -> int:
        """Of the child."""
        return self._child.pid

    def end(self) -> None:
        """Let it look once more, and wait for its end."""
        if self._child.fd < 0 or not self._child.is_ours:
            return
        os.close(self._pipe)
        until = time.monotonic() + _END_SECONDS
        with suppress(ChildProcessError):
            while os.waitpid(self._child.pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > until:  # it hangs: nothing is left for it to do
                    os.kill(self._child.pid, signal.SIGKILL)
                    break
                time.sleep(_END_LOOK_SECONDS)
        self._child.wait()


def sweep_after(owner: int) -> None:
    """In a child of ``owner``, which has ended or ends: remove what it left."""
    with suppress(OSError):
        root = tracefs.attach()
        try:
            _sweep(root, owner)
        finally:
            tracefs.let_go(root)


def _keep(waits: int, root: int, owner: int) -> None:
    os.setsid()  # Ctrl-C is for our owner
    poll = select.poll()
    poll.register(waits, select.POLLIN)
    # Another child of our owner may hold the pipe too: look who our parent is.
    while os.getppid() == owner and not poll.poll(_LOOK_SECONDS * 1000):
        pass
    _sweep(root, owner)


def _sweep(root: int, owner: int) -> None:
    for _ in range(_TRIES):
        with suppress(OSError):
            sweep(root)
            sweep_probes(root)
            mine = [name for name in names_of_ours(root) if name.startswith(f"{PREFIX}{owner}-")]
            if os.getppid() == owner or not mine:  # while it dies it may still hold its locks
                return
        time.sleep(_WAIT_SECONDS)
