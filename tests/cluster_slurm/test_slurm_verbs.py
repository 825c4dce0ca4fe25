"""``seawall cluster ... --slurm`` as a person types it, by a folder that a controller left."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.cluster_slurm.test_hold_plan import active, ledger

import seawall
from seawall.cluster.judge.node_death import EvidenceKind
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.slurm.job_quarantine import JobHold
from seawall.cluster.slurm.slurm_state import SlurmStateFolder

SOURCE = Path(seawall.__file__).parent
HOSTILE = "\x1b[31mred\nJobId=1 " + "x" * 500


def seawall_slurm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seawall", "cluster", *words, "--slurm"], capture_output=True,
        text=True, check=False, env={"PYTHONPATH": str(SOURCE.parent), "PATH": "/nowhere"},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty suspects, each with a name that steers terminals."""
    with SlurmStateFolder(str(tmp_path)).change() as state:
        state.cluster, state.watched_since, state.polled_at = "big", 1.0, 2000.0
        state.deaths = list(ledger(4).deaths)
        state.message = "no answer of Slurm"
        for number in range(20):
            one = active(label=HOSTILE, approved_by="root")
            one = one.with_hold(JobHold("7", "hold", 1.0, 90, "done"))
            name = f"alice-{number:08}"
            state.quarantines[name] = replace(one, name=name, state="Proposed")
    return tmp_path


def test_suspects_as_a_document_are_as_the_schema_says(folder: Path) -> None:
    done = seawall_slurm("suspects", f"--state={folder}", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    schema = json.loads((SOURCE / "views/schemas/slurm-suspects.json").read_text())
    jsonschema.validate(document, schema)
    assert len(document["suspects"]) == 20
    assert document["suspects"][0]["job_name"] == HOSTILE
    assert not document["is_watched"]


def test_suspects_as_text_fit_on_a_screen_and_steer_nothing(folder: Path) -> None:
    text = seawall_slurm("suspects", f"--state={folder}").stdout
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in text
    assert "NOBODY WATCHES" in text
    assert "10 more" in text


def test_suspects_say_of_which_dead_nodes_a_record_was_read_and_why_of_no_other(
    folder: Path,
) -> None:
    text = seawall_slurm("suspects", f"--state={folder}").stdout
    assert "records of 4 of 4 dead nodes: no folder is named" in " ".join(text.split())
    with SlurmStateFolder(str(folder)).change() as state:
        state.evidence = "/shared/seawall"
        first, second, *rest = state.deaths
        named = RecordLine(EvidenceKind.PROVED, (first.jobs[0].run,))
        state.deaths = [
            replace(first, record=(named,)), replace(second, record=()),
            *(replace(one, record_words="it left none\x1b[31m") for one in rest),
        ]  # fmt: skip
        one = active()
        state.quarantines = {one.name: replace(one, key=first.jobs[0].keys[1])}
    done = seawall_slurm("suspects", f"--state={folder}")
    text = " ".join(done.stdout.split())
    assert "records of 2 of 4 dead nodes: n3, n4: it left none" in text
    assert "named in the records of 1 of 4 nodes" in text
    assert "\x1b" not in done.stdout
    document = json.loads(seawall_slurm("suspects", f"--state={folder}", "--json").stdout)
    assert (document["evidence_folder"], document["records"]) == ("/shared/seawall", 2)
    assert document["suspects"][0]["records_accuse"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("approve", "nobody"), "no such quarantine"),
        (("release", "nobody"), "no such quarantine"),
        (("quarantine", "7"), "Slurm cannot be asked"),
        (("quarantine", "7", "--mode=gate"), "--mode is of Kubernetes"),
        (("quarantine", "7", "--yes"), "only after a conviction"),
        (("undo", "--all"), "Slurm cannot be asked"),
        (("controller", "--act"), "--act is of Kubernetes"),
        (("controller", "--policy=/nowhere/slurm.toml"), "no such file"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    words: tuple[str, ...], said: str, folder: Path
) -> None:
    done = seawall_slurm(*words, f"--state={folder}")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_approval_says_that_nobody_carries_it_out(folder: Path) -> None:
    done = seawall_slurm("approve", "alice-00000003", f"--state={folder}", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "NOTHING WAS WRITTEN" in done.stdout
    with SlurmStateFolder(str(folder)).change() as state:
        assert state.quarantines["alice-00000003"].state == "Proposed"
        state.is_dry_run = False
    done = seawall_slurm("approve", "alice-00000003", f"--state={folder}")
    assert "NOBODY CARRIES IT OUT" in done.stdout
    assert SlurmStateFolder(str(folder)).read().quarantines["alice-00000003"].state == "Active"


def test_a_folder_that_is_not_ours_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    done = seawall_slurm("suspects", f"--state={tmp_path}")
    assert done.returncode == 2
    assert "not written by this release" in done.stderr


def test_a_persons_order_has_neither_score_nor_mark(folder: Path) -> None:
    with SlurmStateFolder(str(folder)).change() as state:
        order = replace(active(), name="bob-1", verdict="none", score_log10=0.0)
        state.quarantines = {"bob-1": order}
    (line,) = [
        line for line in seawall_slurm("suspects", f"--state={folder}").stdout.splitlines()
        if line.startswith("bob-1 ")
    ]  # fmt: skip
    assert line.split()[2:4] == ["-", "-"]


@pytest.mark.parametrize("option", ["--from=dump.json", "--kubeconfig=x", "--context=x"])
@pytest.mark.parametrize("verb", ["why", "suspects"])
def test_what_only_kubernetes_has_is_refused(folder: Path, verb: str, option: str) -> None:
    words = (verb, f"--state={folder}", option)
    done = seawall_slurm(*words)
    assert done.returncode == 2
    assert f"{option.partition('=')[0]} is of Kubernetes" in done.stderr
