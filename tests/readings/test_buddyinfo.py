import pytest
from tests.readings.kernel_files import DEBIAN_6_1, VM_6_18, content

from seawall.problems import ParseProblem
from seawall.readings import zoneinfo
from seawall.readings.buddyinfo import parse


def test_zones_and_blocks() -> None:
    zones = parse(content(DEBIAN_6_1, "/proc/buddyinfo")).zones
    assert [(zone.node, zone.zone) for zone in zones] == [(0, "DMA"), (0, "DMA32"), (1, "DMA32")]
    assert zones[0].blocks == (0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 3)


@pytest.mark.parametrize("kernel", [DEBIAN_6_1, VM_6_18])
def test_blocks_add_up_to_the_free_pages_of_zoneinfo(kernel: str) -> None:
    free = {
        (zone.node, zone.name): zone.free
        for zone in zoneinfo.parse(content(kernel, "/proc/zoneinfo")).zones
    }
    for zone in parse(content(kernel, "/proc/buddyinfo")).zones:
        pages = sum(count << order for order, count in enumerate(zone.blocks))
        assert pages == pytest.approx(free[zone.node, zone.zone], rel=0.02, abs=64)


@pytest.mark.parametrize(
    "data", [b"", b"Node 0, zone DMA\n", b"Node 0, zone DMA 1 x\n", b"Node a, zone DMA 1\n"]
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)


def test_a_line_with_absurdly_many_orders() -> None:
    with pytest.raises(ParseProblem):
        parse(b"Node 0, zone DMA" + b" 1" * 65)
