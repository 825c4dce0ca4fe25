# SPDX-License-Identifier: Apache-2.0
"""One connection to the API server, kept: requests as bytes that are ready, answers by http.client.

Heads with token and length lie ready and are made anew when the token's file has changed (a kubelet
changes it before it expires), so that on a dying node a request is two buffers and a send.
"""

import os
import socket
import ssl
import time
from http.client import HTTPException, HTTPResponse
from typing import Final, NamedTuple

from seawall.cluster.objects.api_group import (
    AGENT_MANAGER,
    CLUSTER_POLICY,
    NODE_REPORT,
    POLICY_NAME,
    RESCUE_ORDER,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.problems import UsageProblem
from seawall.version import VERSION

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
REQUEST_SECONDS: Final = 5.0
_ANSWER_MOST_BYTES: Final = 1 << 20
_TOKEN_MOST_BYTES: Final = 64 << 10
_APPLY: Final = "application/apply-patch+yaml"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
_FROM_MEMORY: Final = "?resourceVersion=0"
"""Of the API server, which asks no etcd for it."""
_BRIEF: Final = (
    b"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json;q=0.5"
)
"""Not the whole node with its images for an answer to each patch."""
REPORT, CONDITIONS, EVENT, NODE, OLD_REPORT, WARM = (
    "report", "condition", "event", "node", "old report", "warm",
)  # fmt: skip
POLICY, ORDER, ORDER_STATUS, QUARANTINES = (
    "policy", "rescue order", "status of the rescue order", "quarantines",
)  # fmt: skip
"""Kinds of requests."""


class ApiServer(NamedTuple):
    """Where it is, and who we are."""

    host: str
    port: int
    ca_file: str
    token_file: str
    node: str


class ApiAnswer(NamedTuple):
    """Of one request."""

    status: int
    retry_after_seconds: float
    """0: the server has not said."""
    body: bytes


class ApiProblem(Exception):
    """No answer came: nobody there, hung up, too late, not to be believed."""


def server_of(url: str, ca_file: str, token_file: str, node: str) -> ApiServer:
    """The API server at ``https://HOST[:PORT]``; UsageProblem."""
    scheme, _, rest = url.partition("://")
    host, port = rest.rstrip("/"), "443"
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
        port = port.removeprefix(":") or "443"
    elif ":" in host:
        host, _, port = host.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65_535
    is_host = host.isascii() and host.isprintable() and not set(host) & set("/@?# []")
    if scheme != "https" or not host or not is_host or not is_port:
        raise UsageProblem(f"--server {url[:200]}: expected https://HOST or https://HOST:PORT")
    return ApiServer(host, int(port), ca_file, token_file, node)


class ApiConnection:
    """``send`` raises ApiProblem and nothing else; one that was idle is opened anew, once."""

    where = "the API server"

    def __init__(self, server: ApiServer) -> None:
        self.server, self.node = server, server.node
        self.used_at = 0.0
        """Monotonic, of the last answer."""
        self.handshakes = 0
        self._socket: ssl.SSLSocket | None = None
        self._context: ssl.SSLContext | None = None
        self._ca_stat = self._token_stat = (0, 0, 0)
        self._heads: dict[str, bytes] = {}

    @property
    def is_open(self) -> bool:
        """It may have been closed at the other end."""
        return self._socket is not None

    def close(self) -> None:
        """The next request opens it anew."""
        sock, self._socket = self._socket, None
        if sock is not None:
            try:
                sock.close()
            except OSError:
                return

    def prepare(self) -> None:
        """Token read, heads made, connected, hands shaken; ApiProblem."""
        self._prepare_heads()
        if self._socket is None:
            self._connect()

    def send(self, kind: str, body: bytes = b"") -> ApiAnswer:
        """The answer; ApiProblem."""
        was_open = self.is_open
        self.prepare()
        try:
            return self._sent(kind, body)
        except ApiProblem:
            self.close()
            if not was_open:
                raise
        self.prepare()  # the server closes what was idle for 90 s
        try:
            return self._sent(kind, body)
        except ApiProblem:
            self.close()
            raise

    def forget_token(self) -> None:
        """It was refused: read anew, whatever its file's time says."""
        self._token_stat = (0, 0, 0)

    def _sent(self, kind: str, body: bytes) -> ApiAnswer:
        sock = self._socket
        if sock is None:
            raise ApiProblem("not connected")
        until = time.monotonic() + REQUEST_SECONDS
        try:
            sock.settimeout(REQUEST_SECONDS)
            sock.sendall(b"%s%d\r\n\r\n%s" % (self._heads[kind], len(body), body))
            answer = HTTPResponse(sock, method="GET")
            answer.begin()
            text = bytearray()
            while chunk := answer.read1(1 << 16):
                text += chunk
                if len(text) > _ANSWER_MOST_BYTES or time.monotonic() > until:
                    raise ApiProblem("its answer is too long")
            is_last = answer.will_close
            retry = answer.getheader("Retry-After") or ""
        except (OSError, HTTPException, ValueError) as error:
            raise ApiProblem(_words(error)) from error
        if is_last:
            self.close()
        self.used_at = time.monotonic()
        seconds = float(retry) if retry.isascii() and retry.isdigit() and len(retry) < 6 else 0.0
        return ApiAnswer(answer.status, seconds, bytes(text))

    def _connect(self) -> None:
        where = f"https://{self.server.host}:{self.server.port}"
        try:
            context = self._trusted()
            plain = socket.create_connection(
                (self.server.host, self.server.port), timeout=REQUEST_SECONDS
            )
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket = context.wrap_socket(plain, server_hostname=self.server.host)
            except BaseException:
                plain.close()
                raise
        except (OSError, ValueError) as error:
            raise ApiProblem(f"{where}: {_words(error)}") from error
        self.handshakes += 1
        self.used_at = time.monotonic()

    def _trusted(self) -> ssl.SSLContext:
        """The cluster's own authority and no other; read anew when its file has changed."""
        stat = _stat_of(self.server.ca_file)
        if self._context is None or stat != self._ca_stat:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            try:
                context.load_verify_locations(cafile=self.server.ca_file)
            except OSError as error:
                raise OSError(f"{self.server.ca_file}: {_words(error)}") from error
            self._context, self._ca_stat = context, stat
        return self._context

    def _prepare_heads(self) -> None:
        path = self.server.token_file
        try:
            stat = _stat_of(path)
            if self._heads and stat == self._token_stat:
                return
            with open(path, "rb") as file:
                token = file.read(_TOKEN_MOST_BYTES + 1).strip()
        except OSError as error:
            raise ApiProblem(f"{path}: {error.strerror}") from error
        is_token = token.isascii() and token.decode("ascii", "replace").isprintable()
        if not token or len(token) > _TOKEN_MOST_BYTES or not is_token or b" " in token:
            raise ApiProblem(f"{path}: expected a token on one line")
        self._heads = heads_of(self.server, token)
        self._token_stat = stat


def heads_of(server: ApiServer, token: bytes) -> dict[str, bytes]:
    """Of each kind of request, up to the length of its body."""
    node = server.node
    status = f"/api/v1/nodes/{node}"
    report = path_of(NODE_REPORT, node)
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    applied = f"?fieldManager={AGENT_MANAGER}"
    rows = {
        REPORT: ("PATCH", f"{report}{applied}&force=true", _APPLY),
        CONDITIONS: ("PATCH", f"{status}/status{applied}", _STRATEGIC),
        EVENT: ("POST", f"{events}{applied}", _JSON),
        NODE: ("GET", status, _JSON),
        OLD_REPORT: ("GET", report, _JSON),
        WARM: ("GET", "/livez/ping", _JSON),
        POLICY: ("GET", f"{path_of(CLUSTER_POLICY, POLICY_NAME)}{_FROM_MEMORY}", _JSON),
        ORDER: ("GET", f"{path_of(RESCUE_ORDER, node)}{_FROM_MEMORY}", _JSON),
        ORDER_STATUS: ("PATCH", f"{path_of(RESCUE_ORDER, node, status=True)}{applied}", _MERGE),
        QUARANTINES: ("GET", f"{path_of(WORKLOAD_QUARANTINE)}{_FROM_MEMORY}", _JSON),
    }
    host = f"[{server.host}]" if ":" in server.host else server.host
    return {
        kind: b"%s %s HTTP/1.1\r\nHost: %s:%d\r\nAuthorization: Bearer %s\r\nUser-Agent: %s\r\n"
        b"Accept: %s\r\nContent-Type: %s\r\nContent-Length: "
        % (
            verb.encode(), path.encode(), host.encode(), server.port, token,
            f"seawall-agent/{VERSION}".encode(),
            b"application/json" if verb == "GET" else _BRIEF, content.encode(),
        )
        for kind, (verb, path, content) in rows.items()
    }  # fmt: skip


def _stat_of(path: str) -> tuple[int, int, int]:
    """Whether it is another file, or was written since."""
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns, found.st_size


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {REQUEST_SECONDS:.0f} s"
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(words)[:300]
