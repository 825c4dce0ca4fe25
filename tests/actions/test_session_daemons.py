"""A user's session: its processes go, and neither sshd nor the user's manager among them."""

import builtins
import io
import signal
import subprocess
from pathlib import Path

import pytest
from tests.actions.test_members import group, opened
from tests.actions.test_step_daemons import GAMES, PYTHON, RENAME, called, killed
from tests.actions.test_step_daemons import pytestmark as pytestmark  # noqa: PLC0414 - root alone

from seawall.actions import session_daemons
from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.session_daemons import is_of_session, is_session_daemon

SLICE = "/user.slice/user-1000.slice"
SESSION, MANAGER = f"{SLICE}/session-3.scope", f"{SLICE}/user@1000.service"
UNDER_SSHD = f"""
import os, subprocess, sys
open('/proc/self/comm', 'w').write('sshd')
code = {RENAME.format("sshd")!r}
one = subprocess.Popen([sys.executable, '-S', '-c', code], stdin=subprocess.PIPE, user={GAMES})
input()
"""


def session_of(top: Path, path: str, *pids: int) -> Path:
    """With v2's files as plain ones."""
    made = group(Path(f"{top}{path}"), *pids)
    (made / "cgroup.kill").write_text("")
    (made / "cgroup.freeze").write_text("0")
    (made / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    return made


def test_all_go_but_sshd_and_cgroup_kill_is_not_asked(tmp_path: Path) -> None:
    """Root's shell by sudo goes too, and so does who only calls himself sshd."""
    with called("sshd") as sshd, called("sshd", GAMES) as liar, called("python3") as root:
        made = session_of(tmp_path, SESSION, sshd.pid, liar.pid, root.pid)
        done = killed(tmp_path, SESSION, made)
        assert liar.wait(5) == root.wait(5) == -signal.SIGKILL
        assert sshd.poll() is None
    assert (done.processes, done.is_done) == (2, True)
    assert (made / "cgroup.kill").read_text() == ""


def test_the_one_that_speaks_for_the_user_is_known_by_whose_child_it_is() -> None:
    sshd = subprocess.Popen(
        [PYTHON, "-S", "-c", UNDER_SSHD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert sshd.stdout
    try:
        assert sshd.stdout.readline() == b"\n", "its child has its name"
        (child,) = Path(f"/proc/{sshd.pid}/task/{sshd.pid}/children").read_text().split()
        assert is_session_daemon(sshd.pid)
        assert is_session_daemon(int(child))
    finally:
        sshd.kill()
        sshd.communicate()
    assert not is_session_daemon(sshd.pid), "it is gone"


@pytest.mark.parametrize("name", ["systemd", "(sd-pam)", "login"])
def test_a_users_process_of_that_name_is_nobodys_manager(name: str) -> None:
    with called(name, GAMES) as liar:
        assert not is_session_daemon(liar.pid)


def test_the_manager_is_process_ones_own_child(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {40: ("systemd", 1, 1000), 41: ("(sd-pam)", 40, 1000), 42: ("(sd-pam)", 43, 1000)}
    there |= {43: ("systemd", 40, 1000), 44: ("(sd-pam)", 40, 1000), 45: ("sshd", 40, 1000)}
    monkeypatch.setattr(session_daemons, "_facts", lambda pid: there.get(pid, ("", 0, -1)))
    there |= {46: ("systemd", 1, 1000), 47: ("(sd-pam)", 46, 1000)}  # it went to the background
    monkeypatch.setattr(session_daemons, "_is_systemds", lambda pid: pid != 44)
    place = {40: 1000}
    monkeypatch.setattr(
        session_daemons, "_is_at_managers_place", lambda pid, uid: place.get(pid) == uid
    )
    assert [pid for pid in there if is_session_daemon(pid)] == [40, 41]


@pytest.mark.parametrize(
    ("text", "is_managers"),
    [
        (f"0::{MANAGER}/init.scope\n", True),
        (f"9:cpu,memory:{MANAGER}\n1:name=systemd:{MANAGER}/init.scope\n0::/x\n", True),
        (f"0::{SESSION}\n", False),
        (f"9:memory:{SESSION}\n1:name=systemd:{MANAGER}/init.scope\n", False),
        ("0::/user.slice/user-1000.slice/user@1001.service\n", False),
        (f"0::{MANAGER}/app.slice/x.service\n", False),
        ("", False),
    ],
)
def test_where_the_manager_stands_its_memory_says(
    monkeypatch: pytest.MonkeyPatch, text: str, *, is_managers: bool
) -> None:
    monkeypatch.setattr(builtins, "open", lambda *_: io.BytesIO(text.encode()))
    assert session_daemons._is_at_managers_place(40, 1000) is is_managers


@pytest.mark.parametrize(
    ("path", "is_spared"),
    [
        (SLICE, True), (SESSION, True), (MANAGER, True), (f"{MANAGER}/init.scope", True),
        (f"{MANAGER}/app.slice/x.service", False), ("/system.slice/ssh.service", False),
        ("/user.slice", False), (f"/kubepods/podx/{'ab' * 32}/sub", False),
    ],
)  # fmt: skip
def test_where_such_processes_may_be(tmp_path: Path, path: str, *, is_spared: bool) -> None:
    with called("sshd") as sshd:
        made = group(Path(f"{tmp_path}{path}"), sshd.pid)
        with opened(made) as fd:
            assert is_of_session(fd) is is_spared
            members = CgroupMembers()
            assert (members.read(fd, 2) == set()) is is_spared
            assert members.has_daemons is is_spared
