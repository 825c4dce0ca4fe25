"""The aide where something else is broken: its log, a disk, a command."""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guard import hung_disk
from tests.guard.aides import answer, below, lives, started, until

from seawall.guard.aide import Aide
from seawall.guard.tell import errands
from seawall.guard.tell.child import _SYS_IOPRIO_SET


@pytest.mark.parametrize("trouble", ["full", "nobody reads"])
def test_a_log_that_takes_nothing_does_not_end_it(trouble: str) -> None:
    if trouble == "full":
        log = os.open("/dev/full", os.O_WRONLY)
    else:
        ours, log = os.pipe()
        os.close(ours)
    with started_with(log) as aide:
        os.close(log)
        for number in range(30):
            assert aide.send({"do": "say", "words": f"killed shop/cart {number}"})
            assert aide.send({"do": "frozen"})  # nonsense: an error that goes to the log too
            assert answer(aide, {"do": "ping"})["did"] == "ping"
        assert answer(aide, {"do": "run", "command": "true"})["problem"] == ""


def test_a_guard_that_ends_with_answers_not_taken_is_no_trouble() -> None:
    """An ordinary stop.  The kernel says so before what was still asked for, which is done."""
    log, theirs = os.pipe()
    with started_with(theirs) as aide:
        os.close(theirs)
        assert aide.send({"do": "ping"})
        until(lambda: select.select([aide.fd], [], [], 0)[0], "the answer that is left")
        os.kill(aide.pid, signal.SIGSTOP)
        until(lambda: state(aide.pid) == "T", "it stands still")
        assert aide.send({"do": "say", "words": "stopped"})
        aide.close()
        os.kill(aide.pid, signal.SIGCONT)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(aide.pid, 0)
    with open(log, "rb") as said:
        assert said.read() == b"seawall guard: stopped\n"


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextlib.contextmanager
def started_with(log: int) -> Iterator[Aide]:
    """With this standard error."""
    with contextlib.ExitStack() as stack:
        before = os.dup(2)
        try:
            os.dup2(log, 2)
            aide = stack.enter_context(started())
        finally:
            os.dup2(before, 2)
            os.close(before)
        yield aide


@pytest.mark.parametrize("is_timely", [True, False])
def test_a_command_leaves_nothing_in_a_session_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_timely: bool
) -> None:
    """``setsid`` forks where it has to: neither its group nor its parent tell whose it is."""
    if shutil.which("setsid") is None:
        pytest.skip("no setsid: apt-get install util-linux")
    monkeypatch.setitem(errands.LIMITS, "run", (4, 20.0 if is_timely else 1.5))
    (tmp_path / "pids").touch()
    script = tmp_path / "after"
    script.write_text(
        f"""#!/bin/sh
        setsid sh -c 'echo $$ >>{tmp_path}/pids; sleep 300 & echo $! >>{tmp_path}/pids; wait' &
        (setsid setsid sh -c 'echo $$ >>{tmp_path}/pids; sleep 300' &)
        while [ $(wc -l <{tmp_path}/pids) -lt 3 ]; do sleep 0.05; done
        {"exit 3" if is_timely else "sleep 300"}
        """
    )
    script.chmod(0o755)
    with started() as aide:
        other = answer(aide, {"do": "run", "command": f"/bin/sh -c 'echo $$ >{tmp_path}/other'"})
        assert other["problem"] == ""
        assert aide.send(
            {"do": "self_test_child", "cgroup_procs": [str(tmp_path / "cgroup.procs")]}
        )
        found = answer(aide, {"do": "run", "command": str(script), "decision": "d-1"})
        words = "the command failed with status 3" if is_timely else "took over 1.5 s: killed"
        assert (found["problem"], found["decision"]) == (words, "d-1")
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 3
        assert [pid for pid in pids if lives(pid)] == []  # at the answer already


def test_of_what_the_aide_does_else_nothing_ends_with_a_command(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    request = {"do": "self_test_child", "cgroup_procs": [f"{tmp_path}/cgroup.procs"]}
    with started() as aide:
        pid = answer(aide, request)["pid"]
        assert answer(aide, {"do": "run", "command": "setsid true"})["problem"] == ""
        time.sleep(0.7)
        assert lives(pid)


def test_an_aide_that_is_killed_takes_a_commands_session_along(tmp_path: Path) -> None:
    command = f"/bin/sh -c 'setsid sh -c \"echo \\$\\$ >{tmp_path}/pid; sleep 300\" & sleep 300'"
    path = tmp_path / "pid"
    with started() as aide:
        assert aide.send({"do": "run", "command": command})
        pid = int(until(lambda: path.exists() and path.read_text(), "the command"))
        os.kill(aide.pid, signal.SIGKILL)
        until(lambda: not lives(pid), "it ends with the aide")


def test_a_command_is_nobody_special_at_the_disk(tmp_path: Path) -> None:
    """The unit's IOSchedulingClass=realtime is the guard's."""
    number = _SYS_IOPRIO_SET.get(os.uname().machine)
    if number is None or shutil.which("ionice") is None:
        pytest.skip("no number of ioprio_set(2) or no ionice here")
    libc = ctypes.CDLL(None)
    if libc.syscall(number, 1, 0, 1 << 13 | 4):
        pytest.skip("needs CAP_SYS_NICE for a real-time class: sudo")
    try:
        with started() as aide:
            command = f"/bin/sh -c 'ionice -p $$ >{tmp_path}/class'"
            assert answer(aide, {"do": "run", "command": command})["problem"] == ""
    finally:
        libc.syscall(number, 1, 0, 0)
    assert (tmp_path / "class").read_text().split(":")[0] in ("none", "best-effort")


@pytest.mark.system
@pytest.mark.skipif(hung_disk.missing() is not None, reason=str(hung_disk.missing()))
def test_a_disk_that_hangs_costs_one_child_and_not_one_at_every_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(errands.LIMITS, "textfile", (1, 0.2))
    (tmp_path / "disk").mkdir()
    request = {"do": "textfile", "path": f"{tmp_path}/disk/seawall.prom", "values": {}}
    with hung_disk.hung_disk(tmp_path / "disk") as server, started() as aide:
        assert answer(aide, request)["problem"] == "took too long and does not end"
        for _ in range(4):
            found = answer(aide, request)
            assert (found["problem"], found["is_busy"]) == ("1 of these do not end: not started",
                                                            False)  # fmt: skip
            time.sleep(0.3)
            assert len(below(aide.pid)) == 1
        assert answer(aide, {"do": "run", "command": "true"})["problem"] == ""
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        until(lambda: not below(aide.pid), "the stuck one is waited for")
        assert aide.take("textfile") is None  # it was answered
        assert answer(aide, request)["problem"] not in ("", found["problem"])  # it tries again
