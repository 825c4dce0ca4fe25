"""A server of HTTP/2 for tests, its bytes written out by hand: none of ours made them."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

Part = bytes | Callable[[socket.socket], None]
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HEADERS_200 = b"\x88"  # :status 200, of the static table
STATUS_0 = b"\x40\x0bgrpc-status\x010"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """RFC 9113, 4.1."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def answer(message: bytes, stream: int = 1, status: bytes = STATUS_0) -> bytes:
    """Headers, data in frames of 16 KiB at most, trailers."""
    body = b"\0" + struct.pack(">I", len(message)) + message
    parts = [body[at : at + 16384] for at in range(0, len(body), 16384)]
    return b"".join([
        frame(1, 4, stream, HEADERS_200), *(frame(0, 0, stream, part) for part in parts),
        frame(1, 5, stream, status),
    ])  # fmt: skip


class Server:
    """Sends its parts one after the other to each who connects; keeps what came."""

    def __init__(self, path: Path, parts: Sequence[Part]) -> None:
        self.path = str(path)
        self._parts = parts
        self.came = bytearray()
        self._is_over = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.settimeout(5)
                self.came += client.recv(65536)
                for part in self._parts:
                    if isinstance(part, bytes):
                        client.sendall(part)
                    else:
                        part(client)
                self._read_on(client)

    def _read_on(self, client: socket.socket) -> None:
        """Till the client goes, or the test."""
        client.settimeout(0.02)
        while not self._is_over.is_set():
            with contextlib.suppress(TimeoutError):
                more = client.recv(65536)
                self.came += more
                if not more:
                    return

    def end(self) -> None:
        """Nobody waits for it any more."""
        self._is_over.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(6)


@contextlib.contextmanager
def serving(path: Path, *parts: Part) -> Iterator[Server]:
    """A server at ``path`` while the block runs."""
    made = Server(path, parts)
    try:
        yield made
    finally:
        made.end()
