"""Nodes that are really broken, as far as one machine can be: the check names each fault."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.slurm.slurm_room import SlurmRoom, missing

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts")
HUGE = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
STUCK = """
#include <unistd.h>
int main(void) { if (vfork() == 0) { pause(); _exit(0); } return 0; }
"""
"""Whoever waits for its vfork is in state D until the child ends."""


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def check(
    folder: Path, only: str, wanted: str = "", more: str = "", **variables: str
) -> tuple[int, str]:  # fmt: skip
    config = folder / "slurm.toml"
    config.write_text(f"[wanted]\n{wanted}\n{more}\n")
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "check", "--slurm", "--only", only, "--config", config],
        capture_output=True, text=True, check=False, timeout=120, env=os.environ | variables,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def mount(undo: ExitStack, kind: str, source: str, at: Path, options: str) -> None:
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, source, at], check=True)
    undo.callback(subprocess.run, ["umount", "-l", at], check=False)


@needs_root
def test_a_disk_with_errors_falls_to_read_only(tmp_path: Path, undo: ExitStack) -> None:
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("no mkfs.ext4: apt-get install e2fsprogs")
    image = tmp_path / "disk"
    image.touch()
    os.truncate(image, 16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    there = tmp_path / "data"
    try:
        mount(undo, "ext4", str(image), there, "loop,errors=remount-ro")
    except subprocess.CalledProcessError:
        pytest.skip("no loop device can be had here")
    device = os.stat(there).st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    wanted = f'writable = ["{there}"]'
    assert check(tmp_path, "read_only", wanted)[0] == 0
    Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("seawall-test")
    with pytest.raises(OSError, match="Read-only"):
        (there / "file").touch()
    assert check(tmp_path, "read_only", wanted) == (
        1, f"read_only: {there} (ext4) is read-only\n",
    )  # fmt: skip
    assert check(tmp_path, "read_only,disk")[0] == 0, "a job's image is no disk of the node's"


@needs_root
def test_a_full_file_system_is_told_between_jobs_alone(
    room: SlurmRoom, tmp_path: Path, undo: ExitStack
) -> None:
    there = tmp_path / "small"
    mount(undo, "tmpfs", "none", there, "size=4m")
    (there / "data").write_bytes(b"x" * 4_100_000)
    wanted = f'free_percent = {{ "{there}" = 5 }}'
    node = room.nodes[0]  # whose jobs alone are asked for: other rooms may be on this machine
    assert f"space: {there}: " in check(tmp_path, "space", wanted, SLURMD_NODENAME=node)[1]
    job = room.submit("sleep 100", f"--nodelist={node}")
    room.wait(lambda: room.job_folder(job), "its cgroup")
    room.wait(lambda: _has_stepd(room, job), "its slurmstepd")
    status, told = check(tmp_path, "space", wanted, SLURMD_NODENAME=node)
    assert (status, "not judged while jobs run here" in told) == (0, True)
    room.command("scancel", str(job))
    room.wait(lambda: room.job_folder(job) is None, "its end")


@needs_root
def test_a_job_without_a_cgroup_of_memory_is_a_job(tmp_path: Path, undo: ExitStack) -> None:
    if why := missing():
        pytest.skip(why)
    there = tmp_path / "small"
    mount(undo, "tmpfs", "none", there, "size=4m")
    (there / "data").write_bytes(b"x" * 4_100_000)
    wanted = f'free_percent = {{ "{there}" = 5 }}'
    with SlurmRoom(constrains=False, gathers="linux") as room:
        node = room.nodes[0]
        # A slurmstepd of another room's that has just begun is in no cgroup yet.
        room.wait(lambda: check(tmp_path, "space", wanted, SLURMD_NODENAME=node)[0] == 1, "it")
        job = room.submit("sleep 100", f"--nodelist={node}")
        room.wait(lambda: room.job_folder(job, "freezer"), "its cgroup")
        assert "not judged while jobs run here" in check(
            tmp_path, "space", wanted, SLURMD_NODENAME=node
        )[1]  # fmt: skip


def _has_stepd(room: SlurmRoom, job: int) -> bool:
    folder = room.job_folder(job)
    for file in folder.rglob("cgroup.procs") if folder else ():
        for pid in file.read_text().split():
            if Path(f"/proc/{pid}/comm").read_text() == "slurmstepd\n":
                return True
    return False


def test_a_mount_that_is_missing_and_one_of_another_type(tmp_path: Path) -> None:
    wanted = f'mounts = ["{tmp_path}", "/proc sysfs", "/proc proc"]'
    assert check(tmp_path, "mounts", wanted) == (
        1, f"mounts: {tmp_path} is not mounted\nmounts: /proc is proc, not sysfs\n",
    )  # fmt: skip


@needs_root
def test_a_mount_that_never_answers_costs_its_deadline_and_no_more(
    tmp_path: Path, undo: ExitStack
) -> None:
    """A file system of a program that does not answer, as a server that is gone."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse")
    there = tmp_path / "dead"
    there.mkdir()
    fd = os.open("/dev/fuse", os.O_RDWR)
    undo.callback(os.close, fd)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", os.fsencode(there), b"fuse", 0, options):
        pytest.skip(f"no FUSE here: {os.strerror(ctypes.get_errno())}")
    undo.callback(libc.umount2, os.fsencode(there), 2)
    began = time.monotonic()
    status, told = check(tmp_path, "mount_hang,mounts", f'mounts = ["{there}", "/proc"]')
    is_judged = f"mount_hang: {there}: no answer in 10 s\n" in told
    is_noted = f"note: mount_hang: {there}: no answer in 10 s: not judged while jobs" in told
    assert (status == 1) == is_judged, "a job that keeps a mount busy may be why"
    assert is_judged or is_noted
    assert time.monotonic() - began < 60


