"""Which ends of a node are deaths, and which were meant."""

import pytest
from tests.cluster_slurm.slurm_samples import BOOT, LATER, node

from seawall.cluster.actor.action_brakes import SilenceStorm
from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.slurm.silent_nodes import NodeTurn, NodeTurnEvent, SilentNodes
from seawall.cluster.slurm.slurm_observer import OUTAGE_LEAST

DOWN = "DOWN+NOT_RESPONDING"


def play(*states: str | tuple[str, str]) -> list[NodeTurnEvent]:
    """One node, a look each 30 s; a pair is a state and the time of the boot."""
    nodes, events = SilentNodes(), []
    for number, state in enumerate(states):
        word, boot = state if isinstance(state, tuple) else (state, BOOT)
        events += nodes.see({"n1": node("n1", word, boot)}, 30.0 * number)
    return events


def turns(*states: str | tuple[str, str]) -> list[NodeTurn]:
    return [event.turn for event in play(*states)]


def test_a_node_that_falls_silent_and_is_given_up_died_when_it_fell_silent() -> None:
    events = play("MIXED", "MIXED+NOT_RESPONDING", "MIXED+NOT_RESPONDING", DOWN, DOWN)
    assert [event.turn for event in events] == [NodeTurn.SILENT, NodeTurn.DEATH]
    assert events[-1].since_seconds == 30.0
    assert events[-1].kind is DeathKind.SILENT


def test_between_two_looks_both_are_seen_at_once() -> None:
    assert turns("MIXED", DOWN) == [NodeTurn.SILENT, NodeTurn.DEATH]


@pytest.mark.parametrize(
    "before",
    ["IDLE+DRAIN", "MIXED+DRAIN", "IDLE+MAINTENANCE", "IDLE+REBOOT_REQUESTED",
     "DOWN+REBOOT_ISSUED", "IDLE+POWERING_DOWN", "IDLE+POWERED_DOWN", "IDLE+POWERING_UP", "FUTURE",
     "DOWN", "IDLE+FAIL"],
)  # fmt: skip
def test_what_was_meant_is_no_death(before: str) -> None:
    assert NodeTurn.DEATH not in turns("IDLE", before, f"{before}+NOT_RESPONDING", DOWN)


def test_a_drain_that_is_seen_with_the_silence_is_believed() -> None:
    assert turns("IDLE", "DOWN+DRAIN+NOT_RESPONDING") == [NodeTurn.SILENT, NodeTurn.PLANNED]


def test_a_drain_after_the_silence_excuses_nobody() -> None:
    seen = turns("IDLE", "IDLE+NOT_RESPONDING", "DOWN+DRAIN+NOT_RESPONDING")
    assert seen == [NodeTurn.SILENT, NodeTurn.DEATH]


def test_a_node_that_backfill_has_plans_for_may_die() -> None:
    assert turns("IDLE+PLANNED", DOWN) == [NodeTurn.SILENT, NodeTurn.DEATH]


def test_a_node_that_a_new_slurmctld_never_heard_of_accuses_nobody() -> None:
    """A site whose power comes back: slurmctld is up before its nodes."""
    seen = turns("MIXED", "UNKNOWN", "UNKNOWN+NOT_RESPONDING", DOWN)
    assert seen == [NodeTurn.SILENT, NodeTurn.PLANNED]


def test_a_node_that_was_gone_before_anybody_watched_accuses_nobody() -> None:
    assert turns(DOWN, DOWN) == [NodeTurn.SILENT, NodeTurn.UNSEEN]


def test_a_silence_that_ends_in_time_is_nothing() -> None:
    assert turns("MIXED", "MIXED+NOT_RESPONDING", "MIXED") == [NodeTurn.SILENT, NodeTurn.BACK]


def test_a_node_that_answers_again_without_a_boot_never_died() -> None:
    assert turns("MIXED", DOWN, "DOWN")[-1] is NodeTurn.RETRACTED
    assert turns("MIXED", DOWN, ("IDLE", LATER))[-1] is NodeTurn.BACK


def test_a_boot_that_nobody_ordered_is_a_reset() -> None:
    events = play("MIXED", ("MIXED", LATER))
    assert [event.kind for event in events] == [DeathKind.RESET]
    assert turns("MIXED+REBOOT_REQUESTED", ("IDLE", LATER)) == []


def test_the_time_of_a_boot_is_reckoned_anew_and_a_second_off() -> None:
    """slurmd takes it from its uptime at each registration."""
    off = BOOT.replace("07:02:50", "07:02:52")
    assert turns("MIXED", ("MIXED", off), "MIXED") == []
    assert turns("MIXED", DOWN, ("IDLE", off))[-1] is NodeTurn.RETRACTED


def test_a_controller_that_begins_anew_remembers_who_was_silent() -> None:
    first, second, late = SilentNodes(), SilentNodes(), SilentNodes()
    first.see({"n1": node("n1")}, 0.0)
    first.see({"n1": node("n1", "MIXED+NOT_RESPONDING")}, 30.0)
    second.recall(first.document(), 60.0)
    events = second.see({"n1": node("n1", DOWN), "n2": node("n2", DOWN)}, 90.0)
    assert [(event.row.name, event.turn, event.since_seconds) for event in events] == [
        ("n1", NodeTurn.DEATH, 30.0), ("n2", NodeTurn.SILENT, 90.0), ("n2", NodeTurn.DEATH, 90.0),
    ]  # fmt: skip
    late.recall({}, 4000.0)
    events = late.see({"n2": node("n2", DOWN)}, 4000.0)
    assert events[-1].turn is NodeTurn.UNSEEN


def test_looks_are_quick_while_a_silent_node_is_not_given_up() -> None:
    nodes = SilentNodes()
    seen = []
    for state in ("MIXED", "MIXED+NOT_RESPONDING", DOWN):
        nodes.see({"n1": node("n1", state)}, 0.0)
        seen.append(nodes.awaits_end)
    assert seen == [False, True, False]


def test_what_is_no_memory_is_not_believed() -> None:
    nodes = SilentNodes()
    nodes.recall([1, 2], 1.0)
    nodes.recall({"n1": {"since": "x"}}, 1.0)
    assert not nodes.see({"n1": node("n1")}, 1.0)


def test_three_nodes_that_fall_together_are_an_outage_for_ten_minutes() -> None:
    brake = SilenceStorm(OUTAGE_LEAST, "together")
    for number in range(3):
        assert not brake.why(100.0, 40, 60.0)
        brake.fall(f"n{number}", 100.0)
    assert "3 nodes" in brake.why(101.0, 40, 60.0)
    assert brake.why(650.0, 40, 60.0)
    assert not brake.why(800.0, 40, 60.0)


def test_deaths_one_after_the_other_are_no_outage() -> None:
    brake = SilenceStorm(OUTAGE_LEAST, "together")
    for number in range(5):
        brake.fall(f"n{number}", 100.0 * number)
        assert not brake.why(100.0 * number, 40, 60.0)
