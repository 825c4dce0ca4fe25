"""Which part of packet rings is in vmalloc: areas as 6.18 printed them."""

from tests.accounts.packet_scenes import HOST, MIB, PLAIN, UNIT, found, holder, ring, rings

from seawall.accounts.packet_rings.ring_places import RingPlaces
from seawall.readings import vmallocinfo
from seawall.readings.packet_rings import PacketSocket, Ring

# A ring of 4 blocks of 8 MiB: 4 areas, and 4 more for the lists of their pages.
LARGE = """\
0x1-0x2   20480 packet_set_ring+0x1dd/0x650 pages=4 vmalloc N0=4
0x1-0x2 8392704 packet_set_ring+0x1dd/0x650 pages=2048 vmalloc vpages N0=2048
"""
OTHER = "0x1-0x2 20480 bpf_map_area_alloc+0x1/0x2 pages=4 vmalloc N0=4\n"
STRAY = "0x1-0x2 1052672 packet_set_ring+0x1dd/0x650 pages=256 vmalloc N0=256\n"


def areas(text: str) -> vmallocinfo.Vmallocinfo:
    return vmallocinfo.parse((OTHER + text).encode())


def test_blocks_above_the_largest_piece_are_in_vmalloc() -> None:
    large = PacketSocket(7, HOST, 0, Ring(8 * MIB, 4), Ring(16384, 64), (60,))
    told = found(rings([large], [holder(60, PLAIN)]), areas(LARGE * 4))
    places = {claim.within: claim.bytes for claim in told.claims}
    assert places == {"residual": MIB, "vmalloc": 32 * MIB}
    assert all(c.least_bytes == c.bytes == c.most_bytes for c in told.claims)
    things = [claim.things for claim in told.claims]
    assert not things[0] & things[1], "they are not the same memory"


def test_half_of_equal_blocks_may_be_anybodys() -> None:
    """100 of 200 blocks are in vmalloc; no record tells of which socket."""
    one, other = ring(7, HOST, 60, mib=50), ring(8, HOST, 61, mib=150)
    places = RingPlaces([one, other], areas(STRAY * 100), 4096)
    rest, there = places.share([one])
    assert (there.bytes, there.least_bytes, there.most_bytes) == (25 * MIB, 0, 50 * MIB)
    assert (rest.bytes, rest.least_bytes, rest.most_bytes) == (25 * MIB, 0, 50 * MIB)
    rest, there = places.share([other])
    assert (there.bytes, there.least_bytes, there.most_bytes) == (75 * MIB, 50 * MIB, 100 * MIB)
    assert (rest.least_bytes, rest.most_bytes) == (50 * MIB, 100 * MIB)


def test_a_few_strays_are_no_claim_of_their_own() -> None:
    told = found(rings([ring(7, HOST, 60, mib=200)], [holder(60, UNIT)]), areas(STRAY * 3))
    (claim,) = told.claims
    assert (claim.least_bytes, claim.bytes) == (197 * MIB, 200 * MIB)


def test_rings_in_vmalloc_of_sockets_that_are_not_known() -> None:
    told = found(rings([]), areas(STRAY * 5))
    (claim,) = told.claims
    assert (claim.workload, claim.within, claim.bytes) == (None, "vmalloc", 5 * MIB)
    assert not found(rings([]), areas("")).claims


def test_above_the_largest_piece_it_is_in_vmalloc_whoever_may_read_the_file() -> None:
    """8 MiB with pages of 4 KiB; 4 MiB is the largest piece."""
    large = PacketSocket(7, HOST, 60, Ring(8 * MIB, 128), Ring(4 * MIB, 2), (60,))
    told = found(rings([large], [holder(60, PLAIN)]))
    places = {claim.within: (claim.least_bytes, claim.bytes) for claim in told.claims}
    assert places == {"vmalloc": (1024 * MIB, 1024 * MIB), "residual": (8 * MIB, 8 * MIB)}
