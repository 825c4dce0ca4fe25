# SPDX-License-Identifier: Apache-2.0
"""The start of the aide's process: a fork of the guard's while it is small.

Here, above both the channel that all of the guard knows (``aide.py``) and the errands that the
aide runs (``tell/errands.py``), so that these need not know each other.
"""

import os
import signal
import socket
from typing import Any, Final

from seawall.guard.aide import Aide
from seawall.proc import process_rights
from seawall.proc.own_name import take_name, take_role

_UNWANTED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


def start(**options: Any) -> Aide:
    """Fork it; before memory is locked.  ``options`` are those of ``tell.errands.Errands``."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    # Until it has its own way with signals, none may end it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _UNWANTED)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return Aide(ours, pid)
    status = 70
    try:
        given = (*options.get("watcher_fds", ()), *options.get("recorder_fds", ()),
                 options.get("config_fd", -1))  # fmt: skip
        _forget_descriptors({theirs.fileno(), *given})
        _forget_signals()
        take_name("seawall-helper")
        take_role("helper")
        # Here and not above: what the aide holds must not be in the guard's memory.
        from seawall.guard.tell import errands  # noqa: PLC0415

        process_rights.keep_only("helper")
        status = errands.serve(theirs, errands.Errands(**options))
    except Exception as error:  # noqa: BLE001 - the process ends with it; nobody else may
        os.write(2, f"seawall guard's aide: {error!r}\n".encode("ascii", "replace"))
    finally:
        os._exit(status)


def _forget_descriptors(kept: set[int]) -> None:
    """The guard's lock and its ends of its companions' pairs must end with the guard."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the listing's own
                continue


def _forget_signals() -> None:
    """The guard's handlers are not the aide's: it ends when the guard has ended, not before."""
    signal.set_wakeup_fd(-1)
    for number in _UNWANTED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
