# SPDX-License-Identifier: Apache-2.0
"""The owner of the expendable child: a question, and an answer with an open file, or none.

As ``host/expendable.py``, but what comes back may be a file: the child opened it, and to open
may hang.  A child that is silent past the deadline is killed and left behind; a process or a file
that cost a child is not asked about again for a while, and never while that child still hangs.
"""

import array
import errno
import json
import os
import socket
import struct
import time
from typing import Any, Final

from seawall.pinner.looking import answer
from seawall.proc.forked_child import ForkedChild, bury, hangs

DEADLINE_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 300.0
LEFT_MOST: Final = 16
"""Where so many children hang at once, nobody is asked until some of them are gone."""
_HEAD: Final = struct.Struct("=I")
_BODY_MOST: Final = 32 << 20


class ResidencyChild:
    """At most one child, forked at the first question."""

    def __init__(self, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._deadline = deadline_seconds
        self._child: ForkedChild | None = None
        self._socket: socket.socket | None = None
        self._refused: dict[str, tuple[float, int]] = {}
        """Until when, and the child that it cost."""
        self.losses = 0

    def ask(self, about: str, **question: Any) -> tuple[dict[str, Any], int]:
        """The answer and an open file or -1; ``{"why": words}`` when there is none, with
        ``is_silent`` when that says nothing of who was asked about.

        ``about``: who is not asked about again for a while if it hangs.
        """
        self._forget_refusals()
        if about in self._refused:
            return _silent("not asked: it did not answer the last time"), -1
        if (left := bury()) >= LEFT_MOST:
            return _silent(f"not asked: {left} questions before it still hang"), -1
        try:
            return self._asked(json.dumps(question).encode())
        except TimeoutError:
            self.losses += 1
            pid = self._child.pid if self._child is not None else 0
            self._refused[about] = time.monotonic() + AGAIN_SECONDS, pid
            self.close()
            return _silent(f"no answer in {self._deadline:g} s"), -1
        except (EOFError, OSError) as error:
            self.close()
            return _silent(f"the looking child died ({error or 'it ended'})"), -1

    def close(self) -> None:
        """Kill the child without waiting for it; safe to call twice."""
        if self._socket is not None:
            self._socket.close()
        if self._child is not None:
            self._child.give_up()
        self._child = self._socket = None

    def _forget_refusals(self) -> None:
        now = time.monotonic()
        self._refused = {
            about: (until, pid)
            for about, (until, pid) in self._refused.items()
            if now < until or hangs(pid)
        }

    def _asked(self, question: bytes) -> tuple[dict[str, Any], int]:
        sock = self._socket or self._fork()
        sock.sendall(_HEAD.pack(len(question)) + question)
        until = time.monotonic() + self._deadline
        head, fd = self._head(sock)
        try:
            return json.loads(_body(sock, _HEAD.unpack(head)[0], until)), fd
        except BaseException:
            if fd >= 0:
                os.close(fd)
            raise
        finally:
            sock.settimeout(self._deadline)

    def _head(self, sock: socket.socket) -> tuple[bytes, int]:
        """Four bytes, and the file that came with them."""
        data, fds, _, _ = socket.recv_fds(sock, _HEAD.size, 1, socket.MSG_CMSG_CLOEXEC)
        if len(data) != _HEAD.size:
            raise EOFError
        return data, fds[0] if fds else -1

    def _fork(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self._child = ForkedChild(lambda _: _serve(theirs), (theirs.fileno(),))
        ours.settimeout(self._deadline)
        self._socket = ours
        return ours


def _silent(why: str) -> dict[str, Any]:
    return {"why": why, "is_silent": True}


def _body(sock: socket.socket, size: int, until: float) -> bytes:
    """Until the deadline: TimeoutError; EOFError when the child ends or tells nonsense."""
    if size > _BODY_MOST:
        raise EOFError
    parts = []
    while size:
        sock.settimeout(max(0.01, until - time.monotonic()))
        part = sock.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _serve(sock: socket.socket) -> None:
    """The child's whole life."""
    while True:
        head = sock.recv(_HEAD.size, socket.MSG_WAITALL)
        if len(head) < _HEAD.size:
            return
        question = json.loads(sock.recv(_HEAD.unpack(head)[0], socket.MSG_WAITALL))
        fd = -1
        try:
            told, fd = answer(question)
        except OSError as error:
            told = {"why": _words(error), "errno": error.errno}
        body = json.dumps(told).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd >= 0 else []
        sock.sendmsg([_HEAD.pack(len(body))], rights)
        sock.sendall(body)
        if fd >= 0:
            os.close(fd)


def _words(error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"{error.strerror}: needs root with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE"
    return str(error.strerror or error)
