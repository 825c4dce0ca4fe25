"""Many small files read by two processes: the same answers in the same order."""

import errno
import os
import time
from pathlib import Path

import pytest

from seawall.host import second_reader
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.second_reader import SecondReader

FILES = 3000
PID_MOST = 1 << 22  # PID_MAX_LIMIT: no process has this one


def _names(reader: SecondReader) -> list[bytes | int]:
    try:
        return list(reader.answers())
    finally:
        reader.close()


def test_answers_come_in_order_and_an_errno_in_the_place_of_its_file() -> None:
    def read_one(path: str) -> bytes:
        if path == "7":
            raise PermissionError(errno.EACCES, "no")
        if path == "8":
            raise ValueError(path)
        return path.encode() * 3

    names = [str(number) for number in range(FILES)]
    expected: list[bytes | int] = [name.encode() * 3 for name in names]
    expected[7:9] = [errno.EACCES, errno.EINVAL]
    assert _names(SecondReader(names, read_one)) == expected


@pytest.mark.parametrize("many", [1, FILES])
def test_halves_come_in_order(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(second_reader, "_MANY", many)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    owner = os.getpid()

    def read_one(name: str) -> bytes:
        if name in ("7", str(FILES - 7)):
            raise PermissionError(errno.EACCES, "no")
        return b"%d %d" % (int(name), os.getpid() != owner)

    found = list(second_reader.read_halves([str(number) for number in range(FILES)], read_one))
    assert found[7] == found[FILES - 7] == errno.EACCES
    told = [answer.split() for answer in found if isinstance(answer, bytes)]
    assert [int(number) for number, _ in told] == [
        number for number in range(FILES) if number not in (7, FILES - 7)
    ]
    assert sum(int(by_other) for _, by_other in told) == (FILES // 2 - 1 if many == 1 else 0)


def test_more_than_a_pipe_holds_comes_whole() -> None:
    data = os.urandom(300_000)
    assert _names(SecondReader(["x"] * 20, lambda _: data)) == [data] * 20


def test_a_child_that_dies_gives_what_it_had_told() -> None:
    def read_one(path: str) -> bytes:
        if path == "500":
            os._exit(1)
        return b"x" * 1000

    found = _names(SecondReader([str(number) for number in range(FILES)], read_one))
    assert 0 < len(found) < FILES
    assert set(found) == {b"x" * 1000}


def test_a_silent_child_is_left_and_its_half_is_read_by_us(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = os.getpid()

    def read_stat(path: str) -> bytes:
        if os.getpid() != owner:
            time.sleep(60)
        return Path(path).read_bytes()

    monkeypatch.setattr(second_reader, "_read_stat", read_stat)
    monkeypatch.setattr(second_reader, "SILENCE_SECONDS", 0.2)
    began = time.monotonic()
    found = list(LiveHost().read_each(["/proc/1/stat"] * FILES))
    assert len(found) == FILES
    assert all(isinstance(data, bytes) and data.startswith(b"1 (") for data in found)
    assert time.monotonic() - began < 10


def test_the_host_gives_what_it_gives_one_by_one() -> None:
    paths = [f"/proc/{os.getpid()}/stat", f"/proc/{PID_MOST}/stat"] * (FILES // 2)
    found = list(LiveHost().read_each(paths))
    assert len(found) == FILES
    assert all(isinstance(d, bytes) and d.startswith(b"%d (" % os.getpid()) for d in found[::2])
    assert {data.why for data in found[1::2] if isinstance(data, Unread)} == {"absent"}


def _zombies() -> set[str]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {p for p in children if Path(f"/proc/{p}/stat").read_text().split(") ")[1][0] == "Z"}


def test_no_child_is_left_behind() -> None:
    before = _zombies()
    assert len(list(LiveHost().read_each(["/proc/1/stat"] * FILES))) == FILES
    assert _zombies() <= before
