# SPDX-License-Identifier: Apache-2.0
"""Requests to a Kubernetes API server: JSON in and out, each with a deadline, counted and bounded.

    client = KubeClient(ClusterAccess.in_cluster())
    for page in client.pages("/api/v1/nodes", limit=100): ...
    client.apply(f"/apis/{GROUP}/{VERSION}/nodedeaths/{name}", body, manager="seawall-observer")

A path is the API's own, from ``/api`` or ``/apis``; a status subresource is ``.../NAME/status``.
What a call may raise is a ``KubeProblem``: ``KubeRefusal`` where the server said no,
``KubeUnreachable`` where no whole answer came in time.  A refusal that says "later" (429, 5xx) and
a lost connection are tried again inside the deadline, a create only where it cannot have been
carried out.  All methods may be called from several threads.
"""

import contextlib
import os
import random
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol

import msgspec
import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

Object = dict[str, Any]
Query = Mapping[str, str | int | bool]

ADMISSION_PATH: Final = "/apis/admissionregistration.k8s.io"
ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
DEADLINE_SECONDS: Final = 30.0
DELAY_MOST_SECONDS: Final = 30.0
TRIES_MOST: Final = 6
BODY_MOST_BYTES: Final = 64 << 20
"""Of one answer: a page of 500 nodes is 12 MB."""
EVENT_MOST_BYTES: Final = 8 << 20
"""Of one line of a watch: etcd keeps no object over 1.5 MiB."""
SILENCE_SECONDS: Final = 90.0
"""A watch that says nothing for so long is dead: bookmarks come about once a minute."""
REQUESTS_PER_SECOND: Final = 20.0
RELOAD_SECONDS: Final = 60.0
"""Between two looks at the token's file: the kubelet writes a new one each hour or so."""
PAGE_LIMIT: Final = 500
_PIECE_BYTES: Final = 65536
_LATER: Final = frozenset({429, 500, 502, 503, 504})
_MESSAGE_LETTERS: Final = 1024

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
"""JSON is YAML: a body of JSON is taken."""
METADATA_ONLY: Final = (
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)
METADATA_LIST_ONLY: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)


class KubeProblem(Exception):
    """A request did not get what it asked for; the text is one line for people."""


class KubeRefusal(KubeProblem):
    """The server answered no."""

    def __init__(self, status: int, reason: str, message: str,
                 retry_after_seconds: float | None = None) -> None:  # fmt: skip
        super().__init__(f"{status} {reason}: {message}"[:_MESSAGE_LETTERS])
        self.status = status
        """HTTP's, or the ``code`` of an ERROR event."""
        self.reason = reason
        """The API's own word: ``NotFound``, ``AlreadyExists``, ``Conflict``, ``Expired``."""
        self.retry_after_seconds = retry_after_seconds

    @property
    def is_later(self) -> bool:
        """The same request may be answered later."""
        return self.status in _LATER


class KubeUnreachable(KubeProblem):
    """No whole answer that can be read: no connection, TLS, the deadline, a body without end.

    Whether a write was carried out is not known.
    """


class LostLeadership(KubeProblem):
    """The write was not sent: the fence says that this process is no leader any more."""


