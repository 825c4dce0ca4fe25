"""A disk whose cache is volatile, behind NBD: what was not flushed may be gone after a power cut.

A killed QEMU alone proves nothing: what it was handed survives it.  This server keeps each write
until a FLUSH (or its own FUA) and draws by a seed what of the rest had reached the medium: of
each request all, nothing, or some of its sectors.  An image can be drawn at any moment, for what
a power cut leaves hangs on nothing that comes later.

The protocol: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md, fixed newstyle,
one export, no structured replies, no discard.
"""

import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

SECTOR = 512
OPTION = struct.Struct(">QII")
OPTION_REPLY = struct.Struct(">QIII")
REQUEST = struct.Struct(">IHHQQI")
REPLY = struct.Struct(">IIQ")
OPTION_MAGIC, REPLY_MAGIC = 0x49484156454F5054, 0x3E889045565A9
REQUEST_MAGIC, ANSWER_MAGIC = 0x25609513, 0x67446698
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
EXPORT_NAME, ABORT, GO = 1, 2, 7
ACK, INFO, UNSUPPORTED = 1, 3, 0x80000001
HAS_FLAGS, CAN_FLUSH, CAN_FUA = 1, 4, 8
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
FUA = 1
EINVAL = 22
MOST_BYTES = 32 << 20


@dataclass(frozen=True)
class Remains:
    """What a power cut at ``at`` (monotonic, of this host) would have left."""

    image: bytes
    whole: bytes
    """Had nothing been dropped: what the writer meant to overwrite is overwritten in it."""
    at: float
    seed: int
    unflushed: int
    """Requests in the cache, and what became of them."""
    dropped: int
    torn: int


class VolatileDisk:
    """Serves one client at a time at the Unix socket ``path``, until ``close``."""

    def __init__(
        self, image: bytes, path: str, slowness: Callable[[], float] | None = None
    ) -> None:
        """``slowness``: seconds that the next write or flush takes."""
        self.path = path
        self.writes = self.flushes = 0
        self.when_unflushed: Callable[[], None] | None = None
        """Called once, right after a write that nobody has flushed yet."""
        self._medium, self._seen = bytearray(image), bytearray(image)
        self._cache: list[dict[int, bytes]] = []
        self._lock = threading.RLock()
        self._slowness = slowness
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen(1)
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> "VolatileDisk":  # noqa: PYI034 - typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    # --- the disk --------------------------------------------------------------------------

    def read(self, offset: int, size: int) -> bytes:
        with self._lock:
            return bytes(self._seen[offset : offset + size])

    def write(self, offset: int, data: bytes, *, through: bool = False) -> None:
        """``through``: FUA; older writes of these sectors can no longer come to light."""
        sectors = {
            at: data[at - offset :][:SECTOR] for at in range(offset, offset + len(data), SECTOR)
        }
        with self._lock:
            self.writes += 1
            self._seen[offset : offset + len(data)] = data
            if not through:
                self._cache.append(sectors)
                call, self.when_unflushed = self.when_unflushed, None
                if call:
                    call()
                return
            self._medium[offset : offset + len(data)] = data
            for request in self._cache:
                for at in sectors:
                    request.pop(at, None)

    def flush(self) -> None:
        with self._lock:
            self.flushes += 1
            for request in self._cache:
                _put(self._medium, request)
            self._cache.clear()

    def cut(self, seed: int) -> Remains:
        """What is left if the power fails now."""
        with self._lock:
            at, image, cache = time.monotonic(), bytearray(self._medium), list(self._cache)
            whole = bytes(self._seen)
        chance, dropped, torn = random.Random(seed), 0, 0
        for request in cache:
            left = _left(request, chance)
            dropped += not left
            torn += 0 < len(left) < len(request)
            _put(image, left)
        return Remains(bytes(image), whole, at, seed, len(cache), dropped, torn)

    # --- the protocol ----------------------------------------------------------------------

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                with client, suppress(EOFError, OSError):
                    if self._shake_hands(client):
                        self._answer_all(client)

    def _shake_hands(self, client: socket.socket) -> bool:
        client.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", FIXED_NEWSTYLE | NO_ZEROES))
        (flags,) = struct.unpack(">I", _take(client, 4))
        export = struct.pack(">QH", len(self._medium), HAS_FLAGS | CAN_FLUSH | CAN_FUA)
        while True:
            _, option, size = OPTION.unpack(_take(client, OPTION.size))
            _take(client, size)
            if option == EXPORT_NAME:
                client.sendall(export + (b"" if flags & NO_ZEROES else bytes(124)))
                return True
            if option == GO:
                _reply(client, option, INFO, struct.pack(">H", 0) + export)
            _reply(client, option, ACK if option in (GO, ABORT) else UNSUPPORTED)
            if option in (GO, ABORT):
                return option == GO

    def _answer_all(self, client: socket.socket) -> None:
        while True:
            magic, flags, what, handle, offset, size = REQUEST.unpack(_take(client, REQUEST.size))
            if magic != REQUEST_MAGIC or what == DISCONNECT:
                return
            data = _take(client, size) if what == WRITE else b""
            error = self._do(what, offset, size, data, through=bool(flags & FUA))
            if self._slowness and what in (WRITE, FLUSH):
                time.sleep(self._slowness())
            answer = self.read(offset, size) if what == READ and not error else b""
            client.sendall(REPLY.pack(ANSWER_MAGIC, error, handle) + answer)

    def _do(self, what: int, offset: int, size: int, data: bytes, *, through: bool) -> int:
        if what == FLUSH:
            self.flush()
            return 0
        if what not in (READ, WRITE) or offset + size > len(self._medium):
            return EINVAL
        if what == WRITE and (offset % SECTOR or size % SECTOR):
            return EINVAL
        if what == WRITE:
            self.write(offset, data, through=through)
        return 0


def _left(request: dict[int, bytes], chance: random.Random) -> dict[int, bytes]:
    """Of one request: all, nothing, its begin, or sectors here and there."""
    fate, sectors = chance.randrange(4), list(request)
    if fate == 0:
        return request
    if fate == 1:
        return {}
    if fate == 2:
        kept = sectors[: chance.randint(0, len(sectors))]
    else:
        kept = [at for at in sectors if chance.random() < 0.5]
    return {at: request[at] for at in kept}


def _put(image: bytearray, request: dict[int, bytes]) -> None:
    for at, data in request.items():
        image[at : at + SECTOR] = data


def _take(client: socket.socket, size: int) -> bytes:
    """Exactly so many bytes; EOFError when the client is gone, or asks for absurdly much."""
    if size > MOST_BYTES:
        raise EOFError
    data = bytearray()
    while len(data) < size:
        piece = client.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _reply(client: socket.socket, option: int, kind: int, data: bytes = b"") -> None:
    client.sendall(OPTION_REPLY.pack(REPLY_MAGIC, option, kind, len(data)) + data)
