"""read_each answers exactly what read answers, for every kind of path, in order."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.host.host import Unread
from seawall.host.live import LiveHost


@pytest.fixture
def host() -> Iterator[LiveHost]:
    live = LiveHost()
    yield live
    live.close()


def test_as_read_does(host: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "stat").write_bytes(b"x" * 70_000)
    (tmp_path / "config.json").write_bytes(b'{"process": {"env": ["SECRET=1"]}}')
    me = os.getpid()
    paths = [
        "/proc/version",
        f"/proc/{me}/mounts",
        f"/proc/{me}/environ",
        f"/proc/{me}/cmdline",
        f"/proc/{2**22 + 1}/stat",
        f"{tmp_path}/stat",
        f"{tmp_path}/config.json",
        f"{tmp_path}",
        f"/proc/{me}/root/proc/version",
        "/proc/1/status/stat",
        "/sys/kernel/mm/no/such",
    ]
    answers = list(host.read_each(paths))
    assert answers == [host.read(path) for path in paths]
    assert isinstance(answers[0], bytes)
    assert len(answers[5]) == 70_000  # type: ignore[arg-type]
    assert b"SECRET" not in answers[6]  # type: ignore[operator]
    assert {type(answer) for answer in answers} == {bytes, Unread}


def test_stat_of_a_process_is_whole(host: LiveHost) -> None:
    """It is read with a single call, which must be all of it."""
    (answer,) = host.read_each([f"/proc/{os.getpid()}/stat"])
    assert isinstance(answer, bytes)
    assert answer.endswith(b"\n")
    assert answer.split()[0] == str(os.getpid()).encode()
    assert len(answer.rpartition(b") ")[2].split()) == 50


def test_a_file_of_many_records_comes_in_parts(host: LiveHost) -> None:
    (answer,) = host.read_each(["/proc/kallsyms"])
    assert isinstance(answer, bytes)
    assert len(answer) > 1 << 20
    assert answer.endswith(b"\n")


def test_after_the_time_is_over_each_is_answered_so() -> None:
    host = LiveHost(until=time.monotonic() + 0.05)
    paths = ["/proc/version"] * 300
    answers = []
    for answer in host.read_each(paths):
        answers.append(answer)
        time.sleep(0.001)
    assert len(answers) == 300
    late = [answer for answer in answers if isinstance(answer, Unread)]
    assert {answer.why for answer in late} == {"not_reached"}
    assert 100 < len(late) < 300
    assert answers[-len(late) :] == late, "none is asked once the time is over"


def test_proc_is_listed_without_a_child(host: LiveHost) -> None:
    """Every process scan begins there: a deadline of 200 ms would blind it under load."""
    assert f"{os.getpid()}/" in host.names("/proc")  # type: ignore[operator]
    assert not host._expendable.is_running
