"""A real guard under which /run/seawall is emptied, and one that is put in the wrong place."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import Room, missing, own_environment, room, within

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]
FILES = {
    "decisions.1.jsonl", "decisions.jsonl", "guard.lock", "guard.undo", "status", "status.json",
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        yield found


def started(own: Room, out: Path, *within_: str) -> "subprocess.Popen[str]":
    with out.open("w") as file:
        process = subprocess.Popen(
            [*own.enter, *within_, sys.executable, "-m", "seawall", "guard", "run", "--config",
             str(own.config)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, text=True, env=own_environment(),
        )  # fmt: skip
    own.processes.append(process)
    return process


def test_what_was_removed_comes_again_and_a_second_guard_observes(
    own: Room, tmp_path: Path
) -> None:
    own.write(mode="enforce", watch=False, tick_most_seconds=1)
    first = own.begin(tmp_path / "first")
    for path in own.run.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    wanted = FILES | {"orders"}
    assert within(30, lambda: {path.name for path in own.run.iterdir()} >= wanted), own.text()
    assert within(12, lambda: own.page().get("pid") == first.pid)
    assert (own.run / "guard.lock").read_text() == f"{first.pid}\n"
    second = started(own, tmp_path / "second")
    page = own.run / "second/status"
    assert within(20, lambda: page.exists() and f"pid {second.pid} since" in page.read_text())
    assert f"observes only: another guard (pid {first.pid}) holds the lock" in page.read_text()
    assert own.page()["pid"] == first.pid


def test_in_a_pid_namespace_of_its_own_it_says_that_it_cannot_kill(
    own: Room, tmp_path: Path
) -> None:
    """``docker run`` without ``--pid=host``: what it could prove it on is a child of its own."""
    if (own.folders()[0] / "cgroup.kill").exists():
        pytest.skip("cgroup.kill needs nobody's number: run it on cgroup v1")
    own.write(mode="enforce", watch=False)
    started(own, tmp_path / "out", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    why = "IT CANNOT KILL: it sees only the processes of its own pid namespace"
    assert within(20, lambda: why in own.text()), (tmp_path / "out").read_text()
    assert own.page()["can_kill"] is False
    unseen = "processes of other pid namespaces are not seen"
    assert within(10, lambda: unseen in own.sentences()), own.sentences()
    assert os.path.exists(f"/proc/{own.processes[-1].pid}"), "it goes on"
