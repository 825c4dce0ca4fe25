"""Ending one process and nobody else: with processes of one's own."""

import os
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.ready import ready

from seawall.host.process_ending import ProcessIdentity, Stranger, end


def child(
    script: str = "echo ready; exec sleep 1000",
) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    return ready(["sh", "-c", script])


def meant(pid: int) -> ProcessIdentity:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return ProcessIdentity(
        pid, int(words[19]), max((line.split(":", 2)[2] for line in groups), key=len)
    )


def is_alive(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def test_it_ends_by_sigterm() -> None:
    with child() as process:
        who = meant(process.pid)._replace(cgroup="/")
        with pytest.raises(Stranger, match="is not in /"):
            end(who)  # everybody is in the root: that names nobody
        assert is_alive(process)
    with child() as process:
        if (who := meant(process.pid)).cgroup == "/":
            pytest.skip("this process is in no cgroup but the root: run in a container or a scope")
        assert end(who) == f"SIGTERM ended process {process.pid}"
        assert process.wait() == -signal.SIGTERM


def test_what_does_not_heed_is_killed() -> None:
    with child("trap '' TERM; echo ready; while :; do sleep 0.05; done") as process:
        if (who := meant(process.pid)).cgroup == "/":
            pytest.skip("this process is in no cgroup but the root: run in a container or a scope")
        assert end(who, 0.3) == f"process {process.pid} did not end 0.3 s after SIGTERM: SIGKILL"
        assert process.wait() == -signal.SIGKILL


def test_a_stranger_with_its_number_is_not_signalled() -> None:
    with child() as process:
        who = meant(process.pid)
        for stranger, words in (
            (who._replace(start_ticks=who.start_ticks - 1), "it began at another time"),
            (who._replace(start_ticks=who.start_ticks + 1), "it began at another time"),
            (who._replace(cgroup=who.cgroup.rstrip("/") + "/below"), "is not in"),
            (who._replace(cgroup=who.cgroup[:-1]), "is not in"),
            (who._replace(cgroup=""), "is not in"),
        ):
            with pytest.raises(Stranger, match=words):
                end(stranger)
        assert is_alive(process)


def test_who_is_gone_is_told() -> None:
    with child() as process:
        who = meant(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(Stranger, match="is gone"):
            end(who)  # a zombie: ended, and not yet waited for
        process.wait()
        with pytest.raises(Stranger, match="is gone"):
            end(who)


def test_nothing_is_left_open() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with child() as process, pytest.raises(Stranger):
        end(meant(process.pid)._replace(start_ticks=1))
    assert sorted(os.listdir("/proc/self/fd")) == before
