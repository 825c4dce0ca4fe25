"""The probe ``task_stacks`` here: planted tasks, own ones left out, budget, vanishing."""

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from seawall.host import task_stacks
from seawall.host import task_stacks as probe
from seawall.host.live import LiveHost
from seawall.readings.task_stacks import StackTask, TaskStacks, read

CLONE = {"x86_64": 56, "aarch64": 220}
# A child that its parent waits for as after vfork (CLONE_VFORK, without sharing memory), in
# state D, until it ends.
HELD = f"""
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
libc.prctl(15, b"a) D 1 (\\x1b[31m", 0, 0, 0)
os.write(1, b"ready\\n")
if libc.syscall({CLONE.get(platform.machine(), 0)}, 0x4000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
    libc.prctl(1, 9, 0, 0, 0)
    time.sleep(60)
    os._exit(0)
"""
THREADS = """
import _thread, os, sys, time
_thread.stack_size(65536)
lock = _thread.allocate_lock()
lock.acquire()
for _ in range(int(sys.argv[1])):
    _thread.start_new_thread(lock.acquire, ())
os.write(1, b"ready\\n")
time.sleep(60)
"""


def start(source: str, *arguments: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-c", source, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    return process


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


@pytest.fixture
def held() -> Iterator[int]:
    if platform.machine() not in CLONE:
        pytest.skip(f"the number of clone(2) on {platform.machine()} is not known here")
    process = start(HELD)
    try:
        yield process.pid
    finally:
        end(process)


@pytest.fixture
def host() -> Iterator[LiveHost]:
    made = LiveHost()
    yield made
    made.close()


def sample(host: LiveHost) -> TaskStacks:
    found = read(host)
    assert isinstance(found, TaskStacks), found
    return found


def wait_for(host: LiveHost, pid: int, state: str) -> StackTask:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for task in sample(host).tasks:
            if task.pid == pid and task.state == state:
                return task
        time.sleep(0.05)
    pytest.fail(f"{pid} never was in state {state}")


def test_a_task_that_waits_for_its_vfork_is_blocked_there(host: LiveHost, held: int) -> None:
    task = wait_for(host, held, "D")
    assert task.comm == "a) D 1 (\x1b[31m"
    assert (task.tid, task.is_kernel_thread) == (held, False)
    place = task.wchan if task.stack is None else task.stack[0].function
    assert place in ("kernel_clone", "_do_fork", "wait_for_vfork_done"), task
    if task.stack is None:
        assert task.why in ("refused", "absent")
    assert task.turns is None or task.turns > 0
    again = wait_for(host, held, "D")
    assert (again.turns, again.start_ticks) == (task.turns, task.start_ticks)


def test_no_addresses_leave_the_probe(host: LiveHost, held: int) -> None:
    wait_for(host, held, "D")
    answer: Any = host.ask("task_stacks")
    assert not any("[<" in text or "0xffff" in text for text in answer["stacks"])


def test_seawall_itself_is_left_out(host: LiveHost) -> None:
    """This process asks and the child looks, both running: neither is told."""
    for _ in range(3):
        assert os.getpid() not in {task.pid for task in sample(host).tasks}


def start_threads(count: int) -> "subprocess.Popen[bytes]":
    try:
        return start(THREADS, str(count))
    except AssertionError:
        pytest.skip(f"{count} threads are not allowed here: raise the limit on pids")


def test_ten_thousand_threads_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "SAMPLE_SECONDS", 10.0)
    monkeypatch.setattr(probe, "_MEMORY", probe._Memory())
    process = start_threads(10_000)
    try:
        costs = []
        for _ in range(4):
            began, cpu = time.monotonic(), time.process_time()
            found: Any = probe.task_stacks()
            costs.append((time.process_time() - cpu, time.monotonic() - began))
            assert found["threads"] + found["threads_left_out"] > 10_000
        print(f"10,000 threads: {min(costs)} s of CPU, of wall")  # noqa: T201 - shown by -rP
        assert min(costs)[0] < 0.3, "seconds of CPU: the wall's are the machine's load"
    finally:
        end(process)


