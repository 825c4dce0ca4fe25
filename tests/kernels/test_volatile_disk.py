"""The disk that the power cuts are made with: asked over its socket, as QEMU asks it."""

import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernels import volatile_disk
from tests.kernels.volatile_disk import (
    FLUSH,
    FUA,
    READ,
    REPLY,
    REQUEST,
    SECTOR,
    WRITE,
    VolatileDisk,
)

SIZE = 256 * SECTOR
SEEDS = range(200)


class Client:
    """As much of an NBD client as is needed."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        assert self._take(16) == b"NBDMAGICIHAVEOPT"
        flags = self._take(2)
        self._socket.sendall(b"\0\0" + flags)
        option = struct.pack(">QII", volatile_disk.OPTION_MAGIC, 1, 0)
        self._socket.sendall(option)
        self.size, self.flags = struct.unpack(">QH", self._take(10))

    def ask(
        self, what: int, at: int = 0, data: bytes = b"", size: int = 0, flags: int = 0
    ) -> bytes:
        head = REQUEST.pack(
            volatile_disk.REQUEST_MAGIC, flags, what, 7, at, len(data) if what == WRITE else size
        )
        self._socket.sendall(head + data)
        magic, error, handle = REPLY.unpack(self._take(REPLY.size))
        assert (magic, handle) == (volatile_disk.ANSWER_MAGIC, 7)
        if error:
            raise OSError(error, "the disk refuses")
        return self._take(size) if what == READ else b""

    def close(self) -> None:
        self._socket.close()

    def _take(self, size: int) -> bytes:
        return volatile_disk._take(self._socket, size)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[VolatileDisk]:
    with VolatileDisk(bytes(SIZE), str(tmp_path / "nbd")) as made:
        yield made


@pytest.fixture
def client(disk: VolatileDisk) -> Iterator[Client]:
    made = Client(disk.path)
    yield made
    made.close()


def test_it_is_a_disk_with_a_cache_that_can_be_flushed(client: Client) -> None:
    assert client.size == SIZE
    assert client.flags == 1 | 4 | 8  # has flags, FLUSH, FUA
    client.ask(WRITE, SECTOR, b"a" * 1024)
    assert client.ask(READ, 0, size=2048) == bytes(512) + b"a" * 1024 + bytes(512)


def test_what_was_flushed_stays_whatever_is_drawn(disk: VolatileDisk, client: Client) -> None:
    client.ask(WRITE, 0, b"a" * 4096)
    client.ask(FLUSH)
    assert {disk.cut(seed).image[:4096] for seed in SEEDS} == {b"a" * 4096}


def test_what_was_not_flushed_is_there_or_gone_or_torn_at_sectors(
    disk: VolatileDisk, client: Client
) -> None:
    client.ask(WRITE, 0, b"a" * 2048)
    client.ask(FLUSH)
    client.ask(WRITE, 0, b"b" * 2048)
    found = {disk.cut(seed).image[:2048] for seed in SEEDS}
    sectors = {image[at : at + SECTOR] for image in found for at in range(0, 2048, SECTOR)}
    assert sectors == {b"a" * SECTOR, b"b" * SECTOR}, "no sector is half of each"
    assert len(found) == 16, "every choice of four sectors"


def test_the_seed_decides(disk: VolatileDisk, client: Client) -> None:
    client.ask(WRITE, 0, random.Random(1).randbytes(SIZE))
    assert disk.cut(5).image == disk.cut(5).image
    assert disk.cut(5).image != disk.cut(6).image


def test_a_write_through_stays_and_older_writes_do_not_come_back(
    disk: VolatileDisk, client: Client
) -> None:
    client.ask(WRITE, 0, b"old" * 512 + bytes(512))
    client.ask(WRITE, 512, b"n" * 512, flags=FUA)
    for seed in SEEDS:
        assert disk.cut(seed).image[512:1024] == b"n" * 512


def test_a_later_write_may_stay_while_an_earlier_one_goes(
    disk: VolatileDisk, client: Client
) -> None:
    client.ask(WRITE, 0, b"1" * 512)
    client.ask(WRITE, 512, b"2" * 512)
    found = {disk.cut(seed).image[:1024] for seed in SEEDS}
    assert bytes(512) + b"2" * 512 in found
    assert b"1" * 512 + bytes(512) in found


def test_it_tells_when_something_waits_to_be_flushed(disk: VolatileDisk, client: Client) -> None:
    told: list[int] = []
    disk.when_unflushed = lambda: told.append(disk.cut(1).unflushed)
    client.ask(WRITE, 0, b"a" * 512)
    client.ask(WRITE, 0, b"b" * 512)
    assert told == [1], "once"


@pytest.mark.parametrize(("what", "at", "size"), [(READ, SIZE, 512), (WRITE, 1, 512), (9, 0, 0)])
def test_what_it_cannot_do_it_refuses(client: Client, what: int, at: int, size: int) -> None:
    with pytest.raises(OSError, match="the disk refuses"):
        client.ask(what, at, b"x" * size if what == WRITE else b"", size)
    assert client.ask(READ, 0, size=512) == bytes(512), "and goes on"
