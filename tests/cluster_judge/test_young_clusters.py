"""docs/limits.md says after how many deaths a young cluster convicts: here they are counted."""

import re
from pathlib import Path

import pytest

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    EvidenceKind,
    NodeDeath,
    NodeEvidence,
    NodeLoads,
    Stratum,
    WorkloadKey,
)

PAGE = Path(__file__).resolve().parents[2] / "docs/limits.md"
DAYS = (0.05, 1.0, 7.0, 30.0)
REPLICAS = 3
GAP_SECONDS = 1200.0
HOG = WorkloadKey(1, "uid-of-the-hog")
INNOCENTS = 11


def deaths_until_convicted(nodes: int, days: float, *, has_proof: bool) -> int:
    judge = ClusterJudge()
    start = 40 * 86400.0
    judge.watch_from(start - days * 86400.0)
    for number in range(1, 20):
        at = start + number * GAP_SECONDS
        judge.add(death(number, nodes, at, has_proof=has_proof))
        for one in judge.suspicions(at):
            if one.state is SuspicionState.CONVICTED:
                assert one.key == HOG
                return number
    return 20


def death(number: int, nodes: int, at: float, *, has_proof: bool) -> NodeDeath:
    """Beside the hog four of eleven innocents, each on a twelfth of the nodes."""
    pod = f"hog-{number}"
    others = {(7 * number + 3 * step) % INNOCENTS for step in range(4)}
    return NodeDeath(
        f"death-{number}", f"node-{number}", Stratum("gpu", "6.8.0-45", "on-demand", "a"), nodes,
        at, domain=f"rack-{number}", zone_nodes=nodes,
        loads=NodeLoads(5, nodes - number, (5,) * min(20, nodes - number)),
        record=(NodeEvidence(EvidenceKind.PROVED, frozenset({pod})),) if has_proof else None,
        workloads=(
            BoundWorkload(pod, (HOG,), (REPLICAS,), "ml"),
            *(
                BoundWorkload(f"web-{one}-{number}", (WorkloadKey(1, f"uid-of-{one}"),),
                              (max(nodes // 12, 1),), "shop")
                for one in sorted(others)
            ),
        ),
    )  # fmt: skip


def table() -> list[tuple[int, float, int, int]]:
    """Nodes, days, deaths without and with records."""
    rows = []
    text = PAGE.read_text().partition("| nodes of the stratum |")[2].partition("\n\n")[0]
    for line in text.splitlines()[2:]:
        first, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        for days, cell in zip(DAYS, cells, strict=True):
            without, proved = (int(word) for word in re.findall(r"\d+", cell))
            rows.append((int(first.replace(",", "")), days, without, proved))
    return rows


def test_there_is_a_table() -> None:
    assert len(table()) == 12


@pytest.mark.parametrize(("nodes", "days", "without", "proved"), table())
def test_the_page_counts_right(nodes: int, days: float, without: int, proved: int) -> None:
    assert deaths_until_convicted(nodes, days, has_proof=False) == without
    assert deaths_until_convicted(nodes, days, has_proof=True) == proved
