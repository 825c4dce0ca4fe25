"""What was done, what is held, who approved it and what comes next, in `cluster why`."""

import pytest
from tests.cluster_pages.cluster_dumps import START
from tests.cluster_pages.quarantined_dumps import NOW, acted_dump, action

from seawall.cluster.objects.action_levers import ActionApproval
from seawall.cluster.objects.policy_actions import PolicyActions, TrippedBrake
from seawall.cluster.objects.quarantine_actions import QuarantineCanary
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState
from seawall.cluster.pages.cluster_html import (
    ClusterReportOrigin,
    cluster_html,
    quarantine_lane,
)
from seawall.cluster.pages.cluster_reading import cluster_reading
from seawall.cluster.pages.cluster_tables import cluster_suspects, suspects_lines
from seawall.cluster.pages.cluster_why_page import ClusterWhyPage, cluster_why
from seawall.cluster.pages.cluster_why_text import why_lines
from seawall.views.terminal import Console

ACTIONS = (
    action("hold", "trainer-1"), action("hold", "trainer-2"),
    action("suspend", "trainer", kind="JobSet", path="/spec/suspend", before=False, after=True),
    action("stopCopies", "trainer-3"),
    action("stopCopies", "trainer-4", result="refused", problem="quarantines per hour: no more"),
)  # fmt: skip


def page_of(
    whole: dict, kubernetes: tuple[int, int] | None = (1, 37), subject: str = ""
) -> ClusterWhyPage:
    reading = cluster_reading(whole["items"], "prod", NOW, {}, kubernetes)
    assert reading.unseen == ()
    return cluster_why(reading, subject)


def words_of(page: ClusterWhyPage) -> str:
    lines = list(why_lines(page, Console(width=80), whole=False))
    assert len(lines) <= 23, "\n".join(lines)
    assert max(map(len, lines)) <= 80
    return " ".join(" ".join(lines).split())


def test_it_says_what_was_done_who_approved_it_and_what_was_refused() -> None:
    page = page_of(acted_dump(ACTIONS))
    assert page.done == (
        "active, mode suspend, approved by alice: 2 pods held; JobSet ml/trainer suspended; 1 pod "
        "deleted; to delete 1 pod - REFUSED: quarantines per hour: no more"
    )
    words = words_of(page)
    assert "ACTIVE: Deployment ml/trainer kills nodes" in words
    assert "its 2 held pods may move from 10:45:12Z (in 29 min) on" in words
    assert "it ends by itself" in words
    assert "is moved to another node" not in words
    assert "take back seawall cluster release" in words
    assert page.commands == (f"seawall cluster release {page.suspect.name}",)


def test_a_hold_that_ended_by_itself_is_held_no_more() -> None:
    old = action("hold", "trainer-1", minutes=-20.0)
    assert "held pod" not in " ".join(page_of(acted_dump((old,))).outlook)
    undone = action("hold", "trainer-1", result="undone", undone_seconds=NOW)
    page = page_of(acted_dump((undone,)))
    assert "held pod" not in " ".join(page.outlook)
    assert "undone since" in page.done


def test_a_dry_run_is_no_deed() -> None:
    rows = (action("suspend", "trainer", kind="Job", result="dry-run", path="/spec/suspend"),)
    page = page_of(acted_dump(rows, policy=PolicyActions()))
    assert "to suspend Job ml/trainer - only told, in a dry run" in page.done
    assert "the actor only tells: the policy says dryRun" in page.outlook


def test_what_gitops_put_back_is_said() -> None:
    rows = (action("suspend", "trainer", kind="Job", result="reverted", path="/spec/suspend"),)
    assert "put back by somebody else, so that lever rests" in page_of(acted_dump(rows)).done


@pytest.mark.parametrize(("kubernetes", "expected"), [
    ((1, 37), "new pods of it wait until one has run 10 min under a guard"),
    ((1, 34), "new pods of it are REFUSED unless they ask for such nodes themselves"),
    (None, "before Kubernetes 1.36 they are refused"),
])  # fmt: skip
def test_before_136_probation_is_a_denial(
    kubernetes: tuple[int, int] | None, expected: str
) -> None:
    page = page_of(acted_dump(mode=QuarantineMode.PROBATION), kubernetes)
    assert expected in " ".join(page.outlook)


@pytest.mark.parametrize(("canary", "expected"), [
    (QuarantineCanary("t-1"), "which runs nowhere yet (it waits)"),
    (QuarantineCanary("t-1", "gpu-9", NOW - 60), "t-1 on gpu-9 (it runs)"),
    (QuarantineCanary("t-1", "gpu-9", NOW - 60), "wait until its canary has run 10 min: 10:25:"),
    (QuarantineCanary("t-1", "gpu-9", NOW, "passed"), "run only on nodes whose guard enforces"),
    (QuarantineCanary("t-1", "gpu-9", NOW, "killed"), "wait at a gate: its canary killed"),
])  # fmt: skip
def test_it_says_how_far_the_trial_is(canary: QuarantineCanary, expected: str) -> None:
    page = page_of(acted_dump(mode=QuarantineMode.PROBATION, canary=canary))
    assert expected in f"{page.done} {' '.join(page.outlook)}"


