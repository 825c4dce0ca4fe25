"""An HTTPS server on loopback that answers as it is told: for what an API server does wrong.

What a right one does is tried on a real one (tests/cluster).
"""

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Request:
    verb: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float

    @property
    def kind(self) -> str:
        for word in ("nodereports", "status", "events", "livez"):
            if word in self.path:
                return word
        return "node"


Answer = tuple[int, dict[str, str], Any]
OK: Answer = (200, {}, {})


@dataclass
class Answers:
    """``reply`` may sleep (a server that hangs), raise (it hangs up), or answer."""

    reply: Callable[[Request], Answer] = lambda _: OK
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    certificate: str = ""

    def of(self, kind: str) -> list[Request]:
        return [one for one in self.requests if one.kind == kind]

    def writes(self) -> list[Request]:
        return [one for one in self.requests if one.verb != "GET"]


def certificate(folder: Path, name: str = "tls") -> tuple[str, str]:
    openssl = shutil.which("openssl")
    assert openssl, "openssl is needed: apt-get install openssl"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-subj", f"/CN={name}", "-days", "2", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}.key", "-out", f"{name}.crt"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return str(folder / f"{name}.crt"), str(folder / f"{name}.key")


@contextmanager
def api_server(folder: Path, reply: Callable[[Request], Answer] | None = None,
               port: int = 0) -> Iterator[Answers]:  # fmt: skip
    crt, key = certificate(folder)
    answers = Answers(reply or (lambda _: OK), certificate=crt)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(size)
            body = json.loads(raw) if raw else None
            one = Request(self.command, self.path, dict(self.headers), body, time.monotonic())
            answers.requests.append(one)
            try:
                status, headers, told = answers.reply(one)
            except ConnectionError:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            text = json.dumps(told).encode() if not isinstance(told, bytes) else told
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PATCH = do_POST = answer  # noqa: N815 - the library's names

        def log_message(self, *_: Any) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True

        def finish_request(self, request: Any, client_address: Any) -> None:
            request.settimeout(30)
            try:
                secure = context.wrap_socket(request, server_side=True)
            except OSError:
                return
            answers.connections += 1
            try:
                super().finish_request(secure, client_address)
            finally:
                secure.close()

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", port), Handler)
    answers.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
