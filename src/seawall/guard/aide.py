# SPDX-License-Identifier: Apache-2.0
"""Process 3, the aide: whatever needs fork, exec or new files, so that the guard needs none.

Forked by the guard before it locks its memory.  Requests and answers are JSON objects, one a
datagram of a socket pair (SOCK_SEQPACKET); the guard never waits for it.  Every job is a child
with a deadline, so a stuck disk holds up that child only.

===================  =============================================================
``do``               further keys, and what ``take(do)`` answers
===================  =============================================================
self_test_child      cgroup_procs [paths]: a child moves itself into each, becomes another
                     user's and sleeps; ``{pid, still_root: why it could not}``, or ``{pid: 0,
                     problem}``
run                  command, stdin, decision: ``{decision, status, problem}``; beside it, of
                     what was not taken before, ``failed``: so many had a problem
hook                 likewise, at a decision; how: ``acted``, ``observed``, ``refused`` or
                     ``reported``
termination_message  cgroup, name, words, decision, unix_seconds, kubelet_root:
                     ``{decision, path, problem}``, and ``failed``
job_output           path, uid, gid, groups, words, decision: likewise
job_command          job, words, decision, comment, end, commands, conf: ``{decision, done,
                     problem}``, and ``failed``
textfile             path, values: ``{problem}``
rivals               scope: ``{rivals: [words]}``
config               path: ``{settings: text}``, or ``{problem}``; ``is_busy`` beside it:
                     another one still runs, and answers too; ``mode`` beside either: what a
                     line of the file says in plain, whoever understands the rest
quarantine           path: ``{found: the list, problem}``
watcher              number of the pair whose end it gets, in the place of those before: no
                     answer
recorder             number, path, size: likewise
hold                 the files that the guard executes are locked in memory: ``{problem}``
ping                 it is there: ``{}``
short                is_short: until it is said otherwise nothing is forked (``tell/errands``):
                     no answer
frozen               journal, change, until (monotonic): it is thawed when the guard did not do
                     that by a second later (``tell/late_thaw``): no answer
say                  words to our own log: no answer
kmsg                 record to the kernel's log: ``{problem}``, and ``failed``
===================  =============================================================
"""

import json
import os
import socket
from collections.abc import Sequence
from typing import Any, Final

from seawall.guard.watcher_channel import DATAGRAM_MOST_BYTES, RECEIVED

_KINDS: Final = frozenset({"self_test_child", "run", "hook", "termination_message", "textfile",
                    "rivals", "config", "ping", "hold", "kmsg", "quarantine", "job_output",
                    "job_command"})  # fmt: skip
_ONCE: Final = frozenset(
    {"run", "hook", "termination_message", "kmsg", "job_output", "job_command"}
)
"""Each is a thing of its own: that a later one was done says nothing of it."""
_ANSWERS_MOST: Final = 32


class Aide:
    """The guard's end of the channel to the aide: requests go out, answers come in, none is waited
    for.
    """

    __slots__ = ("_answers", "_end", "_view", "dropped", "pid")

    def __init__(self, end: socket.socket, pid: int) -> None:
        end.setblocking(False)
        self._end: socket.socket | None = end
        self._view = RECEIVED
        self._answers: dict[str, dict[str, Any]] = {}
        self.pid = pid
        self.dropped = 0
        """Requests that it did not take in time."""

    @property
    def fd(self) -> int:
        """For poll; -1 when it is gone."""
        return -1 if self._end is None else self._end.fileno()

    @property
    def is_alive(self) -> bool:
        """As far as was noticed: ``send`` and ``take`` notice."""
        return self._end is not None

    def send(self, request: dict[str, Any]) -> bool:
        """False when it is gone, or has too much to do already; nothing is kept for later."""
        if self._end is None:
            return False
        data = json.dumps(request).encode()
        if len(data) > DATAGRAM_MOST_BYTES:
            self.dropped += 1
            return False
        try:
            self._end.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            self.dropped += 1
            return False
        except OSError:
            self._gone()
            return False
        return True

    def frozen(self, journal: str, change: Sequence[str | int], until: float) -> bool:
        """Told before a freeze; False as with ``send``: then nobody but the guard ends it."""
        return self.send({"do": "frozen", "journal": journal, "change": change, "until": until})

    def take(self, kind: str, *, is_ready: bool = True) -> dict[str, Any] | None:
        """The latest answer to a request of this kind that was not taken yet, or of what is done
        once the latest failure; never waits.  ``is_ready`` False: poll says that nothing has come.
        """
        for _ in range(_ANSWERS_MOST if is_ready else 0):
            if not self._receive():
                break
        return self._answers.pop(kind, None)

    def close(self) -> None:
        """It ends when its end of the pair says so; its children end with it."""
        self._gone()

    def _receive(self) -> bool:
        if self._end is None:
            return False
        try:
            size = self._end.recv_into(self._view, 0, socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            size = 0
        if not size:
            self._gone()
            return False
        try:
            answer = json.loads(self._view[:size].tobytes())
        except (ValueError, RecursionError):
            return True
        if isinstance(answer, dict) and answer.get("did") in _KINDS:
            self._keep(answer["did"], answer)
        return True

    def _keep(self, kind: str, answer: dict[str, Any]) -> None:
        if kind in _ONCE:
            before = self._answers.get(kind, {})
            failed = before.get("failed", 0) + bool(answer.get("problem"))
            if before.get("problem") and not answer.get("problem"):
                answer = before
            answer["failed"] = failed
        self._answers[kind] = answer

    def _gone(self) -> None:
        if self._end is not None:
            self._end.close()
            self._end = None
        try:
            os.waitpid(self.pid, os.WNOHANG)
        except OSError:
            return