class KubeRequests(Protocol):
    """What the observer asks of the API; ``KubeClient`` is it."""

    def get(self, path: str, query: Query | None = None, *, accept: str = JSON) -> Object:
        """One object, or one answer of a list."""

    def pages(self, path: str, query: Query | None = None, *, limit: int = PAGE_LIMIT,
              accept: str = JSON) -> Iterator[Object]:  # fmt: skip
        """Answers of a list one by one; whoever stops early asks for no more."""

    def create(self, path: str, body: Object) -> Object:
        """POST to the collection's path.  409 ``AlreadyExists``: perhaps by an earlier try."""

    def apply(self, path: str, body: Object, *, manager: str, force: bool = False) -> Object:
        """Server-side apply of the fields in ``body``; 409 ``Conflict`` where another manager has
        one of them and ``force`` is not set.
        """

    def merge(self, path: str, body: Object, *, manager: str = "") -> Object:
        """JSON merge patch; ``metadata.resourceVersion`` in the body is a precondition."""

    def replace(self, path: str, body: Object) -> Object:
        """PUT; with ``metadata.resourceVersion`` only over that version."""

    def delete(self, path: str, *, uid: str = "", resource_version: str = "") -> Object:
        """409 where the object is another one by now."""

    def server_seconds(self) -> float:
        """Unix seconds by the API server's clock (``KubeClient.server_seconds``)."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Where the API server is and who we are.  Of the credentials the first that is set counts."""

    server: str
    """``https://HOST[:PORT][/PREFIX]``."""
    ca_file: str = ""
    ca_data: str = ""
    """PEM; neither: the machine's own authorities."""
    token_source: Callable[[], str] | None = None
    """Is asked each minute and after a 401: an exec plugin's token."""
    token_file: str = ""
    token: str = ""
    client_certificate_file: str = ""
    client_key_file: str = ""
    tls_server_name: str = ""
    is_unverified: bool = False
    """``insecure-skip-tls-verify`` of a kubeconfig."""

    @classmethod
    def in_cluster(
        cls, environment: Mapping[str, str] = os.environ, folder: str = ACCOUNT_FOLDER
    ) -> "ClusterAccess":
        """Of the pod that this process runs in; ``KubeProblem`` where it runs in none."""
        host, port = (
            environment.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT")
        )
        if not host or not port:
            raise KubeProblem("not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set")
        host = f"[{host}]" if ":" in host else host
        return cls(f"https://{host}:{port}", f"{folder}/ca.crt", token_file=f"{folder}/token")


class RetryDelay:
    """How long to wait before the next try: half a second, doubled up to 30, with chance."""

    def __init__(
        self, first_seconds: float = 0.5, most_seconds: float = DELAY_MOST_SECONDS
    ) -> None:
        self._first, self._most = first_seconds, most_seconds
        self._tries = 0

    def reset(self) -> None:
        """It went well: the next failure is a first one."""
        self._tries = 0

    def next_seconds(self, problem: KubeProblem | None = None) -> float:
        """Never less than the server asked for, and never over ``most_seconds`` besides."""
        whole = min(self._most, self._first * 2.0 ** min(self._tries, 16))
        self._tries += 1
        delay = whole * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        wanted = problem.retry_after_seconds if isinstance(problem, KubeRefusal) else None
        return delay if wanted is None else max(delay, min(wanted, self._most))


