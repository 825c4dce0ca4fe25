"""Which drivers' files real processes hold: real device nodes, hostile names, many files."""

import os
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ready import ready

from seawall.host import driver_files, second_reader
from seawall.host.descriptor_walk import FileWalker, OpenFile
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.driver_files import DriverFiles, read

KVM = Path("/dev/kvm")
needs_kvm = pytest.mark.skipif(
    not os.access(KVM, os.R_OK | os.W_OK),
    reason="no /dev/kvm that may be opened: run as root on a machine with KVM",
)
needs_mknod = pytest.mark.skipif(
    os.geteuid() != 0, reason="mknod needs CAP_MKNOD: sudo make test-system"
)
HOLDER = """
import os, sys
held = [os.open(sys.argv[1], os.O_RDWR) for _ in range(int(sys.argv[2]))]
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: str, count: int = 3) -> Iterator[int]:
    with ready([sys.executable, "-c", HOLDER, path, str(count)]) as process:
        yield process.pid


def files_now() -> DriverFiles:
    host = LiveHost()
    try:
        found = read(host)
    finally:
        host.close()
    assert isinstance(found, DriverFiles), found
    return found


def ticks_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@needs_kvm
def test_device_node_is_found_with_its_driver_and_descriptors() -> None:
    number = os.stat(KVM).st_rdev
    with holder(str(KVM)) as pid:
        row = files_now().by_pid[pid]
        (device,) = row.devices
        assert (device.driver, device.major, device.minor) == (
            "misc:kvm", os.major(number), os.minor(number),
        )  # fmt: skip
        assert device.descriptors == 3
        assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in device.fds] == ["/dev/kvm"] * 3
        assert row.start_ticks == ticks_of(pid)
    assert pid not in files_now().by_pid


@pytest.mark.system
@needs_kvm
@needs_mknod
@pytest.mark.parametrize("name", ["/null", "/socket:[4711]", "/dmabuf:x", "/a\nb (deleted)"])
def test_the_number_decides_and_not_the_name(tmp_path: Path, name: str) -> None:
    """A node that somebody made under a name that hides it is found; an ordinary file whose
    name pretends to be a device is none.
    """
    node = f"{tmp_path}{name}"
    os.mknod(node, 0o600 | stat.S_IFCHR, os.stat(KVM).st_rdev)
    fake = tmp_path / "nvidia0"
    fake.write_bytes(b"x")
    try:
        with holder(node, 2) as pid, holder(str(fake)) as innocent:
            os.unlink(node)
            found = files_now()
            (device,) = found.by_pid[pid].devices
            assert (device.driver, device.descriptors) == ("misc:kvm", 2)
            assert found.by_pid[pid].dmabufs == ()
            assert innocent not in found.by_pid
    except PermissionError:
        pytest.skip("device nodes may not be opened here (nodev): mount a tmpfs with dev")


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/ptmx"])
def test_ordinary_devices_are_nobodys_driver(path: str) -> None:
    with holder(path) as pid:
        assert pid not in files_now().by_pid


def test_every_descriptor_is_seen_and_judged_by_statx() -> None:
    """A second source: what the links and stat(2) say of our own files."""
    reader, writer = os.pipe()
    try:
        files = FileWalker(time.monotonic() + 60).files_of(os.getpid())
        by_fd = {file.fd: file for file in files}
        for fd in (0, 1, 2, reader, writer):
            expected = os.fstat(fd)
            assert by_fd[fd] == OpenFile(
                fd, stat.S_IFMT(expected.st_mode), expected.st_ino,
                (os.major(expected.st_rdev), os.minor(expected.st_rdev)),
                (os.major(expected.st_dev), os.minor(expected.st_dev)),
            )  # fmt: skip
    finally:
        os.close(reader)
        os.close(writer)


def rows_of(answer: Any) -> dict[int, Any]:
    assert isinstance(answer, dict)
    return {row["pid"]: row for row in answer["processes"]}


def test_hundred_thousand_files_end_at_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process with as many files as it may have: what is left out is counted."""
    most = min(100_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 50)
    program = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({most + 40}, {most + 40}))
null = os.open("/dev/null", os.O_RDONLY)
for _ in range({most}): os.dup(null)
print("ready", flush=True); sys.stdin.read()
"""
    with ready([sys.executable, "-c", program]):
        monkeypatch.setattr(driver_files, "_BUDGET_SECONDS", 0.01)
        began = time.monotonic()
        answer = driver_files.driver_files()
        assert time.monotonic() - began < 5
        assert isinstance(answer, dict)
        assert isinstance(answer["left_out"], int)
        assert answer["left_out"] >= 1


@needs_kvm
def test_two_processes_tell_what_one_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many processes half of them are asked by a second one."""
    with holder(str(KVM)) as pid, holder("/dev/null"):
        alone = driver_files.driver_files()
        monkeypatch.setattr(second_reader, "_MANY", 1)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        shared = driver_files.driver_files()
        assert rows_of(alone)[pid] == rows_of(shared)[pid]


def test_processes_that_vanish_meanwhile_are_no_problem() -> None:
    storm = subprocess.Popen(["/bin/sh", "-c", "while :; do /bin/true; done"])
    try:
        for _ in range(5):
            assert isinstance(driver_files.driver_files(), dict)
    finally:
        storm.kill()
        storm.wait()


def test_own_refusal_of_a_file_system_hides_only_that_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A FUSE mount of another user says EACCES to root's stat; the process is asked all the
    same.  Here statx fails for one path.
    """
    looker = FileWalker(time.monotonic() + 60)
    with open(tmp_path / "x", "w") as file:
        refused = b"%d" % file.fileno()
        real = looker._statx

        def statx(folder: int, number: bytes, *rest: object) -> int:
            return -1 if number == refused else int(real(folder, number, *rest))

        monkeypatch.setattr(looker, "_statx", statx)
        by_fd = {one.fd: one for one in looker.files_of(os.getpid())}
        assert by_fd[file.fileno()] == OpenFile(file.fileno(), 0, 0, (0, 0), (0, 0))
        assert by_fd[1].inode == os.fstat(1).st_ino


def test_another_root_is_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    found = read(LiveHost(str(tmp_path)))
    assert isinstance(found, Unread)
    assert found.why == "absent"
