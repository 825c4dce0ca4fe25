"""The client against a server that misbehaves; how it does with a real one: ``tests/cluster``."""

import datetime as dt
import json
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster_observer.api_answers import Answer, ApiAnswers, answer, pieces

from seawall.cluster.kube import kube_client
from seawall.cluster.kube.kube_client import (
    ClusterAccess,
    KubeClient,
    KubeProblem,
    KubeRefusal,
    KubeUnreachable,
    LostLeadership,
    RetryDelay,
    TokenBucket,
    resource_of,
)

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl, which makes the certificate"
)
PATH = "/api/v1/nodes/a"
Serve = Callable[..., tuple[ApiAnswers, KubeClient]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(*answers: Answer) -> tuple[ApiAnswers, KubeClient]:
            server = stack.enter_context(ApiAnswers(tmp_path, list(answers)))
            client = KubeClient(server.access)
            stack.callback(client.close)
            return server, client

        yield start


def status(code: int, reason: str, message: str = "because", **headers: str) -> Answer:
    body = {"kind": "Status", "reason": reason, "message": message, "code": code}
    return answer(code, json.dumps(body).encode(), **headers)


def test_an_object_comes_as_plain_json_with_token_and_count(serve: Serve) -> None:
    server, client = serve(answer(200, b'{"metadata": {"name": "a"}}'))
    assert client.get(PATH, {"resourceVersion": "0"}) == {"metadata": {"name": "a"}}
    (request,) = server.requests
    assert request.startswith(b"GET /api/v1/nodes/a?resourceVersion=0 HTTP/1.1\r\n")
    assert b"Authorization: Bearer a\r\n" in request
    assert client.request_counts() == {("get", "nodes", "200"): 1}
    client.merge(PATH, {})
    assert len(server.connections) == 1  # it is kept


def test_a_refusal_has_status_and_reason_on_one_line(serve: Serve) -> None:
    _, client = serve(status(404, "NotFound", 'nodes "a"\n\x1b[31mnot found'))
    with pytest.raises(KubeRefusal) as refused:
        client.get(PATH)
    assert (refused.value.status, refused.value.reason) == (404, "NotFound")
    assert str(refused.value) == '404 NotFound: nodes "a" [31mnot found'


@pytest.mark.parametrize("body", [b"<html>no</html>", b"[1]", b"\xff\xfe", b"", b"[" * 100_000])
def test_a_refusal_by_somebody_else_is_a_refusal(serve: Serve, body: bytes) -> None:
    _, client = serve(answer(403, body))
    with pytest.raises(KubeRefusal) as refused:
        client.get(PATH)
    assert refused.value.status == 403
    assert len(str(refused.value)) < 1100


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"\xff", b"", b"[" * 100_000 + b"]" * 100_000])
def test_what_is_no_object_is_no_answer(serve: Serve, body: bytes) -> None:
    _, client = serve(answer(200, body))
    with pytest.raises(KubeUnreachable):
        client.get(PATH)


def test_later_means_later_and_no_sooner(serve: Serve) -> None:
    _, client = serve(status(429, "TooManyRequests", Retry_After="1"), answer(200))
    began = time.monotonic()
    client.get(PATH)
    assert 1.0 <= time.monotonic() - began < 5.0
    assert client.request_counts() == {("get", "nodes", "429"): 1, ("get", "nodes", "200"): 1}


def test_a_create_that_may_have_gone_through_is_not_sent_twice(serve: Serve) -> None:
    server, client = serve(lambda connection, _: connection.close(), answer(201))
    with pytest.raises(KubeUnreachable):
        client.create("/api/v1/nodes", {})
    assert len(server.requests) == 1
    client.get(PATH)
    server.answers[:] = [status(500, "InternalError"), answer(201)]
    with pytest.raises(KubeRefusal):
        client.create("/api/v1/nodes", {})
    server.answers[:] = [status(503, "x", Retry_After="0"), answer(201)]
    client.create("/api/v1/nodes", {})


def test_a_lost_connection_is_opened_again_for_all_else(serve: Serve) -> None:
    server, client = serve(lambda connection, _: connection.close(), answer(200))
    client.merge(PATH, {"a": 1})
    assert len(server.requests) == 2
    assert b"application/merge-patch+json" in server.requests[1]
    assert server.requests[1].endswith(b'{"a":1}')


