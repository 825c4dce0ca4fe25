"""A node's record as evidence: of that boot, of that end, of jobs that were there, and no other."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster_slurm.left_records import (
    AT,
    BOOTED,
    as_bytes,
    boot_report,
    dead,
    distress_report,
    line,
)
from tests.cluster_slurm.test_hold_plan import quarantines

from seawall.cluster.judge.node_death import DeathKind, EvidenceKind
from seawall.cluster.objects.node_report_object import LastDeath, RecordEnd
from seawall.cluster.slurm import evidence_folder
from seawall.cluster.slurm.evidence_folder import EvidenceFolder, slurm_user_id
from seawall.cluster.slurm.left_record import RecordRefused, left_record
from seawall.cluster.slurm.slurm_death import SlurmDeath, slurm_death
from seawall.cluster.slurm.slurm_ledger import SlurmLedger

NOW = AT + 60.0
PROVED, POSSIBLE, AMPLE = EvidenceKind.PROVED, EvidenceKind.POSSIBLE, EvidenceKind.MEMORY_AMPLE


def said(document: object, of: SlurmDeath | None = None) -> list[tuple[str, tuple[str, ...]]]:
    """Kinds and runs."""
    record = left_record(as_bytes(document), of or dead(), NOW)
    return [(one.kind.value, one.pods) for one in record]


def test_who_is_proved_while_the_node_lives_is_the_job_as_slurmctld_has_it() -> None:
    assert said(distress_report("n1", "slurm:101")) == [("proved", ("101.1",))]
    assert said(distress_report("n1", "slurm:501", is_proved=False)) == [("possible", ("501.0",))]


def test_after_a_boot_the_black_box_says_it() -> None:
    assert said(boot_report("n1", line(PROVED, "slurm:101"))) == [("proved", ("101.1",))]
    assert said(boot_report("n1", line(AMPLE))) == [("memory ample", ())]
    assert said(boot_report("n1", ended=RecordEnd.CLEAN)) == [("other cause", ())]


def test_of_two_boots_in_one_file_each_is_of_its_own_death() -> None:
    """It died, told of that after its boot, and runs short again."""
    last = LastDeath("boot-0", AT - 900.0, RecordEnd.UNCLEAN, (line(AMPLE),), (), BOOTED - 7200.0)
    both = distress_report("n1", "slurm:101", last=last)
    before = replace(dead(at=AT - 950.0), booted_seconds=BOOTED - 7200.0)
    assert said(both) == [("proved", ("101.1",))]
    assert said(both, before) == [("memory ample", ())]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (distress_report("n2", "slurm:101"), "another node"),
        (distress_report("n1", "slurm:102"), "names no job"),
        (distress_report("n1", "slurm:101.1", "101", "sEKNKTV3WPV500"), "names no job"),
        (distress_report("n1", "slurm:101", booted=BOOTED - 120.0), "another boot"),
        (distress_report("n1", "slurm:101", booted=None), "another boot"),
        (distress_report("n1", "slurm:101", at=AT - 3600.0), "nothing of the minutes"),
        (distress_report("n1", "slurm:101", at=AT + 86400.0), "nothing of the minutes"),
        (distress_report("n1"), "nothing of the minutes"),
        (distress_report("n1", "slurm:101", "slurm:501", "slurm:7"), "names no job"),
        (boot_report("n1", line(PROVED, "slurm:999")), "names no job"),
        (boot_report("n1", line(PROVED, "slurm:101"), booted=BOOTED + 7200.0), "another boot"),
        (boot_report("n1", line(PROVED, "slurm:101"), at=AT - 3600.0), "nothing of the minutes"),
        ([], "NodeReport"), ({}, "metadata"), ("x", "NodeReport"),
        ({**distress_report("n1"), "report": {"at": 7}}, "time of RFC 3339"),
        ({**distress_report("n1"), "report": {"at": "2026-11-29T00:00:00Z", "bootID": [1]}},
         "a string"),
    ],
)  # fmt: skip
def test_what_is_no_evidence_says_why(document: object, words: str) -> None:
    with pytest.raises(RecordRefused, match=words):
        said(document)


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[" * 9000, b"{" + b" " * (16 << 10) + b"}", b"NaN", b'{"a": 1e999}']
)
def test_bytes_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(RecordRefused):
        left_record(data, dead(), NOW)


def test_a_death_whose_boot_slurmctld_does_not_know_takes_none() -> None:
    with pytest.raises(RecordRefused, match="another boot"):
        said(distress_report("n1", "slurm:101"), replace(dead(), booted_seconds=None))


def test_a_reset_counts_by_a_record_that_breaks_off_alone() -> None:
    reset = replace(dead(), kind=DeathKind.RESET)
    assert said(boot_report("n1", line(PROVED, "slurm:101")), reset) == [("proved", ("101.1",))]
    with pytest.raises(RecordRefused):
        said(distress_report("n1", "slurm:101"), reset)


# --- what the judge makes of it -----------------------------------------------------------


def judged(*documents: Any, now: float = NOW) -> tuple[SlurmLedger, dict[str, str]]:
    """One array on the nodes in turn, ten minutes apart; each with its record, or none."""
    ledger = SlurmLedger()
    for number, document in enumerate(documents, 1):
        at = AT + 600.0 * (number - len(documents))
        one = dead(number, at=at)
        if document is not None:
            one = replace(one, record=left_record(as_bytes(document), one, now))
        ledger.add(one)
    return ledger, {one.user: one.state for one in quarantines(ledger).values()}


def proof(number: int, of: int = 2, *, job: int = 100) -> dict[str, Any]:
    at = AT + 600.0 * (number - of)
    return distress_report(f"n{number}", f"slurm:{job + number}", at=at - 9.0)


@pytest.fixture(autouse=True)
def a_young_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two dozen nodes, as a room of the real Slurm has: nothing but a proof is quick there."""
    monkeypatch.setattr("tests.cluster_slurm.test_hold_plan.NODES", 24)


