"""Process 3: a real one, forked, with real children."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.guard.aides import answer, below, lives, until
from tests.guard.telling import CGROUP, CONTAINER, HOSTILE, POD_UID

from seawall.guard import aide_process
from seawall.guard.aide import DATAGRAM_MOST_BYTES, Aide
from seawall.guard.tell import spare_children


@pytest.fixture
def aide(tmp_path: Path) -> Iterator[Aide]:
    started = aide_process.start(
        kubelet=(f"{tmp_path}/kubelet",), configs=(f"{tmp_path}/{{id}}.json",),
        kmsg=f"{tmp_path}/kmsg", roots=("",),
    )  # fmt: skip
    yield started
    started.close()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(started.pid, 0)


def test_a_child_moves_itself_and_dies_by_our_hand(aide: Aide, tmp_path: Path) -> None:
    first, second = tmp_path / "a/cgroup.procs", tmp_path / "b/tasks"
    for path in (first, second):
        path.parent.mkdir()
        path.touch()
    paths = [str(first), str(second)]
    found = answer(aide, {"do": "self_test_child", "cgroup_procs": paths})
    assert found["problem"] == ""
    pid = found["pid"]
    status = Path(f"/proc/{pid}/status").read_text()
    if os.geteuid():
        assert found["still_root"] == "Operation not permitted, it needs CAP_SETUID"
    else:
        assert found["still_root"] == ""
        for ids in ("Uid:", "Gid:"):
            assert status.split(ids)[1].split()[:4] == ["65534"] * 4
        assert status.split("Groups:")[1].split("\n")[0].strip() == ""
    assert first.read_text() == second.read_text() == str(pid)
    assert lives(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the child is waited for")


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["/nowhere/cgroup.procs"], "/nowhere/cgroup.procs: No such file or directory"),
        (["/etc/passwd"], "'/etc/passwd' is no cgroup.procs"),
        ([], "no cgroup was named"),
        (7, "no cgroup was named"),
    ],
)
def test_a_child_that_cannot_move_says_why(aide: Aide, paths: Any, problem: str) -> None:
    found = answer(aide, {"do": "self_test_child", "cgroup_procs": paths})
    assert (found["pid"], found["problem"]) == (0, problem)


def test_a_command_gets_the_decision_and_no_shell(aide: Aide, tmp_path: Path) -> None:
    script = tmp_path / "after"
    script.write_text(
        f"""#!/bin/sh
        printf "%s|" "$@" "$SEAWALL_DECISION" "$HOME" >{tmp_path}/out
        cat >{tmp_path}/in
        echo $(ls /proc/self/fd) >{tmp_path}/fds
        """
    )
    script.chmod(0o755)
    command = f"{script} 'two words' ; $(reboot) *"
    found = answer(aide, {"do": "run", "command": command, "decision": "d-1", "stdin": '{"a": 1}'})
    assert (found["status"], found["problem"], found["decision"]) == (0, "", "d-1")
    assert (tmp_path / "out").read_text() == "two words|;|$(reboot)|*|d-1||"
    assert json.loads((tmp_path / "in").read_text()) == {"a": 1}
    assert (tmp_path / "fds").read_text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("/nowhere/at-all", "the command was not found, or could not be run"),
        ("'unbalanced", "the command was not found, or could not be run"),
        ("", "the command was not found, or could not be run"),
        ("/bin/sh -c 'exit 3'", "the command failed with status 3"),
        ("/bin/sh -c 'kill -SEGV $$'", "the command was ended by signal 11 (Segmentation fault)"),
    ],
)
def test_a_command_that_fails(aide: Aide, command: str, problem: str) -> None:
    assert answer(aide, {"do": "run", "command": command})["problem"] == problem


def test_a_command_that_floods_and_does_not_read_harms_nobody(aide: Aide, tmp_path: Path) -> None:
    command = "/bin/sh -c 'head -c 30000000 /dev/zero; head -c 1000000 /dev/zero >&2'"
    found = answer(aide, {"do": "run", "command": command, "stdin": "x" * 50_000})
    assert (found["status"], found["problem"]) == (0, "")


def test_a_command_that_hangs_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seawall.guard.tell import errands

    monkeypatch.setitem(errands.LIMITS, "run", (4, 0.7))
    started = aide_process.start()
    command = f"/bin/sh -c 'sleep 300 & echo $! >{tmp_path}/pid; trap \"\" TERM; wait; sleep 300'"
    found = answer(started, {"do": "run", "command": command})
    assert found["problem"] == "took over 0.7 s: killed"
    assert found["status"] == -signal.SIGKILL
    child = int((tmp_path / "pid").read_text())
    until(lambda: not lives(child), "its child is killed as well")
    started.close()


def test_what_a_command_leaves_behind_ends_with_it(aide: Aide, tmp_path: Path) -> None:
    command = f"/bin/sh -c 'sleep 300 & echo $! >{tmp_path}/pid'"
    assert answer(aide, {"do": "run", "command": command})["problem"] == ""
    child = int((tmp_path / "pid").read_text())
    until(lambda: not lives(child), "the leftover is killed")


def test_it_dies_with_the_guard_and_takes_its_children_along(tmp_path: Path) -> None:
    """The guard is a child of this test, and is killed as the kernel would."""
    (tmp_path / "cgroup.procs").touch()
    ours, theirs = os.pipe()
    guard = os.fork()
    if not guard:
        started = aide_process.start()
        paths = [f"{tmp_path}/cgroup.procs"]
        found = answer(started, {"do": "self_test_child", "cgroup_procs": paths})
        started.send({"do": "run", "command": f"/bin/sh -c 'echo $$ >{tmp_path}/pid; sleep 300'"})
        os.write(theirs, f"{started.pid} {found['pid']}".encode())
        signal.pause()
    pids = list(map(int, os.read(ours, 100).split()))
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the command")
    pids.append(int((tmp_path / "pid").read_text()))
    assert [lives(pid) for pid in pids] == [True, True, True]
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    until(lambda: not any(map(lives, pids)), "all three are gone")
    os.close(ours)
    os.close(theirs)


def test_it_holds_nothing_of_the_guards(tmp_path: Path) -> None:
    """A lock and a pair's end must end with the guard, whatever the aide still does."""
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)
    ours, theirs = os.pipe()
    started = aide_process.start(watcher_fds=[theirs])
    assert "rivals" in answer(started, {"do": "rivals"})
    held = [os.readlink(f"/proc/{started.pid}/fd/{fd}")
            for fd in os.listdir(f"/proc/{started.pid}/fd") if int(fd) > 2]  # fmt: skip
    assert not [path for path in held if path.startswith(str(tmp_path))]
    spares = 2 * sum(spare_children.KINDS.values())
    # Its end, the pipe that wakes it, what a new watcher gets; two ends for each spare.
    assert len(held) == 4 + spares
    assert os.readlink(f"/proc/self/fd/{theirs}") in held
    started.close()
    for fd in (lock, ours, theirs):
        os.close(fd)


