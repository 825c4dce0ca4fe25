"""The loop of ``--do``: what is looked at again, skipped, and never forgotten; nothing is done."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.test_gpu_repair_plans import DRIVERS, LACKING, WHOLE, broken, facts, planned
from tests.accounts.test_gpu_repair_whose import RDMA

from seawall.accounts.devices.repairs.repair_plan import plan
from seawall.accounts.devices.repairs.step import RepairPlan, RepairScope
from seawall.actions.device_repairs import repair_steps
from seawall.actions.device_repairs.repair_run import RepairRun, RepairStepOutcome
from seawall.actions.device_repairs.repair_steps import do
from seawall.host.host import Unread

BOTH = planned(broken("F1"), plugins=(LACKING,))
POD = planned(broken("F1"), plugins=(LACKING,), unseen=("systemd's units: no answer",))
DONE = plan(facts(drivers=DRIVERS, plugins=(WHOLE,)), RepairScope("workload", BOTH.scope.workload))


class Scripted(RepairRun):
    """Looks that are told beforehand; the last one stays."""

    def __init__(self, *looks: RepairPlan | Unread, seconds: float = 60) -> None:
        super().__init__(BOTH.scope, time.monotonic() + seconds, None, print, None)  # type: ignore[arg-type]
        self.looks = list(looks)

    def plan(self) -> RepairPlan | Unread:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


def told(
    repair: RepairRun, wanted: Sequence[int], *, is_all: bool = False, first: RepairPlan = BOTH
) -> list[tuple[int, str, str]]:
    return [
        (result.step.number, result.state, result.words)
        for result in do(repair, first, wanted, is_all=is_all)
    ]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Nothing is done here either: what would be is counted."""
    done: list[int] = []

    def perform(_: RepairRun, step: Any) -> RepairStepOutcome:
        done.append(step.number)
        return RepairStepOutcome("done", "it is", is_verified=True)

    monkeypatch.setattr(repair_steps, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(repair_steps, "_perform", perform)
    return done


def test_what_is_not_needed_any_more_is_skipped(no_pause: list[int]) -> None:
    found = told(Scripted(DONE), (6, 7))
    assert [(number, state) for number, state, _ in found] == [(6, "skipped"), (7, "skipped")]
    assert no_pause == []


def test_a_look_that_sees_less_is_no_proof(no_pause: list[int]) -> None:
    """Who does not see the step must not take it for done: it is looked for again, then told."""
    blind = planned(unseen=("/proc/devices, /proc/devices: no_answer",), what="host")
    found = told(Scripted(blind), (6, 7))
    words = "could not look again: /proc/devices, /proc/devices: no_answer"
    assert found == [(6, "failed", words), (7, "failed", words)]
    gone = Unread("/sys/fs/cgroup", "no_answer")
    assert {state for _, state, _ in told(Scripted(gone), (6, 7))} == {"failed"}
    assert told(Scripted(blind, gone, BOTH), (6,))[0][:2] == (6, "done")
    assert no_pause == [6]


def test_a_gap_that_was_there_before_is_none() -> None:
    assert told(Scripted(POD), (6,), first=POD)[0][:2] == (6, "done")


def test_what_the_time_did_not_suffice_for_is_told(no_pause: list[int]) -> None:
    found = told(Scripted(BOTH, seconds=-1), (6, 7, 9))
    assert [(number, state) for number, state, _ in found] == [
        (6, "failed"), (7, "failed"), (9, "failed"),
    ]  # fmt: skip
    assert no_pause == []


def test_each_is_done_once_and_out_of_turn_not_at_all(no_pause: list[int]) -> None:
    """The plugin's step stays in the plan here: it is not restarted again and again."""
    found = told(Scripted(BOTH), (6, 7, 8, 9))
    assert [(number, state) for number, state, _ in found] == [
        (6, "done"), (7, "refused"), (8, "refused"), (9, "refused"),
    ]  # fmt: skip
    assert found[1][2].startswith("first 6, or it is for nothing")
    assert no_pause == [6]


def test_all_is_what_seawall_does_and_nothing_else(no_pause: list[int]) -> None:
    """Somebody else restarted the plugin meanwhile."""
    after = planned(broken("F1"), plugins=(replace(LACKING, lacks=()),))
    found = told(Scripted(BOTH, after), sorted(repair_steps.doable()), is_all=True)
    assert [(number, state) for number, state, _ in found] == [(6, "skipped"), (7, "done")]
    assert no_pause == [7]


# --- a plugin that is not as it should be ------------------------------------------------------


@pytest.mark.parametrize("others", [(), (RDMA,)])
def test_a_plugin_that_crashes_is_not_taken_for_mended(
    no_pause: list[int], others: tuple[Any, ...]
) -> None:
    """It is in no table then; another class's is.  The tenant's pod stays."""
    crashed = planned(broken("F1"), plugins=others)
    found = told(Scripted(crashed), (6, 7))
    assert [(number, state) for number, state, _ in found] == [
        (6, "refused"), (6, "skipped"), (7, "refused"),
    ]  # fmt: skip
    assert "its container has ended" in found[1][2]
    every = do(Scripted(crashed), BOTH, {6, 7}, is_all=True)
    assert [(one.state, one.is_verified) for one in every] == [
        ("skipped", False), ("refused", False),
    ]  # fmt: skip
    assert no_pause == []


def test_a_plugin_alone_that_crashes_is_not_verified() -> None:
    first, gone = planned(what="plugin", plugins=(LACKING,)), planned(what="plugin")
    served = planned(broken("F1"), what="plugin", plugins=(LACKING,))
    for plan_of_first in (first, served):
        (found,) = [
            one for one in do(Scripted(gone), plan_of_first, {6}, is_all=False)
            if one.step.kind == "plugin"
        ]  # fmt: skip
        assert (found.state, found.is_verified) == ("skipped", False)


@pytest.mark.parametrize("state", ["failed", "refused"])
def test_no_pod_is_deleted_after_a_plugin_that_was_not_restarted(
    monkeypatch: pytest.MonkeyPatch, state: Any
) -> None:
    """Even where the plan of that moment knows of nothing in the way."""
    monkeypatch.setattr(
        repair_steps,
        "_perform",
        lambda *_: RepairStepOutcome(state, "no new one came"),
    )
    after = planned(broken("F1"), plugins=(WHOLE,))
    found = told(Scripted(BOTH, after), (6, 7))
    assert [(number, one) for number, one, _ in found] == [(6, state), (7, "refused")]
    assert found[1][2] == "6 was not done, and it may be for nothing: no new one came"
