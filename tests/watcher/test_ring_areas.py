"""Where packet rings lie, as one watcher knows it: read seldom, and unsure by what came since."""

import pytest
from tests.accounts.packet_scenes import HOST, MIB, PLAIN, found, holder, ring, rings
from tests.accounts.test_claims_properties import ledger
from tests.accounts.test_packet_ring_places import OTHER, STRAY

from seawall.host.host import Unread
from seawall.readings.vmallocinfo import PATH, Vmallocinfo
from seawall.watcher import claim_rows
from seawall.watcher.claim_rows import RingAreas, less_sure


class File:
    """A host with one file; counts how often it is read."""

    def __init__(self, data: bytes | Unread) -> None:
        self.data, self.reads = data, 0

    def read(self, path: str, limit_bytes: int = 0) -> bytes | Unread:
        assert path == PATH
        self.reads += 1
        return self.data


def has(vmalloc: int) -> object:
    return ledger(1000 * MIB, 0, vmalloc=vmalloc * MIB)


def see(areas: RingAreas, host: File, vmalloc: int, *, may_read: bool = True) -> int:
    now = has(vmalloc)
    areas.see(host, now, may_read=may_read)  # type: ignore[arg-type]
    return areas.unsure_bytes(now) // MIB  # type: ignore[arg-type]


def test_areas_of_rings_alone_are_kept() -> None:
    areas, host = RingAreas(), File((OTHER + STRAY * 3 + OTHER).encode())
    assert see(areas, host, 300) == 0
    assert isinstance(areas.areas, Vmallocinfo)
    assert [area.pages for area in areas.areas.areas] == [256] * 3


def test_without_rings_in_it_the_file_is_whole_all_the_same() -> None:
    areas = RingAreas()
    see(areas, File(OTHER.encode()), 300)
    assert areas.areas == Vmallocinfo(())
    areas = RingAreas()
    assert see(areas, File(b""), 300) == 300
    assert isinstance(areas.areas, Unread)


def test_what_came_since_is_unsure_until_it_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(claim_rows.time, "monotonic", lambda: now[0])
    areas, host = RingAreas(), File(OTHER.encode())
    assert see(areas, host, 300, may_read=False) == 0, "the first time it is always read"
    assert see(areas, host, 250) == 0
    assert see(areas, host, 400) == 150, "others may have given back meanwhile"
    assert host.reads == 1
    now[0] += 61
    assert see(areas, host, 400, may_read=False) == 150
    assert see(areas, host, 400) == 0
    assert host.reads == 2


def test_where_it_may_not_be_read_all_of_vmalloc_may_be_rings() -> None:
    areas = RingAreas()
    assert see(areas, File(Unread(PATH, "refused")), 300) == 300
    bare = ledger(1000 * MIB, 0)
    assert areas.unsure_bytes(bare) == 0, "without a line its pages are in the residual"


def test_a_ring_of_small_blocks_stays_certain_but_for_what_came() -> None:
    """On a node in pieces 1 GiB of it went into vmalloc: none of it is certain."""
    told = found(rings([ring(7, HOST, 60, mib=1024)], [holder(60, PLAIN)]))
    leasts = [less_sure(told, size * MIB).claims[0].least_bytes // MIB for size in (0, 20, 1500)]
    assert leasts == [1024, 1004, 0]
    assert less_sure(told, 20 * MIB).claims[0].bytes == 1024 * MIB


def test_what_is_known_to_be_in_vmalloc_is_as_certain_as_before() -> None:
    areas = RingAreas()
    see(areas, File((STRAY * 100).encode()), 300)
    told = found(rings([ring(7, HOST, 60, mib=100)], [holder(60, PLAIN)]), areas.areas)
    (claim,) = less_sure(told, 50 * MIB).claims
    assert (claim.within, claim.least_bytes) == ("vmalloc", 100 * MIB)
