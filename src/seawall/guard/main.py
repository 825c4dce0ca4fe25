# SPDX-License-Identifier: Apache-2.0
"""Process 1, the guard, from its first moment: the aide is forked while it is small.

The order matters: then everything else is imported and opened, done once (a ranking, a
decision, a kill, an error), memory is locked, and only then does it say that it is ready.
"""

import os
import socket

from seawall.guard import aide as aide_process
from seawall.guard import lean_re
from seawall.guard.entry import start_argv
from seawall.guard.handed import Handed, take_handed
from seawall.guard.link import WatcherLink, spare_pairs
from seawall.guard.signals import Signals


def main(handed_fd: int) -> int:
    """Guard until told to end; the exit status."""
    handed = take_handed(handed_fd)
    lean_re.end()  # the aide has one of its own
    signals = Signals()
    spares, theirs = spare_pairs() if handed.settings.watch else ([], [])
    aide = aide_process.start(watcher_fds=theirs)
    for end in theirs:
        os.close(end)
    watcher = WatcherLink(_watcher(handed), handed.watcher_pid, spares)
    from seawall.guard.assembly import guard  # noqa: PLC0415 - not in the aide's memory
    from seawall.guard.loop import AFRESH  # noqa: PLC0415

    status = guard(handed, signals, aide, watcher)
    if status == AFRESH:
        watcher.close()
        if handed.lock_fd >= 0:
            os.close(handed.lock_fd)
        argv = start_argv(handed.config_path)
        os.execv(argv[0], argv)  # noqa: S606 - our own interpreter and file
    return status


def _watcher(handed: Handed) -> socket.socket | None:
    return None if handed.watcher_fd < 0 else socket.socket(fileno=handed.watcher_fd)
