"""Headroom against what kernels print, and how it treats cache, dirty pages and huge pages."""

import dataclasses

import pytest
from tests.readings.kernel_files import DEBIAN_6_1, EL8, UBUNTU_3_2, VM_6_18, content, tree

from seawall.accounts.node_memory.headroom import (
    Headroom,
    account,
    estimate_available,
    hugetlb_bytes,
)
from seawall.host.host import Unread
from seawall.readings import kernel as kernel_file
from seawall.readings import meminfo as meminfo_file
from seawall.readings import zoneinfo as zoneinfo_file
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.zoneinfo import Zone, Zoneinfo

NO_ZONES = Unread("/proc/zoneinfo", "absent")
NO_NODES = Unread("/sys/devices/system/node", "absent")
GIB = 1 << 30


def meminfo_of(kernel: str) -> Meminfo:
    return meminfo_file.parse(content(kernel, "/proc/meminfo"))


def headroom_of(meminfo: Meminfo, zones: tuple[Zone, ...] = ()) -> Headroom:
    with tree(EL8) as host:
        kernel = kernel_file.read(host)
    assert isinstance(kernel, Kernel)
    zoneinfo = Zoneinfo(zones=zones, node_counters={}) if zones else NO_ZONES
    return account(meminfo, dataclasses.replace(kernel, page_size=4096), zoneinfo, NO_NODES)


def zone(name: str, free: int, low: int, pages: int) -> Zone:
    return Zone(
        node=0, name=name, free=free, min=low * 4 // 5, low=low, high=low * 6 // 5, boost=None,
        spanned=pages, present=pages, managed=pages, cma=None, protection=(0, 0), counters={},
        pagesets=(),
    )  # fmt: skip


@pytest.mark.parametrize("kernel", [EL8, DEBIAN_6_1, VM_6_18])
def test_estimate_is_what_the_kernel_prints(kernel: str) -> None:
    meminfo = meminfo_of(kernel)
    zones = zoneinfo_file.parse(content(kernel, "/proc/zoneinfo")).zones
    assert meminfo.mem_available is not None
    # The two files were read a moment apart.
    ours = estimate_available(meminfo, zones, 4096)
    assert abs(ours - meminfo.mem_available) < 0.001 * meminfo.mem_total


def test_before_3_14_the_estimate_stands_in_and_says_so() -> None:
    meminfo = meminfo_of(UBUNTU_3_2)
    zones = zoneinfo_file.parse(content(UBUNTU_3_2, "/proc/zoneinfo")).zones
    headroom = headroom_of(meminfo, zones)
    assert meminfo.mem_available is None
    assert meminfo.mem_free < headroom.available_bytes < meminfo.mem_total
    assert "MemFree" in headroom.available_source


def test_page_cache_is_headroom_and_dirty_pages_are_not() -> None:
    full_of_cache = Meminfo(mem_total=64 * GIB, mem_free=GIB, mem_available=50 * GIB, dirty=0)
    assert headroom_of(full_of_cache).fraction > 0.75
    unwritten = dataclasses.replace(full_of_cache, dirty=20 * GIB, writeback=2 * GIB)
    assert headroom_of(unwritten).bytes == 28 * GIB
    more_dirty_than_available = dataclasses.replace(full_of_cache, dirty=60 * GIB)
    assert headroom_of(more_dirty_than_available).bytes == 0


def test_huge_pages_leave_the_total() -> None:
    meminfo = Meminfo(
        mem_total=64 * GIB, mem_free=3 * GIB, mem_available=3 * GIB,
        huge_pages_total=30 * 512, hugepagesize=2 << 20,
    )  # fmt: skip
    assert hugetlb_bytes(meminfo) == 30 * GIB
    assert headroom_of(meminfo).total_bytes == 34 * GIB
    # Since 4.16 Hugetlb is the sum over all sizes and wins.
    assert hugetlb_bytes(dataclasses.replace(meminfo, hugetlb=40 * GIB)) == 40 * GIB
    assert hugetlb_bytes(dataclasses.replace(meminfo, hugetlb=900 * GIB)) == 64 * GIB


def test_a_small_zone_says_nothing_about_the_node() -> None:
    dma, normal = zone("DMA", 1, 10, 4000), zone("Normal", 900, 1000, 1_000_000)
    headroom = headroom_of(Meminfo(mem_total=4 * GIB, mem_free=GIB), (dma, normal))
    assert headroom.zones_below_low == ("node 0 Normal",)
    assert headroom.zones_below_min == ()
    assert headroom.watermark_low_bytes == 1010 * 4096


def test_without_zoneinfo_watermarks_are_unknown() -> None:
    headroom = headroom_of(Meminfo(mem_total=4 * GIB, mem_free=GIB))
    assert headroom.watermark_low_bytes is None
    assert headroom.watermark_min_bytes is None
    assert headroom.zones_source == ""


def test_a_large_node_is_low_by_amount_not_by_share() -> None:
    large = headroom_of(Meminfo(mem_total=2048 * GIB, mem_free=0, mem_available=30 * GIB))
    assert large.fraction < 0.02
    assert not large.is_below(0.05, 8 * GIB)
    assert large.is_below(0.05, 64 * GIB)
