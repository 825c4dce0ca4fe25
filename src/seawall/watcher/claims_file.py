# SPDX-License-Identifier: Apache-2.0
"""The file /run/seawall/claims, and the lock that the one watcher of a machine holds.

The file is written in peace alone: making one asks for memory.
"""

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from seawall.accounts.watch.tracing_pace import LedgerMoment
from seawall.accounts.watch.watched_claims import key_of
from seawall.proc.file_lock import pid_in, try_lock, write_pid
from seawall.readings.saved_claims import PATH, document_of
from seawall.replaced_file import make_folder, replace_file

if TYPE_CHECKING:
    from seawall.watcher.memory_learner import MemoryLearner

LOCK: Final = "/run/seawall/watch.lock"
_WRITE_EVERY_SECONDS: Final = 60.0


class ClaimsFile:
    """The file of saved claims, which outlives the watcher that writes it, and its lock."""

    def __init__(self, lock: str = LOCK, path: str = PATH) -> None:
        self._lock_path, self._path = lock, path
        self._fd = -1
        self._written: object = None
        self._write_at = 0.0
        self.problem = ""
        """Why nothing is traced or kept; empty when both are."""

    @property
    def is_alone(self) -> bool:
        """Whether the lock is ours; tried again each time."""
        return not self.why_not_alone()

    def why_not_alone(self) -> str:
        """Who else watches; empty when the lock is ours."""
        if self._fd >= 0:
            return ""
        try:
            make_folder(os.path.dirname(self._lock_path))
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(self._lock_path, flags, 0o640)
        except OSError as error:
            self.problem = f"{self._lock_path}: {error.strerror}"
            return self.problem
        if not try_lock(fd):
            pid = pid_in(fd)
            os.close(fd)
            who = f"pid {pid}" if pid else "another process"
            self.problem = f"{who} traces already (seawall memory --watch): end it"
            return self.problem
        self._fd, self.problem = fd, ""
        write_pid(fd)
        return ""

    def write(self, learning: "MemoryLearner", moment: LedgerMoment) -> None:
        """When what is claimed has changed, and once a minute as long as there is any."""
        if self._fd < 0:
            return
        kept = learning.watch.saved_claims(moment, learning.place(), learning.blind)
        state = [(key_of(c), c.bytes, c.is_gone) for c in kept.claims], kept.blind
        is_due = bool(kept.claims) and time.monotonic() >= self._write_at
        if not kept.boot_id or (state == self._written and not is_due):
            return
        with suppress(OSError):
            replace_file(self._path, document_of(kept))
            self._written, self._write_at = state, time.monotonic() + _WRITE_EVERY_SECONDS
