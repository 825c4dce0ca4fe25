"""A node's report as evidence: of its own pods, of the boot that died, and of nothing else."""

from dataclasses import replace

import pytest

from seawall.cluster.judge.node_death import BoundWorkload, DeathKind, EvidenceKind, Stratum
from seawall.cluster.objects.node_death_object import (
    CauseClass,
    CauseConfidence,
    DeathWorkload,
    NodeDeathObject,
)
from seawall.cluster.objects.node_report_object import (
    LastDeath,
    NodeDistress,
    NodeReportObject,
    RecordEnd,
    ReportCulprit,
    ReportGuard,
)
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.observer.record_evidence import RecordEvidence, record_evidence

AT = 1_796_000_000.0
GIB = 1 << 30
DEATH = NodeDeathObject(
    name="n1-b1", node="n1", node_uid="", boot_id="b1", kind=DeathKind.SILENT,
    stratum=Stratum("gpu", "6.8"), stratum_nodes=40, zone_nodes=40, domain="",
    heartbeat_seconds=AT, observed_seconds=AT + 50,
    workloads=(
        DeathWorkload(BoundWorkload("hog", (), (), "ml"), "hog-x", "Deployment", "hog", "d"),
        DeathWorkload(BoundWorkload("web", (), (), "shop"), "web-x", "Deployment", "web", "e"),
        DeathWorkload(BoundWorkload("etcd", (), (), "kube-system", is_static=True), "etcd-n1"),
    ),
)  # fmt: skip


def culprit(pod: str, gib: int, *, is_proved: bool = False) -> ReportCulprit:
    return ReportCulprit(pod, "ml", f"{pod}-x", "main", gib * GIB, gib * GIB, is_proved)


def report(*culprits: ReportCulprit, boot: str = "b1", node: str = "n1",
           last: LastDeath | None = None) -> NodeReportObject:  # fmt: skip
    distress = NodeDistress(AT - 9, GIB, 3.0, 100 * GIB, culprits) if culprits else None
    return NodeReportObject(node, AT - 9, 1, boot, ReportGuard(), distress, last)


def last_death(*record: RecordLine, boot: str = "b1",
               ended: RecordEnd = RecordEnd.UNCLEAN) -> LastDeath:  # fmt: skip
    return LastDeath(boot, AT, ended, record)


def evidence(of: NodeReportObject, death: NodeDeathObject = DEATH,
             received: float = AT - 8) -> RecordEvidence | None:  # fmt: skip
    return record_evidence(of, death, received)


def kinds(found: RecordEvidence | None) -> list[tuple[str, tuple[str, ...]]]:
    assert found is not None
    return [(line.kind.value, line.pods) for line in found.record]


def test_who_is_proved_is_named_with_his_bytes() -> None:
    found = evidence(report(culprit("hog", 80, is_proved=True), culprit("web", 3)))
    assert kinds(found) == [("proved", ("hog",))]
    assert found is not None
    assert (found.cause, found.confidence) == (CauseClass.MEMORY, CauseConfidence.PROVED)
    assert found.culprit is not None
    assert (found.culprit.kind, found.culprit.name) == ("Deployment", "hog")
    assert found.culprit.certain_bytes == 80 * GIB


def test_who_may_hold_half_is_possible_and_the_small_ones_are_nothing() -> None:
    found = evidence(report(culprit("hog", 60), culprit("web", 49)))
    assert kinds(found) == [("possible", ("hog",))]
    assert found is not None
    assert found.confidence is CauseConfidence.LIKELY
    two = evidence(report(culprit("hog", 60), culprit("web", 50)))
    assert two is not None
    assert len(two.record) == 2
    assert two.culprit is None, "of two that are possible none is named"


@pytest.mark.parametrize(
    ("of", "received"),
    [
        (report(culprit("hog", 80, is_proved=True), node="n2"), AT),
        (report(culprit("hog", 80, is_proved=True), boot="b0"), AT),
        (report(culprit("hog", 80, is_proved=True)), AT - 3600),  # another trouble, an hour before
        (report(culprit("of-another-node", 80, is_proved=True)), AT),
        (report(culprit("etcd", 80, is_proved=True)), AT),
        (report(*(culprit(name, 80, is_proved=True) for name in ("hog", "web", "x"))), AT),
        (report(last=last_death(RecordLine(EvidenceKind.PROVED, ("a", "b", "hog")))), AT),
        (report(last=last_death(RecordLine(EvidenceKind.PROVED, ("hog",)), boot="b9")), AT),
        (report(), AT),
    ],
    ids=["another-node", "another-boot", "old", "a-pod-that-was-not-there", "static",
         "accuses-three", "three-in-one-line", "record-of-another-boot", "nothing"],
)  # fmt: skip
def test_what_is_no_evidence(of: NodeReportObject, received: float) -> None:
    assert evidence(of, received=received) is None


def test_a_talkative_dead_node_is_heard() -> None:
    """It goes on talking while the cluster takes it for dead."""
    assert evidence(report(culprit("hog", 80, is_proved=True)), received=AT + 300) is not None


def test_a_reset_counts_by_a_record_that_breaks_off_and_no_other() -> None:
    reset = replace(DEATH, kind=DeathKind.RESET)
    line = RecordLine(EvidenceKind.PROVED, ("hog",))
    assert evidence(report(culprit("hog", 80, is_proved=True)), reset) is None
    for ended in (RecordEnd.CLEAN, RecordEnd.UNKNOWN):
        found = evidence(report(last=last_death(line, ended=ended), boot="b2"), reset)
        assert found is None or found.record == ()
    found = evidence(report(last=last_death(line), boot="b2"), reset)
    assert kinds(found) == [("proved", ("hog",))]
    assert found is not None
    assert found.record[0].source == "black box"


def test_a_record_about_the_node_itself_speaks_for_all() -> None:
    ample = RecordLine(EvidenceKind.MEMORY_AMPLE, (), "300 GiB free")
    assert kinds(evidence(report(last=last_death(ample), boot="b2"))) == [("memory ample", ())]
    # An accusation without anybody accused is none.
    line = RecordLine(EvidenceKind.PROVED)
    assert evidence(report(last=last_death(line), boot="b2")) is None
    # A record that came and says nothing is one: it accuses nobody.
    assert kinds(evidence(report(last=last_death(), boot="b2"))) == []


def test_a_clean_end_clears_who_ran_there_unless_memory_was_short() -> None:
    clean = evidence(report(last=last_death(ended=RecordEnd.CLEAN), boot="b2"))
    assert kinds(clean) == [("other cause", ())]
    proof = RecordLine(EvidenceKind.PROVED, ("hog",))
    short = evidence(report(last=last_death(proof, ended=RecordEnd.CLEAN), boot="b2"))
    assert kinds(short) == [("proved", ("hog",))]
    unknown = evidence(report(last=last_death(ended=RecordEnd.UNKNOWN), boot="b2"))
    assert kinds(unknown) == []