def test_the_guard_never_waits_and_notices_that_it_is_gone(aide: Aide) -> None:
    os.kill(aide.pid, signal.SIGSTOP)
    before = time.monotonic()
    taken = sum(aide.send({"do": "say", "words": "x" * 40_000}) for _ in range(200))
    assert time.monotonic() - before < 5
    assert taken < 200
    assert aide.dropped == 200 - taken
    assert aide.is_alive
    os.kill(aide.pid, signal.SIGKILL)
    until(lambda: aide.take("run") is None and not aide.is_alive, "it is noticed")
    assert aide.fd == -1
    assert not aide.send({"do": "run"})
    until(lambda: not os.path.exists(f"/proc/{aide.pid}") or aide.close(), "no zombie is left")


def test_it_answers_a_ping_at_once(aide: Aide) -> None:
    assert answer(aide, {"do": "ping"})["did"] == "ping"


def test_a_watcher_takes_the_place_of_those_before() -> None:
    """One that hangs from its first moment on said nobody its pid."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    started = aide_process.start(watcher_fds=[theirs.fileno() for _, theirs in pairs])
    for _, theirs in pairs:
        theirs.close()
    answer(started, {"do": "ping"})
    until(lambda: not below(started.pid), "its spares have their names")
    assert started.send({"do": "watcher", "number": 0})
    first = int(until(lambda: below(started.pid), "a watcher")[0])
    os.kill(first, signal.SIGSTOP)
    assert started.send({"do": "watcher", "number": 1})
    until(lambda: not lives(first), "the first is killed")
    # The dead one may still stand there, until it is reaped.
    until(lambda: {*below(started.pid)} - {str(first)}, "the second")
    started.close()
    for ours, _ in pairs:
        ours.close()


def test_nonsense_does_not_end_it(aide: Aide) -> None:
    assert aide._end is not None
    for data in (b"x", b"[]", b"{}", b"[" * 50_000, b'{"do": "fly"}', b'{"do": ["run"]}',
                 b'{"do": "run", "command": 7, "stdin": {"a": []}}',
                 b'{"do": "textfile", "path": "/nowhere/x", "values": []}',
                 b'{"do": "rivals", "scope": 7}', b'{"do": "termination_message"}'):  # fmt: skip
        aide._end.send(data)
        time.sleep(0.01)
    aide.send({"do": "run", "x": "y" * DATAGRAM_MOST_BYTES})
    assert answer(aide, {"do": "run", "command": "true", "decision": "after"})
    assert aide.is_alive


def test_signals_meant_for_the_guard_do_not_end_it(aide: Aide) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(aide.pid, number)
    assert "rivals" in answer(aide, {"do": "rivals", "scope": []})


def test_lines_for_the_log_and_for_a_slow_console(tmp_path: Path) -> None:
    (tmp_path / "kmsg").touch()
    ours, theirs = os.pipe()
    before = os.dup(2)
    os.dup2(theirs, 2)
    try:
        aide = aide_process.start(kmsg=f"{tmp_path}/kmsg")
    finally:
        os.dup2(before, 2)
        os.close(before)
    for number in range(9):
        aide.send({"do": "say", "words": f"killed shop/cart {number}"})
    aide.send({"do": "kmsg", "record": "<4>seawall-guard: killed\n"})
    until((tmp_path / "kmsg").read_text, "the record")
    assert (tmp_path / "kmsg").read_text() == "<4>seawall-guard: killed\n"
    assert answer(aide, {"do": "run", "command": "true"})
    said = os.read(ours, 4096).decode()
    aide.close()
    os.close(ours)
    os.close(theirs)
    assert said == "".join(f"seawall guard: killed shop/cart {number}\n" for number in range(9))


def test_a_termination_message_by_way_of_the_aide(aide: Aide, tmp_path: Path) -> None:
    file = tmp_path / f"kubelet/pods/{POD_UID}/containers/worker/0a1b2c3d"
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / f"{CONTAINER}.json").write_text(json.dumps({"mounts": [{"source": str(file)}]}))
    found = answer(
        aide, {"do": "termination_message", "cgroup": CGROUP, "words": "killed: " + HOSTILE}
    )
    assert (found["problem"], found["path"]) == ("", str(file))
    text = file.read_text()
    assert text.startswith("killed: \\x1b[2J\\x0ashop/\\u202ecart\\x00")
    assert len(text) <= 1025


def test_it_does_not_grow(aide: Aide) -> None:
    def resident() -> int:  # statm lags by a batch for each CPU since 6.2
        status = Path(f"/proc/{aide.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    for _ in range(30):
        answer(aide, {"do": "run", "command": "true", "stdin": "x" * 20_000})
    before = resident()
    for _ in range(60):
        answer(aide, {"do": "run", "command": "true", "stdin": "x" * 20_000})
    assert resident() - before <= 128 << 10
    assert len(os.listdir(f"/proc/{aide.pid}/fd")) == 6 + 2 * sum(spare_children.KINDS.values())
