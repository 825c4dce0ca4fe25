"""From claims to the guard's rows: whose row it is, and what of it is certain."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.accounts.packet_scenes import (
    APP_A,
    HOST,
    MIB,
    PAUSE_A,
    POD_A,
    POD_CAPABILITIES,
    SIDE_A,
    SPACE_A,
    cgroups,
    known,
    lines,
)
from tests.accounts.test_claims_properties import ledger
from tests.accounts.test_packet_ring_bounds import kept

from seawall.accounts.node_memory.ledger import Ledger
from seawall.host.host import JSON
from seawall.host.live import LiveHost
from seawall.watcher.claim_rows import ClaimRows, LearnedClaims
from seawall.watcher.deferred_host import DeferredHost
from seawall.watcher.watcher_reader import Question
from seawall.watcher.workload_inventory import WorkloadInventory


class Canned:
    """Answers at once, in the asker's place."""

    is_free = True

    def __init__(self, rings: JSON) -> None:
        self._rings, self._asked = rings, Question("", "")

    def ask(self, question: Question, _: float) -> bool:
        self._asked = question
        return True

    def take(self) -> tuple[Question, JSON] | None:
        asked, self._asked = self._asked, Question("", "")
        return (asked, self._rings) if asked.probe == "packet_rings" else None


class Pods(WorkloadInventory):
    """Two pods, a unit and plain cgroups."""

    def __init__(self) -> None:
        self.workloads, self.cgroups = known(), cgroups()

    def inode(self, path: str) -> int | None:
        return len(path)


def rings_of(mib: int, *holders: str, lives: Sequence[str] = (PAUSE_A, APP_A)) -> dict[str, Any]:
    """One socket of the pod's network, held in these cgroups."""
    inventory = [
        [10 + n, 1, "x", SPACE_A, POD_CAPABILITIES, list(lines(path))]
        for n, path in enumerate(holders)
    ]
    there = [list(lines(path)) for path in lives]
    return {
        "why_not": "", "host": HOST, "namespaces": 2, "namespaces_left_out": 0,
        "processes_left_out": 0, "others": [0, 0], "is_looked": True, "holders_left_out": 0,
        "sockets": [[7, SPACE_A, 0, [MIB, mib], None]] if mib else [],
        "holders": [[7, 10 + n] for n in range(len(holders))], "processes": inventory,
        "inhabitants": [[SPACE_A, True, there, [POD_CAPABILITIES] * len(there)]], "hidden": [],
    }  # fmt: skip


def told(rings: JSON, has: Ledger | None = None, **learned: Any) -> dict[str, tuple[int, ...]]:
    """cgroup -> certain, likely and most in MiB."""
    host = DeferredHost(LiveHost("/"), Canned(rings))  # type: ignore[arg-type]
    claiming = ClaimRows(host, Pods())
    now = LearnedClaims(has or ledger(4000 * MIB, 0), **learned)
    claiming.tell(now, with_drivers=False)
    for _ in range(3):
        host.go_on()
    rows = claiming.tell(now, with_drivers=False).rows
    return {
        row["cgroup"]: tuple(row[key] // MIB for key in ("certain", "likely", "most"))
        for row in rows
    }


def test_a_ring_of_a_pods_one_container_is_certain() -> None:
    assert told(rings_of(2000, APP_A)) == {APP_A: (2000, 2000, 2000)}


def test_what_is_a_pods_stands_with_each_of_its_containers_as_possible() -> None:
    """The socket was handed to a second one: it must not vanish, nor is either certain."""
    both = rings_of(2000, APP_A, SIDE_A, lives=(PAUSE_A, APP_A, SIDE_A))
    assert told(both) == {APP_A: (0, 0, 2000), SIDE_A: (0, 0, 2000)}


def test_a_container_that_was_seen_taking_it_is_certain(tmp_path: Path) -> None:
    both = rings_of(2000, APP_A, SIDE_A, lives=(PAUSE_A, APP_A, SIDE_A))
    claim = kept(2000, folder=str(tmp_path), cgroup_inode=tmp_path.stat().st_ino)
    rows = told(both, followed=(claim,))
    assert rows[APP_A][0] == 2000
    assert rows.get(SIDE_A, (0,))[0] == 0


@pytest.mark.parametrize(("how", "certain"), [("earlier_claims", 200), ("followed", 1024)])
def test_what_is_not_followed_any_more_is_at_most_what_the_kernel_counts(
    tmp_path: Path, how: str, certain: int
) -> None:
    claim = kept(1024, folder=str(tmp_path), cgroup_inode=tmp_path.stat().st_ino)
    rows = told(rings_of(200, APP_A), **{how: (claim,)})
    assert rows[APP_A][0] == certain
    assert rows[APP_A][2] >= 1024


def test_of_another_cgroup_nothing_is_told(tmp_path: Path) -> None:
    inode = tmp_path.stat().st_ino
    claims = [kept(100, folder=str(tmp_path), cgroup_inode=one) for one in (inode + 1, None)]
    assert told(rings_of(0), followed=claims) == {}


def test_blocks_in_vmalloc_do_not_rise_with_a_leak_of_others() -> None:
    """8 MiB each, of which the kernel has no piece: 1 GiB, whatever the residual is."""
    large = rings_of(0, APP_A)
    large["sockets"] = [[7, SPACE_A, 0, [8 * MIB, 128], None]]
    rows = [
        told(large, ledger(size * MIB, 0, vmalloc=2000 * MIB)).get(APP_A, (0,))[0]
        for size in (100, 700, 1200)
    ]
    assert len(set(rows)) == 1, rows


def test_a_restarted_pod_is_no_pod_of_others() -> None:
    assert POD_A not in told(rings_of(2000, APP_A))
    claim = replace(kept(10), cgroup=POD_A)
    assert told(rings_of(0), followed=(claim,)) == {}
