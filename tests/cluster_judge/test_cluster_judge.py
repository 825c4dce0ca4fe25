"""Whom the judge names, and whom never: small clusters written down by hand."""

import random

import pytest
from tests.cluster_judge.node_deaths import HOG, HOUR, about, death, workload

from seawall.cluster.judge.cluster_judge import (
    CONTRADICTED,
    ClusterJudge,
    JudgePolicy,
    SuspicionState,
    WorkloadSuspicion,
)
from seawall.cluster.judge.death_coincidence import coincidence
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    EvidenceKind,
    NodeDeath,
    NodeEvidence,
    Stratum,
    WorkloadKey,
)

MONTH = -720.0 * HOUR


def judged(
    deaths: list[NodeDeath], policy: JudgePolicy | None = None
) -> dict[str, WorkloadSuspicion]:
    """What is said of each workload after the last death, by its name."""
    judge = ClusterJudge(policy or JudgePolicy())
    judge.watch_from(MONTH)
    for one in deaths:
        judge.add(one)
    last = deaths[-1].heartbeat_seconds
    return {one.key.value: one for one in judge.suspicions(last)}


def under_the_hog(number: int, hours: float, **more: object) -> NodeDeath:
    """Beside it different innocents each time."""
    others = [workload(f"innocent {number} {other}", 5) for other in range(5)]
    return death(number, hours, [workload("hog"), *others], **more)  # type: ignore[arg-type]


def test_the_third_node_convicts_and_the_second_only_suspects() -> None:
    row = [under_the_hog(number, number * 0.5) for number in range(3)]
    two = judged(row[:2])
    assert {name: one.state for name, one in two.items()} == {"hog": SuspicionState.SUSPECTED}
    three = judged(row)
    assert {name: one.state for name, one in three.items()} == {"hog": SuspicionState.CONVICTED}
    assert three["hog"].nodes == ("n0", "n1", "n2")
    assert three["hog"].score_log10 > three["hog"].threshold_log10 > 5


def test_with_records_the_second_node_convicts_and_the_first_suspects() -> None:
    record = about(EvidenceKind.PROVED, "hog")
    row = [under_the_hog(number, number * 0.5, record=record) for number in range(2)]
    assert judged(row[:1])["hog"].state is SuspicionState.SUSPECTED
    both = judged(row)
    assert both["hog"].state is SuspicionState.CONVICTED
    assert both["hog"].proved == 2
    assert set(both) == {"hog"}


def test_one_node_never_convicts_however_often_it_says_so() -> None:
    record = about(EvidenceKind.PROVED, "hog")
    row = [
        death(number, number * 0.1, [workload("hog")], record=record, node="n0")
        for number in range(20)
    ]
    assert judged(row)["hog"].state is SuspicionState.SUSPECTED


def test_a_node_that_accuses_a_thousand_workloads_accuses_nobody() -> None:
    names = [f"victim {number}" for number in range(1000)]
    record = about(EvidenceKind.PROVED, *names)
    row = [
        death(number, number * 0.5, [workload(name) for name in names[number::2]], record=record)
        for number in range(2)
    ]
    assert judged(row) == {}


def test_who_was_not_bound_to_the_node_is_not_accused_by_its_record() -> None:
    record = about(EvidenceKind.PROVED, "elsewhere")
    row = [under_the_hog(number, number * 0.5, record=record) for number in range(2)]
    assert "elsewhere" not in judged(row)


def test_records_of_ample_memory_speak_for_it() -> None:
    """They do not acquit: a workload may kill nodes by a driver that panics."""
    record = (NodeEvidence(EvidenceKind.MEMORY_AMPLE),)
    silent = judged([under_the_hog(number, number * 0.5) for number in range(3)])["hog"]
    ample = judged([under_the_hog(number, number * 0.5, record=record) for number in range(3)])
    assert ample["hog"].score_log10 == pytest.approx(silent.score_log10 - 3, abs=0.1)


def test_deaths_of_one_moment_and_of_one_rack_count_once() -> None:
    moment = [under_the_hog(number, number * 0.004, domain="") for number in range(2)]
    rack = [under_the_hog(number, number * 0.1, domain="rack") for number in range(4)]
    for row in (moment, rack):
        assert all(one.state is not SuspicionState.CONVICTED for one in judged(row).values())
    # The same deaths in racks of their own are not of one cause.
    apart = [under_the_hog(number, number * 0.1) for number in range(4)]
    assert judged(apart)["hog"].state is SuspicionState.CONVICTED


def test_a_storm_has_no_credit_and_a_hog_proved_within_it_has() -> None:
    storm = [
        death(number, number * 0.001, [workload("everywhere", 50), workload("hog", 2)])
        for number in range(12)
    ]
    again = [
        death(100 + number, 5 + number * 0.001, [workload("everywhere", 50), workload("hog", 2)])
        for number in range(12)
    ]
    assert judged(storm + again) == {}
    proved = [
        death(200 + number, 9 + number * 0.001, [workload("hog", 2)],
              record=about(EvidenceKind.PROVED, "hog") if number < 2 else None)
        for number in range(12)
    ]  # fmt: skip
    assert judged(storm + proved)["hog"].state is SuspicionState.CONVICTED


