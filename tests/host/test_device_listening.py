"""Who writes to a device cgroup, told by a real fanotify of this kernel."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.containers.node import remove_cgroups
from tests.host.as_nobody import as_nobody

from seawall.host.device_access.device_cgroup import Hierarchy
from seawall.host.device_access.listening import DeviceEvent, events_in
from seawall.host.device_access.writers import Writers, folders_of
from seawall.readings.device_writers import Write, parse

V1 = Path("/sys/fs/cgroup/devices")
HEAD = bytes.fromhex("20000000 03 00 1800 2200000000000000 07000000 67120000".replace(" ", ""))
INFO = bytes.fromhex("04000800 09000000".replace(" ", ""))
LINGERS = "open({!r}, 'w').write('c 240:0 rw'); import time; time.sleep(0.3)"
system = pytest.mark.system


def test_events_as_the_kernel_packs_them() -> None:
    plain = bytes.fromhex("18000000") + HEAD[4:]
    whole = HEAD + INFO
    assert list(events_in(whole + plain)) == [
        DeviceEvent(0x22, 7, 0x1267, 9),
        DeviceEvent(0x22, 7, 0x1267, -2),
    ]
    assert list(events_in(whole[:-1])) == [DeviceEvent(0x22, 7, 0x1267, -2)]
    assert list(events_in(bytes(40))) == []
    assert list(events_in(b"")) == []


def test_without_the_right_it_is_an_error() -> None:
    def ask() -> str:
        try:
            Writers().close()
        except OSError as error:
            return type(error).__name__
        return "listens"

    assert (as_nobody(ask) if os.geteuid() == 0 else ask()) == "PermissionError"


def test_folders_of_a_process_and_above_it() -> None:
    here = Hierarchy(1, "/nowhere", "/")
    assert folders_of(here, 2**22 + 1) == ()
    if V1.is_dir():
        found = folders_of(Hierarchy(1, str(V1), "/"), os.getpid())
        assert found[-1] == str(V1)
        assert all(Path(folder, "devices.list").exists() for folder in found)


# --- the kernel's own answers ----------------------------------------------------------------


@pytest.fixture
def cgroup() -> Iterator[Path]:
    if not (V1 / "devices.list").exists():
        pytest.skip(f"no devices controller of v1: mount -t cgroup -o devices cgroup {V1}")
    if os.geteuid() != 0:
        pytest.skip("fanotify(7) needs root: make test-system")
    name = f"seawall-writers-{os.getpid()}"
    (V1 / name / "below").mkdir(parents=True)
    yield V1 / name
    remove_cgroups(f"/{name}/below")


@pytest.fixture
def writers(cgroup: Path) -> Iterator[Writers]:
    made = Writers()
    assert made.watch([str(cgroup), str(cgroup / "below")]) == {}
    yield made
    made.close()


def collected(writers: Writers, until: Callable[[list[Write]], bool]) -> list[Write]:
    """All writes that come until they are enough, for at most five seconds."""
    found: list[Write] = []
    deadline = time.monotonic() + 5
    while not until(found) and time.monotonic() < deadline:
        for line in writers.lines() or ():
            write = parse(line)
            assert isinstance(write, Write)
            found.append(write)
        time.sleep(0.01)
    return found


@system
def test_a_child_that_writes_is_named(cgroup: Path, writers: Writers) -> None:
    path = str(cgroup / "below/devices.deny")
    before = time.time()
    child = subprocess.Popen([sys.executable, "-S", "-c", LINGERS.format(path)])
    (write,) = collected(writers, bool)
    child.wait()
    assert (write.folder, write.file) == (str(cgroup / "below"), "devices.deny")
    assert before <= write.unix <= time.time()
    assert abs(write.monotonic - time.monotonic()) < 5
    one = write.writer
    assert one.pid == child.pid
    assert one.exe == os.path.basename(os.path.realpath(sys.executable))
    assert one.comm == os.path.basename(sys.executable)[:15]
    assert one.parent_pid == os.getpid()
    assert one.parent_comm == Path("/proc/self/comm").read_text().rstrip("\n")
    assert one.start_ticks
    assert one.cgroup


@system
def test_one_that_is_gone_at_once_is_named_or_said_to_be_gone(
    cgroup: Path, writers: Writers
) -> None:
    """And is never taken for somebody else."""
    path = cgroup / "devices.allow"
    pids = set()
    for _ in range(20):
        child = subprocess.Popen(["sh", "-c", f"echo c 240:0 rw > {path}"])
        child.wait()
        pids.add(child.pid)
    found = collected(writers, lambda found: len(found) >= 20)
    assert {one.writer.pid for one in found} == pids
    assert {one.writer.comm for one in found} <= {"sh", None}


@system
def test_what_the_kernel_refuses_and_what_is_read_is_no_write(
    cgroup: Path, writers: Writers
) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        (cgroup / "devices.allow").write_text("no rule")
    (cgroup / "devices.list").read_text()
    (cgroup / "devices.deny").write_text("c 240:0 rw")
    found = collected(writers, bool)
    assert [one.file for one in found] == ["devices.deny"]
    assert found[0].writer.pid == os.getpid()


@system
def test_a_cgroup_that_is_gone_and_comes_again(cgroup: Path, writers: Writers) -> None:
    below = cgroup / "below"
    remove_cgroups(f"/{cgroup.name}/below/none")
    assert not below.exists()
    assert list(writers.watch([str(below / "x")])) == [str(below / "x")]
    below.mkdir(parents=True)
    writers.forget([str(cgroup)])
    assert writers.watch([str(cgroup), str(below)]) == {}
    (below / "devices.deny").write_text("c 240:0 rw")
    assert [one.folder for one in collected(writers, bool)] == [str(below)]


@system
def test_the_listener_ends_with_us_and_its_end_is_seen(writers: Writers) -> None:
    listener = writers._child.pid
    os.kill(listener, signal.SIGTERM)
    os.kill(listener, signal.SIGINT)
    time.sleep(0.1)
    assert writers.lines() == []
    os.kill(listener, signal.SIGKILL)
    time.sleep(0.1)
    assert writers.lines() is None
    writers.close()
    writers.close()
    with pytest.raises(ProcessLookupError):
        os.kill(listener, 0)
