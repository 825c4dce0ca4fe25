"""What a trace once saw, held against the packet rings that there are now."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.packet_scenes import (
    APP_A,
    APP_B,
    HOST,
    MIB,
    PLAIN,
    SIDE_A,
    SPACE_A,
    found,
    holder,
    in_pod_a,
    lives,
    ring,
    rings,
)

from seawall.accounts.packet_rings.bounds import bounded
from seawall.readings.packet_rings import PacketRings
from seawall.readings.saved_claims import SavedClaim


def kept(mib: int, **more: Any) -> SavedClaim:
    size = mib * MIB
    one = SavedClaim(
        holder="x", workload="x", cgroup=APP_A, folder="/x", cgroup_inode=5, driver=None,
        kind="ring", what="packet ring", within="residual", bytes=size, least_bytes=size,
        most_bytes=size, source="traced", stack=(), learned_at_unix_seconds=1.0,
    )  # fmt: skip
    return replace(one, **more)


def left(told: PacketRings, *claims: SavedClaim) -> list[tuple[int, int, int]]:
    """Least, likely and most in MiB."""
    return [
        (one.least_bytes // MIB, one.bytes // MIB, one.most_bytes // MIB)
        for one in bounded(claims, told, found(told).claims, 4096)
    ]


def small(mib: int = 200) -> PacketRings:
    return rings([ring(1, SPACE_A, 10, mib=mib)], [in_pod_a(10)])


def test_nobody_holds_more_rings_than_there_are() -> None:
    """1,024 MiB were seen being taken; 200 are there."""
    assert left(small(), kept(1024)) == [(200, 200, 1024)]
    assert left(small(), kept(100)) == [(100, 100, 100)]
    assert left(rings([]), kept(1024)) == [(0, 0, 1024)]


def test_two_claims_share_what_is_there() -> None:
    told = left(small(), kept(150), kept(150, cgroup_inode=6), kept(150, cgroup=APP_B))
    assert [least for least, _, _ in told] == [150, 50, 0]


@pytest.mark.parametrize(
    "refused", [{"namespaces_left_out": 1}, {"processes_left_out": 1}, {"why_not": "no module"}]
)
def test_an_answer_that_is_not_whole_bounds_nothing(refused: dict[str, Any]) -> None:
    assert left(replace(small(), **refused), kept(1024)) == [(1024, 1024, 1024)]


def test_other_memory_is_not_meant() -> None:
    other = kept(1024, what="perf ring buffer")
    assert left(small(), other) == [(1024, 1024, 1024)]


def test_what_may_be_his_counts_for_him() -> None:
    """Nobody knows who made the host's, and which container of the pod."""
    host = rings([ring(1, HOST, 60, mib=300)], [holder(60, PLAIN)])
    assert left(host, kept(1024)) == [(300, 300, 1024)]
    together = lives(SPACE_A, APP_A, SIDE_A)
    pod = rings([ring(1, SPACE_A, 10, mib=400)], [in_pod_a(10)], inhabitants=together)
    assert left(pod, kept(1024)) == [(400, 400, 1024)]


def test_rings_too_small_to_look_for_their_holders() -> None:
    assert left(rings([ring(1, SPACE_A, mib=1)], is_looked=False), kept(9)) == [(1, 1, 9)]