def steady_seconds() -> float:
    """A clock that nobody sets and that goes on while the machine sleeps: ``CLOCK_BOOTTIME``."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class TokenBucket:
    """So many requests a second and no more, with as many saved up."""

    def __init__(self, per_second: float) -> None:
        self._rate = self._tokens = per_second
        self._at = steady_seconds()
        self._lock = threading.Lock()

    def take(self) -> float:
        """One request; how many seconds it has to wait for its turn."""
        with self._lock:
            now = steady_seconds()
            self._tokens = min(self._rate, self._tokens + (now - self._at) * self._rate)
            self._at = now
            self._tokens -= 1.0
            return max(0.0, -self._tokens / self._rate)


class WatchStream:
    """Lines of a watch, each an event; ``close`` may be called from another thread."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        """Ends where the server ends it; ``KubeUnreachable`` where the connection is lost, says
        nothing for too long, or sends a line without end.
        """
        parts: list[bytes] = []
        size = 0
        try:
            while piece := self._response.read1(_PIECE_BYTES, decode_content=False):
                head, *rest = piece.split(b"\n")
                parts.append(head)
                size += len(head)
                for line in rest:
                    yield b"".join(parts)
                    parts, size = [line], len(line)
                if size > EVENT_MOST_BYTES:
                    raise KubeUnreachable(f"an event of a watch is over {EVENT_MOST_BYTES} bytes")
        except (HTTPError, OSError, ValueError) as problem:
            if not self._is_closed:
                raise KubeUnreachable(f"the watch broke off: {_one_line(problem)}") from problem
        finally:
            self._response.close()

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()  # wakes the thread that reads; which then closes it


class KubeClient:
    """One API server, or one address before several."""

    def __init__(self, access: ClusterAccess, *, user_agent: str = "seawall",
                 per_second: float = REQUESTS_PER_SECOND) -> None:  # fmt: skip
        self._access = access
        self._user_agent = user_agent
        self._bucket = TokenBucket(per_second)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str, str], int] = {}
        self._clock_offset: float | None = None
        self._token = ""
        self._authority = b""
        self._loaded_at = -RELOAD_SECONDS
        url = urllib.parse.urlsplit(access.server)
        if url.scheme != "https" or not url.hostname:
            raise KubeProblem(f"not an address of an API server: {access.server[:200]!r}")
        self._prefix = url.path.rstrip("/")
        self._pool = self._new_pool()
        self.fence: Callable[[], bool] | None = None
        """Is asked between the head and the body of each write; False: the write is not sent.  A
        leader that was stopped in between writes nothing when it goes on.  ``LeaderLease.holds``.
        """

    def get(self, path: str, query: Query | None = None, *, accept: str = JSON,
            seconds: float = DEADLINE_SECONDS, is_urgent: bool = False) -> Object:  # fmt: skip
        """``is_urgent``: a leader's own lease, for which no turn, fence or other try is waited."""
        answer = self._ask("GET", path, query, accept=accept, seconds=seconds, urgent=is_urgent)
        return _document(answer)

    def raw(self, path: str, query: Query | None = None, *, accept: str = JSON,
            seconds: float = DEADLINE_SECONDS) -> bytes:  # fmt: skip
        """The answer's bytes, for a decoder that wants a part of them."""
        return self._ask("GET", path, query, accept=accept, seconds=seconds)

    def pages(self, path: str, query: Query | None = None, *, limit: int = PAGE_LIMIT,
              accept: str = JSON) -> Iterator[Object]:  # fmt: skip
        """``KubeRefusal`` 410 where the list is too old to go on with: ``items`` begins again."""
        position: dict[str, str] = {}
        while True:
            page = self.get(path, {**(query or {}), "limit": limit, **position}, accept=accept)
            yield page
            mark = (page.get("metadata") or {}).get("continue")
            if not mark:
                return
            position = {"continue": str(mark)}

    def items(self, path: str, query: Query | None = None, *, limit: int = PAGE_LIMIT,
              accept: str = JSON) -> list[Object]:  # fmt: skip
        """The whole list.  One whose pages the server has forgotten meanwhile (410) is begun again,
        twice at most.
        """
        for attempt in range(3):
            try:
                pages = self.pages(path, query, limit=limit, accept=accept)
                return [item for page in pages for item in page.get("items") or ()]
            except KubeRefusal as problem:
                if problem.status != 410 or attempt == 2:
                    raise
        raise AssertionError

    def create(self, path: str, body: Object, *, seconds: float = DEADLINE_SECONDS,
               is_urgent: bool = False, is_dry_run: bool = False) -> Object:  # fmt: skip
        query = _dry({}, is_dry_run)
        return _document(self._ask("POST", path, query, body, seconds=seconds, urgent=is_urgent))

    def replace(self, path: str, body: Object, *, seconds: float = DEADLINE_SECONDS,
                is_urgent: bool = False) -> Object:  # fmt: skip
        return _document(self._ask("PUT", path, None, body, seconds=seconds, urgent=is_urgent))

    def apply(self, path: str, body: Object, *, manager: str, force: bool = False,
              seconds: float = DEADLINE_SECONDS) -> Object:  # fmt: skip
        query: Query = {"fieldManager": manager, "force": force}
        return _document(self._ask("PATCH", path, query, body, kind=APPLY_PATCH, seconds=seconds))

    def merge(self, path: str, body: Object, *, manager: str = "",
              is_dry_run: bool = False, seconds: float = DEADLINE_SECONDS) -> Object:  # fmt: skip
        query = _dry({"fieldManager": manager} if manager else {}, is_dry_run)
        return _document(self._ask("PATCH", path, query, body, kind=MERGE_PATCH, seconds=seconds))

    def patch(self, path: str, operations: list[Object], *, manager: str = "",
              is_dry_run: bool = False, seconds: float = DEADLINE_SECONDS) -> Object:  # fmt: skip
        """JSON patch; 422 where one of its tests fails.  ``is_dry_run``: all but the write."""
        query = _dry({"fieldManager": manager} if manager else {}, is_dry_run)
        answer = self._ask("PATCH", path, query, operations, kind=JSON_PATCH, seconds=seconds)
        return _document(answer)

    def delete(self, path: str, *, uid: str = "", resource_version: str = "",
               is_dry_run: bool = False, seconds: float = DEADLINE_SECONDS) -> Object:  # fmt: skip
        conditions = {"uid": uid, "resourceVersion": resource_version}
        conditions = {name: value for name, value in conditions.items() if value}
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if conditions:
            body["preconditions"] = conditions
        query = _dry({}, is_dry_run)
        return _document(self._ask("DELETE", path, query, body, seconds=seconds))

    def watch(self, path: str, query: Query | None = None, *,
              silence_seconds: float = SILENCE_SECONDS) -> WatchStream:  # fmt: skip
        """Opened once, without another try: whoever watches waits as it sees fit."""
        query = {**(query or {}), "watch": True}
        self._wait_for_turn(time.monotonic() + silence_seconds)
        timeout = urllib3.Timeout(connect=DEADLINE_SECONDS, read=silence_seconds)
        response = self._send("GET", path, query, None, {"Accept": JSON}, timeout)
        if response.status != 200:
            with contextlib.closing(response):
                body = _body(response, time.monotonic() + DEADLINE_SECONDS)
            raise _refusal(response, body)
        return WatchStream(response)

    def server_seconds(self, seconds: float = 10.0) -> float:
        """Unix seconds by the API server's clock: the ``Date`` of the first answer, and the local
        steady clock since.  The clock of this machine is not asked.  ``KubeUnreachable`` before
        there was an answer and none comes now, within ``seconds``.
        """
        if self._clock_offset is None:
            with contextlib.suppress(KubeRefusal):  # a refusal has a date as well
                self.raw("/version", seconds=seconds)
        if self._clock_offset is None:
            raise KubeUnreachable("the API server does not say what time it is")
        return self._clock_offset + steady_seconds()

    def request_counts(self) -> dict[tuple[str, str, str], int]:
        """By verb (``get``, ``list``, ``watch``, ``create`` ...), resource (``nodes/status``) and
        HTTP status, or ``unreachable``; each try counts.
        """
        with self._lock:
            return dict(self._counts)

    def close(self) -> None:
        """Idle connections; what is under way goes on."""
        self._pool.close()

    def _ask(self, method: str, path: str, query: Query | None,
             body: Object | list[Object] | None = None, *,
             kind: str = JSON, accept: str = JSON, seconds: float = DEADLINE_SECONDS,
             urgent: bool = False) -> bytes:  # fmt: skip
        """With as many tries as the deadline allows."""
        deadline = time.monotonic() + seconds
        delay = RetryDelay()
        data = None if body is None else msgspec.json.encode(body)
        for attempt in range(1, TRIES_MOST + 1):
            if not urgent:
                self._wait_for_turn(deadline)
            try:
                return self._try(method, path, query, data, kind, accept, deadline, urgent=urgent)
            except (KubeRefusal, KubeUnreachable) as problem:
                pause = delay.next_seconds(problem)
                left = deadline - time.monotonic() - pause
                if isinstance(problem, KubeRefusal) and problem.status == 401 and attempt == 1:
                    pause = 0.0  # once more with the token as it is now
                elif not _may_try_again(method, problem):
                    raise
                if urgent or attempt == TRIES_MOST or left <= 0.0:
                    raise
            time.sleep(pause)
        raise AssertionError

    def _try(self, method: str, path: str, query: Query | None, data: bytes | None, kind: str,
             accept: str, deadline: float, *, urgent: bool) -> bytes:  # fmt: skip
        left = deadline - time.monotonic()
        if left <= 0.0:
            raise KubeUnreachable(f"{method} {path}: no answer before its deadline")
        fence = None if urgent or data is None else self.fence
        body: bytes | Iterator[bytes] | None = data
        if fence is not None and data is not None:
            body = _fenced(data, fence)
        head = {"Accept": accept}
        if data is not None:
            head |= {"Content-Type": kind, "Content-Length": str(len(data))}
        timeout = urllib3.Timeout(connect=left, read=left)
        response = self._send(method, path, query, body, head, timeout)
        with contextlib.closing(response):
            answer = _body(response, deadline)
            response.release_conn()
        if not 200 <= response.status < 300:
            raise _refusal(response, answer)
        return answer

    def _send(self, method: str, path: str, query: Query | None,
              body: bytes | Iterator[bytes] | None, head: dict[str, str],
              timeout: urllib3.Timeout) -> urllib3.BaseHTTPResponse:  # fmt: skip
        """One request, and the head of its answer; the body is still to be read."""
        token = self._current_token()
        head |= {"User-Agent": self._user_agent} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        url = self._prefix + path
        if query:
            words = {name: _word(value) for name, value in query.items()}
            url += "?" + urllib.parse.urlencode(words)
        verb = "watch" if query and query.get("watch") else _verb(method, path)
        try:
            response = self._pool.urlopen(
                method, url, body=body, headers=head, retries=False, redirect=False,
                timeout=timeout, preload_content=False, decode_content=False,
            )  # fmt: skip
        except LostLeadership:
            self._count(verb, path, "fenced")
            raise
        except (HTTPError, OSError, ValueError) as problem:
            self._count(verb, path, "unreachable")
            raise KubeUnreachable(f"{method} {path}: {_one_line(problem)}") from problem
        self._count(verb, path, str(response.status))
        if response.status == 401:
            self._loaded_at = -RELOAD_SECONDS
        if self._clock_offset is None:
            self._set_clock(response.headers.get("Date", ""))
        return response

    def _wait_for_turn(self, deadline: float) -> None:
        wait = self._bucket.take()
        if wait > deadline - time.monotonic():
            raise KubeUnreachable("too many requests of our own: no turn before the deadline")
        if wait:
            time.sleep(wait)

    def _count(self, verb: str, path: str, code: str) -> None:
        key = (verb, resource_of(path), code)
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1

    def _set_clock(self, date: str) -> None:
        """The header has whole seconds: half a one is added."""
        with contextlib.suppress(ValueError):
            seconds = parsedate_to_datetime(date).timestamp() + 0.5
            with self._lock:
                if self._clock_offset is None:
                    self._clock_offset = seconds - steady_seconds()

    def _current_token(self) -> str:
        """Token and authority, read again where a minute has passed."""
        access = self._access
        with self._lock:
            if steady_seconds() - self._loaded_at < RELOAD_SECONDS:
                return self._token
            self._loaded_at = steady_seconds()
            if access.token_source is not None:
                self._token = access.token_source().strip()
            elif access.token_file:
                with contextlib.suppress(OSError):  # is written anew just now: the old one stands
                    self._token = _text(access.token_file).decode("ascii", "replace").strip()
                if not self._token:
                    raise KubeProblem(f"no token in {access.token_file}")
            else:
                self._token = access.token
            if access.ca_file:
                with contextlib.suppress(OSError, ssl.SSLError):
                    if _text(access.ca_file) != self._authority:
                        self._pool = self._new_pool()
            return self._token

    def _new_pool(self) -> urllib3.HTTPSConnectionPool:
        access = self._access
        url = urllib.parse.urlsplit(access.server)
        try:
            if access.ca_file:
                self._authority = _text(access.ca_file)
            context = ssl.create_default_context(
                cadata=self._authority.decode("ascii", "replace") or access.ca_data or None
            )
            if access.is_unverified:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if access.client_certificate_file:
                key = access.client_key_file or None
                context.load_cert_chain(access.client_certificate_file, key)
        except (OSError, ValueError) as problem:
            raise KubeProblem(f"credentials cannot be read: {_one_line(problem)}") from problem
        return urllib3.HTTPSConnectionPool(
            str(url.hostname), url.port or 443, ssl_context=context, maxsize=4, retries=False,
            cert_reqs="CERT_NONE" if access.is_unverified else "CERT_REQUIRED",
            assert_hostname=access.tls_server_name or None,
            server_hostname=access.tls_server_name or None,
        )  # fmt: skip


