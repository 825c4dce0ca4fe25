# SPDX-License-Identifier: Apache-2.0
"""Whom the kernel killed, from records as /dev/kmsg gives them."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.recorder.kernel_lines import KernelLines

KILL = (
    "6,1234,5678901,-;Memory cgroup out of memory: Killed process 4711 (stress) total-vm:1kB, "
    "anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:999"
)


class _Pipe(KernelLines):
    """A packet of a pipe is what a record is of /dev/kmsg."""

    def __init__(self) -> None:
        super().__init__("/dev/null")
        os.close(self.fd)
        self.fd, self.write_fd = os.pipe2(os.O_NONBLOCK | os.O_DIRECT)

    def say(self, record: str) -> None:
        os.write(self.write_fd, record.encode() + b"\n")


@pytest.fixture
def log() -> Iterator[_Pipe]:
    log = _Pipe()
    yield log
    os.close(log.write_fd)
    log.close()


def test_kills_are_kept_and_all_else_is_not(log: _Pipe) -> None:
    log.say("6,1,1,-;usb 1-1: new device")
    log.say("4,2,2,-;stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0")
    log.say("6,3,3,-;password is hunter2")
    log.say(KILL + "\n SUBSYSTEM=memory")
    lines, is_kill = log.read()
    assert is_kill
    assert lines == [
        "4,2,2,-;stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", KILL,
    ]  # fmt: skip
    assert log.read() == ([], False)


def test_who_only_asked_is_no_kill(log: _Pipe) -> None:
    log.say("4,2,2,-;stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0")
    assert log.read()[1] is False


def test_a_flood_is_bounded(log: _Pipe) -> None:
    fcntl.fcntl(log.fd, fcntl.F_SETPIPE_SZ, 1 << 20)
    for _ in range(100):
        log.say(KILL + "\xff" * 1000)
    lines, is_kill = log.read()
    assert is_kill
    assert len(lines) == 64
    assert all(len(line) <= 4 * 1024 for line in lines)


def test_no_log_is_said(tmp_path: Path) -> None:
    log = KernelLines(str(tmp_path / "none"))
    assert "none" in log.problem
    assert log.read() == ([], False)