def test_with_records_the_second_death_convicts_and_without_the_third() -> None:
    assert judged(proof(1), proof(2))[1]["alice"] == "Proposed"
    assert judged(None, None)[1].get("alice") != "Proposed"
    assert judged(None, None, None)[1]["alice"] == "Proposed"


def test_one_death_convicts_nobody_whatever_its_record_says() -> None:
    assert judged(proof(1, 1))[1]["alice"] == "Suspected"


def test_records_that_name_another_clear_whom_the_deaths_have_in_common() -> None:
    """The innocent array was on three nodes that three other jobs killed."""
    documents = [proof(number, 3, job=500) for number in (1, 2, 3)]
    ledger, states = judged(*documents)
    assert states.get("alice") != "Proposed"
    assert not any(one == "Proposed" for one in states.values())
    alice = max(
        (one.score_log10 for one in quarantines(ledger).values() if one.user == "alice"),
        default=-1.0,
    )
    without, _ = judged(None, None, None)
    (named,) = (one for one in quarantines(without).values() if one.user == "alice")
    assert alice < named.score_log10 - 2.0


def test_nodes_whose_memory_was_ample_convict_nobody() -> None:
    documents = [
        boot_report(f"n{number}", line(AMPLE), at=AT + 600.0 * (number - 3) + 20.0)
        for number in (1, 2, 3)
    ]
    assert judged(*documents)[1].get("alice") != "Proposed"


def test_a_death_with_its_record_is_kept_whole() -> None:
    one = replace(dead(), record=left_record(as_bytes(proof(1, 1)), dead(), NOW))
    assert slurm_death(one.document()) == one
    assert one.accuses("101.1")
    assert not one.accuses("501.0")
    assert slurm_death(replace(dead(), record_words="it left none").document()).record is None
    broken = {**one.document(), "record": [{"kind": "Guilty"}]}
    with pytest.raises(ValueError, match="Guilty"):
        slurm_death(broken)
    old = {key: value for key, value in one.document().items() if "record" not in key}
    assert slurm_death(old).record is None


