"""What processes have open, planted in real ones."""

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ready import ready

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.descriptors import Descriptors, read

HOLDER = """
import ctypes, os, pty, sys
libc = ctypes.CDLL(None)
first, second = libc.inotify_init1(0), libc.inotify_init1(0)
for path in (b"/tmp", b"/usr", b"/etc"):
    assert libc.inotify_add_watch(first, path, 2) > 0
masters = [pty.openpty() for _ in range(5)]
files = [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
if os.fork() == 0:  # shares both instances
    libc.prctl(1, 9)
os.write(1, b"ready\\n")
sys.stdin.read()
"""


@pytest.fixture
def holder() -> Iterator[int]:
    with ready([sys.executable, "-c", HOLDER]) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n", "the second one"
        yield process.pid


def test_planted_descriptors_are_counted(holder: int) -> None:
    found = read(LiveHost())
    assert isinstance(found, Descriptors)
    row = found.by_pid[holder]
    assert row.terminals == 5
    # 200 files, 2 ends of 5 terminals, 2 instances, stdin, stdout, stderr
    assert 215 <= row.files <= 220
    assert row.files == len(os.listdir(f"/proc/{holder}/fd"))
    (inotify,) = [r for r in found.inotify if r.pid == holder]
    assert (inotify.uid, inotify.instances, inotify.watches) == (os.geteuid(), 2, 3)


@pytest.mark.skipif(
    ctypes.CDLL(None, use_errno=True).syscall(312, os.getpid(), os.getpid(), 0, 0, 0) < 0,
    reason="this kernel has no kcmp(2): CONFIG_KCMP (or another architecture than x86-64)",
)
def test_instance_that_a_fork_shares_counts_once(holder: int) -> None:
    (child,) = Path(f"/proc/{holder}/task/{holder}/children").read_text().split()
    found = read(LiveHost())
    assert isinstance(found, Descriptors)
    assert found.by_pid[int(child)].files >= 212
    assert [r.pid for r in found.inotify if r.pid in (holder, int(child))] == [holder]


def test_another_root_is_not_looked_into(tmp_path: object) -> None:
    (open(f"{tmp_path}/x", "w")).close()
    os.mkdir(f"{tmp_path}/proc")
    found = read(LiveHost(str(tmp_path)))
    assert isinstance(found, Unread)
    assert found.why == "absent"


@pytest.mark.parametrize(
    "answer",
    [None, 3, {}, {"processes": [], "inotify": []}, {"processes": [[1, 2]], "inotify": []},
     {"processes": [[1, 2, True]], "inotify": [], "left_out": 0},
     {"processes": [[1, -2, 0]], "inotify": [], "left_out": 0},
     {"processes": [], "inotify": [[1, 2, 3, 1 << 70]], "left_out": 0}],
)  # fmt: skip
def test_foreign_answer_is_malformed(answer: object) -> None:
    class Foreign:
        def ask(self, probe: str, argument: str = "") -> object:
            return answer

    found = read(Foreign())  # type: ignore[arg-type]
    assert isinstance(found, Unread)
    assert found.why == "malformed"
