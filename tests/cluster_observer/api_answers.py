"""A server over TLS on loopback that answers as a test wants: late, cut off, without end, never."""

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from seawall.cluster.kube.kube_client import ClusterAccess

DATE = "Sun, 29 Nov 2026 01:00:00 GMT"
Answer = Callable[[ssl.SSLSocket, bytes], None]
"""Is given the connection and the whole request."""


def answer(status: int, body: bytes = b"{}", **headers: str) -> Answer:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", f"Date: {DATE}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return lambda connection, _: connection.sendall(head + body)


def pieces(*parts: bytes, then: Callable[[], None] = lambda: None) -> Answer:
    """Chunks of a watch, and what is waited for before the connection ends without a last one."""

    def write(connection: ssl.SSLSocket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        then()
        connection.shutdown(socket.SHUT_RDWR)

    return write


class ApiAnswers:
    """``with ApiAnswers(folder, [answer(200), ...]) as server``: each request takes the next one,
    the last one stays.  ``requests`` has what came.
    """

    def __init__(self, folder: Path, answers: list[Answer]) -> None:
        self.folder = folder
        self.answers = answers
        self.requests: list[bytes] = []
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-subj", "/CN=tls", "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", "tls.key", "-out", "tls.crt"],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.ended = threading.Event()
        self.connections: list[ssl.SSLSocket] = []
        self.threads = [threading.Thread(target=self.run, daemon=True)]

    @property
    def access(self) -> ClusterAccess:
        port = self.listener.getsockname()[1]
        return ClusterAccess(f"https://127.0.0.1:{port}", str(self.folder / "tls.crt"), token="a")

    def __enter__(self) -> "ApiAnswers":  # noqa: PYI034 - Self is of 3.11
        self.threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        with socket.create_connection(self.listener.getsockname()):
            self.threads[0].join(10)
        self.listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)

    def run(self) -> None:
        while True:
            plain, _ = self.listener.accept()
            if self.ended.is_set():
                plain.close()
                return
            thread = threading.Thread(target=self.serve, args=(plain,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def serve(self, plain: socket.socket) -> None:
        """One connection, as long as it asks."""
        try:
            with self.context.wrap_socket(plain, server_side=True) as connection:
                self.connections.append(connection)
                connection.settimeout(10)
                while request := self.request(connection):
                    self.requests.append(request)
                    now = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                    now(connection, request)
        except OSError:
            plain.close()

    def request(self, connection: ssl.SSLSocket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                       if line.lower().startswith(b"content-length")), 0)  # fmt: skip
        while len(body) < length:
            piece = connection.recv(65536)
            if not piece:
                return head + b"\r\n\r\n" + body  # the rest was never sent
            body += piece
        return head + b"\r\n\r\n" + body
