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
from seawall.guard.handed import kept, take_handed
from seawall.guard.link import WatcherLink, spare_pairs
from seawall.guard.signals import Signals


def main(handed_fd: int) -> int:
    """Guard until told to end; the exit status."""
    handed = take_handed(handed_fd)
    lean_re.end()  # the aide has one of its own
    signals = Signals()
    spares, theirs = spare_pairs() if handed.settings.watch else ([], [])
    is_recorded = handed.recorder_fd >= 0
    recorder_spares, recorder_theirs = spare_pairs() if is_recorded else ([], [])
    aide = aide_process.start(watcher_fds=theirs, recorder_fds=recorder_theirs)
    for end in (*theirs, *recorder_theirs):
        os.close(end)
    watcher = WatcherLink(_end(handed.watcher_fd), handed.watcher_pid, spares)
    from seawall.guard.assembly import guard  # noqa: PLC0415 - not in the aide's memory
    from seawall.guard.loop import AFRESH  # noqa: PLC0415
    from seawall.guard.told_recorder import RecorderLink  # noqa: PLC0415

    recorder = RecorderLink(_end(handed.recorder_fd), handed.recorder_pid, recorder_spares)
    status, settings = guard(handed, signals, aide, watcher, recorder)
    if status == AFRESH:
        watcher.close()
        if handed.lock_fd >= 0:
            os.close(handed.lock_fd)
        # A second guard only observed, whatever the file says: it may be the first one now.
        fd = -1 if handed.other_guard_pid else kept(settings)
        argv = start_argv(handed.config_path, fd)
        os.execv(argv[0], argv)  # noqa: S606 - our own interpreter and file
    return status


def _end(fd: int) -> socket.socket | None:
    return None if fd < 0 else socket.socket(fileno=fd)
