"""Storms, failing API servers, and the list of what was done."""

from typing import Any

import pytest
from tests.cluster_actor.families import NOW

from seawall.cluster.actor.action_brakes import ApiErrors, SilenceStorm
from seawall.cluster.actor.action_log import with_action, with_undone
from seawall.cluster.objects.quarantine_actions import (
    ACTIONS_MOST,
    ActorStatus,
    QuarantineAction,
)


@pytest.mark.parametrize(
    ("fallen", "apart", "nodes", "is_storm"),
    [(9, 1.0, 100, False), (10, 1.0, 100, True), (10, 10.0, 100, False), (29, 1.0, 1000, False),
     (30, 1.0, 1000, True)],
)  # fmt: skip
def test_many_nodes_at_once_are_a_storm(
    fallen: int, apart: float, nodes: int, *, is_storm: bool
) -> None:
    storm = SilenceStorm()
    for number in range(fallen):
        storm.fall(f"node-{number}", NOW + number * apart)
    after = NOW + fallen * apart
    assert bool(storm.why(after, nodes)) == is_storm
    if is_storm:
        assert storm.why(after + 599, nodes), "ten minutes after the last one"
        assert not storm.why(after + 601, nodes)


def test_one_node_that_comes_and_goes_is_no_storm() -> None:
    storm = SilenceStorm()
    for number in range(30):
        storm.fall("flapping", NOW + number)
    assert not storm.why(NOW + 30, 100)


def test_a_tenth_of_failed_requests_within_a_minute_is_a_brake() -> None:
    errors = ApiErrors()
    counts = {("get", "pods", "200"): 100, ("patch", "pods", "409"): 50}
    errors.take(counts, 0.0)
    errors.take({**counts, ("get", "pods", "unreachable"): 5}, 10.0)
    assert not errors.why(), "five are too few to say"
    bad = {("get", "pods", "unreachable"): 5, ("get", "pods", "503"): 6}
    errors.take({**counts, **bad}, 20.0)
    assert "11 of 11" in errors.why()
    counts = {("get", "pods", "200"): 200, ("patch", "pods", "409"): 50}
    errors.take({**counts, **bad}, 30.0)
    assert not errors.why(), "11 of 111"
    errors.take({**counts, **bad, ("get", "pods", "fenced"): 100}, 200.0)
    assert not errors.why()


def action(number: int, lever: str = "hold", result: str = "done", **more: Any) -> QuarantineAction:
    kind = "Pod" if lever != "suspend" else "Job"
    fields = {"path": "/spec/x", "before": 300, "after": None, **more}
    return QuarantineAction(lever, kind, "ml", f"one-{number}", f"uid-{number}", NOW, result,
                            **fields)  # fmt: skip


def test_owners_stay_in_the_list_and_pods_make_room() -> None:
    status = with_action(ActorStatus(), action(0, "suspend"))
    for number in range(1, 100):
        status = with_action(status, action(number))
    assert len(status.actions) == ACTIONS_MOST
    assert status.actions[0].lever == "suspend"
    assert status.actions[-1].name == "one-99"


def test_two_steps_of_one_change_are_one_line_with_the_first_value() -> None:
    status = with_action(ActorStatus(), action(1))
    status = with_action(status, action(1, before=None, after=1800))
    (line,) = status.actions
    assert (line.before, line.after) == (300, 1800)
    assert with_action(status, line) is status


def test_what_was_refused_gives_way_to_what_was_done_and_that_to_nothing() -> None:
    status = with_action(ActorStatus(), action(1, result="refused", problem="brake"))
    status = with_action(status, action(1))
    assert [one.result for one in status.actions] == ["done"]
    undone = with_undone(status, "uid-1", "/spec/x", NOW + 9)
    (line,) = undone.actions
    assert (line.result, line.undone_seconds) == ("undone", NOW + 9)
    (line,) = with_undone(status, "uid-1", "/spec/x", NOW + 9, "a webhook").actions
    assert (line.result, line.problem) == ("done", "a webhook")
    again = with_action(undone, action(1))
    assert [one.result for one in again.actions] == ["undone", "done"], "it was done once more"
