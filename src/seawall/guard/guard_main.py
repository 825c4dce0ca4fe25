# SPDX-License-Identifier: Apache-2.0
"""Process 1, the guard, from its first moment: the aide is forked while it is small.

The order matters: then everything else is imported and opened, done once (a ranking, a
decision, a kill, an error), memory is locked, and only then does it say that it is ready.
"""

import os
import signal
import socket

from seawall.guard import aide_process
from seawall.guard.config_watch import ConfigWatch
from seawall.guard.entry import start_argv
from seawall.guard.handover import settings_descriptor, take_handover
from seawall.guard.signals import Signals
from seawall.guard.watcher_link import WatcherLink, spare_pairs

_ENDS = (signal.SIGTERM, signal.SIGINT)


def main(handed_fd: int) -> int:
    """Guard until told to end; the exit status."""
    handed = take_handover(handed_fd)
    signals = Signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # what has waited since the start is heard
    spares, theirs = spare_pairs() if handed.settings.watch else ([], [])
    is_recorded = handed.recorder_fd >= 0
    recorder_spares, recorder_theirs = spare_pairs() if is_recorded else ([], [])
    config_watch = ConfigWatch(handed.config_path)
    config_watch.open()
    aide = aide_process.start(
        watcher_fds=theirs, recorder_fds=recorder_theirs, config_fd=config_watch.fd
    )
    for end in (*theirs, *recorder_theirs):
        os.close(end)
    watcher = WatcherLink(_end(handed.watcher_fd), handed.watcher_pid, spares)
    from seawall.guard.assembly import guard  # noqa: PLC0415 - not in the aide's memory
    from seawall.guard.loop import AFRESH  # noqa: PLC0415
    from seawall.guard.recorder_link import RecorderLink  # noqa: PLC0415

    recorder = RecorderLink(_end(handed.recorder_fd), handed.recorder_pid, recorder_spares)
    watcher.says_version = recorder.says_version = True  # each begins in ``entry``
    status, settings = guard(handed, signals, aide, watcher, recorder, config_watch)
    if status == AFRESH:
        if _is_to_end(signals):
            return 0
        watcher.close()
        if handed.lock_fd >= 0:
            os.close(handed.lock_fd)
        # A second guard only observed, whatever the file says: it may be the first one now.
        fd = -1 if handed.other_guard_pid else settings_descriptor(settings)
        argv = start_argv(handed.config_path, fd)
        os.execv(argv[0], argv)  # noqa: S606 - our own interpreter and file
    return status


def _is_to_end(signals: Signals) -> bool:
    """Whether somebody said so while the guard put everything away.  What comes from here on
    waits, over the exec: the launcher and the next guard hear it; a SIGHUP of before likewise.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_ENDS, signal.SIGHUP))
    come = signals.come()
    if signal.SIGHUP in come:
        os.kill(os.getpid(), signal.SIGHUP)
    return signal.SIGTERM in come or signal.SIGINT in come


def _end(fd: int) -> socket.socket | None:
    return None if fd < 0 else socket.socket(fileno=fd)
