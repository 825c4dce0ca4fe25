import os
import time
from pathlib import Path

import pytest

from seawall.host.blocking import deadline_seconds
from seawall.host.expendable import LOSSES_BEFORE_REFUSAL, Expendable
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.rooted import Rooted


@pytest.fixture(params=["openat2", "walk"])
def rooted_host(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[LiveHost, Path]:
    """A tree served as a root of its own, through either road."""
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "etc/hostname").write_text("inside\n")
    (tmp_path / "hostname").write_text("outside\n")
    host = LiveHost(str(root))
    assert host._rooted is not None
    host._rooted.walks = request.param == "walk"
    return host, root


def test_links_stay_inside_the_root(rooted_host: tuple[LiveHost, Path]) -> None:
    host, root = rooted_host
    (root / "absolute").symlink_to("/etc/hostname")
    (root / "up").symlink_to("../../../../etc/hostname")
    (root / "folder").symlink_to("/etc")
    (root / "chain").symlink_to("folder/../absolute")
    (root / "escape").symlink_to("../hostname")
    for name in ("absolute", "up", "folder/hostname", "chain", "../../etc/hostname"):
        assert host.read("/" + name) == b"inside\n", name
    answer = host.read("/escape")
    assert isinstance(answer, Unread)
    assert answer.why == "absent"
    assert host.link("/absolute") == "/etc/hostname"
    assert host.names("/folder") == ("hostname",)


def test_link_loops_end(rooted_host: tuple[LiveHost, Path]) -> None:
    host, root = rooted_host
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    answer = host.read("/a")
    assert isinstance(answer, Unread)
    assert answer.why == "failed"


def test_magic_links_are_not_followed() -> None:
    """/proc/self/root below another root would read the wrong machine."""
    for walks in (False, True):
        rooted = Rooted("/")
        rooted.walks = walks
        for path in (f"/proc/{os.getpid()}/root/etc", f"/proc/{os.getpid()}/cwd/x"):
            with pytest.raises(OSError, match=r".") as caught:
                rooted.open(path, os.O_RDONLY)
            assert caught.value.errno in (18, 40), (walks, path)  # EXDEV, ELOOP


def test_fifo_does_not_hold_the_reader(rooted_host: tuple[LiveHost, Path]) -> None:
    host, root = rooted_host
    os.mkfifo(root / "pipe")
    began = time.monotonic()
    found = host.read("/pipe")
    assert isinstance(found, Unread), "an empty file it is not"
    assert found.why == "malformed"
    assert time.monotonic() - began < 1


def test_large_file_is_refused_whole(rooted_host: tuple[LiveHost, Path]) -> None:
    host, root = rooted_host
    (root / "big").write_bytes(b"x" * 200_000)
    answer = host.read("/big", limit_bytes=199_999)
    assert isinstance(answer, Unread)
    assert answer.why == "too_big"
    assert host.read("/big", limit_bytes=200_000) == b"x" * 200_000


def test_reasons_stay_apart(tmp_path: Path) -> None:
    host = LiveHost()
    reasons = {}
    for name, path in {
        "absent": "/proc/no_such_file",
        "below a file": "/proc/meminfo/x",
        "vanished": "/proc/4194999/stat",
        "folder": "/proc",
    }.items():
        answer = host.read(path)
        assert isinstance(answer, Unread), name
        reasons[name] = answer.why
    assert reasons == {
        "absent": "absent", "below a file": "absent", "vanished": "absent", "folder": "failed",
    }  # fmt: skip
    assert host.read("/proc/self/attr/nothing") != b""