def _dry(query: dict[str, str], is_dry_run: bool) -> Query | None:  # noqa: FBT001 - a value
    """The server does all but keep it."""
    return {**query, "dryRun": "All"} if is_dry_run else query or None


def server_version(client: KubeClient) -> tuple[int, int] | None:
    """Major and minor of the API server; None: it does not say."""
    try:
        answer = client.get("/version")
        minor = "".join(letter for letter in str(answer.get("minor", "")) if letter.isdigit())
        return int(answer["major"]), int(minor)
    except (KubeProblem, KeyError, ValueError):
        return None


def can_mutate(client: KubeClient) -> bool:
    """Whether it serves MutatingAdmissionPolicy, in a version that the chart installs.
    KubeProblem.
    """
    answer = client.get(ADMISSION_PATH)
    versions = {str(one.get("version")) for one in answer.get("versions") or ()}
    return any(
        one.get("name") == "mutatingadmissionpolicies"
        for version in sorted(versions & {"v1", "v1beta1"})
        for one in client.get(f"{ADMISSION_PATH}/{version}").get("resources") or ()
    )


def resource_of(path: str) -> str:
    """``pods``, ``nodes/status``, ``nodedeaths``; for what is no resource the path's first word."""
    return "/".join(_resource_parts(path)[::2])[:63]


