"""What processes have open, planted in real ones."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.as_nobody import as_nobody
from tests.ready import ready

from seawall.host.descriptor_walk import FileWalker, has_ended
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


def look_at_a_zombie() -> str:
    """What a user may see of a child that has ended and is not waited for: its folder is root's."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        return f"{has_ended(pid)} {FileWalker(time.monotonic() + 60).files_of(pid)} {_refused(pid)}"
    finally:
        os.waitpid(pid, 0)


def _refused(pid: int) -> bool:
    try:
        os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return True
    return False


def test_what_has_ended_has_no_files_and_is_not_left_out() -> None:
    told = as_nobody(look_at_a_zombie) if os.geteuid() == 0 else look_at_a_zombie()
    assert told.startswith("True [] "), told
    if not told.endswith(" True"):
        pytest.skip("this kernel lets a user look into what has ended")


def test_what_lives_is_not_taken_for_ended() -> None:
    """Nor is a process whose first thread alone has ended: the others hold its files."""
    assert not has_ended(os.getpid())
    pid = os.fork()
    if not pid:
        threading.Thread(target=time.sleep, args=(60,)).start()
        ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
        os._exit(1)
    try:
        until = time.monotonic() + 20
        while b") Z" not in Path(f"/proc/{pid}/stat").read_bytes():
            assert time.monotonic() < until, "its first thread does not end"
            time.sleep(0.01)
        assert not has_ended(pid)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert has_ended(pid)


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
