import pytest
from tests.readings.kernel_files import (
    DEBIAN_6_1,
    EL8,
    UBUNTU_3_2,
    VM_6_18,
    case,
    content,
    this_machine,
)

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import vmstat, zoneinfo
from seawall.readings.zoneinfo import Pageset, Zone, Zoneinfo, parse

WITH_ZONEINFO = (UBUNTU_3_2, EL8, DEBIAN_6_1, VM_6_18)
ZONE = b"""Node 0, zone   Normal
  pages free     9
        min      1
        low      2
        high     3
        spanned  9
        present  9
"""
NODE = b"Node 0, zone DMA\n  per-node stats\n      nr_mapped 3\n" + ZONE.partition(b"\n")[2]


def of(kernel: str) -> Zoneinfo:
    return parse(content(kernel, "/proc/zoneinfo"))


def names(info: Zoneinfo) -> list[tuple[int, str]]:
    return [(zone.node, zone.name) for zone in info.zones]


def test_populated_zones_of_each_kernel() -> None:
    assert names(of(UBUNTU_3_2)) == [(0, "DMA"), (0, "Normal")]
    assert names(of(EL8)) == [(0, "DMA"), (0, "DMA32"), (0, "Normal")]
    assert names(of(DEBIAN_6_1)) == [(0, "DMA"), (0, "DMA32"), (1, "DMA32")]
    assert names(of(VM_6_18)) == [(0, "DMA"), (0, "DMA32"), (0, "Normal")]


def test_a_zone_before_4_8() -> None:
    """No per-node stats, no managed; protection stands below the counters."""
    info = of(UBUNTU_3_2)
    normal = info.zones[1]
    assert (normal.free, normal.min, normal.low, normal.high) == (607278, 10033, 12541, 15049)
    assert (normal.spanned, normal.present, normal.managed) == (1236992, 1217664, None)
    assert (normal.boost, normal.cma) == (None, None)
    assert normal.protection == (0, 0, 0, 0)
    assert normal.counters["nr_dirtied"] == 1078072
    assert normal.pagesets[1] == Pageset(cpu=1, count=88, high=186, batch=31, vm_stats_threshold=56)
    assert info.node_counters == {}


def test_a_zone_of_el8_whose_node_block_has_a_line_without_a_name() -> None:
    info = of(EL8)
    assert info.node_counters[0]["nr_slab_unreclaimable"] == 26034
    assert "537792" not in info.node_counters[0]
    dma32 = info.zones[1]
    assert (dma32.free, dma32.managed, dma32.boost) == (122008, 995127, None)
    assert dma32.protection == (0, 0, 4065, 4065, 4065)
    assert [pageset.count for pageset in dma32.pagesets] == [68, 155]


def test_boost_cma_and_two_nodes_since_5_14() -> None:
    info = of(DEBIAN_6_1)
    assert set(info.node_counters) == {0, 1}
    assert all(zone.boost is not None and zone.cma is not None for zone in info.zones)
    assert [len(zone.pagesets) for zone in info.zones] == [4, 4, 4]


@pytest.mark.parametrize("kernel", WITH_ZONEINFO)
def test_what_must_hold_in_every_zone(kernel: str) -> None:
    for zone in of(kernel).zones:
        assert 0 < zone.min <= zone.low <= zone.high
        assert zone.spanned >= zone.present > 0
        assert zone.free == zone.counters["nr_free_pages"]
        if zone.managed is not None:
            assert zone.free <= zone.managed <= zone.present
        assert [pageset.cpu for pageset in zone.pagesets] == list(range(len(zone.pagesets)))
        assert zone.pagesets


@pytest.mark.parametrize("kernel", [DEBIAN_6_1, VM_6_18])
def test_zones_add_up_to_vmstat(kernel: str) -> None:
    """Another file of the same machine, read a moment before."""
    counters = vmstat.parse(content(kernel, "/proc/vmstat")).counters
    info = of(kernel)
    assert sum(z.free for z in info.zones) == pytest.approx(counters["nr_free_pages"], rel=0.01)
    for name in ("nr_slab_unreclaimable", "nr_kernel_stack"):
        total = sum(node[name] for node in info.node_counters.values())
        assert total == pytest.approx(counters[name], rel=0.05), name


def test_this_machine_adds_up_to_its_vmstat() -> None:
    with this_machine() as host:
        info, counted = zoneinfo.read(host), vmstat.read(host)
    assert isinstance(info, Zoneinfo)
    assert not isinstance(counted, Unread)
    free = sum(zone.free for zone in info.zones)
    assert free == pytest.approx(counted.counters["nr_free_pages"], rel=0.1)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "Node N, zone NAME"),
        (b"Node 0 zone Normal\n", "Node N, zone NAME"),
        (b"Node 0, zone Normal\n  pages free 1\n", "min"),
        (ZONE.replace(b"free     9", b"free     x"), "pages free"),
        (ZONE + b"        protection: 0, 1\n", "protection"),
        (ZONE + b"  pagesets\n    cpu: 0\n", "count"),
        (ZONE + b"  pagesets\n              count: 3\n", "cpu: N"),
        (ZONE + b"    cpu: 0\n", "pagesets"),
        (ZONE + b"  pages free     9\n", "Node"),
        (b"Node 0, zone DMA\n  nr_mapped 3\n", "per-node stats"),
        (NODE + ZONE + NODE + ZONE, "once per node"),
    ],
)
def test_malformed(data: bytes, expected: str) -> None:
    with pytest.raises(ParseProblem, match=expected):
        parse(data)


def test_two_cpus_that_run_together_are_not_believed() -> None:
    cpu = b"    cpu: 0\n     count: 1\n     high: 1\n     batch: 1\n"
    damaged = cpu.replace(b"cpu:", b"cqu:")
    assert len(parse(ZONE + b"  pagesets\n" + cpu + cpu).zones[0].pagesets) == 2
    with pytest.raises(ParseProblem, match="cpu: N"):
        parse(ZONE + b"  pagesets\n" + cpu + damaged)


def test_a_machine_without_smp_has_no_threshold() -> None:
    cpu = b"  pagesets\n    cpu: 0\n     count: 1\n     high: 2\n     batch: 3\n"
    value = zoneinfo.read(case("=== /proc/zoneinfo\n" + (ZONE + cpu).decode()))
    assert isinstance(value, Zoneinfo)
    zone = value.zones[0]
    assert isinstance(zone, Zone)
    assert zone.pagesets[0].vm_stats_threshold is None
