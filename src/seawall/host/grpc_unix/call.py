# SPDX-License-Identifier: Apache-2.0
"""Unary gRPC calls over a unix socket, one after the other: gRPC's own part on top of HTTP/2
(grpc/doc/PROTOCOL-HTTP2.md), which h2 speaks.

Who answers may be anybody: what it may cost is bounded in bytes, frames and seconds.
"""

import errno
import os
import socket
import stat
import struct
import time
from collections.abc import Iterable
from typing import Any, Final

from seawall._vendor.h2.config import H2Configuration
from seawall._vendor.h2.connection import H2Connection
from seawall._vendor.h2.events import (
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from seawall._vendor.h2.exceptions import H2Error
from seawall._vendor.h2.settings import SettingCodes, Settings
from seawall.host.grpc_unix.grpc_problems import (
    CallProblem,
    SilentProblem,
    StatusProblem,
    WireProblem,
)

# The answer to one unary call while it comes: headers, one message, trailers.
#
# The words that a server sends with its status are not kept: they may quote anything.

_PREFIX_BYTES: Final = 5
_NAMES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip


class GrpcAnswer:
    """Of the call on ``stream``."""

    def __init__(self, stream: int, bytes_most: int) -> None:
        self.stream = stream
        self.is_ended = False
        self._most = bytes_most
        self._data = bytearray()
        self._told: dict[bytes, bytes] = {}

    def take_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The first of them, or the trailers; what was told first stands."""
        for name, value in headers:
            self._told.setdefault(name, value)

    def take_data(self, part: bytes) -> None:
        """A piece of the message."""
        self._data += part
        if len(self._data) > self._most:
            raise WireProblem(f"an answer of more than {self._most} bytes")

    def message(self) -> bytes:
        """StatusProblem: the server says why there is none."""
        if (http := self._told.get(b":status")) != b"200":
            raise WireProblem(f"HTTP status {_shown(http)}")
        status = self._told.get(b"grpc-status", b"")
        if not status.isdigit() or len(status) > 3:
            raise WireProblem("an answer without grpc-status")
        if code := int(status):
            raise StatusProblem(code, _NAMES[code] if code < len(_NAMES) else "")
        if len(self._data) < _PREFIX_BYTES:
            raise WireProblem("an answer without a message")
        is_compressed, size = struct.unpack(">?I", self._data[:_PREFIX_BYTES])
        if is_compressed or size != len(self._data) - _PREFIX_BYTES:
            raise WireProblem("an answer that is not one message, as it was asked for")
        return bytes(self._data[_PREFIX_BYTES:])


def _shown(status: bytes | None) -> str:
    return status.decode() if status and status.isdigit() and len(status) < 4 else "that is none"


ANSWER_BYTES_MOST: Final = 8 << 20
_FRAMES_MOST: Final = 50_000
"""Of one connection; 8 MiB are 512 frames of data."""
_FRAME_HEAD_BYTES: Final = 9
_FRAME_BYTES_MOST: Final = 16384
"""SETTINGS_MAX_FRAME_SIZE as it is where nobody sets it: nobody may send us more."""
_GOAWAY: Final = 7
_STREAM_MOST: Final = (1 << 31) - 1
_HEADERS_BYTES_MOST: Final = 64 << 10
_QUESTION_BYTES_MOST: Final = 8 << 10
_CHUNK_BYTES: Final = 64 << 10
_SECOND: Final = 1_000_000
_CLOSED: Final = "the server closed the connection"
_NO_MORE: Final = "the server takes no more calls (GOAWAY)"


class Connection:
    """To the server of one socket, until ``seconds`` are over; a context manager.

    OSError: it cannot be connected to, ENOTSOCK where something else is at the path.
    """

    def __init__(self, path: str, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._http2: Any = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self._buffer = bytearray()
        self._frames_left = _FRAMES_MOST
        self._last_stream = _STREAM_MOST
        self._socket = _connected(path, seconds)

    def __enter__(self) -> "Connection":  # noqa: PYI034 - typing.Self is of Python 3.11
        wishes = {
            SettingCodes.ENABLE_PUSH: 0, SettingCodes.MAX_HEADER_LIST_SIZE: _HEADERS_BYTES_MOST,
        }  # fmt: skip
        self._http2.local_settings = Settings(client=True, initial_values=wishes)
        self._http2.initiate_connection()
        self._send()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, method: str, message: bytes = b"") -> bytes:
        """The answer to ``/package.Service/Method``.  CallProblem, OSError: there is none."""
        body = b"\0" + struct.pack(">I", len(message)) + message
        if len(body) > _QUESTION_BYTES_MOST:
            raise CallProblem(f"a question of {len(body)} bytes is more than may be sent")
        answer = GrpcAnswer(self._http2.get_next_available_stream_id(), ANSWER_BYTES_MOST)
        if answer.stream > self._last_stream:
            raise CallProblem(_NO_MORE)
        try:
            self._exchange(answer, method, body)
        except H2Error as error:  # its words may quote the server's
            raise WireProblem(f"what came is no HTTP/2 ({type(error).__name__})") from error
        return answer.message()

    def _exchange(self, answer: GrpcAnswer, method: str, body: bytes) -> None:
        self._http2.send_headers(answer.stream, self._headers(method))
        self._send()
        while not answer.is_ended:
            if body and self._http2.local_flow_control_window(answer.stream) >= len(body):
                self._http2.send_data(answer.stream, body, end_stream=True)
                self._send()
                body = b""
            self._take(answer)

    def _headers(self, method: str) -> list[tuple[bytes, bytes]]:
        left = max(1, int((self._until - time.monotonic()) * 1000))
        return [
            (b":method", b"POST"), (b":scheme", b"http"), (b":path", method.encode()),
            (b":authority", b"localhost"), (b"te", b"trailers"), (b"grpc-timeout", b"%dm" % left),
            (b"content-type", b"application/grpc"), (b"user-agent", b"seawall"),
        ]  # fmt: skip

    def _take(self, answer: GrpcAnswer) -> None:
        """One frame, and what the connection owes for it."""
        for event in self._events(answer.stream):
            is_own = getattr(event, "stream_id", 0) == answer.stream
            match event:
                case ResponseReceived() | TrailersReceived() if is_own:
                    answer.take_headers(event.headers)
                case DataReceived():
                    if is_own:
                        answer.take_data(event.data)
                    size = event.flow_controlled_length
                    self._http2.acknowledge_received_data(size, event.stream_id)
                case StreamEnded() if is_own:
                    answer.is_ended = True
                case StreamReset() if is_own:
                    raise CallProblem(f"the server reset the call, code {int(event.error_code)}")
        self._send()

    def _events(self, stream: int) -> list[Any]:
        """Of one frame; none of GOAWAY, after which h2 would take nothing, though calls up to a
        number are answered still.
        """
        self._frames_left -= 1
        if self._frames_left < 0:
            raise WireProblem(f"more than {_FRAMES_MOST} frames")
        head = self._exactly(_FRAME_HEAD_BYTES)
        length = int.from_bytes(head[:3], "big")
        if length > _FRAME_BYTES_MOST:
            raise WireProblem(f"a frame of {length} bytes")
        payload = self._exactly(length)
        if head[3] != _GOAWAY:
            events: list[Any] = self._http2.receive_data(head + payload)
            return events
        self._last_stream = int.from_bytes(payload[:4], "big") & _STREAM_MOST
        if stream > self._last_stream:
            raise CallProblem(_NO_MORE)
        return []

    # --- bytes ------------------------------------------------------------------------------

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._wait()
            try:
                part = self._socket.recv(_CHUNK_BYTES)
            except TimeoutError as error:
                raise SilentProblem("no answer in the time given") from error
            except ConnectionError:
                part = b""
            if not part:
                raise WireProblem(_CLOSED)
            self._buffer += part
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _send(self) -> None:
        """What h2 has to say."""
        data = self._http2.data_to_send()
        if not data:
            return
        self._wait()
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise SilentProblem("the server reads nothing") from error
        except ConnectionError as error:
            raise WireProblem(_CLOSED) from error

    def _wait(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise SilentProblem("no answer in the time given")
        self._socket.settimeout(left)


def _connected(path: str, seconds: float) -> socket.socket:
    """A server whose queue is full would hold connect(2) for ever but for SO_SNDTIMEO."""
    if not stat.S_ISSOCK(os.stat(path).st_mode):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    whole = int(seconds)
    wait = struct.pack("@ll", whole, int((seconds - whole) * _SECOND))
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)
        made.connect(path)
    except BlockingIOError as error:
        made.close()
        raise SilentProblem("the server does not take connections") from error
    except OSError:
        made.close()
        raise
    return made
