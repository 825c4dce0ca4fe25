"""Slurm's commands as children: deadlines, bounds, environment; no Slurm is needed for these."""

import os
import time
from pathlib import Path

import pytest

from seawall.actions.slurmctld_commands import SlurmctldCommands
from seawall.host.slurm_commands import SlurmCommandProblem, SlurmCommands


def program(folder: Path, text: str) -> str:
    path = folder / "squeue"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_command_that_hangs_ends_at_its_deadline_with_its_children(tmp_path: Path) -> None:
    words = program(tmp_path, f"sleep 100 & echo $! > {tmp_path}/pid; wait")
    with pytest.raises(SlurmCommandProblem, match="did not end in"):
        SlurmCommands().text(words, seconds=2.0)
    wait_for_end(tmp_path / "pid")


def test_a_command_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(SlurmCommandProblem, match="more than"):
        SlurmCommands().text(program(tmp_path, "yes"), bytes_most=1 << 20)


def test_a_command_that_fails_says_why_and_one_that_is_not_there_too(tmp_path: Path) -> None:
    with pytest.raises(SlurmCommandProblem, match="Unable to contact"):
        SlurmCommands().text(program(tmp_path, "echo Unable to contact >&2; exit 1"))
    with pytest.raises(SlurmCommandProblem, match="No such file"):
        SlurmCommands().text(str(tmp_path / "none"))


def test_nothing_of_the_callers_environment_hides_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUEUE_USERS", "nobody")
    told = SlurmCommands("/x/slurm.conf").text(program(tmp_path, "env"))
    names = {line.partition("=")[0] for line in told.splitlines()}
    assert "SQUEUE_USERS" not in names
    assert "SLURM_CONF=/x/slurm.conf" in told
    assert os.environ["SQUEUE_USERS"] == "nobody"


def test_a_nodes_question_that_hangs_ends_with_its_child(tmp_path: Path) -> None:
    path = Path(program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 100"))
    path.rename(tmp_path / "sinfo")
    with pytest.raises(SlurmCommandProblem, match="sinfo did not end in 1 s"):
        SlurmctldCommands(f"{tmp_path}:/bin", seconds=1.0).nodes()
    wait_for_end(tmp_path / "pid")


def test_a_node_without_slurms_commands_says_where_they_are_not(tmp_path: Path) -> None:
    with pytest.raises(SlurmCommandProblem, match=f"sinfo: No such file.*{tmp_path}"):
        SlurmctldCommands(str(tmp_path), seconds=20.0).nodes()


def wait_for_end(number: Path) -> None:
    state = Path(f"/proc/{int(number.read_text())}/stat")
    until = time.monotonic() + 20.0
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)