def test_it_says_why_nobody_is_tried() -> None:
    rows = (action("canary", "", result="refused", problem="unseen: no node is guarded"),)
    words = " ".join(page_of(acted_dump(rows, mode=QuarantineMode.PROBATION)).outlook)
    assert "none is tried: unseen: no node is guarded" in words


def test_it_says_who_has_to_speak_and_what_holds_the_actor_back() -> None:
    proposed = {"state": QuarantineState.PROPOSED, "mode": QuarantineMode.TELL, "approved_by": ""}
    waits = page_of(acted_dump(**proposed))
    assert "the actor waits for somebody's word: seawall cluster approve" in waits.outlook
    assert waits.commands == (f"seawall cluster approve {waits.suspect.name}",)
    observe = PolicyActions(dry_run=False, approval=ActionApproval.OBSERVE)
    assert any("the policy says observe" in one
               for one in page_of(acted_dump(**proposed, policy=observe)).outlook)  # fmt: skip
    alone = page_of(acted_dump(**proposed, has_actor=False))
    assert alone.commands[0].startswith("kubectl -n ml scale deployment trainer")
    braked = page_of(acted_dump(brake=True))
    assert any(one.startswith("the brake is on") for one in braked.outlook)
    storm = TrippedBrake("storm", START, "40 nodes silent")
    assert any("brake storm since" in one for one in page_of(acted_dump(tripped=(storm,))).outlook)
    nobody = page_of(acted_dump(has_actor=False))
    assert "NOBODY CARRIES IT OUT: no actor holds its lease" in nobody.outlook


def test_a_released_one_says_what_stays_lost() -> None:
    page = page_of(acted_dump(ACTIONS, state=QuarantineState.RELEASED), subject="ml/trainer")
    assert page.done.startswith("it was released: 2 pods held")


def test_hostile_words_steer_no_terminal() -> None:
    rows = (action("\x1b[2Jhold", "p", result="\x1b]0;x\x07", problem="\x1b[31m"),)
    words = words_of(page_of(acted_dump(rows, approved_by="eve\x1b[2J")))
    assert words.isprintable()


def test_suspects_show_state_and_when_it_ends() -> None:
    for state, word in ((QuarantineState.ACTIVE, "ACTIVE"), (QuarantineState.CANARY, "CANARY")):
        whole = acted_dump(state=state)
        page = cluster_suspects(cluster_reading(whole["items"], "prod", NOW, {}))
        lines = list(suspects_lines(page, Console(width=80), whole=False))
        [row] = [line for line in lines if line.startswith("ml/trainer")]
        assert word in row
        assert row.endswith("in 24 h")
        assert max(map(len, lines)) <= 80
    whole = acted_dump(state=QuarantineState.RELEASED)
    page = cluster_suspects(cluster_reading(whole["items"], "prod", NOW, {}))
    [row] = [one for one in suspects_lines(page, Console(width=80), whole=False)
             if one.startswith("ml/trainer")]  # fmt: skip
    assert "RELEASED" in row
    assert row.endswith(" -")


def test_the_page_has_a_lane_for_each_quarantine_and_each_hold() -> None:
    whole = acted_dump(ACTIONS)
    reading = cluster_reading(whole["items"], "prod", NOW, {})
    [suspect] = [one for one in reading.suspects if one.workload.name == "trainer"]
    lane = quarantine_lane(suspect, reading)
    assert [span.kind for span in lane.spans] == ["active", "held", "held"]
    assert all(span.first == START + 900.0 and span.last == NOW for span in lane.spans)
    page = cluster_html(reading, ClusterReportOrigin("seawall", "1")).decode()
    assert page.count('class="held"') == 3, "two holds, and one in the legend"
    assert "What was done" in page
    assert "quarantines per hour: no more" in page
    calm = cluster_html(
        cluster_reading(acted_dump()["items"], "prod", NOW, {}), ClusterReportOrigin("seawall", "1")
    ).decode()
    assert 'class="held"' not in calm
    assert "What was done" not in calm


def test_a_persons_quarantine_of_whom_nobody_judged_has_a_story_too() -> None:
    whole = acted_dump()
    for item in whole["items"]:
        if item["kind"] == "WorkloadQuarantine":
            item["status"] = {"approvedBy": "alice"}
            item["spec"] |= {"deaths": [], "key": {"level": 1, "value": "another"},
                             "reason": "it eats nodes"}  # fmt: skip
    page = page_of(whole, subject="ml/trainer")
    assert page.headline == (
        "Deployment ml/trainer: a person's own word (it eats nodes); no node is known to have died "
        "with it"
    )
    assert "it eats nodes" in words_of(page)
    assert "no node is known" in words_of(page_of(whole))