def test_nothing_outlasts_its_deadline(serve: Serve) -> None:
    def trickle(connection: ssl.SSLSocket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(15):
            connection.sendall(b" ")
            time.sleep(0.1)

    _, client = serve(lambda *_: time.sleep(1.5), trickle)
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(KubeUnreachable):
            client.get(PATH, seconds=0.5)
        assert time.monotonic() - began < 1.4


def test_a_body_without_end_is_cut(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_client, "BODY_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(kube_client, "EVENT_MOST_BYTES", 1 << 20)
    _, client = serve(pieces(*[b"x" * 65536] * 40))
    with pytest.raises(KubeUnreachable, match="over 1048576 bytes"):
        client.create("/api/v1/nodes", {})
    with pytest.raises(KubeUnreachable, match="over 1048576 bytes"):
        list(client.watch("/api/v1/nodes"))


def test_events_come_one_by_one_however_they_are_cut(serve: Serve) -> None:
    _, client = serve(pieces(b"one\ntw", b"o\n", b"\nthree\nrest"))
    events = iter(client.watch("/api/v1/nodes"))
    assert [next(events) for _ in range(4)] == [b"one", b"two", b"", b"three"]
    with pytest.raises(KubeUnreachable, match="broke off"):
        next(events)
    assert client.request_counts() == {("watch", "nodes", "200"): 1}


def test_a_watch_that_says_nothing_is_given_up(serve: Serve) -> None:
    _, client = serve(pieces(b"one\n", then=lambda: time.sleep(1.5)))
    stream = iter(client.watch("/api/v1/nodes", silence_seconds=0.5))
    assert next(stream) == b"one"
    began = time.monotonic()
    with pytest.raises(KubeUnreachable):
        next(stream)
    assert time.monotonic() - began < 1.4


def test_a_watch_refused_is_a_refusal(serve: Serve) -> None:
    _, client = serve(status(410, "Expired"))
    with pytest.raises(KubeRefusal) as refused:
        client.watch("/api/v1/nodes", {"resourceVersion": "1"})
    assert refused.value.status == 410


def test_pages_follow_each_other_and_begin_again_when_forgotten(serve: Serve) -> None:
    def page(items: list[int], mark: str = "") -> Answer:
        return answer(200, json.dumps({"items": items, "metadata": {"continue": mark}}).encode())

    server, client = serve(
        page([1, 2], "m"), status(410, "Expired"), page([1, 2], "n"), page([3]),
    )  # fmt: skip
    assert client.items("/api/v1/pods", {"fieldSelector": "spec.nodeName=a"}, limit=2) == [1, 2, 3]
    first, last = server.requests[0], server.requests[-1]
    assert b"fieldSelector=spec.nodeName%3Da&limit=2 " in first
    assert b"limit=2&continue=n " in last
    server.answers[:] = [page([1], "m"), status(410, "Expired")]
    pages = client.pages("/api/v1/pods")
    next(pages)
    with pytest.raises(KubeRefusal):
        next(pages)


def test_a_stranger_with_another_certificate_hears_no_token(serve: Serve, tmp_path: Path) -> None:
    server, _ = serve(answer(200))
    other = tmp_path / "other"
    other.mkdir()
    with ApiAnswers(other, [answer(200)]) as second:
        access = ClusterAccess(second.access.server, server.access.ca_file, token="secret")
        with pytest.raises(KubeUnreachable, match=r"(?i)certificate"):
            KubeClient(access).get(PATH, seconds=1.0)
        assert not second.requests


def test_a_new_token_is_read_after_a_401_and_each_minute(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = serve(answer(200), status(401, "Unauthorized"), answer(200))
    (tmp_path / "token").write_text("one\n")
    access = ClusterAccess(
        server.access.server, server.access.ca_file, token_file=str(tmp_path / "token")
    )
    client = KubeClient(access)
    client.get(PATH)
    (tmp_path / "token").write_text("two\n")
    client.get(PATH)
    tokens = [request.partition(b"Bearer ")[2].split(b"\r")[0] for request in server.requests]
    assert tokens == [b"one", b"one", b"two"]
    (tmp_path / "token").write_text("three\n")
    monkeypatch.setattr(kube_client, "RELOAD_SECONDS", 0.0)
    client.get(PATH)
    assert b"Bearer three\r" in server.requests[-1]


def test_a_fence_that_is_down_lets_no_body_out(serve: Serve) -> None:
    server, client = serve(answer(200))
    client.fence = lambda: False
    for write in (
        lambda: client.create("/api/v1/nodes", {"kind": "Node"}),
        lambda: client.apply(PATH, {"kind": "Node"}, manager="m"),
        lambda: client.merge(PATH, {"kind": "Node"}),
        lambda: client.replace(PATH, {"kind": "Node"}),
        lambda: client.delete(PATH),
    ):
        with pytest.raises(LostLeadership):
            write()
    client.get(PATH)
    client.replace(PATH, {"kind": "Lease"}, is_urgent=True)
    bodies = [request.partition(b"\r\n\r\n")[2] for request in server.requests]
    assert [body for body in bodies if body] == [b'{"kind":"Lease"}']
    client.fence = lambda: True
    client.apply(PATH, {"kind": "Node"}, manager="m", force=True)
    assert server.requests[-1].endswith(b'\r\n\r\n{"kind":"Node"}')
    assert b"fieldManager=m&force=true " in server.requests[-1]


def test_the_clock_is_the_servers_whatever_ours_says(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = serve(answer(200))
    ahead = time.time() + 86400.0
    monkeypatch.setattr(time, "time", lambda: ahead)
    first = client.server_seconds()
    date = dt.datetime(2026, 11, 29, 1, 0, 0, tzinfo=dt.timezone.utc)  # the header's
    assert first == pytest.approx(date.timestamp() + 0.5, abs=2)
    time.sleep(0.05)
    assert client.server_seconds() - first == pytest.approx(0.05, abs=0.5)


def test_nobody_there_is_unreachable_within_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = KubeClient(ClusterAccess(f"https://127.0.0.1:{port}"))
    began = time.monotonic()
    with pytest.raises(KubeUnreachable):
        client.create("/api/v1/nodes", {}, seconds=1.5)
    assert time.monotonic() - began < 4.0
    with pytest.raises(KubeUnreachable):
        client.server_seconds(seconds=0.5)


def test_bad_access_is_one_line() -> None:
    with pytest.raises(KubeProblem, match="not in a pod"):
        ClusterAccess.in_cluster({})
    found = ClusterAccess.in_cluster(
        {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, "/run/x"
    )
    assert (found.server, found.ca_file, found.token_file) == (
        "https://[fd00::1]:443", "/run/x/ca.crt", "/run/x/token",
    )  # fmt: skip
    for access in (found, ClusterAccess("http://127.0.0.1"), ClusterAccess("")):
        with pytest.raises(KubeProblem):
            KubeClient(access)


def test_requests_are_bounded_and_delays_grow() -> None:
    bucket = TokenBucket(20.0)
    waits = [bucket.take() for _ in range(60)]
    assert waits[19] == 0.0
    assert waits[59] == pytest.approx(2.0, abs=0.2)
    delay = RetryDelay()
    pauses = [delay.next_seconds() for _ in range(12)]
    assert all(0.25 <= pauses[0] <= 0.5 and 15.0 <= one <= 30.0 for one in pauses[6:])
    assert delay.next_seconds(KubeRefusal(429, "", "", 1000.0)) == 30.0
    delay.reset()
    assert 4.0 <= delay.next_seconds(KubeRefusal(429, "", "", 4.0)) <= 4.5


def test_resources_are_named_as_the_api_names_them() -> None:
    for path, resource in {
        "/api/v1/nodes": "nodes",
        "/api/v1/nodes/a/status": "nodes/status",
        "/api/v1/namespaces/x/pods/p": "pods",
        "/api/v1/namespaces/x": "namespaces",
        "/apis/apps/v1/namespaces/x/deployments": "deployments",
        "/apis/seawall.internal/v1alpha1/nodedeaths/d": "nodedeaths",
        "/version": "version",
    }.items():
        assert resource_of(path) == resource