def test_tree_of_files_is_not_this_machine(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1 kB\n")
    os.utime(tmp_path / "proc/meminfo", (1000.0, 1000.0))
    host = LiveHost(str(tmp_path))
    assert not host.is_live
    assert isinstance(host.ask("page_size"), Unread)
    assert host.ask("now") == {"unix_seconds": 1000.0, "monotonic_seconds": 0.0}
    assert LiveHost().is_live


def test_after_its_time_nothing_is_asked() -> None:
    host = LiveHost(until=time.monotonic() - 1)
    for answer in (host.read("/proc/1/stat"), host.names("/proc"), host.read("/proc/slabinfo")):
        assert isinstance(answer, Unread)
        assert answer.why == "not_reached"
    assert b"MemTotal" in host.read("/proc/meminfo"), "small, and tells why"  # type: ignore[operator]


def test_secrets_never_enter() -> None:
    pid = os.fork()
    if not pid:
        os.execve(
            "/bin/sleep", ["sleep", "60"], {"AWS_SECRET": "hidden", "NVIDIA_VISIBLE_DEVICES": "0"}
        )
    try:
        deadline = time.monotonic() + 5
        host = LiveHost()
        while host.read(f"/proc/{pid}/cmdline") != b"sleep" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert host.read(f"/proc/{pid}/cmdline") == b"sleep"
        assert host.read(f"/proc/{pid}/environ") == b"NVIDIA_VISIBLE_DEVICES=0"
        whole = LiveHost(with_cmdline=True)
        assert whole.read(f"/proc/{pid}/cmdline") == b"sleep\x0060\x00"
        assert whole.read(f"/proc/{pid}/environ") == b"NVIDIA_VISIBLE_DEVICES=0"
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def slow_reader(path: str, limit_bytes: int) -> bytes:
    if "stuck" in path:
        time.sleep(30)
    return path.encode()


def test_child_that_hangs_is_left_behind() -> None:
    child = Expendable(slow_reader)
    assert child.read("/proc/1/maps", 100, 0.5) == b"/proc/1/maps"
    began = time.monotonic()
    answer = child.read("/proc/4711/stuck", 100, 0.2)
    assert 0.2 <= time.monotonic() - began < 1
    assert isinstance(answer, Unread)
    assert answer.why == "no_answer"
    assert "pid 4711: address space locked" in answer.detail
    assert child.read("/proc/1/maps", 100, 0.5) == b"/proc/1/maps"  # a new child serves on
    child.close()


def test_slow_child_blames_nobody() -> None:
    """On a thrashing node the child itself waits for the disk; the process is innocent."""

    def slow(path: str, limit_bytes: int) -> bytes:
        time.sleep(1)
        return b""

    child = Expendable(slow)
    answer = child.read("/proc/4711/cmdline", 100, 0.1)
    assert isinstance(answer, Unread)
    assert answer.why == "no_answer"
    assert "locked" not in answer.detail
    child.close()


def test_lost_child_holds_no_pipe_of_ours_open() -> None:
    back, ours = os.pipe()
    child = Expendable(slow_reader)
    child.read("/var/stuck", 100, 0.1)
    os.close(ours)
    os.set_blocking(back, False)
    assert os.read(back, 1) == b""  # end of file, though the stuck child may live on
    os.close(back)
    child.close()


def test_many_hanging_reads_end_the_asking() -> None:
    child = Expendable(slow_reader)
    began = time.monotonic()
    answers = [child.read(f"/proc/{n}/stuck", 100, 0.05) for n in range(50)]
    assert time.monotonic() - began < 3
    assert all(isinstance(a, Unread) and a.why == "no_answer" for a in answers)
    assert isinstance(answers[-1], Unread)
    assert f"{LOSSES_BEFORE_REFUSAL} process reads" in answers[-1].detail
    assert child.read("/var/x", 100, 0.5) == b"/var/x"  # another kind is still asked
    child.close()


def test_child_that_dies_is_replaced() -> None:
    def deadly(path: str, limit_bytes: int) -> bytes:
        if "die" in path:
            os._exit(1)
        return b"alive"

    child = Expendable(deadly)
    answer = child.read("/proc/1/die", 100, 1.0)
    assert isinstance(answer, Unread)
    assert answer.why == "failed"
    assert child.read("/proc/1/x", 100, 1.0) == b"alive"
    child.close()


CAN_BLOCK = (
    "/proc/7/maps", "/proc/7/cmdline", "/proc/7/root/etc/x", "/proc/slabinfo", "/etc/x",
    "/proc/7/task/8/smaps", "/var/log/pods", "/proc/self/environ",
)  # fmt: skip
CANNOT_BLOCK = (
    "/proc/meminfo", "/proc/7/stat", "/proc/7/status", "/proc/7/cgroup", "/proc",
    "/sys/fs/cgroup/x/memory.stat", "/run/seawall/base.json",
)  # fmt: skip


def test_what_can_block_goes_to_the_child() -> None:
    assert [path for path in CAN_BLOCK if deadline_seconds(path) is None] == []
    assert [path for path in CANNOT_BLOCK if deadline_seconds(path) is not None] == []