def test_a_node_that_dies_again_within_a_week_is_a_lemon() -> None:
    row = [death(n, n * 12.0, [workload("hog")], node="lemon") for n in range(6)]
    assert judged(row) == {}


def test_nodes_that_people_reset_accuse_nobody() -> None:
    row = [under_the_hog(n, n * 0.05, kind=DeathKind.RESET) for n in range(40)]
    said = judged(row)
    assert said == {}
    # A reset with a record that ends short of memory is a death.
    record = about(EvidenceKind.PROVED, "hog")
    row = [under_the_hog(n, n * 0.5, kind=DeathKind.RESET, record=record) for n in range(2)]
    assert judged(row)["hog"].state is SuspicionState.CONVICTED


@pytest.mark.parametrize(("nodes", "deaths"), [(7, 3), (40, 3), (60, 4)])
def test_power_cycles_that_nobody_announced_look_like_deaths(nodes: int, deaths: int) -> None:
    """A limit, and docs/limits.md says so: 45 s apart, each silent for as long as a boot takes."""
    judge = ClusterJudge()
    judge.watch_from(0.0)
    hours = 30 * 24.0
    for number in range(1, deaths + 1):
        assert "convicted" not in {one.state.value for one in judge.suspicions(hours * HOUR)}
        hours += 45 / 3600
        judge.add(death(number, hours, [workload("hung", nodes)]))
    (said,) = judge.suspicions(hours * HOUR)
    assert said.state is SuspicionState.CONVICTED


@pytest.mark.parametrize("kind", [EvidenceKind.MEMORY_AMPLE, EvidenceKind.OTHER_CAUSE])
def test_whose_nodes_say_that_they_died_of_something_else_is_suspected_at_most(
    kind: EvidenceKind,
) -> None:
    """As soon as the nodes are back, and their records with them."""
    record = (NodeEvidence(kind),)
    hours = [45 / 3600 * number for number in range(40)]
    row = [under_the_hog(number, at, record=record) for number, at in enumerate(hours)]
    said = judged(row)["hog"]
    assert said.state is SuspicionState.SUSPECTED
    assert said.score_log10 > said.threshold_log10, "nothing else holds the judge back"
    assert said.why_not == CONTRADICTED
    one = [under_the_hog(0, hours[0]), *row[1:]]
    assert judged(one)["hog"].state is SuspicionState.SUSPECTED, "nobody is convicted by one node"
    two = [under_the_hog(0, hours[0]), under_the_hog(1, hours[1]), *row[2:]]
    assert judged(two)["hog"].state is SuspicionState.CONVICTED
    short = [under_the_hog(number, at, record=(*record, *about(EvidenceKind.POSSIBLE, "hog")))
             for number, at in enumerate(hours)]  # fmt: skip
    assert judged(short)["hog"].state is SuspicionState.CONVICTED


@pytest.mark.parametrize(
    ("bound", "policy", "words"),
    [
        (workload("it", 61), JudgePolicy(), "61 of 200 nodes"),
        (workload("it", is_static=True), JudgePolicy(), "static pod"),
        (workload("it", namespace="db"), JudgePolicy(frozenset({"db"})), "protected"),
    ],
)
def test_who_never_is_a_suspect(bound: BoundWorkload, policy: JudgePolicy, words: str) -> None:
    record = about(EvidenceKind.PROVED, "it")
    row = [death(n, n * 0.5, [bound], record=record) for n in range(4)]
    said = judged(row, policy)["it"]
    assert said.state is SuspicionState.CANNOT_TELL
    assert words in said.why_not
    # Nobody protects it, and it is not everywhere: the same deaths convict.
    free = [death(n, n * 0.5, [workload("it")], record=record) for n in range(4)]
    assert judged(free)["it"].state is SuspicionState.CONVICTED


def test_without_a_stratum_nobody_is_convicted() -> None:
    row = [under_the_hog(n, n * 0.5, stratum=Stratum("gpu", "")) for n in range(6)]
    assert judged(row) == {}


def test_two_that_always_go_together_are_not_told_apart() -> None:
    row = [death(n, n * 0.5, [workload("hog"), workload("companion")]) for n in range(4)]
    said = judged(row)
    assert {one.state for one in said.values()} == {SuspicionState.INSEPARABLE}
    assert said["hog"].companions == (WorkloadKey(1, "companion"),)
    # One node without the companion separates them, and what the hog explains is taken from it.
    said = judged([*row, death(9, 2.0, [workload("hog")]), death(10, 2.5, [workload("hog")])])
    assert said["hog"].state is SuspicionState.CONVICTED
    assert "companion" not in said


def test_a_record_tells_companions_apart() -> None:
    record = about(EvidenceKind.PROVED, "hog")
    row = [
        death(n, n * 0.5, [workload("hog"), workload("companion")], record=record) for n in range(2)
    ]
    said = judged(row)
    assert said["hog"].state is SuspicionState.CONVICTED
    assert "companion" not in said


