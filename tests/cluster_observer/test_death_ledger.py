"""The ledger: whatever the order in which objects come, it says what one that reads them says."""

import random
from dataclasses import replace

import pytest

from seawall.cluster.judge.background_rate import background_rate
from seawall.cluster.judge.cluster_judge import ClusterJudge, JudgePolicy, SuspicionState
from seawall.cluster.judge.death_incidents import IncidentSize
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    EvidenceKind,
    NodeLoads,
    Stratum,
    WorkloadKey,
)
from seawall.cluster.objects.node_death_object import DeathPhase, DeathWorkload, NodeDeathObject
from seawall.cluster.objects.quarantine_actions import ActorStatus
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineMode,
    QuarantineState,
    WorkloadQuarantineObject,
)
from seawall.cluster.observer.death_ledger import IDLE_MOST, OBJECTS_MOST, DeathLedger
from seawall.cluster.observer.quarantine_plan import QuarantinePlan, QuarantinePlanner

HOUR = 3600.0
MONTH = 1_796_000_000.0
NOW = MONTH + 30 * 24 * HOUR
HOG = WorkloadKey(1, "u-hog")


def dead(number: int, hours: float, *names: str, **more: object) -> NodeDeathObject:
    """So many hours after a month without a death."""
    at = NOW + hours * HOUR
    workloads = tuple(
        DeathWorkload(
            BoundWorkload(
                f"{name}-{number}", (WorkloadKey(1, f"u-{name}"), WorkloadKey(2, f"ml/{name}")),
                (3, 3), "ml",
            ),
            f"{name}-{number}", "Deployment", name, f"u-{name}",
        )
        for name in names
    )  # fmt: skip
    death = NodeDeathObject(
        name=f"n{number}-b", node=f"n{number}", node_uid="", boot_id="b", kind=DeathKind.SILENT,
        stratum=Stratum("gpu", "6.8"), stratum_nodes=40, zone_nodes=40, domain=f"rack-{number}",
        heartbeat_seconds=at, observed_seconds=at + 50, phase=DeathPhase.CONFIRMED,
        workloads=workloads, loads=NodeLoads(3, 39, (3,) * 20),
    )  # fmt: skip
    return replace(death, **more)  # type: ignore[arg-type]


def ledger() -> DeathLedger:
    made = DeathLedger(JudgePolicy())
    made.set_policy(JudgePolicy(), MONTH)
    return made


def read_anew(of: DeathLedger) -> DeathLedger:
    other = ledger()
    for one in sorted(of.objects.values(), key=lambda one: one.name):
        other.put(one)
    return other


DEATHS = [dead(1, 0, "hog", "web"), dead(2, 0.5, "hog"), dead(3, 1, "hog", "db"), dead(4, 2, "db")]


@pytest.mark.parametrize("seed", range(6))
def test_the_order_in_which_they_come_does_not_matter(seed: int) -> None:
    deaths = list(DEATHS)
    random.Random(seed).shuffle(deaths)
    one = ledger()
    for death in deaths:
        one.put(death)
        one.judge([HOG])
    judge = ClusterJudge()
    judge.watch_from(MONTH)
    for death in DEATHS:
        judge.add(death.to_judge())
    keys = one.changed_keys()
    assert one.judge(keys) == judge.judge(keys)
    assert one.judge([HOG])[0].state is SuspicionState.CONVICTED


def test_records_and_retractions_are_as_if_they_had_always_been() -> None:
    one = ledger()
    for death in DEATHS:
        one.put(death)
    before = one.judge([HOG])[0].score_log10
    line = RecordLine(EvidenceKind.PROVED, ("hog-2",))
    one.put(replace(DEATHS[1], phase=DeathPhase.EXPLAINED, record=(line,)))
    assert HOG in one.changed_keys()
    assert one.judge([HOG])[0].score_log10 > before + 1
    one.put(replace(DEATHS[2], phase=DeathPhase.RETRACTED))
    one.remove("n1-b")
    assert one.judge([HOG, WorkloadKey(1, "u-db")]) == read_anew(one).judge(
        [HOG, WorkloadKey(1, "u-db")]
    )
    assert one.judge([HOG])[0].state is SuspicionState.SUSPECTED
    assert one.threshold_log10() == read_anew(one).threshold_log10()


