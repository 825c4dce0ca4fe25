# SPDX-License-Identifier: Apache-2.0
"""Unary gRPC calls over a unix socket: HTTP/2 (RFC 9113) and gRPC's own part on top of it
(grpc/doc/PROTOCOL-HTTP2.md), one call after the other.

Who answers may be anybody: what it may cost is bounded in bytes, frames and seconds.
"""

import errno
import os
import socket
import stat
import struct
import time
from typing import Final

from seawall.host.grpc_unix import hpack, http2_frames
from seawall.host.grpc_unix.answer import GrpcAnswer
from seawall.host.grpc_unix.grpc_problems import CallProblem, SilentProblem, WireProblem
from seawall.host.grpc_unix.http2_frames import Http2Frame, packed

ANSWER_BYTES_MOST: Final = 8 << 20
_FRAMES_MOST: Final = 50_000
"""Of one connection; 8 MiB are 512 frames of data."""
_BLOCK_BYTES_MOST: Final = 64 << 10
_QUESTION_BYTES_MOST: Final = 8 << 10
_CHUNK_BYTES: Final = 64 << 10
_SECOND: Final = 1_000_000
_AGENT: Final = b"seawall"
_CLOSED: Final = "the server closed the connection"


class Connection:
    """To the server of one socket, until ``seconds`` are over; a context manager.

    OSError: it cannot be connected to, ENOTSOCK where something else is at the path.
    """

    def __init__(self, path: str, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._decoder = hpack.Decoder()
        self._buffer = bytearray()
        self._next = 1
        self._window = self._stream_window = http2_frames.WINDOW_BYTES
        self._frames_left = _FRAMES_MOST
        self._last_stream = http2_frames.WINDOW_MOST
        self._socket = _connected(path, seconds)

    def __enter__(self) -> "Connection":  # noqa: PYI034 - typing.Self is of Python 3.11
        self._send(http2_frames.hello())
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, method: str, message: bytes = b"") -> bytes:
        """The answer to ``/package.Service/Method``.  CallProblem, OSError: there is none."""
        stream, self._next = self._next, self._next + 2
        if stream > self._last_stream:
            raise CallProblem("the server takes no more calls (GOAWAY)")
        body = b"\0" + struct.pack(">I", len(message)) + message
        if len(body) > min(_QUESTION_BYTES_MOST, self._stream_window):
            raise CallProblem(f"a question of {len(body)} bytes is more than may be sent")
        answer = GrpcAnswer(stream, ANSWER_BYTES_MOST)
        block = hpack.encode(self._headers(method))
        self._send(packed(http2_frames.HEADERS, http2_frames.END_HEADERS, stream, block))
        while self._window < len(body):
            self._take(answer)
        self._window -= len(body)
        self._send(packed(http2_frames.DATA, http2_frames.END_STREAM, stream, body))
        while not answer.is_ended:
            self._take(answer)
        return answer.message()

    def _headers(self, method: str) -> list[hpack.Header]:
        left = max(1, int((self._until - time.monotonic()) * 1000))
        return [
            (b":method", b"POST"), (b":scheme", b"http"), (b":path", method.encode()),
            (b":authority", b"localhost"), (b"te", b"trailers"), (b"grpc-timeout", b"%dm" % left),
            (b"content-type", b"application/grpc"), (b"user-agent", _AGENT),
        ]  # fmt: skip

    # --- frames that come -------------------------------------------------------------------

    def _take(self, answer: GrpcAnswer) -> None:
        """One frame, and what the connection owes for it."""
        frame = self._frame()
        match frame.kind:
            case http2_frames.HEADERS:
                headers = self._decoder.decode(self._block(frame))
                if frame.stream == answer.stream:
                    answer.take_headers(
                        headers, is_last=bool(frame.flags & http2_frames.END_STREAM)
                    )
            case http2_frames.DATA:
                self._take_data(frame, answer)
            case http2_frames.RST_STREAM if frame.stream == answer.stream:
                raise CallProblem(
                    f"the server reset the call, code {http2_frames.number(frame.payload)}"
                )
            case http2_frames.CONTINUATION | http2_frames.PUSH_PROMISE:
                raise WireProblem("a frame that must not come here")
            case _ if frame.stream == 0:
                self._take_of_connection(frame, answer.stream)

    def _take_data(self, frame: Http2Frame, answer: GrpcAnswer) -> None:
        is_last = bool(frame.flags & http2_frames.END_STREAM)
        if frame.stream == answer.stream:
            answer.take_data(http2_frames.content(frame), is_last=is_last)
        if size := len(frame.payload):
            leave = http2_frames.window_update(0, size)
            self._send(leave if is_last else leave + http2_frames.window_update(frame.stream, size))

    def _take_of_connection(self, frame: Http2Frame, stream: int) -> None:
        is_ack = bool(frame.flags & http2_frames.ACK)
        if frame.kind == http2_frames.SETTINGS and not is_ack:
            window = http2_frames.initial_window(frame.payload)
            self._stream_window = self._stream_window if window is None else window
            self._send(packed(http2_frames.SETTINGS, http2_frames.ACK, 0, b""))
        elif frame.kind == http2_frames.PING and not is_ack:
            self._send(packed(http2_frames.PING, http2_frames.ACK, 0, frame.payload[:8]))
        elif frame.kind == http2_frames.WINDOW_UPDATE:
            self._window += http2_frames.number(frame.payload) & http2_frames.WINDOW_MOST
        elif frame.kind == http2_frames.GOAWAY:
            self._last_stream = http2_frames.number(frame.payload[:4]) & http2_frames.WINDOW_MOST
            if stream > self._last_stream:
                raise CallProblem("the server takes no more calls (GOAWAY)")

    def _block(self, frame: Http2Frame) -> bytes:
        """The header block that begins with this frame; nothing may come between its parts."""
        block = http2_frames.content(frame)
        flags = frame.flags
        while not flags & http2_frames.END_HEADERS:
            more = self._frame()
            if more.kind != http2_frames.CONTINUATION or more.stream != frame.stream:
                raise WireProblem("a header block that another frame interrupts")
            block, flags = block + more.payload, more.flags
            if len(block) > _BLOCK_BYTES_MOST:
                raise WireProblem(f"a header block of more than {_BLOCK_BYTES_MOST} bytes")
        return block

    def _frame(self) -> Http2Frame:
        self._frames_left -= 1
        if self._frames_left < 0:
            raise WireProblem(f"more than {_FRAMES_MOST} frames")
        length, kind, flags, stream = http2_frames.head(self._exactly(http2_frames.HEAD_BYTES))
        return Http2Frame(kind, flags, stream, self._exactly(length))

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

    def _send(self, data: bytes) -> None:
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
