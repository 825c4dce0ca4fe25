# SPDX-License-Identifier: Apache-2.0
"""``/metrics`` and ``/healthz`` over HTTP, by a process of their own: what the guard has written
into its textfile, and whether it lives.  The guard's processes have no socket that others reach.
"""

import os
import stat
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, socket
from typing import Any, Final, NamedTuple

from seawall.words import duration

OLD_SECONDS: Final = 120.0
"""The guard writes its metrics every 20 s; the alert in docs/guard.md waits as long."""
_METRICS_MOST_BYTES: Final = 1 << 20
_CONNECTIONS_MOST: Final = 16
_REQUEST_SECONDS: Final = 5.0
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_WORDS_TYPE: Final = "text/plain; charset=utf-8"


class Reply(NamedTuple):
    """What is answered."""

    status: HTTPStatus
    text: str
    content_type: str = _WORDS_TYPE


class MetricsServer(ThreadingHTTPServer):
    """Serves until it is shut down; a client that is slow or silent keeps nobody else waiting."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, address: tuple[str, int], textfile: str, health: Callable[[], Reply]
    ) -> None:
        """OSError when the address cannot be had.  ``health`` is asked for each ``/healthz``."""
        self.address_family = AF_INET6 if ":" in address[0] else AF_INET
        self.textfile = textfile
        self.health = health
        self._slots = threading.BoundedSemaphore(_CONNECTIONS_MOST)
        super().__init__(address, _Handler)

    def metrics(self) -> Reply:
        """What ``/metrics`` answers."""
        return metrics_reply(self.textfile, time.time())

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread each, of so many at most; one more is closed unheard."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """As inherited; its slot is free again afterwards."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """A client that went away is no event."""


class _Handler(BaseHTTPRequestHandler):
    server_version = "seawall"
    sys_version = ""
    timeout = _REQUEST_SECONDS
    server: MetricsServer

    def do_GET(self) -> None:
        reply = self._reply()
        data = reply.text.encode("utf-8", "backslashreplace")
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_HEAD = do_GET  # noqa: N815 - likewise

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Nothing: a scrape each 15 s is no news."""

    def _reply(self) -> Reply:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            return self.server.metrics()
        if path == "/healthz":
            return self.server.health()
        return Reply(HTTPStatus.NOT_FOUND, "here are /metrics and /healthz\n")


def metrics_reply(textfile: str, now_unix_seconds: float) -> Reply:
    """The textfile as it is; 503 with a sentence where it is not there, or so old that its guard
    has ended or hangs: a scrape that fails is an alert, old numbers are none.
    """
    try:
        fd = os.open(textfile, _FLAGS)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _METRICS_MOST_BYTES:
                return _unavailable(f"{textfile}: no regular file of at most 1 MiB")
            data = file.read(_METRICS_MOST_BYTES)
    except OSError as error:
        return _unavailable(f"{textfile}: {error.strerror}; a guard that runs writes it every 20 s")
    age = now_unix_seconds - found.st_mtime
    if age > OLD_SECONDS:
        words = f"{textfile} was written {duration(age)} ago: its guard has ended, or hangs"
        return _unavailable(words)
    return Reply(HTTPStatus.OK, data.decode("utf-8", "replace"), METRICS_TYPE)


def _unavailable(words: str) -> Reply:
    return Reply(HTTPStatus.SERVICE_UNAVAILABLE, f"{words}\n")
