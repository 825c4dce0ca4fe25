"""Who parses what others wrote can signal nobody: each way is tried from inside, as root."""

import json
import re
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.proc import seccomp
from seawall.proc.process_rights import RIGHTS
from seawall.proc.signal_filter import signal_program

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
SENDS = [
    "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
    "ptrace", "process_vm_writev",
]  # fmt: skip
ALLOW, EPERM = 0x7FFF0000, 0x00050001
TRIES = r"""
import ctypes, fcntl, json, os, signal, struct, sys
sys.path.insert(0, sys.argv[1])
pid, process = int(sys.argv[2]), sys.argv[3]
pidfd = os.pidfd_open(pid)
ours, theirs = os.pipe()
from seawall.proc import process_rights
if process != "none":
    assert process_rights.keep_only(process) == "", process
calls = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": (200, 234, 129, 101), "aarch64": (130, 131, 138, 117)}[os.uname().machine]
about = ctypes.create_string_buffer(struct.pack("@iiii", 0, 0, -1, 0), 128)

def call(*words):
    if calls.syscall(*words) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

ways = {
    "kill": lambda: os.kill(pid, signal.SIGURG),
    "killpg": lambda: os.killpg(os.getpgid(pid), 0),
    "tkill": lambda: call(number[0], pid, signal.SIGURG),
    "tgkill": lambda: call(number[1], pid, pid, signal.SIGURG),
    "pidfd_send_signal": lambda: signal.pidfd_send_signal(pidfd, signal.SIGURG),
    "rt_sigqueueinfo": lambda: call(number[2], pid, signal.SIGURG, about),
    "ptrace": lambda: call(number[3], 16, pid, 0, 0),
    "F_SETOWN": lambda: fcntl.fcntl(ours, fcntl.F_SETOWN, pid),
    "F_SETSIG": lambda: fcntl.fcntl(ours, fcntl.F_SETSIG, signal.SIGKILL),
    "F_SETOWN_EX": lambda: fcntl.fcntl(ours, 15, struct.pack("ii", 1, pid)),
    "a child of its own": lambda: child(),
}

def child():
    if not (born := os.fork()):
        try:
            os.kill(pid, signal.SIGURG)
        except PermissionError:
            os._exit(1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(born, 0)[1]):
        raise PermissionError

went = {}
for name, way in ways.items():
    try:
        way()
        went[name] = "sent"
    except PermissionError:
        went[name] = "refused"
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)  # what everybody needs still works
print(json.dumps(went))
"""


@pytest.fixture
def bystander() -> Iterator[int]:
    """Another process of the same user, which nothing may reach."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        yield process.pid
        assert process.poll() is None, "it was hit"
    finally:
        process.kill()
        process.wait()


def tried(pid: int, process: str) -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-I", "-c", TRIES, source, str(pid), process],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def test_each_way_works_for_whoever_has_no_filter(bystander: int) -> None:
    went = tried(bystander, "none")
    assert {name for name, how in went.items() if how == "refused"} <= {"ptrace"}, (
        "else its refusal would prove nothing"
    )


@pytest.mark.parametrize("process", ["watcher", "reader", "recorder", "rivals", "kmsg"])
def test_who_parses_hostile_bytes_cannot_signal(process: str, bystander: int) -> None:
    went = tried(bystander, process)
    assert set(went.values()) == {"refused"}, went
    assert len(went) == 11


def test_the_guard_itself_may(bystander: int) -> None:
    went = tried(bystander, "guard")
    assert went["kill"] == went["pidfd_send_signal"] == "sent"
    assert RIGHTS["recorder"] == {}


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_are_those_of_the_kernels_own_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip(f"{HEADERS[machine]} is missing: apt-get install linux-libc-dev")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    number = {name: int(number) for name, number in found}
    program = signal_program(machine)
    here = {"x86_64": seccomp.X86_64, "aarch64": seccomp.AARCH64}[machine]
    for name in SENDS:
        assert outcome(program, here, number[name]) == EPERM, name
    for name, place, commands in (
        ("fcntl", 1, (8, 10, 15)), ("ioctl", 1, (0x8901, 0x8902)), ("bpf", 0, (5,)),
    ):  # fmt: skip
        for command in range(0x8910):
            asked = (0, command, 0) if place else (command, 0, 0)
            wanted = EPERM if command in commands else ALLOW
            assert outcome(program, here, number[name], *asked) == wanted, (name, command)
    judged = {number[name] for name in (*SENDS, "fcntl", "ioctl", "bpf")}
    assert {outcome(program, here, one) for one in set(range(470)) - judged} == {ALLOW}
    assert outcome(program, 0x40000003, 20) == EPERM, "another architecture's numbers"
    if machine == "x86_64":
        assert outcome(program, here, 0x40000000 | 62) == EPERM, "x32"


def outcome(program: bytes, architecture: int, number: int, *words: int) -> int:
    """What the filter returns: classic BPF, the few instructions of it that are used."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *words, *[0] * (6 - len(words)))
    steps = list(struct.iter_unpack("=HBBI", program))
    at, value = 0, 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        if code == seccomp.RETURN:
            return int(operand)
        if code == seccomp.LOAD:
            (value,) = struct.unpack_from("=I", data, operand)
        else:
            holds = value == operand if code == seccomp.EQUAL else value >= operand
            at += yes if holds else no


GIVEN_UP = r"""
import os, sys, time
sys.path.insert(0, sys.argv[1])
from seawall.proc import signal_filter
from seawall.proc.forked_child import ForkedChild, bury, hangs
assert signal_filter.refuse_signals() == ""
never, _ = os.pipe()
child = ForkedChild(lambda to: print(os.read(never, 1)), (never,))
busy = ForkedChild(lambda to: [time.monotonic() for _ in iter(int, 1)])
done = ForkedChild(lambda to: os.write(to, b"x") and None)
assert os.read(done.fd, 9) == b"x"
done.wait()
for one in (child, busy):
    one.give_up()
until = time.monotonic() + 10
while (hangs(child.pid) or hangs(busy.pid)) and time.monotonic() < until:
    time.sleep(0.01)
print(bury())
"""


def test_its_children_end_when_they_are_told_to() -> None:
    """One that waits for ever and one that computes for ever: nobody may kill them."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", "-c", GIVEN_UP, str(Path(__file__).parents[2] / "src")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert time.monotonic() - began < 10
