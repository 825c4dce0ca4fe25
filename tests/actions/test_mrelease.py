"""process_mrelease(2): whom it is called for, and what one that does not end gives back by it."""

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_order_of_writes import VERSION_2, container, hands, order
from tests.actions.test_pursuit import sleeper

from seawall.actions.executor import Executor
from seawall.actions.mrelease_effects import NUMBER, mrelease
from seawall.actions.orders import Mounts

MIB = 1 << 20
HELD = 64 * MIB
PATIENCE = 20.0
HELD_PROGRAM = f"""
import ctypes, os, signal, sys
ours, theirs = os.pipe()
pid = os.fork()
if not pid:
    memory = b"x" * {HELD}
    os.write(theirs, b"x")
    while True:
        signal.pause()
os.read(ours, 1)
SEIZE, TRACE_EXIT = 0x4206, 0x40
if ctypes.CDLL(None).ptrace(SEIZE, ctypes.c_long(pid), None, ctypes.c_long(TRACE_EXIT)):
    os.kill(pid, signal.SIGKILL)
    sys.exit(1)
print(pid, flush=True)
sys.stdin.read()
"""
"""Who is traced like that stops on its way out, before it gives back its memory."""


def until(found: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.005)


@contextlib.contextmanager
def stuck() -> Iterator[int]:
    """Holds 64 MiB, and when it is killed it does not end."""
    with subprocess.Popen(
        [sys.executable, "-c", HELD_PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as tracer:
        assert tracer.stdout is not None
        line = tracer.stdout.readline()
        if not line:
            pytest.skip("nobody may be traced here: sysctl kernel.yama.ptrace_scope=1, or root")
        yield int(line)


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kill(folder: Path, pid: int, call: Any = None) -> Executor:
    """By a signal of its own; an ordinary folder goes on to list who was in it."""
    container(folder, VERSION_2 | {"cgroup.procs": f"{pid}\n"})
    mounts = Mounts(str(folder), 2, None, str(folder))
    made = hands(mounts, folder)
    made._releases._call = call or made._releases._call
    outcome = made.perform(order(mounts, "kill"))
    assert (outcome.is_done, outcome.processes, outcome.left) == (True, 1, 1)
    return made


def test_its_memory_comes_back_though_it_does_not_end(tmp_path: Path) -> None:
    if mrelease(ctypes.CDLL(None, use_errno=True).syscall, -1) == errno.ENOSYS:
        pytest.skip("no process_mrelease: boot a kernel of 5.15 or later")
    with stuck() as pid:
        assert resident(pid) > HELD
        made = kill(tmp_path, pid)
        until(lambda: resident(pid) < HELD // 4, "its memory")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "t", "it is there, stopped on its way out"
        made.undo_all()


def test_it_is_called_again_where_a_part_was_left(tmp_path: Path) -> None:
    called: list[tuple[int, int, int]] = []

    def call(number: int, fd: int, flags: int) -> int:
        about = Path(f"/proc/self/fdinfo/{fd}").read_text()
        called.append((number, int(about.split("Pid:")[1].split()[0]), flags))
        ctypes.set_errno(errno.EAGAIN)
        return -1 if len(called) < 3 else 0

    with sleeper() as child:
        made = kill(tmp_path, child.pid, call)

        def is_over() -> bool:
            made._releases.tend(time.monotonic())
            return made._releases.is_idle

        until(is_over, "it is done")
        assert called == [(NUMBER, child.pid, 0)] * 3
        assert child.wait(5) == -signal.SIGKILL
        made.undo_all()
