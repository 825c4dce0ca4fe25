"""A Slurm job on cgroup v2: its processes one by one, and never root's slurmstepd among them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.actions.test_members import group, opened

from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.orders import Mounts, Order, Outcome, Target
from seawall.actions.step_daemons import is_of_job, is_step_daemon

JOB = "/system.slice/slurmstepd.scope/job_7"
PYTHON = "/usr/bin/python3"
GAMES = 5
RENAME = "open('/proc/self/comm', 'w').write('{}'); print(flush=True); input()"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a daemon of root's needs root")


@contextmanager
def called(name: str, user: int = 0) -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(
        [PYTHON, "-S", "-c", RENAME.format(name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        user=user,
    )  # fmt: skip
    assert child.stdout
    child.stdout.readline()
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def tree_of(top: Path, path: str, daemon: int, *tasks: int) -> Path:
    """As slurmd makes it on v2, with the kernel's files as plain ones."""
    job = group(Path(f"{top}{path}"))
    group(job / "step_0/slurm", daemon)
    group(job / "step_0/user/task_0", *tasks)
    for folder in (job, job / "step_0/user/task_0"):
        (folder / "cgroup.kill").write_text("")
    (job / "cgroup.freeze").write_text("0")
    (job / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    return job


def killed(top: Path, path: str, job: Path) -> Outcome:
    hands = Executor(Mounts(str(top), 2), ("/",), Journal(str(top / "guard.undo")))
    hands.prepare()
    target = Target(path, job.stat().st_ino, "slurm:7")
    return hands.perform(Order("b0-1", "kill", target, "node_short"))


def test_all_go_but_the_daemon_and_cgroup_kill_is_not_asked(tmp_path: Path) -> None:
    with called("slurmstepd") as daemon, called("slurmstepd", GAMES) as liar, called("x") as root:
        job = tree_of(tmp_path, JOB, daemon.pid, liar.pid, root.pid)
        done = killed(tmp_path, JOB, job)
        assert liar.wait(5) == root.wait(5) == -signal.SIGKILL
        assert daemon.poll() is None
    assert done.processes == 2
    assert done.is_done
    assert (job / "cgroup.kill").read_text() == ""


def test_elsewhere_a_process_of_that_name_is_as_any_other(tmp_path: Path) -> None:
    """A pod that calls its cgroup so, and a process of root's in it, gain nothing."""
    path = f"/kubepods/podx/{'ab' * 32}{JOB}"
    with called("slurmstepd") as daemon:
        job = tree_of(tmp_path, path, daemon.pid)
        with opened(job) as fd:
            assert not is_of_job(fd)
            assert CgroupMembers().read(fd, 2) == {daemon.pid}


def test_where_only_the_daemon_is_left_nobody_is_unseen(tmp_path: Path) -> None:
    members = CgroupMembers()
    with called("slurmstepd") as daemon:
        job = tree_of(tmp_path, JOB, daemon.pid)
        with opened(job) as fd:
            there = members.read(fd, 2)
            assert there == set()
            assert members.unseen(fd, there) == ""


@pytest.mark.parametrize(
    ("name", "user", "is_daemon"),
    [("slurmstepd", 0, True), ("slurmstepd", GAMES, False), ("slurmstepdx", 0, False)],
)
def test_name_and_real_uid_make_the_daemon(name: str, user: int, is_daemon: bool) -> None:
    with called(name, user) as child:
        assert is_step_daemon(child.pid) is is_daemon
    assert not is_step_daemon(child.pid)
