# SPDX-License-Identifier: Apache-2.0
"""A child that outlives us for a moment: when we die, however, it removes what we traced with.

It waits in one read of a pipe whose other end only we hold.  When both are killed at once, the
kernel stops the recording (``free_buffer``) and the next run sweeps the instances.
"""

import os
import select
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from seawall.host.page_trace.instances import PREFIX, names_of_ours, sweep
from seawall.host.page_trace.kprobes import sweep_probes

_TRIES: Final = 10
_WAIT_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 2
_END_SECONDS: Final = 5
_END_LOOK_SECONDS: Final = 0.005
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Keeper:
    """Owner of the child; ``end`` when there is nothing left to keep."""

    def __init__(self, root: int) -> None:
        """Before anything is made: the child's copy of descriptors would hold it."""
        waits, self._pipe = os.pipe2(os.O_CLOEXEC)
        self._owner = os.getpid()
        self._pid = os.fork()
        if self._pid:
            os.close(waits)
            return
        try:
            _keep(waits, root, self._owner)
        finally:
            os._exit(0)

    def end(self) -> None:
        """Let it look once more, and wait for its end."""
        pid, self._pid = self._pid, 0
        if not pid or self._owner != os.getpid():
            return
        os.close(self._pipe)
        until = time.monotonic() + _END_SECONDS
        with suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > until:  # it hangs: nothing is left for it to do
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    return
                time.sleep(_END_LOOK_SECONDS)


def _keep(waits: int, root: int, owner: int) -> None:
    os.setsid()  # Ctrl-C is for our owner
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _let_go({waits, root})
    poll = select.poll()
    poll.register(waits, select.POLLIN)
    # Another child of our owner may hold the pipe too: look who our parent is.
    while os.getppid() == owner and not poll.poll(_LOOK_SECONDS * 1000):
        pass
    for _ in range(_TRIES):
        with suppress(OSError):
            sweep(root)
            sweep_probes(root)
            mine = [name for name in names_of_ours(root) if name.startswith(f"{PREFIX}{owner}-")]
            if os.getppid() == owner or not mine:  # while it dies it may still hold its locks
                return
        time.sleep(_WAIT_SECONDS)


def _let_go(keep: Collection[int]) -> None:
    """Hold nobody's pipe, terminal or lock."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            with suppress(OSError):
                os.close(int(name))
