"""Unary calls over a unix socket: answers of real servers, and servers that mean harm."""

import contextlib
import os
import socket
import struct
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.host.grpc_server import (
    HEADERS_200,
    SETTINGS,
    STATUS_0,
    Part,
    answer,
    frame,
    serving,
)  # fmt: skip

from seawall._vendor.hpack import Decoder
from seawall.host.grpc_unix import call
from seawall.host.grpc_unix.call import Connection
from seawall.host.grpc_unix.grpc_problems import (
    CallProblem,
    SilentProblem,
    StatusProblem,
    WireProblem,
)  # fmt: skip
from seawall.host.grpc_unix.reasons import reason_of

METHOD = "/v1.PodResourcesLister/List"
FILES = Path(__file__).parent / "files"
NO_HTTP2 = r"^what came is no HTTP/2 \(\w+\)$"
RECORDED = bytes.fromhex((FILES / "grpc-core-two-calls.hex").read_text())
"""What gRPC's C core (grpcio 1.85.1) sent for two calls: an answer, and UNIMPLEMENTED."""


BOMB = b"\x40\x01a" + b"\x7f\xe0\x1e" + b"v" * 4063 + b"\xbe" * 1000
"""A header of 4 KiB in the table, named a thousand times."""


def methods(came: bytes) -> list[str]:
    """``:path`` of each call that a client sent."""
    decoder, at, found = Decoder(), len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), []
    while at < len(came):
        end = at + 9 + int.from_bytes(came[at : at + 3], "big")
        if came[at + 3] == 1:
            found.append(dict(decoder.decode(came[at + 9 : end], raw=True))[b":path"].decode())
        at = end
    return found


def ask(path: Path, *parts: Part, seconds: float = 5.0) -> bytes:
    with serving(path, *parts) as server, Connection(server.path, seconds) as made:
        return made.call(METHOD)


def test_a_real_servers_bytes(tmp_path: Path) -> None:
    with serving(tmp_path / "s", RECORDED) as server, Connection(server.path, 5) as made:
        assert b"nvidia.com/gpu" in made.call(METHOD)
        with pytest.raises(StatusProblem, match="gRPC status 12: UNIMPLEMENTED") as told:
            made.call("/v1.PodResourcesLister/GetAllocatableResources")
        time.sleep(0.05)
    assert told.value.code == 12
    assert reason_of(told.value) == ["absent", "gRPC status 12: UNIMPLEMENTED"]
    came = bytes(server.came)
    assert came.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert methods(came) == [METHOD, "/v1.PodResourcesLister/GetAllocatableResources"]
    # Its settings and its ping were acknowledged; another came when all was said.
    assert came.count(frame(4, 1, 0, b"")) == 1
    assert len([at for at in range(len(came)) if came[at : at + 5] == b"\x00\x00\x08\x06\x01"]) == 1


def test_a_large_answer_is_let_through_by_windows(tmp_path: Path) -> None:
    """The server sends no byte more than it was allowed to."""
    message = os.urandom(300_000)
    body = b"\0" + struct.pack(">I", len(message)) + message

    def send(client: socket.socket) -> None:
        left, at, heard = 65535, 0, b""
        client.sendall(SETTINGS + frame(1, 4, 1, HEADERS_200))
        while at < len(body):
            part = body[at : at + min(16384, left)]
            if part:
                client.sendall(frame(0, 0, 1, part))
                at, left = at + len(part), left - len(part)
                continue
            heard += client.recv(65536)
            for where in range(len(heard) - 12):
                if heard[where : where + 9] == b"\x00\x00\x04\x08\x00\x00\x00\x00\x01":
                    left += struct.unpack(">I", heard[where + 9 : where + 13])[0]
            heard = heard[-12:]
        client.sendall(frame(1, 5, 1, STATUS_0))

    assert ask(tmp_path / "s", send) == message


def test_several_calls_padding_continuation_and_priority(tmp_path: Path) -> None:
    body = b"\0" + struct.pack(">I", 2) + b"hi"
    parts = (
        SETTINGS,
        frame(1, 0x28, 1, b"\x02" + b"\0" * 7),
        frame(9, 0, 1, HEADERS_200), frame(9, 4, 1, b""),
        frame(0, 8, 1, b"\x03" + body + b"\0\0\0"),
        frame(1, 1, 1, STATUS_0[:5]), frame(9, 4, 1, STATUS_0[5:]),
        frame(8, 0, 0, b"\0\0\0\x10"), frame(0xBB, 0, 0, b"unknown"),
        answer(b"again", 3),
    )  # fmt: skip
    with serving(tmp_path / "s", *parts) as server, Connection(server.path, 5) as made:
        assert made.call(METHOD) == b"hi"
        assert made.call(METHOD) == b"again"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), "a frame of"),
        ((SETTINGS, frame(3, 0, 1, b"\0\0\0\x08")), "reset the call, code 8"),
        ((SETTINGS, frame(7, 0, 0, b"\0" * 8)), "GOAWAY"),
        ((SETTINGS, frame(1, 5, 1, b"\x8d")), "HTTP status 404"),
        ((SETTINGS, frame(1, 5, 1, HEADERS_200)), "without grpc-status"),
        ((SETTINGS, frame(1, 5, 1, HEADERS_200 + STATUS_0)), "without a message"),
        ((SETTINGS, answer(b"x").replace(b"\0\0\0\0\x01x", b"\x01\0\0\0\x01x")), "not one message"),
        ((SETTINGS, answer(b"x").replace(b"\0\0\0\0\x01x", b"\0\0\0\0\x09x")), "not one message"),
        ((SETTINGS, frame(0, 8, 1, b"\xff")), NO_HTTP2),
        ((SETTINGS, frame(1, 0, 1, HEADERS_200), SETTINGS), NO_HTTP2),
        ((SETTINGS, frame(9, 4, 1, b"")), NO_HTTP2),
        ((SETTINGS, frame(5, 4, 1, b"\0\0\0\2\x88")), NO_HTTP2),
        ((SETTINGS, frame(4, 0, 0, b"\0\0\0")), NO_HTTP2),
        ((SETTINGS, frame(8, 0, 0, b"\0")), NO_HTTP2),
        ((SETTINGS, frame(1, 0, 1, b""), *(frame(9, 0, 1, b"\0" * 16000),) * 70), NO_HTTP2),
        ((SETTINGS, frame(1, 4, 1, b"\x88" + BOMB)), NO_HTTP2),
        ((SETTINGS, frame(1, 4, 1, b"\x88\x40\x03a b\x07hunter2")), NO_HTTP2),
        ((b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",), "a frame of 16777215 bytes"),
        ((lambda client: client.shutdown(socket.SHUT_RDWR),), "closed the connection"),
    ],
)
def test_what_is_no_answer(tmp_path: Path, parts: tuple[Part, ...], words: str) -> None:
    with pytest.raises(CallProblem, match=words):
        ask(tmp_path / "s", *parts)


