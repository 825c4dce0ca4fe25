"""The steps by which a child becomes what a container's process is, each by itself."""

import json
import os
import re
import resource
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from seawall.host.device_access.device_cgroup import Hierarchy, JoinError
from seawall.host.gpu_inside.cgroup_room import refuse_without_room
from seawall.host.gpu_inside.fresh import sealed_interpreter
from seawall.host.gpu_inside.own_libraries import own_libraries
from seawall.host.gpu_inside.standing import standing_of
from seawall.host.gpu_inside.syscalls import CLONE3, GENERIC, X86_64, Numbers, filter_of

HEADERS = {
    X86_64: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    GENERIC: Path("/usr/include/asm-generic/unistd.h"),
}
REFUSED = [
    "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp",
    "unshare", "setns", "mount", "umount2", "chroot", "pivot_root", "bpf", "perf_event_open",
    "userfaultfd", "fanotify_init", "add_key", "request_key", "keyctl", "name_to_handle_at",
    "open_by_handle_at", "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "swapon", "swapoff", "reboot", "acct", "quotactl", "settimeofday",
    "clock_settime", "adjtimex", "clock_adjtime", "syslog", "personality", "vhangup",
    "sethostname", "setdomainname", "lookup_dcookie", "migrate_pages", "move_pages",
    "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "pidfd_getfd", "mount_setattr", "quotactl_fd",
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
]  # fmt: skip
X86_ALONE = ["fork", "vfork", "modify_ldt", "iopl", "ioperm"]
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026


@pytest.mark.parametrize("numbers", [X86_64, GENERIC], ids=["x86_64", "generic"])
def test_numbers_are_those_of_the_kernels_headers(numbers: Numbers) -> None:
    header = HEADERS[numbers]
    if not header.exists():
        pytest.skip(f"{header} is missing: apt-get install linux-libc-dev")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    by_name = {name: int(number) for name, number in found}
    names = REFUSED + (X86_ALONE if numbers is X86_64 else [])
    assert set(numbers.refused) == {by_name[name] for name in names}
    assert len(numbers.refused) == len(set(numbers.refused))
    assert (numbers.clone, numbers.prctl, CLONE3) == (
        by_name["clone"], by_name["prctl"], by_name["clone3"],
    )  # fmt: skip


def outcome(program: bytes, architecture: int, number: int, first: int = 0) -> int:
    """What the filter returns: classic BPF, the few instructions of it that are used."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, first, *[0] * 5)
    steps = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, k)[0]
            continue
        holds = {
            0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k),
        }[code]  # fmt: skip
        at += yes if holds else no


@pytest.mark.parametrize("numbers", [X86_64, GENERIC], ids=["x86_64", "generic"])
def test_what_the_filter_lets_through(numbers: Numbers) -> None:
    program, here = filter_of(numbers), numbers.architecture
    for number in numbers.refused:
        assert outcome(program, here, number) == EPERM
    assert outcome(program, here, CLONE3) == ENOSYS
    assert outcome(program, here, numbers.clone, 0x10000) == ALLOW, "a thread"
    assert outcome(program, here, numbers.clone, 17) == EPERM, "a process"
    for option, expected in ((1, EPERM), (4, EPERM), (2, ALLOW), (15, ALLOW)):
        assert outcome(program, here, numbers.prctl, option) == expected
    others = set(range(450)) - {*numbers.refused, CLONE3, numbers.clone, numbers.prctl}
    assert {outcome(program, here, number) for number in others} == {ALLOW}
    assert outcome(program, 0x40000003, 1) == EPERM, "another architecture's numbers"
    if numbers is X86_64:
        assert outcome(program, here, 0x40000000 | 1) == EPERM, "x32"


def test_standing_is_what_procfs_says() -> None:
    own = Path("/proc/self")
    found = standing_of((own / "status").read_bytes(), (own / "limits").read_bytes())
    assert found.uids == os.getresuid()
    assert found.gids == os.getresgid()
    assert set(found.groups) == set(os.getgroups())
    for number in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_AS):
        assert found.limits[number] == resource.getrlimit(number)
    for text in (b"", b"Uid:\tx\n", b"Uid:\t0\nGid:\t0\nGroups:\t\nCapPrm:\tzz\n"):
        with pytest.raises(OSError, match="could not be understood"):
            standing_of(text, b"")


def test_the_interpreter_runs_from_a_copy_that_nobody_can_change() -> None:
    fd = sealed_interpreter()
    path = f"/proc/self/fd/{fd}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import os; print(os.readlink('/proc/self/exe'))"],
        executable=path, env={}, capture_output=True, check=True, pass_fds=[fd],
    )  # fmt: skip
    assert done.stdout == b"/memfd:seawall (deleted)\n"
    again = os.open(path, os.O_RDWR)
    with pytest.raises(PermissionError):
        os.write(again, b"x")
    with pytest.raises(PermissionError):
        os.ftruncate(again, 0)
    os.close(again)
    os.close(fd)


def test_libraries_are_found_without_leaving_the_root(tmp_path: Path) -> None:
    inside = tmp_path / "root"
    (inside / "usr/lib64").mkdir(parents=True)
    (inside / "usr/local/cuda/compat").mkdir(parents=True)
    (tmp_path / "libcuda.so.1").touch()
    (inside / "usr/lib64/libcuda.so.535.1.2").touch()
    (inside / "usr/lib64/libcuda.so.1").symlink_to("/usr/lib64/libcuda.so.535.1.2")
    (inside / "usr/lib").symlink_to("lib64")
    (inside / "usr/local/cuda/compat/libcuda.so.1").symlink_to("../../../../../libcuda.so.1")
    (inside / "usr/lib64/libnvidia-ml.so.1").mkdir()
    status = (inside / "usr/lib64/libcuda.so.535.1.2").stat()
    assert own_libraries(str(inside)) == {
        "nvml": [],
        "cuda": [["/usr/lib64/libcuda.so.1", "libcuda.so.535.1.2", [status.st_dev, status.st_ino]]],
    }
    (inside / "usr/lib64/libcuda.so.1").unlink()
    (inside / "usr/lib64/libcuda.so.1").symlink_to("evil\x1b[2J")
    (inside / "usr/lib64/evil\x1b[2J").touch()
    told = own_libraries(str(inside))
    assert isinstance(told, dict)
    assert "\\u001b" not in json.dumps(told)


def cgroup(folder: Path, quota: str, periods: int, throttled: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.max").write_text(f"{quota} 100000\n")
    (folder / "cpu.stat").write_text(
        f"usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 7\n"
    )


def test_whoever_is_throttled_in_every_period_is_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod, own = tmp_path / "pod", tmp_path / "pod/app"
    hierarchy, cgroups = Hierarchy(2, str(tmp_path), "/"), b"0::/pod/app\n"
    cgroup(pod, "50000", 10, 4)
    cgroup(own, "max", 0, 0)
    later: list[tuple[int, int]] = [(13, 7), (13, 6), (11, 5)]

    def pass_time(_: float) -> None:
        cgroup(pod, "50000", *later.pop(0))

    monkeypatch.setattr("time.sleep", pass_time)
    with pytest.raises(JoinError, match="stands still") as caught:
        refuse_without_room(hierarchy, cgroups)
    assert str(pod) in caught.value.words
    cgroup(pod, "50000", 10, 4)
    refuse_without_room(hierarchy, cgroups)  # not in every one
    cgroup(pod, "50000", 10, 4)
    refuse_without_room(hierarchy, cgroups)  # one period tells nothing
    cgroup(pod, "max", 10, 4)
    refuse_without_room(hierarchy, cgroups)
    assert not later
    refuse_without_room(Hierarchy(1, "/nowhere", "/"), b"")


@pytest.mark.parametrize("name", ["memory.max", "memory.high"])
def test_whoever_is_near_its_memory_limit_is_not_joined(tmp_path: Path, name: str) -> None:
    """With memory.oom.group all of it would be killed for what we take."""
    own = tmp_path / "pod/app"
    own.mkdir(parents=True)
    pod = own.parent
    hierarchy, cgroups = Hierarchy(2, str(tmp_path), "/"), b"0::/pod/app\n"
    refuse_without_room(hierarchy, cgroups)  # without the controller
    (own / name).write_text("max\n")
    (pod / name).write_text(f"{1 << 30}\n")
    (pod / "memory.current").write_text(f"{900 << 20}\n")
    (pod / "memory.stat").write_text(f"anon 7\ninactive_file {20 << 20}\nactive_file 0\n")
    with pytest.raises(JoinError, match="144 MiB are left") as caught:
        refuse_without_room(hierarchy, cgroups)
    assert f"{pod}/{name}" in caught.value.words
    (pod / "memory.stat").write_text(f"inactive_file {100 << 20}\nactive_file {50 << 20}\n")
    refuse_without_room(hierarchy, cgroups)  # its page cache can go


STARTING = """
import os, sys
from seawall.host.device_access.device_cgroup import JoinError
from seawall.host.gpu_inside import container_entry
if sys.argv[1]:
    open("/proc/self/comm", "w").write(sys.argv[1])
