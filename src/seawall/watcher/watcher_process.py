# SPDX-License-Identifier: Apache-2.0
"""The watcher as a process of its own, started by the guard's launcher: ``python -I -S``.

Everything is imported, opened and done once before it says ``hello``; then its memory is
locked (mlockall(2), MCL_ONFAULT since 4.4) and it goes first in line for a processor.  It ends
with the guard: prctl(2) PR_SET_PDEATHSIG, and the end of the channel.
"""

import os
import signal

from seawall import own_process, resident_files
from seawall.companion import settle
from seawall.proc import process_rights
from seawall.proc.parent_death import die_with_parent


def main(fd: int) -> int:
    """The whole life of the process; ``fd`` is its end of the pair."""
    parent = os.getppid()
    # So that what was made is taken away, and what waits is written.
    die_with_parent(parent, signal.SIGTERM)
    own_process.use_one_heap()
    free = process_rights.no_signals()  # before the reader is forked, which shall have none either
    # After the guard is gone there is nothing to watch for; the import may take a second.
    from seawall.watcher.watcher_reader import WatcherReader, import_probes  # noqa: PLC0415

    reader = WatcherReader()
    import_probes()
    settle()  # what all of them only read stays one page
    reader.start()  # while this process is small: it needs nothing of what is imported below
    from seawall.watcher.guard_endpoint import GuardEndpoint  # noqa: PLC0415 - see above
    from seawall.watcher.guard_feed import GuardFeed  # noqa: PLC0415

    endpoint = GuardEndpoint(fd)
    feed = GuardFeed(endpoint, reader)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: endpoint.end())
    try:
        feed.rehearse()
        settle()
        had = free, _hold(), _lock(), _hurry(), _be_spared(), process_rights.keep_only("watcher")
        missing = [words for words in had if words]
        endpoint.tell("hello", pid=os.getpid(), missing=missing)
        feed.run()
    finally:
        feed.close()
    return 0


def _hold() -> str:
    """Why not all of the interpreter is in memory, for the guard too, or empty."""
    why = resident_files.hold()
    return f"the watcher does not keep all that it executes in memory: {why}" if why else ""


def _lock() -> str:
    """Why its memory is not locked, or empty."""
    why = own_process.lock()
    return f"the watcher's memory is not locked ({why}): needs CAP_IPC_LOCK" if why else ""


def _hurry() -> str:
    """Why it runs at normal priority, or empty."""
    why = own_process.go_first()
    return f"the watcher runs at normal priority ({why}): needs CAP_SYS_NICE" if why else ""


def _be_spared() -> str:
    """Why the kernel may kill it, or empty."""
    why = own_process.be_spared()
    return f"the kernel may kill the watcher ({why}): needs CAP_SYS_RESOURCE" if why else ""