def _verb(method: str, path: str) -> str:
    names = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    is_list = path.startswith("/api") and len(_resource_parts(path)) == 1
    return names.get(method) or ("list" if is_list else "get")


def _resource_parts(path: str) -> list[str]:
    """Of a path its resource, name and subresource, without group and namespace."""
    parts = path.strip("/").split("/")
    if parts[0] not in {"api", "apis"}:
        return parts[:1]
    parts = parts[2 if parts[0] == "api" else 3 :]
    is_namespaced = parts[:1] == ["namespaces"] and len(parts) > 2 and parts[2] != "status"
    return parts[2:] if is_namespaced else parts


def _may_try_again(method: str, problem: KubeProblem) -> bool:
    """A create whose answer was lost may have been carried out; what was never heard was not."""
    if isinstance(problem, KubeRefusal):
        refused_unread = problem.status == 429 or problem.retry_after_seconds is not None
        return problem.is_later and (method != "POST" or refused_unread)
    never_sent = isinstance(problem.__cause__, NewConnectionError | ConnectTimeoutError)
    return isinstance(problem, KubeUnreachable) and (method != "POST" or never_sent)


def _fenced(data: bytes, fence: Callable[[], bool]) -> Iterator[bytes]:
    if not fence():
        raise LostLeadership("not sent: this process is not the leader any more")
    yield data


