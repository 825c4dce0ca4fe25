"""Our objects as JSON: what is written is read alike; what is wrong is a problem of that one."""

import copy
import json
import random

import pytest
from tests.cluster_judge.node_deaths import about, death, workload

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    EvidenceKind,
    NodeDeath,
    NodeLoads,
    Stratum,
    WorkloadKey,
)
from seawall.cluster.objects.action_levers import ActionApproval, ActionLever, ActionResult
from seawall.cluster.objects.api_time import microsecond_of, time_seconds, time_words
from seawall.cluster.objects.node_death_object import (
    CauseClass,
    CauseConfidence,
    DeathCulprit,
    DeathPhase,
    DeathWorkload,
    NodeDeathObject,
    node_death_name,
    node_death_object,
)
from seawall.cluster.objects.node_report_object import (
    LastDeath,
    MemorySample,
    NodeDistress,
    NodeReportObject,
    RecordEnd,
    ReportCulprit,
    ReportGuard,
    node_report_object,
)
from seawall.cluster.objects.object_fields import ObjectProblem
from seawall.cluster.objects.policy_actions import (
    ActionBrakes,
    NamespaceActions,
    PolicyActions,
    TrippedBrake,
)
from seawall.cluster.objects.quarantine_actions import (
    ActorStatus,
    QuarantineAction,
    QuarantineCanary,
    QuarantinedPod,
)
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.objects.rescue_order_object import (
    RescueOrderObject,
    RescueState,
    RescueStatus,
    rescue_order_object,
)
from seawall.cluster.objects.seawall_policy_object import (
    PolicyStatus,
    SeawallPolicyObject,
    seawall_policy_object,
)
from seawall.cluster.objects.workload_quarantine_object import (
    ChanceNumbers,
    CompanionWorkload,
    QuarantineMode,
    QuarantineState,
    QuarantineStatus,
    WorkloadMatch,
    WorkloadName,
    WorkloadQuarantineObject,
    quarantine_name,
    workload_quarantine_object,
)

BOOT = "5F2D0C1E-0000-4000-8000-000000000001"
AT = 1_796_000_000.25

