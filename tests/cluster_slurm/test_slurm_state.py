"""The controller's folder and its policy: what is wrong in them is said, never guessed."""

import json
import stat
from pathlib import Path

import pytest

from seawall.cluster.slurm.slurm_policy import slurm_policy
from seawall.cluster.slurm.slurm_state import SlurmStateFolder
from seawall.problems import UsageProblem

POLICY = b"""
dry_run = false
approval = "auto"
hold_hours = 12
protected_users = ["root", "daemon"]
watched_since = 2026-11-01
evidence = "/shared/seawall"
[accounts]
physics = "observe"
[brakes]
held_jobs_most = 20
"""


def test_a_policy_is_read_whole() -> None:
    policy = slurm_policy(POLICY, "x")
    assert not policy.dry_run
    assert policy.approval_of("physics") == "observe"
    assert policy.approval_of("biology") == "auto"
    assert policy.hold_seconds == 43200.0
    assert policy.evidence == "/shared/seawall"
    assert policy.watched_since_seconds == 1793491200.0
    assert policy.brakes.held_jobs_most == 20
    assert policy.brakes.nodes_least == 2


def test_without_a_word_nothing_is_done() -> None:
    policy = slurm_policy(b"", "x")
    assert policy.dry_run
    assert policy.approval == "approve"
    assert not policy.requeuehold


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"dry-run = false", "no such key"),
        (b"dry_run = 0", "true or false"),
        (b'evidence = "shared/seawall"', "whole path"),
        (b'approval = "yes"', "observe, approve, auto"),
        (b"[brakes]\nnodes_least = 1", "2 to 1000"),
        (b"[brakes]\nspeed = 1", "no such key"),
        (b'protected_users = "root"', "list of names"),
        (b"watched_since = 7", "a day or a time"),
        (b"= 1", "not TOML"),
        (b"[accounts]\nx = 1", "observe, approve, auto"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_policy_is_said(text: bytes, words: str) -> None:
    with pytest.raises(UsageProblem, match=words):
        slurm_policy(text, "slurm.toml")


def test_a_change_is_written_whole_and_only_the_owner_reads_it(tmp_path: Path) -> None:
    folder = SlurmStateFolder(str(tmp_path / "a"))
    with folder.change() as state:
        state.cluster, state.watched_since = "big", 7.0
    assert folder.read().cluster == "big"
    mode = stat.S_IMODE((tmp_path / "a/state.json").stat().st_mode)
    assert mode == 0o600


def test_a_change_that_breaks_off_changes_nothing(tmp_path: Path) -> None:
    folder = SlurmStateFolder(str(tmp_path))
    with folder.change() as state:
        state.cluster = "big"
    with pytest.raises(KeyError):
        _break_off(folder)
    assert folder.read().cluster == "big"


def _break_off(folder: SlurmStateFolder) -> None:
    with folder.change() as state:
        state.cluster = "small"
        raise KeyError


def test_one_controller_is_active(tmp_path: Path) -> None:
    first, second = SlurmStateFolder(str(tmp_path)), SlurmStateFolder(str(tmp_path))
    assert not first.has_active()
    assert first.be_active()
    assert not second.be_active()
    assert second.has_active()
    first.end()
    assert second.be_active()
    second.end()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2}', "[" * 100000, json.dumps({"format": 1})]
)
def test_a_file_that_is_not_ours_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(UsageProblem, match="not written by this release"):
        SlurmStateFolder(str(tmp_path)).read()