def test_two_hogs_are_both_convicted() -> None:
    record = {name: about(EvidenceKind.PROVED, name) for name in ("hog", "other hog")}
    row = [
        death(n, n * 0.25, [workload(name), workload(f"innocent {n}", 8)], record=record[name])
        for n, name in enumerate(["hog", "other hog"] * 2)
    ]
    states = {name: one.state for name, one in judged(row).items()}
    assert states == dict.fromkeys(("hog", "other hog"), SuspicionState.CONVICTED)


def test_whoever_is_on_a_fifth_of_the_nodes_is_not_convicted_by_a_hogs_deaths() -> None:
    """Three dead nodes ran it by chance in 8 of 1,000 clusters, and there are many such."""
    row = [
        death(n, n * 0.2, [workload("large", 40), *[workload(f"small {n} {m}") for m in range(9)]])
        for n in range(3)
    ]
    said = judged(row)
    assert said["large"].state is SuspicionState.SUSPECTED
    if said["large"].score_log10 >= said["large"].threshold_log10:
        assert "by chance" in said["large"].why_not


def test_a_node_that_comes_back_takes_its_evidence_back() -> None:
    judge = ClusterJudge()
    judge.watch_from(MONTH)
    row = [under_the_hog(number, number * 0.5) for number in range(3)]
    for one in row:
        judge.add(one)
    assert HOG in judge.retract("n1.boot")
    assert judge.retract("n1.boot") == ()
    rest = {one.key: one for one in judge.suspicions(2 * HOUR)}
    assert rest[HOG].state is SuspicionState.SUSPECTED
    assert rest[HOG].nodes == ("n0", "n2")
    twin = ClusterJudge()
    twin.watch_from(MONTH)
    for one in (row[0], row[2]):
        twin.add(one)
    assert twin.suspicions(2 * HOUR)[0].score_log10 == pytest.approx(rest[HOG].score_log10)


def test_a_new_leader_says_the_same_to_the_last_digit() -> None:
    chance = random.Random(3)
    row = [
        under_the_hog(n, chance.uniform(0, 300), record=chance.choice(
            [None, about(EvidenceKind.POSSIBLE, "hog"), (NodeEvidence(EvidenceKind.OTHER_CAUSE),)]))
        for n in range(60)
    ]  # fmt: skip
    row.sort(key=lambda one: one.heartbeat_seconds)
    one, other = ClusterJudge(), ClusterJudge()
    for judge in (one, other):
        judge.watch_from(MONTH)
    for each in row:
        one.add(each)
        one.judge([HOG], each.heartbeat_seconds)  # looked at after each death
    for each in row:
        other.add(each)
        other.add(each)  # delivered twice
    assert one.suspicions(400 * HOUR) == other.suspicions(400 * HOUR)


def test_deaths_of_a_month_ago_are_forgotten() -> None:
    row = [under_the_hog(number, number * 0.5) for number in range(3)]
    assert judged([*row, death(99, 750.0, [workload("somebody")])]) == {}


def test_a_thousand_deaths_are_the_most() -> None:
    judge = ClusterJudge()
    for number in range(1200):
        judge.add(death(number, number * 0.01, [workload(f"w{number}")]))
    assert len(judge.deaths) == 1000


def test_the_finest_key_of_the_same_pods_is_what_a_gate_may_match() -> None:
    keys = (WorkloadKey(1, "uid"), WorkloadKey(2, "ns/train"), WorkloadKey(3, "ns/abc"))

    def pods(number: int, fresh: bool) -> list[BoundWorkload]:
        first = WorkloadKey(1, f"uid {number}") if fresh else keys[0]
        return [BoundWorkload(f"pod {number}", (first, *keys[1:]), (1, 1, 1))]

    for fresh, level in ((False, 1), (True, 2)):
        judge = ClusterJudge()
        judge.watch_from(MONTH)
        for number in range(4):
            judge.add(death(number, number * 0.5, pods(number, fresh)))
        finest = judge.finest(judge.suspicions(1.5 * HOUR))
        assert [one.key.level for one in finest] == [level]


def test_coincidence_by_hand() -> None:
    assert coincidence(10, 2, 2, 2) == pytest.approx(1 / 45)
    assert coincidence(200, 40, 3, 3) == pytest.approx(40 * 39 * 38 / (200 * 199 * 198))
    assert coincidence(10, 5, 3, 0) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="deaths"):
        coincidence(10, 2, 2, 3)


def test_the_simulations_hold_in_small() -> None:
    """``bench.cluster_judge`` is this at length: nobody wrongly, a killer after three nodes."""
    from bench.cluster_judge import WORLDS, Chase, Killer, false_convictions

    for world, has_racks in WORLDS.values():
        row = false_convictions(world, 100.0, 5, has_racks=has_racks)
        assert row["false"] == 0
        assert row["deaths"] > 10
    silent = sorted(Chase(Killer(3), seed).run()[0] for seed in range(9))
    heard = sorted(Chase(Killer(3, delivered=0.9), seed).run()[0] for seed in range(9))
    assert (silent[4], heard[4]) == (3, 2)
    assert silent[-1] <= 5
    assert heard[-1] <= 3
