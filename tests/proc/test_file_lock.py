"""One a machine: a lock that ends with whoever has it."""

import os
from pathlib import Path

from seawall.proc.file_lock import pid_in, try_lock, write_pid
from seawall.proc.forked_child import ForkedChild


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def test_it_is_one_process_s_until_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    def hold(to: int) -> None:
        fd = opened(path)
        assert try_lock(fd)
        write_pid(fd)
        os.write(to, b"has it")
        os.read(os.open(tmp_path / "never", os.O_RDONLY), 1)  # until it is killed

    os.mkfifo(tmp_path / "never")
    child = ForkedChild(hold)
    assert os.read(child.fd, 10) == b"has it"
    ours = opened(path)
    assert not try_lock(ours)
    assert not try_lock(ours, shared=True)
    assert pid_in(ours) == child.pid
    os.kill(child.pid, 9)
    child.wait()
    assert try_lock(ours, shared=True)
    beside = opened(path)
    assert try_lock(beside, shared=True)
    assert not try_lock(beside)
    os.close(ours)
    assert try_lock(beside)
    os.close(beside)


def test_what_is_no_pid_is_told_as_none(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    fd = opened(path)
    for text in (b"", b"seven", b"-3", b"\xb2\n"):
        path.write_bytes(text)
        assert pid_in(fd) == 0
    write_pid(fd)
    assert pid_in(fd) == os.getpid()
    os.close(fd)