def test_over_budget_the_next_scan_goes_on_where_this_one_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visited: set[tuple[int, str]] = set()
    live = probe._look_at

    def look_at(pid: int, name: str) -> Any:
        visited.add((pid, name))
        return live(pid, name)

    process = start_threads(1500)
    try:
        monkeypatch.setattr(probe, "SAMPLE_SECONDS", 0.002)
        monkeypatch.setattr(probe, "_MEMORY", probe._Memory())
        monkeypatch.setattr(probe, "_look_at", look_at)
        wanted = {(process.pid, name) for name in os.listdir(f"/proc/{process.pid}/task")}
        assert len(wanted) == 1501
        scans = 0
        while not wanted <= visited and scans < 2000:
            found: Any = probe.task_stacks()
            left_out = found["threads_left_out"] + found["processes_left_out"]
            assert left_out or wanted <= visited, "what was not looked at is told"
            scans += 1
        assert wanted <= visited
        assert scans > 1
    finally:
        end(process)


def test_threads_that_vanish_are_no_error(host: LiveHost) -> None:
    source = """
import os, time
os.write(1, b"ready\\n")
until = time.time() + 3
while time.time() < until:
    os.fork() or os._exit(0)
    os.wait()
"""
    process = start(source)
    try:
        for _ in range(10):
            assert sample(host).threads > 0
    finally:
        end(process)


def test_whoever_does_not_answer_costs_only_its_own_answer(
    monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """As a task in the middle of execve: reading its stack waits for its lock."""
    other = start("import os\nos.write(1, b'ready\\n')\nwhile True: pass")
    live = probe._answer

    def answer(thread: Any) -> Any:
        if thread.pid == held:
            time.sleep(3)
        return live(thread)

    monkeypatch.setattr(probe, "_answer", answer)
    monkeypatch.setattr(probe, "_MEMORY", probe._Memory())
    monkeypatch.setattr(probe, "_SILENCE_SECONDS", 0.1)
    try:
        time.sleep(0.3)
        began = time.monotonic()
        found: Any = probe.task_stacks()
        assert time.monotonic() - began < 2.5
        reasons = {row[0]: row[10] for row in found["tasks"]}
        assert reasons[held] == "no_answer"
        assert reasons[other.pid] in ("", "refused", "absent")
        assert any(key[0] == held for key in probe._MEMORY.silent)
    finally:
        end(other)


def test_the_mark_of_an_execve_is_the_same_after_a_fork_alone() -> None:
    """By it the watchdog above the worker is told from a shell."""
    pid = os.fork()
    if not pid:
        time.sleep(30)
        os._exit(0)
    shell = subprocess.Popen(["sleep", "30"])
    try:
        own = task_stacks.ppid_and_mark(os.getpid())[1]
        assert task_stacks.ppid_and_mark(pid) == (os.getpid(), own)
        assert task_stacks.ppid_and_mark(shell.pid)[1] != own
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        shell.kill()
        shell.wait()


def test_with_more_blocked_tasks_than_room_each_has_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or the groups would be those of the lowest pids for ever."""
    monkeypatch.setattr(probe, "_STACKS_MOST", 1)
    monkeypatch.setattr(probe, "_MEMORY", probe._Memory())
    waiting = [start(HELD) for _ in range(3)]
    seen: set[int] = set()
    try:
        for _ in range(100):
            answer: Any = probe.task_stacks()
            assert len(answer["tasks"]) <= 1
            assert answer["stacks_left_out"] >= 1
            seen |= {row[0] for row in answer["tasks"]}
            if seen >= {process.pid for process in waiting}:
                return
    finally:
        for process in waiting:
            end(process)
    pytest.fail(f"only {seen}")