os.dup2(os.open("/proc/self", os.O_PATH), container_entry.PROCESS)
try:
    print(container_entry._as_it_is().permitted)
except JoinError as error:
    print(error.why, error.words)
"""


def test_a_copy_of_a_runtime_in_memory_is_one() -> None:
    script = COPY.replace("STARTING", repr(STARTING))
    assert said(script) == "vanished its runtime is just starting it: ask once more"


def test_a_program_with_a_name_like_it_is_none() -> None:
    assert said(STARTING, "runcible").isdigit()


@pytest.mark.parametrize("name", ["runc:[2:INIT]", "crun", "youki:[2:INIT]"])
def test_a_runtime_that_has_not_let_go_is_refused(name: str) -> None:
    """It is in the container's cgroup and has all rights."""
    assert said(STARTING, name) == "vanished its runtime is just starting it: ask once more"


def test_who_runs_is_taken_as_it_is_now() -> None:
    status = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines())
    assert said(STARTING, "") == str(int(status["CapPrm"], 16))


COPY = """
import os, shutil, sys
copy = os.memfd_create("runc_cloned:/proc/self/exe")
with open(os.path.realpath(sys.executable), "rb") as own, open(copy, "wb", closefd=False) as file:
    shutil.copyfileobj(own, file)
os.environ["PYTHONHOME"] = sys.base_prefix
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
os.execve(copy, ["python", "-c", STARTING, ""], os.environ)
"""

TAKING = """
import re
from seawall.host.gpu_inside.standing import standing_of, take
own = standing_of(open("/proc/self/status", "rb").read(), open("/proc/self/limits", "rb").read())
take(own, None)
print(own.permitted, *re.findall(r"Cap(?:Prm|Eff|Bnd):\\t(\\w+)", open("/proc/self/status").read()))
"""


@pytest.mark.system
def test_what_leads_to_files_of_the_host_is_never_taken_on() -> None:
    """map_files of the libraries that it has mapped."""
    had, *taken = said(TAKING).split()
    never = 1 << 21 | 1 << 40
    assert int(had) & 1 << 21, "this test needs CAP_SYS_ADMIN"
    kept = [int(one, 16) for one in taken]
    assert kept[:2] == [int(had) & ~never] * 2
    assert not kept[2] & never


def said(script: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.strip()
