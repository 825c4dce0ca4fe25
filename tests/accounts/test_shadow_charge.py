"""What workloads hold outside their charges, over the tree, from hosts written down by hand."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.test_claim_join import claim
from tests.accounts.test_claims_properties import NO_BASE, ledger
from tests.case_host import parse_case

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.claims.claims import Claims, joined
from seawall.accounts.claims.shadow_charge import ShadowCharges, account, overrun_of, sum_of
from seawall.accounts.pods.pod_outside import with_outside
from seawall.accounts.pods.pod_table import PodTable
from seawall.host.host import Unread
from seawall.readings.snapshot import Snapshot
from seawall.views.documents.claims_shapes import node_uncounted

MIB = 1 << 20
ROOT = "/sys/fs/cgroup"


def group(path: str, mib: int, limit: str = "max", pids: str = "") -> str:
    parts = {"memory.current": mib * MIB, "memory.max": limit, "cgroup.procs": pids,
             "memory.stat": f"anon {mib * MIB}"}  # fmt: skip
    return "".join(f"=== {ROOT}{path}/{name}\n{text}\n" for name, text in parts.items())


HOST = "".join([
    "why: a pod of two containers, one with a container inside, and an innocent\n",
    f"=== /proc/1/mountinfo\n30 23 0:26 / {ROOT} rw - cgroup2 cgroup2 rw\n",
    f"=== {ROOT}/cgroup.controllers\nmemory\n",
    group("/pod", 300, str(1024 * MIB)), group("/pod/a", 200, str(512 * MIB), "10"),
    group("/pod/a/inner", 50, pids="11"), group("/pod/b", 100, pids="12"),
    group("/innocent", 900, str(1000 * MIB), "13"),
]).encode()  # fmt: skip


@pytest.fixture
def snapshot() -> Snapshot:
    return Snapshot(parse_case(HOST).rounds[0])


def claims_of(*claims: Claim) -> Claims:
    return joined([SourceClaims(claims)], ledger(5000 * MIB), NO_BASE)


CLAIMS = claims_of(
    claim("/pod/a", 400),
    claim("/pod/a/inner", 100, "traced"),
    claim("/pod/b", 50, "estimate", least_bytes=0),
    claim("/pod/b", 700, "bound", kind="surface"),
    claim("/pod/b", 33, kind="managed", is_counted=True),
    claim("/innocent", 500, kind="unified"),
    claim("the NVIDIA driver", 1000, driver="nvidia", kind="surface"),
)


def shadows(snapshot: Snapshot) -> ShadowCharges:
    groups = snapshot.get(MemoryGroups)
    assert isinstance(groups, MemoryGroups)
    return account(CLAIMS, groups)


def test_each_cgroup_has_what_is_claimed_in_it(snapshot: Snapshot) -> None:
    found = shadows(snapshot)
    assert {path: one.outside.bytes // MIB for path, one in found.by_path.items()} == {
        "/pod": 550, "/pod/a": 500, "/pod/a/inner": 100, "/pod/b": 50,
    }  # fmt: skip
    pod = found.by_path["/pod"]
    assert pod.bytes == (300 + 550) * MIB
    assert pod.certain_bytes == (300 + 500) * MIB
    assert pod.distance == (1024 - 850) * MIB
    assert pod.outside.most_bytes == (400 + 100 + 50 + 700) * MIB
    assert found.by_path["/pod/b"].distance is None


def test_the_node_has_the_sum(snapshot: Snapshot) -> None:
    found = shadows(snapshot)
    assert found.node.bytes == 550 * MIB
    assert found.node.least_bytes == 500 * MIB
    assert found.charged_bytes == (300 + 900) * MIB
    assert found.node_bytes == (1200 + 550) * MIB


def test_rows_of_pods_leave_out_the_leaves_inside(snapshot: Snapshot) -> None:
    table = snapshot.get(PodTable)
    assert isinstance(table, PodTable)
    rows = {row.workload.cgroup: row for row in with_outside(table, CLAIMS).rows}
    outer = rows["/pod/a"]
    assert (outer.own.uncounted, outer.whole.uncounted) == (400 * MIB, 500 * MIB)
    assert outer.own.shadow_charge == (150 + 400) * MIB
    assert rows["/pod/a/inner"].own.uncounted == 100 * MIB
    assert rows["/pod"].whole.uncounted == 550 * MIB
    assert rows["/innocent"].whole.uncounted == 0
    leaves = [row.own.uncounted or 0 for row in rows.values() if row.is_leaf]
    assert sum(leaves) == 550 * MIB
    assert outer.overrun is not None
    assert (outer.overrun.level, outer.overrun.is_over) == ("critical", True)
    assert rows["/innocent"].overrun is None


@pytest.mark.parametrize(("why", "is_known"), [("refused", False), ("not_captured", False),
                                               ("absent", True)])  # fmt: skip
def test_nothing_seen_is_not_nothing_where_a_source_was_refused(
    snapshot: Snapshot, why: Any, is_known: bool
) -> None:
    table, groups = snapshot.get(PodTable), snapshot.get(MemoryGroups)
    assert isinstance(table, PodTable)
    assert isinstance(groups, MemoryGroups)
    claims = replace(CLAIMS, unread=(Unread("packet_rings", why),))
    rows = {row.workload.cgroup: row.whole for row in with_outside(table, claims).rows}
    innocent, pod = rows["/innocent"], rows["/pod"]
    assert innocent.uncounted == (0 if is_known else None)
    assert innocent.uncounted_least == 0
    assert innocent.shadow_charge == (900 * MIB if is_known else None)
    assert pod.uncounted == 550 * MIB
    assert pod.uncounted_most == (1250 * MIB if is_known else None)
    node = node_uncounted(account(claims, groups))
    assert (node.uncounted_bytes, node.shadow_charge_bytes) == (550 * MIB, 1750 * MIB)
    assert (node.uncounted_most_bytes is not None) == is_known
    nobody = node_uncounted(account(replace(claims, claims=()), groups))
    assert nobody.uncounted_bytes == (0 if is_known else None)


@pytest.mark.parametrize(
    ("mib", "confidence", "expected"),
    [
        (300, "exact", ("critical", True)),
        (300, "traced", ("critical", True)),
        (300, "estimate", ("warning", True)),
        (300, "bound", None),
        (120, "exact", ("warning", False)),
        (50, "exact", None),  # too little to matter, however full the container is
    ],
)
def test_overrun_needs_evidence(
    mib: int, confidence: str, expected: tuple[str, bool] | None
) -> None:
    """A charge of 800 MiB under a limit of 1,000 MiB."""
    found = overrun_of(800 * MIB, 1000 * MIB, sum_of([claim("/a", mib, confidence)]))
    assert (found and (found.level, found.is_over)) == expected


def test_huge_pages_do_not_count_against_the_limit() -> None:
    outside = sum_of([claim("/a", 4000, kind="hugetlb", within="hugetlb"), claim("/a", 10)])
    assert outside.bytes == 4010 * MIB
    assert outside.against_limit().bytes == 10 * MIB


def test_kept_claims_of_another_cgroup_tree_are_nobodys(snapshot: Snapshot) -> None:
    """A claim for a cgroup that does not exist any more counts for those above that do."""
    groups = snapshot.get(MemoryGroups)
    assert isinstance(groups, MemoryGroups)
    found = account(claims_of(claim("/pod/removed", 80), claim("/elsewhere", 70)), groups)
    assert {path: one.outside.bytes // MIB for path, one in found.by_path.items()} == {"/pod": 80}
    assert found.node.bytes == 150 * MIB