# --- the folder ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "shared"
    path.mkdir(mode=0o755)
    return path


def heard(folder: Path, *deaths: SlurmDeath, now: float = NOW) -> tuple[list[SlurmDeath], str]:
    desk = EvidenceFolder(str(folder))
    return desk.hear(deaths or [dead()], now, os.geteuid()), desk.problem


def leave(folder: Path, node: str, document: object) -> Path:
    path = folder / f"{node}.json"
    path.write_bytes(as_bytes(document))
    path.chmod(0o644)
    return path


def test_a_record_that_is_there_is_heard_once_and_outlives_its_file(folder: Path) -> None:
    leave(folder, "n1", proof(1, 1))
    (one,), problem = heard(folder)
    assert not problem
    assert one.accuses("101.1")
    assert heard(folder, one) == ([], "")
    leave(folder, "n1", distress_report("n1"))
    assert heard(folder, one) == ([], "")


def test_of_each_dead_node_it_is_known_why_there_is_none(folder: Path) -> None:
    leave(folder, "n2", distress_report("n1", "slurm:101"))
    found, _ = heard(folder, dead(1), dead(2))
    assert [one.record_words for one in found] == ["it left none", "it is of another node"]


def _by_others(path: Path) -> None:
    path.chmod(0o666)


def _of_another_user(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root gives a file away")
    os.chown(path, 12345, 12345)


def _a_link(path: Path) -> None:
    path.rename(path.parent / "real.json")
    path.symlink_to(path.parent / "real.json")


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o644)


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o755)


def _huge(path: Path) -> None:
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_by_others, "others may write it"), (_of_another_user, "belongs to uid 12345"),
        (_a_link, "symbolic links"), (_a_pipe, "no plain file"), (_a_folder, "no plain file"),
        (_huge, "more than 16 KiB"),
    ],
)  # fmt: skip
def test_a_file_that_anybody_can_have_written_is_no_record(
    spoil: Any, words: str, folder: Path
) -> None:
    spoil(leave(folder, "n1", proof(1, 1)))
    (one,), problem = heard(folder)
    assert not problem
    assert one.record is None
    assert words in one.record_words


def test_a_folder_in_which_others_write_is_not_read(folder: Path) -> None:
    leave(folder, "n1", proof(1, 1))
    folder.chmod(0o1777)
    (one,), problem = heard(folder)
    assert "others may write it" in problem
    assert (one.record, one.record_words) == (None, problem)
    _, problem = heard(folder / "none")
    assert "No such file" in problem


def test_names_of_nodes_lead_nowhere_else(folder: Path) -> None:
    leave(folder.parent, "n1", proof(1, 1))
    (one,), _ = heard(folder, replace(dead(), node="../n1"))
    assert one.record_words == "no name of a file"


def test_a_server_that_hangs_holds_up_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_folder, "read_record", lambda *_: time.sleep(60.0))
    monkeypatch.setattr(evidence_folder, "READ_SECONDS", 0.2)
    began = time.monotonic()
    (one,), problem = heard(folder)
    assert time.monotonic() - began < 5.0
    assert "no answer in 0.2 s" in problem
    assert one.record_words == problem


def test_deaths_of_days_ago_and_no_folder_are_not_asked(folder: Path) -> None:
    assert heard(folder, now=AT + 2 * 86400.0) == ([], "")
    assert EvidenceFolder("").hear([dead()], NOW, 0) == []


@pytest.mark.parametrize(
    ("setting", "uid"), [("slurm(64030)", 64030), ("root(0)", 0), ("", None), ("x(y)", None),
                         ("a(1)b", None)]
)  # fmt: skip
def test_the_number_of_slurm_user(setting: str, uid: int | None) -> None:
    assert slurm_user_id(setting) == uid