def test_munged_that_died(room: SlurmRoom, tmp_path: Path) -> None:
    alive = f"{room.folder}/munge/socket"
    assert check(tmp_path, "munge", f'munge_socket = "{alive}"')[0] == 0
    import socket

    dead = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(dead)
    assert check(tmp_path, "munge", f'munge_socket = "{dead}"') == (
        1, f"munge: munged does not answer at {dead}\n",
    )  # fmt: skip
    os.unlink(dead)
    assert "munged has no socket" in check(tmp_path, "munge", f'munge_socket = "{dead}"')[1]


@needs_root
def test_a_network_link_that_is_down(tmp_path: Path, undo: ExitStack) -> None:
    name = f"sw{os.getpid() % 100_000}"
    made = subprocess.run(["ip", "link", "add", name, "type", "dummy"], check=False)
    if made.returncode:
        pytest.skip("no dummy network device can be made here")
    undo.callback(subprocess.run, ["ip", "link", "del", name], check=False)
    wanted = f'links = ["{name}", "nowhere0"]'
    told = check(tmp_path, "links", wanted)[1]
    assert told == f"links: {name} is down\nlinks: nowhere0 is not there\n"
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
    assert check(tmp_path, "links", f'links = ["{name}"]')[0] == 0


def test_tasks_that_wait_in_the_kernel(tmp_path: Path, undo: ExitStack) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    source, program = tmp_path / "stuck.c", tmp_path / "stuck"
    source.write_text(STUCK)
    subprocess.run(["gcc", "-w", "-o", program, source], check=True)
    before = check(tmp_path, "stuck", "stuck_tasks = 12")[0]
    for _ in range(20):
        one = subprocess.Popen([program], start_new_session=True)
        undo.callback(one.wait)
        undo.callback(os.killpg, one.pid, signal.SIGKILL)
    time.sleep(1)
    status, told = check(tmp_path, "stuck", "stuck_tasks = 12")
    assert before == 0
    assert "processes are in state D" in told
    assert status == 1 or "not judged while jobs run here" in told


@needs_root
def test_huge_pages_that_nobody_gave_back(tmp_path: Path, undo: ExitStack) -> None:
    if not HUGE.exists():
        pytest.skip("no huge pages in this kernel")
    before = HUGE.read_text()
    HUGE.write_text(f"{int(before) + 2}\n")
    undo.callback(HUGE.write_text, before)
    there = tmp_path / "huge"
    mount(undo, "hugetlbfs", "none", there, "pagesize=2M")
    assert check(tmp_path, "huge_pages", "huge_pages_idle = 0")[0] == 0
    import mmap

    with open(there / "left", "wb+") as file:
        os.truncate(file.fileno(), 2 << 20)
        with mmap.mmap(file.fileno(), 2 << 20) as memory:
            memory[0] = 1
    told = check(tmp_path, "huge_pages", "huge_pages_idle = 0")[1]
    assert "1 huge page in use while no job runs" in told


@needs_root
def test_what_a_program_writes_into_the_kernels_log_is_not_its_word(tmp_path: Path) -> None:
    Path("/dev/kmsg").write_text("<3>NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off\n")
    assert check(tmp_path, "xid")[0] == 0


def test_what_the_node_has_less_of_than_it_should(tmp_path: Path) -> None:
    cpus = os.cpu_count() or 1
    told = check(
        tmp_path, "memory,cpus,gpu,gpu_driver,kernel,services,infiniband",
        f'memory_mib = 99999999\ncpus = {cpus + 1}\ngpus = 65\nnvidia_driver = "1"\n'
        'kernel = "0.1"\ninfiniband = ["nowhere_0:1"]\n',
    )[1]  # fmt: skip
    lines = [line.partition(":")[0] for line in told.splitlines()]
    assert [name for name in lines if name != "could not see"] == [
        "gpu", "gpu_driver", "memory", "cpus", "kernel", "infiniband",
    ]  # fmt: skip


def test_a_check_of_the_sites_own(tmp_path: Path) -> None:
    script = tmp_path / "site"
    script.write_text("#!/bin/sh\necho fan 3 is dead\nexit $1\n")
    script.chmod(0o755)
    more = '[[commands]]\nname = "fans"\nrun = ["{}", "{}"]\nseconds = {}\n'
    assert check(tmp_path, "fans", more=more.format(script, 0, 5))[0] == 0
    assert check(tmp_path, "fans", more=more.format(script, 3, 5)) == (
        1, "fans: fan 3 is dead\n",
    )  # fmt: skip
    script.write_text("#!/bin/sh\nsleep 100\n")
    status, told = check(tmp_path, "fans", more=more.format(script, 3, 0.5))
    assert (status, "fans: it did not end in its time" in told) == (2, True)
    status, told = check(tmp_path, "fans", more=more.format("/nowhere/x", 3, 0.5))
    assert (status, "fans: /nowhere/x: No such file or directory" in told) == (2, True)


def test_a_misspelt_key_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "slurm.toml").write_text("[checks]\nproceses = 'drain'\n")
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "check", "--slurm", "--config", tmp_path / "slurm.toml"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n"), "proceses" in done.stderr) == (2, 1, True)