def test_a_server_that_takes_no_more_calls_answers_those_that_it_has(tmp_path: Path) -> None:
    goaway = frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0")
    parts = SETTINGS, frame(1, 4, 1, HEADERS_200), goaway, answer(b"x")[10:]
    with serving(tmp_path / "s", *parts) as server, Connection(server.path, 5) as made:
        assert made.call(METHOD) == b"x"
        with pytest.raises(CallProblem, match="takes no more calls"):
            made.call(METHOD)


def test_the_servers_words_are_not_kept(tmp_path: Path) -> None:
    """They may quote what the server has in hand."""
    told = b"\x40\x0bgrpc-status\x0213\x00\x0cgrpc-message\x07hunter2"
    with pytest.raises(StatusProblem) as problem:
        ask(tmp_path / "s", SETTINGS, frame(1, 5, 1, HEADERS_200 + told))
    assert reason_of(problem.value) == ["failed", "gRPC status 13: INTERNAL"]


@pytest.mark.parametrize(
    "part",
    [
        b"",
        SETTINGS + frame(1, 4, 1, HEADERS_200),
        lambda client: [client.sendall(b"\0") or time.sleep(0.05) for _ in range(40)],
    ],
)
def test_silence_ends(tmp_path: Path, part: Part) -> None:
    began = time.monotonic()
    with pytest.raises(SilentProblem) as problem:
        ask(tmp_path / "s", part, seconds=0.3)
    assert time.monotonic() - began < 3.0
    assert reason_of(problem.value) == ["no_answer", "no answer in the time given"]


def test_frames_and_bytes_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flood(what: bytes) -> Part:
        def send(client: socket.socket) -> None:
            with contextlib.suppress(OSError):
                for _ in range(10_000):
                    client.sendall(what)

        return send

    monkeypatch.setattr(call, "_FRAMES_MOST", 500)
    monkeypatch.setattr(call, "ANSWER_BYTES_MOST", 1 << 20)
    with pytest.raises(WireProblem, match="more than 500 frames"):
        ask(tmp_path / "a", SETTINGS + frame(1, 4, 1, HEADERS_200), flood(frame(0, 0, 1, b"")))
    parts = SETTINGS + frame(1, 4, 1, HEADERS_200), flood(frame(0, 0, 1, b"x" * 16384))
    with pytest.raises(WireProblem, match="an answer of more than"):
        ask(tmp_path / "b", *parts)


def test_nobody_who_takes_connections(tmp_path: Path) -> None:
    """A queue that is full holds connect(2)."""
    with socket.socket(socket.AF_UNIX) as full, contextlib.ExitStack() as stack:
        full.bind(str(tmp_path / "s"))
        full.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(str(tmp_path / "s"))
        with pytest.raises(SilentProblem, match="does not take connections"):
            Connection(str(tmp_path / "s"), 0.2)


def test_what_is_no_server(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_text("")
    (tmp_path / "away").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left"))
    told = {}
    for name in ("fifo", "file", "away", "left"):
        with pytest.raises(OSError) as problem:  # noqa: PT011 - which one is compared below
            Connection(str(tmp_path / name), 0.5)
        told[name] = reason_of(problem.value)
    assert told == {
        "fifo": ["failed", "Socket operation on non-socket"],
        "file": ["failed", "Socket operation on non-socket"],
        "away": ["absent", "No such file or directory"],
        "left": ["failed", "Connection refused"],
    }


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, len(RECORDED) - 1), st.integers(1, 255))
def test_a_byte_changed_in_a_real_answer(at: int, change: int) -> None:
    """An answer or a problem, and in time."""
    broken = bytearray(RECORDED)
    broken[at] ^= change
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(broken)
        theirs.shutdown(socket.SHUT_WR)
        made = object.__new__(Connection)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(call, "_connected", lambda *_: ours)
            made.__init__("", 1.0)  # type: ignore[misc]
        with contextlib.suppress(CallProblem, OSError), made:
            made.call(METHOD)
            made.call(METHOD)
