"""While the node is short the aide forks nothing: what is told of a kill is told by spares."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guard.aides import answer, started, until
from tests.guard.telling import CGROUP, POD_UID

from seawall.guard.aide import Aide
from seawall.guard.tell import errands

CONTAINER = CGROUP.rpartition("-")[2].removesuffix(".scope")


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A byte for each fork of the aide's and of its children."""
    path, fork, test = tmp_path / "forks", os.fork, os.getpid()
    path.touch()

    def counted() -> int:
        if os.getpid() != test:
            with path.open("ab", buffering=0) as file:
                file.write(b".")
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    return path


@pytest.fixture
def message(tmp_path: Path) -> Path:
    file = tmp_path / f"kubelet/pods/{POD_UID}/containers/c/0a1b2c3d"
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / f"{CONTAINER}.json").write_text(f'{{"mounts": [{{"source": "{file}"}}]}}')
    return file


@pytest.fixture
def aide(tmp_path: Path, forks: Path, message: Path) -> Iterator[Aide]:
    (tmp_path / "kmsg").touch()
    with started(
        kubelet=(f"{tmp_path}/kubelet",), configs=(f"{tmp_path}/{{id}}.json",), roots=("",),
        kmsg=f"{tmp_path}/kmsg",
    ) as aide:  # fmt: skip
        answer(aide, {"do": "ping"})
        yield aide


def short(aide: Aide, *, is_short: bool) -> None:
    assert aide.send({"do": "short", "is_short": is_short})
    answer(aide, {"do": "ping"})


def test_a_kill_is_told_by_spares(aide: Aide, forks: Path, message: Path, tmp_path: Path) -> None:
    """More lines than there are spares are written by the aide itself."""
    short(aide, is_short=True)
    before = forks.stat().st_size
    assert before, "spares were forked in peace"
    asked = {"do": "termination_message", "cgroup": CGROUP, "words": "killed", "decision": "d-1"}
    assert answer(aide, asked)["problem"] == ""
    assert message.read_text() == "killed\n"
    for number in range(5):
        assert answer(aide, {"do": "kmsg", "record": f"line {number};"})["problem"] == ""
    told = (tmp_path / "kmsg").read_text()
    assert all(f"line {number};" in told for number in range(5)), told
    aide.send({"do": "rivals", "scope": []})
    aide.send({"do": "textfile", "path": f"{tmp_path}/g.prom", "values": {}})
    answer(aide, {"do": "ping"})
    assert forks.stat().st_size == before
    short(aide, is_short=False)
    until(lambda: forks.stat().st_size > before, "new spares")


def test_the_owners_command_waits_for_memory(aide: Aide, forks: Path, tmp_path: Path) -> None:
    short(aide, is_short=True)
    before = forks.stat().st_size
    aide.send({"do": "run", "command": f"/bin/sh -c 'echo ran > {tmp_path}/ran'", "stdin": ""})
    time.sleep(0.7)
    assert (forks.stat().st_size, (tmp_path / "ran").exists()) == (before, False)
    short(aide, is_short=False)
    until((tmp_path / "ran").exists, "the command after the shortage")


def test_it_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may be short for hours, and a guard that only observes has nothing but its hooks."""
    monkeypatch.setattr(errands, "SHORT_MOST_SECONDS", 0.5)
    with started() as aide:
        short(aide, is_short=True)
        aide.send({"do": "hook", "command": f"/bin/sh -c 'echo ran > {tmp_path}/ran'"})
        until((tmp_path / "ran").exists, "the hook, when its time is over")