def _body(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """All of it, bounded in size and time; ``KubeUnreachable`` where it is neither."""
    parts: list[bytes] = []
    size = 0
    try:
        while piece := response.read1(_PIECE_BYTES, decode_content=False):
            parts.append(piece)
            size += len(piece)
            if size > BODY_MOST_BYTES:
                raise KubeUnreachable(f"an answer is over {BODY_MOST_BYTES} bytes")
            if time.monotonic() > deadline:
                raise KubeUnreachable("an answer took longer than its deadline")
    except (HTTPError, OSError, ValueError) as problem:
        raise KubeUnreachable(f"an answer broke off: {_one_line(problem)}") from problem
    return b"".join(parts)


def _refusal(response: urllib3.BaseHTTPResponse, body: bytes) -> KubeRefusal:
    """Of the API's ``Status``, or of whatever a proxy before it said."""
    try:
        answer = msgspec.json.decode(body, type=_Status)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        answer = _Status("", _one_line(body[:_MESSAGE_LETTERS].decode("utf-8", "replace")))
    after: float | None = None
    with contextlib.suppress(ValueError):  # the API server writes seconds, never a date
        after = max(0.0, float(response.headers.get("Retry-After", "")))
    return KubeRefusal(response.status, answer.reason, _one_line(answer.message), after)


class _Status(msgspec.Struct):
    """Of ``meta/v1``."""

    reason: str = ""
    message: str = ""


def _document(data: bytes) -> Object:
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise KubeUnreachable(f"an answer is no JSON: {_one_line(problem)}") from problem
    if not isinstance(document, dict):
        raise KubeUnreachable("an answer is no object")
    return document


def _word(value: str | int | bool) -> str:  # noqa: FBT001 - a value, no switch
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1 << 20)


def _one_line(problem: object) -> str:
    words = " ".join(str(problem).split()) or type(problem).__name__
    return "".join(letter for letter in words if letter.isprintable())[:_MESSAGE_LETTERS]
