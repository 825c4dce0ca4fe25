# SPDX-License-Identifier: Apache-2.0
"""The guard's end of the channel to the watcher (``guard/watcher_channel.py``): never waits."""

import json
import socket
from collections.abc import Iterator
from typing import Any

from seawall.guard.watcher_channel import DATAGRAM_MOST_BYTES, RECEIVED
from seawall.version import VERSION

_MESSAGES_MOST = 64
"""In one tick: a watcher gone mad does not hold the guard up."""

SPARES = 4
"""A watcher that ends so often is not started again."""
PAUSES_SECONDS = (20.0, 120.0, 600.0)
"""Between a replacement and the next: two minutes without our files must not use up all of them."""
_VERSION_MOST = 40


def spare_pairs() -> tuple[list[socket.socket], list[int]]:
    """Our ends, and the descriptors of the others: made before the aide is forked, which
    hands one of them to each watcher that it starts.
    """
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(SPARES)]
    return [ours for ours, _ in pairs], [theirs.detach() for _, theirs in pairs]


class WatcherLink:
    """A socket pair's end, or nothing."""

    def __init__(
        self, end: socket.socket | None, pid: int = 0, spares: list[socket.socket] | None = None,
        most_bytes: int = DATAGRAM_MOST_BYTES,
    ) -> None:  # fmt: skip
        """``spares``: our ends of pairs whose other ends the aide has, for watchers to come.
        ``most_bytes``: of what it says at once.
        """
        self._end = end
        self._spares = spares or []
        self._view = RECEIVED[: most_bytes + 1]
        self.pid = pid
        """0: there is none."""
        self.heard_seconds: float | None = None
        """Monotonic; None: it has never said anything."""
        self.version = ""
        """That it said; empty: it has not said any."""
        self.says_version = False
        """Of ours each does, before its hello: one that does not is of another."""
        self.dropped = 0
        """Messages that were no JSON object."""
        if end is not None:
            end.setblocking(False)

    def messages(self, now: float) -> Iterator[dict[str, Any]]:
        """What has come since the last call."""
        for _ in range(_MESSAGES_MOST):
            if self._end is None:
                return
            try:
                size = self._end.recv_into(self._view)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                size = 0
            if not size:
                self.close()
                return
            try:
                message = json.loads(self._view[:size].tobytes())
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):
                self.dropped += 1
                continue
            if message.get("t") == "version":
                self.version = str(message.get("version"))[:_VERSION_MOST]
                continue  # of whom nothing else has been heard yet
            self.heard_seconds = now
            if message.get("t") == "hello":
                self.version = self.version or ("unknown" if self.says_version else "")
                self.pid = message["pid"] if isinstance(message.get("pid"), int) else self.pid
            yield message

    def tell(self, message: dict[str, Any]) -> bool:
        """False when it does not listen now; nothing is kept for later."""
        if self._end is None:
            return False
        try:
            self._end.send(json.dumps(message).encode())
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Close the channel to a watcher that has gone."""
        if self._end is not None:
            self._end.close()
        self._end = None

    def take_spare(self) -> int | None:
        """The number of the pair that the next watcher gets; None: there is none left."""
        if not self._spares:
            return None
        self.close()
        self._end = self._spares.pop()
        self._end.setblocking(False)
        self.pid, self.heard_seconds, self.version = 0, None, ""
        return len(self._spares)

    @property
    def pause_seconds(self) -> float:
        """From the last replacement to the next one."""
        taken = SPARES - len(self._spares)
        return PAUSES_SECONDS[min(max(taken, 1), len(PAUSES_SECONDS)) - 1]

    @property
    def is_other(self) -> bool:
        """It is of another version than this guard: our files were replaced."""
        return self.version not in ("", VERSION)

    @property
    def is_spent(self) -> bool:
        """There is none, and none can be started any more."""
        return self._end is None and not self._spares

    @property
    def is_there(self) -> bool:
        """As far as was noticed."""
        return self._end is not None

    def words(self, now: float) -> str:
        """How long ago the watcher was heard, in words, for the guard's status."""
        if self._end is None:
            return "none: claims and names are missing"
        if self.heard_seconds is None:
            return "started, has not said anything yet"
        return f"heard {now - self.heard_seconds:.1f} s ago"