DEATH = NodeDeathObject(
    name=node_death_name("gpu-1", BOOT), node="gpu-1", node_uid="u-1", boot_id=BOOT,
    kind=DeathKind.RESET, stratum=Stratum("gpu", "6.8.0", "spot", "zone-a"), stratum_nodes=40,
    zone_nodes=120, domain="rack-7", heartbeat_seconds=AT, observed_seconds=AT + 50.000001,
    phase=DeathPhase.EXPLAINED, reason="", cause=CauseClass.MEMORY,
    confidence=CauseConfidence.PROVED,
    culprit=DeathCulprit("ml", "Deployment", "hog", 80 << 30, 90 << 30),
    record=(RecordLine(EvidenceKind.PROVED, ("p-1",), "80 GiB", AT - 3, "agent"),
            RecordLine(EvidenceKind.OOM_LINE)),
    workloads=(
        DeathWorkload(
            BoundWorkload("p-1", (WorkloadKey(1, "d-1"), WorkloadKey(2, "ml/hog")), (3, 4), "ml"),
            "hog-abc", "Deployment", "hog", "d-1",
        ),
        DeathWorkload(BoundWorkload("p-2", (), (), "kube-system", is_static=True), "etcd-gpu-1"),
    ),
    loads=NodeLoads(2, 39, (1, 0, 3)),
    unseen=("workflows.argoproj.io: forbidden",),
)  # fmt: skip
QUARANTINE = WorkloadQuarantineObject(
    name=quarantine_name("ml", "hog", WorkloadKey(1, "d-1")),
    workload=WorkloadName("ml", "Deployment", "hog"), key=WorkloadKey(1, "d-1"),
    match=WorkloadMatch("ml", ("d-1",), "hog-", "trainer", ("hog:1",), (("app", "hog"),)),
    state=QuarantineState.PROPOSED, mode=QuarantineMode.TELL, reason="3 nodes died with it",
    deaths=(DEATH.name,), expires_seconds=AT + 86400,
    status=QuarantineStatus(
        SuspicionState.CONVICTED, 7.25, 5.5, 0.1, ("gpu-1", "gpu-2"), 1, "",
        (CompanionWorkload(WorkloadKey(2, "ml/other"), "ml", "Job", "other"),),
        ChanceNumbers(40, 3, 3, 3, 0.0001), AT + 51, 1.5,
    ),
    actor_status=ActorStatus(
        (
            QuarantineAction(
                "hold", "Pod", "ml", "hog-abc", "p-1", AT + 52, ActionResult.DONE.value,
                "/spec/tolerations", None, [{"operator": "Exists", "tolerationSeconds": 1800}],
                AT + 60, "somebody changed it since",
            ),
            QuarantineAction(
                "suspend", "Job", "ml", "hog", "d-1", AT + 53, "of-a-later-version",
                "/spec/suspend", False, True,
            ),
        ),
        "ada@example.org", QuarantineCanary("hog-def", "gpu-3", AT + 70, "passed", "u-1", BOOT),
        (QuarantinedPod("p-1", "gpu-3"), QuarantinedPod("p-2", "gpu-4")),
    ),
)  # fmt: skip
REPORT = NodeReportObject(
    "gpu-1", AT, 7, BOOT, ReportGuard("0.1.0", "enforce", True, "short", True, True),
    NodeDistress(AT, -5, 12.5, 80 << 30,
                 (ReportCulprit("p-1", "ml", "hog-abc", "main", 1 << 40, 1 << 41, True),), "kill"),
    LastDeath("b-0", AT - 100, RecordEnd.UNCLEAN, (RecordLine(EvidenceKind.POSSIBLE, ("p-1",)),),
              (MemorySample(AT - 101, 1 << 20, 1 << 30, 0.5),)),
)  # fmt: skip
POLICY = SeawallPolicyObject(
    protected_namespaces=("kube-system", "own"), false_per_thousand_node_years=0.5,
    status=PolicyStatus(6.0, 120, 3, True, AT, 4, "watches"),
    actions=PolicyActions(
        False, ActionApproval.AUTO, frozenset({ActionLever.HOLD, ActionLever.RESCUE}),
        (NamespaceActions("ml", ActionApproval.OBSERVE, ((ActionLever.GATE, True),)),
         NamespaceActions("web", None, ())),
        ActionBrakes(3, 4, 5, 6, 0.5, 7.5, 8),
    ),
    brake=True, tripped=(TrippedBrake("storm", AT, "40 nodes at once"),),
)  # fmt: skip
ORDER = RescueOrderObject(
    "gpu-1", BOOT, ("p-1", "p-2"), "ops@example.org", AT + 300, "silent for 60 s",
    RescueStatus(RescueState.DONE, "killed", "5f2d0c1e-0001", 80 << 30, AT + 4), "hog-1",
)  # fmt: skip
READERS = {
    "order": (ORDER, rescue_order_object),
    "death": (DEATH, node_death_object),
    "quarantine": (QUARANTINE, workload_quarantine_object),
    "report": (REPORT, node_report_object),
    "policy": (POLICY, seawall_policy_object),
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_written_is_read_alike(name: str) -> None:
    thing, reader = READERS[name]
    document = json.loads(json.dumps(thing.document()))
    assert reader(document) == thing
    # Fields of a later version are passed over, at each level.
    document["more"] = {"a": 1}
    for level in ("spec", "status", "report"):
        if level in document:
            document[level]["more"] = [1, {"b": None}]
    assert reader(document) == thing


def test_an_empty_policy_has_the_defaults() -> None:
    assert seawall_policy_object({"metadata": {"name": "default"}}) == SeawallPolicyObject()


def test_what_may_be_done_is_the_namespaces_word_first() -> None:
    actions = PolicyActions(namespaces=(
        NamespaceActions("ml", ActionApproval.AUTO,
                         ((ActionLever.RESCUE, True), (ActionLever.HOLD, False))),
    ))  # fmt: skip
    assert actions.dry_run
    assert actions.approval_in("web") is ActionApproval.APPROVE
    assert actions.approval_in("ml") is ActionApproval.AUTO
    assert actions.levers_in("web") == actions.levers
    assert actions.levers_in("ml") == actions.levers ^ {ActionLever.RESCUE, ActionLever.HOLD}


@pytest.mark.parametrize(("actions", "words"), [
    ({"dryRun": "no"}, "spec.actions.dryRun: expected true or false, found 'no'"),
    ({"approval": "never"},
     "spec.actions.approval: expected one of observe, approve, auto, found 'never'"),
    ({"levers": {"gate": 1}}, "spec.actions.levers.gate: expected true or false, found 1"),
    ({"namespaces": [{"approval": "auto"}]},
     "spec.actions.namespaces[0].name: expected a string, found nothing"),
    ({"namespaces": [{"name": "a"}, {"name": "a"}]},
     "spec.actions.namespaces: expected each once, found a twice"),
    ({"brakes": {"nodesLeast": 1}},
     "spec.actions.brakes.nodesLeast: expected 2 to 1000, found 1.0"),
    ({"brakes": {"heldPodsMost": 1.5}},
     "spec.actions.brakes.heldPodsMost: expected a whole number of at least 0, found 1.5"),
    ({"brakes": {"heldPodsShare": 2}},
     "spec.actions.brakes.heldPodsShare: expected 0 to 1, found 2.0"),
], ids=lambda one: one if isinstance(one, str) else None)  # fmt: skip
def test_wrong_actions_are_problems_that_say_where(actions: object, words: str) -> None:
    with pytest.raises(ObjectProblem) as caught:
        seawall_policy_object({"metadata": {"name": "default"}, "spec": {"actions": actions}})
    assert str(caught.value) == f"SeawallPolicy default.{words}"


def test_what_a_person_wrote_and_nobody_judged_keeps_what_was_done() -> None:
    document = QUARANTINE.document()
    document["status"] = {"approvedBy": "ada", "actions": document["status"]["actions"]}
    read = workload_quarantine_object(document)
    assert read.status is None
    assert (read.actor_status.approved_by, len(read.actor_status.actions)) == ("ada", 2)
    assert read.document()["status"] == document["status"]


BAD = (True, -1, 1.5, 1 << 200, "x", "\x1b]0;y\x07" * 5000, [], [[]] * 100_000, {}, {"a": {}},
       [None], [1], float("nan"), float("inf"))  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_any_field_may_be_hostile(name: str) -> None:
    """Each field of each level, replaced by each of many wrong values: it is read, or is a problem
    of that object, short and without anything that steers a terminal.
    """
    thing, reader = READERS[name]
    document = thing.document()
    problems = []
    for path in paths(document):
        for bad in BAD:
            hostile = copy.deepcopy(document)
            level = hostile
            for step in path[:-1]:
                level = level[step]
            level[path[-1]] = bad
            try:
                read = reader(hostile)
            except ObjectProblem as problem:
                problems.append(str(problem))
            else:
                json.dumps(read.document(), allow_nan=False).encode()
                assert len(json.dumps(read.document())) < 64 * 1024
    assert len(problems) > 50
    assert all(words.isprintable() and len(words) < 600 for words in problems)
    for nothing in (None, [], "x", 7, {}, {"metadata": None}, {"metadata": {"name": 7}}):
        with pytest.raises(ObjectProblem):
            reader(nothing)


def paths(value: object, before: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    rows = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    found = []
    for key, below in rows:
        found.append((*before, key))
        if isinstance(below, (dict, list)):
            found += paths(below, (*before, key))
    return found


def test_a_problem_says_where_and_what() -> None:
    document = DEATH.document()
    document["status"]["record"][1]["kind"] = "Guilty\x1b[31m"
    with pytest.raises(ObjectProblem) as caught:
        node_death_object(document)
    assert str(caught.value) == (
        "NodeDeath gpu-1-5f2d0c1e.status.record[1].kind: expected one of Proved, Possible, "
        "OomLine, MemoryAmple, OtherCause, found 'Guilty\\\\x1b[31m'"
    )


def test_names_are_such_as_the_api_takes() -> None:
    assert node_death_name("gpu-1", BOOT) == "gpu-1-5f2d0c1e"
    assert node_death_name("n" * 250, "") == "n" * 200 + "-unknown"
    name = quarantine_name("team-a", "train-20261128-x7k2p", WorkloadKey(2, "team-a/train-#"))
    assert name.startswith("team-a-train-")
    assert len(quarantine_name("n" * 63, "o" * 253, WorkloadKey(1, "u"))) <= 63
    assert quarantine_name("a", "b", WorkloadKey(1, "u")) != quarantine_name(
        "a", "b", WorkloadKey(2, "u")
    )


def test_times_are_the_same_float_after_a_trip() -> None:
    numbers = random.Random(7)
    for _ in range(2000):
        at = microsecond_of(numbers.uniform(0, 4e9))
        assert time_seconds(time_words(at)) == at
    assert time_words(AT) == "2026-11-30T00:53:20.250000Z"  # date -u -d @1796000000
    for wrong in ("2026-11-28", "2026-11-28T01:02:03", "9999-12-31T23:59:59Z", "x", ""):
        with pytest.raises(ValueError, match="time"):
            time_seconds(wrong)


def test_a_judge_that_reads_objects_says_the_same() -> None:
    """To the last digit: that is what a new leader does."""
    deaths = [
        death(number, 1.0 + 0.1234567 * number, [workload("hog", 3), workload("web", 20)],
              record=about(EvidenceKind.PROVED, "hog") if number == 1 else None)
        for number in range(4)
    ]  # fmt: skip
    live, later = ClusterJudge(), ClusterJudge()
    for one in deaths:
        written = as_object(one)
        live.add(written.to_judge())
        later.add(node_death_object(json.loads(json.dumps(written.document()))).to_judge())
    first, second = live.suspicions(1e9), later.suspicions(1e9)
    assert first == second
    assert first
    # ... and what was written differs from what was seen by less than a microsecond.
    seen = ClusterJudge()
    for one in deaths:
        seen.add(one)
    for a, b in zip(seen.judge([WorkloadKey(1, "hog")]), later.judge([WorkloadKey(1, "hog")]),
                    strict=True):  # fmt: skip
        assert a.state is b.state is SuspicionState.CONVICTED
        assert abs(a.score_log10 - b.score_log10) < 1e-9


def as_object(one: NodeDeath) -> NodeDeathObject:
    return NodeDeathObject(
        name=one.name, node=one.node, node_uid="", boot_id=BOOT, kind=one.kind,
        stratum=one.stratum, stratum_nodes=one.stratum_nodes, zone_nodes=one.zone_nodes,
        domain=one.domain, heartbeat_seconds=microsecond_of(one.heartbeat_seconds),
        observed_seconds=0.0, phase=DeathPhase.CONFIRMED,
        record=None if one.record is None else tuple(
            RecordLine(line.kind, tuple(line.pods)) for line in one.record
        ),
        workloads=tuple(DeathWorkload(bound) for bound in one.workloads), loads=one.loads,
    )  # fmt: skip