def test_what_says_nothing_new_changes_nothing() -> None:
    one = ledger()
    one.put(DEATHS[0])
    one.changed_keys()
    one.put(DEATHS[0])
    one.put(replace(DEATHS[0], unseen=("a pod",)))
    one.put(dead(9, 3, "hog", phase=DeathPhase.PLANNED))
    assert one.changed_keys() == set()


def test_old_ones_go_and_planned_ones_go_first() -> None:
    one = ledger()
    for number in range(OBJECTS_MOST):
        one.put(dead(number, number * 0.001, "hog"))
    for number in range(IDLE_MOST + 5):
        one.put(dead(5000 + number, 2 + number * 0.001, phase=DeathPhase.PLANNED))
    names = one.outdated(NOW + 10 * HOUR)
    assert [name for name in names if name.startswith("n500")] == [
        f"n{5000 + n}-b" for n in range(5)
    ]
    assert len(one.objects) - len(names) == OBJECTS_MOST
    assert "n0-b" in names
    assert f"n{OBJECTS_MOST - 1}-b" not in names
    assert len(one.outdated(NOW + 31 * 24 * HOUR)) == len(one.objects)


# --- quarantines ---------------------------------------------------------------------------


def plan(
    of: DeathLedger, existing: dict[str, WorkloadQuarantineObject], at: float = NOW + 3 * HOUR
) -> QuarantinePlan:
    return QuarantinePlanner(of, existing, {}, 0.1).plan(of.changed_keys(), at)


def test_one_object_a_workload_that_only_goes_forward() -> None:
    one = ledger()
    one.put(DEATHS[0])
    assert plan(one, {}) == QuarantinePlan()
    one.put(DEATHS[1])
    first = plan(one, {})
    (suspect,) = first.create
    assert (suspect.workload.name, suspect.key) == ("hog", HOG)
    assert suspect.state is QuarantineState.SUSPECTED
    assert suspect.match.owner_uids == ("u-hog",)
    existing = {suspect.name: suspect}
    one.put(DEATHS[2])
    second = plan(one, existing)
    assert (second.create, second.delete) == ((), ())
    (proposed,) = second.update
    assert proposed.name == suspect.name
    assert (proposed.state, proposed.mode) == (QuarantineState.PROPOSED, QuarantineMode.TELL)
    assert proposed.match == suspect.match
    assert proposed.reason == "3 nodes died with it: n1, n2, n3"
    status = proposed.status
    assert status is not None
    assert status.verdict is SuspicionState.CONVICTED
    assert status.chance is not None
    # C(3, 3) / C(40, 3): all three dead nodes of 40 were the three that ran it.
    assert status.chance.probability == pytest.approx(1 / 9880)
    # Nothing new: nothing is written, by this one or by the next leader.
    existing = {proposed.name: proposed}
    assert plan(one, existing) == QuarantinePlan()
    later = read_anew(one)
    assert plan(later, existing) == QuarantinePlan()


def test_what_is_taken_back_begins_anew() -> None:
    one = ledger()
    for death in DEATHS[:3]:
        one.put(death)
    (proposed,) = plan(one, {}).create
    existing = {proposed.name: proposed}
    one.put(replace(DEATHS[2], phase=DeathPhase.RETRACTED))
    back = plan(one, existing)
    assert back.delete == (proposed.name,)
    assert [again.state for again in back.create] == [QuarantineState.SUSPECTED]
    existing = {again.name: again for again in back.create}
    one.put(replace(DEATHS[1], phase=DeathPhase.RETRACTED))
    assert plan(one, existing) == QuarantinePlan(delete=(proposed.name,))


