"""``why --slurm``: who killed a node, why a job is held, why nobody is; from the folder alone."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.cluster_slurm.slurm_samples import job
from tests.cluster_slurm.test_hold_plan import active, death, ledger

import seawall
from seawall.cluster.slurm.job_quarantine import HoldResult, JobHold
from seawall.cluster.slurm.slurm_state import SlurmState
from seawall.cluster.slurm.slurm_suspects_page import slurm_suspects
from seawall.cluster.slurm.slurm_why_document import SLURM_WHY
from seawall.cluster.slurm.slurm_why_page import SlurmWhyPage, slurm_why
from seawall.cluster.slurm.slurm_why_text import slurm_why_lines
from seawall.views.document import render
from seawall.views.terminal import Console

SCHEMA = json.loads((Path(seawall.__file__).parent / "views/schemas/slurm-why.json").read_text())
NOW = 4000.0


def hold(target: str = "7", result: HoldResult = "done") -> JobHold:
    return JobHold(target, "hold", 3000.0, 5, result)


def state(*holds: JobHold, label: str = "train-7", **more: object) -> SlurmState:
    """Four nodes died with array 7 of alice's, one more with nobody suspected on it."""
    one = active(holds=holds, label=label, expires_seconds=9000.0)
    deaths = [*ledger(4, unit=7).deaths, death(9, 3500.0, [job(900, uid=9, user="bob", name="x")])]
    made = SlurmState(
        cluster="c", watched_since=0.0, polled_at=NOW - 1.0, is_dry_run=False, deaths=deaths,
        quarantines={one.name: one},
    )  # fmt: skip
    for name, value in more.items():
        setattr(made, name, value)
    return made


def why(subject: str, made: SlurmState, *, watched: bool = True) -> SlurmWhyPage:
    page = slurm_why(slurm_suspects(made, "/f", NOW, has_controller=watched), made, subject)
    jsonschema.validate(json.loads(render(SLURM_WHY.alone(page))), SCHEMA)
    lines = list(slurm_why_lines(page, Console(width=80, colour=False), whole=False))
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    return page


def test_who_kills_nodes_is_the_story_without_a_name() -> None:
    page = why("", state(hold()))
    assert page.answer == "killer"
    assert page.headline.startswith("train-7 of alice kills nodes: 4 nodes dead")
    assert page.done == "Active, by the policy's word: held: job 7"
    assert page.commands[0].startswith("seawall cluster release alice-")
    assert len(page.deaths) == 4


@pytest.mark.parametrize(
    ("node", "words"),
    [("n2", "which kills nodes"), ("n9", "nobody is suspected of it")],
)
def test_who_killed_this_node(node: str, words: str) -> None:
    page = why(node, state(hold()))
    assert (page.answer, words in page.headline) == ("node", True)


@pytest.mark.parametrize(
    ("asked", "target", "result", "answer"),
    [
        ("7", "7", "done", "held"),
        ("slurm:7@alice", "7", "done", "held"),
        ("7_12", "7", "done", "held"),
        ("7_12", "7_[10-20%4]", "done", "held"),
        ("7_21", "7_[10-20%4]", "done", "suspect"),
        ("101", "7", "done", "held"),  # the number that a task of the array had
        ("7", "7", "changed", "released"),
        ("7", "8", "done", "suspect"),
        ("900", "7", "done", "innocent"),
        ("12", "7", "done", "unknown"),
    ],
)
def test_why_my_job_is_held_or_is_not(
    asked: str, target: str, result: HoldResult, answer: str
) -> None:
    assert why(asked, state(hold(target, result))).answer == answer


def test_why_nobody_is_held_is_said_whole() -> None:
    words = "the active slurmctld is on a-host-with-a-long-name.example, not on " + "b" * 40
    made = state(message=words)
    (name,) = made.quarantines
    made.quarantines[name] = replace(made.quarantines[name], state="Proposed", why_not="waits")
    page = why("", made)
    assert page.outlook[0] == f"nobody is held just now: {words}"
    assert page.commands[0].startswith("seawall cluster approve alice-")
    text = "".join(slurm_why_lines(page, Console(width=80, colour=False), whole=False))
    assert "b" * 40 in text
    assert "waits" in text


def test_nobody_is_suspected_and_nobody_watches_are_two_answers() -> None:
    assert why("", state(quarantines={})).answer == "deaths"
    blind = why("", state(quarantines={}, deaths=[]), watched=False)
    assert (blind.answer, "NOBODY WATCHES" in blind.headline) == ("none", True)
    assert "no node died" in why("", state(quarantines={}, deaths=[])).headline


def test_a_persons_order_is_no_suspicion_and_stands_behind_one() -> None:
    made = state()
    order = replace(
        active(), name="bob-1", user="bob", verdict="none", score_log10=0.0, nodes=(), deaths=(),
        approved_by="root", why_not="root's own word: fills /scratch",
    )  # fmt: skip
    made.quarantines = {"bob-1": order, **made.quarantines}
    assert "kills nodes" in why("", made).headline
    page = why("bob-1", made)
    assert page.headline == "train-7 of bob is in quarantine by a person's order"
    text = "\n".join(slurm_why_lines(page, Console(width=80, colour=False), whole=False))
    assert "10^" not in text
    assert "fills /scratch" in text


def test_what_a_user_wrote_steers_no_terminal_and_fills_no_screen() -> None:
    page = why("", state(hold(), label="\x1b[2J\n" + "x" * 5000))
    assert page.answer == "killer"