def test_what_a_person_made_of_it_stays_but_for_the_verdict() -> None:
    one = ledger()
    for death in DEATHS[:2]:
        one.put(death)
    (suspect,) = plan(one, {}).create
    active = replace(
        suspect, state=QuarantineState.ACTIVE, mode=QuarantineMode.GATE, reason="by hand",
        expires_seconds=NOW, actor_status=ActorStatus(approved_by="ada"),
    )  # fmt: skip
    assert plan(one, {active.name: active}) == QuarantinePlan()
    one.put(DEATHS[2])
    found = plan(one, {active.name: active})
    assert (found.create, found.delete) == ((), ())
    (after,) = found.update
    assert replace(after, status=active.status) == active
    assert after.status is not None
    assert after.status.verdict is SuspicionState.CONVICTED


def test_what_ran_out_goes_and_comes_back_with_the_next_death_alone() -> None:
    one = ledger()
    for death in DEATHS[:2]:
        one.put(death)
    (suspect,) = plan(one, {}).create
    existing = {suspect.name: suspect}
    later = NOW + 40 * HOUR
    assert plan(one, existing, later) == QuarantinePlan(delete=(suspect.name,))
    assert plan(one, {}, later) == QuarantinePlan()
    one.put(dead(7, 39, "hog"))
    assert len(plan(one, {}, later).create) == 1


def test_who_was_released_is_left_alone_until_that_ends() -> None:
    one = ledger()
    for death in DEATHS[:2]:
        one.put(death)
    (suspect,) = plan(one, {}).create
    released = replace(suspect, state=QuarantineState.RELEASED, expires_seconds=NOW + 4 * HOUR)
    one.put(DEATHS[2])
    found = plan(one, {released.name: released})
    assert (found.create, found.delete) == ((), ())
    ended = plan(one, {released.name: released}, NOW + 5 * HOUR)
    assert ended.delete == (released.name,)
    one.put(dead(7, 39, "hog"))
    assert len(plan(one, {}, NOW + 40 * HOUR).create) == 1


def test_what_runs_everywhere_gets_no_object() -> None:
    one = ledger()
    for death in DEATHS[:3]:
        wide = DeathWorkload(
            BoundWorkload(f"log-{death.node}", (WorkloadKey(1, "u-log"),), (40,), "ops"),
            f"log-{death.node}", "DaemonSet", "log", "u-log",
        )  # fmt: skip
        one.put(replace(death, workloads=(*death.workloads, wide)))
    assert [found.workload.name for found in plan(one, {}).create] == ["hog"]


def test_incidents_are_counted_by_their_size() -> None:
    one = ledger()
    one.put(dead(0, 0.0, "hog"))
    for number in (1, 2):
        one.put(dead(number, 2.0, "hog"))
    for number in range(3, 15):
        one.put(dead(number, 4.0))
    assert one.incidents().sizes() == {
        IncidentSize.SINGLE: 1, IncidentSize.SEVERAL: 1, IncidentSize.STORM: 1
    }  # fmt: skip
    one.remove("n2-b")
    assert one.incidents().sizes()[IncidentSize.SINGLE] == 2


def test_the_background_of_a_pool_is_its_worst_strata_and_knows_quiet_ones() -> None:
    one = ledger()
    for number in range(3):
        one.put(dead(number, -100.0 * number, "hog"))
    strata = {
        Stratum("gpu", "6.8"): 40, Stratum("gpu", "6.9"): 400, Stratum("cpu", "6.8"): 2000,
    }  # fmt: skip
    rates = one.background_by_pool(strata, NOW)
    assert rates["gpu"] == background_rate(40, 720.0, (3, 2, 1, 1, 1))
    assert rates["cpu"] == background_rate(2000, 720.0, (0, 0, 0, 0, 0))
    assert rates["gpu"] > 10 * rates["cpu"] > 0


def test_a_storm_is_one_whatever_incidents_it_fell_apart_into() -> None:
    one = ledger()
    for number in range(30):
        one.put(dead(number, 1.0 + number * 2.0 / HOUR))
    one.put(dead(30, 2.0))
    (storm,) = one.incidents().storms()
    assert (storm.first_seconds, storm.last_seconds) == (NOW + HOUR, NOW + HOUR + 58.0)
    assert storm.nodes == 30
    for number in range(40, 60):
        one.put(dead(number, 3.0))
    assert [storm.nodes for storm in one.incidents().storms()] == [30, 20]
