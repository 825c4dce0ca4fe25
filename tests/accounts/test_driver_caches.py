"""What slab caches tell of a driver's pages, from seed 1 and by hand."""

import pytest
from tests.readings.kernel_files import SEED_5_10, content

from seawall.accounts.drivers.driver_caches import driver_pages, drivers_loaded, page_for_object
from seawall.readings import slabinfo as slabinfo_file
from seawall.readings.slabinfo import SlabCache, Slabinfo


def cache(name: str, objects: int) -> SlabCache:
    return SlabCache(
        name=name, active_objs=objects, num_objs=objects, objsize_bytes=40, objperslab=102,
        pagesperslab=1, active_slabs=1, num_slabs=1,
    )  # fmt: skip


def test_seed_1_says_33_gib() -> None:
    slabinfo = slabinfo_file.parse(content(SEED_5_10, "/proc/slabinfo"))
    (pages,) = driver_pages(slabinfo, 4096)
    assert pages.objects == 8_650_926
    assert round(pages.bytes / 2**30, 2) == 33.00
    assert pages.known.driver == "the NVIDIA driver"
    assert pages.cache == "nvidia_pte_cache-2782818403"
    assert drivers_loaded(slabinfo) == ["NVIDIA"]


def test_copies_of_a_cache_are_summed_for_an_upper_bound() -> None:
    slabinfo = Slabinfo((cache("nvidia_pte_cache", 1000), cache("nvidia_pte_cache-77", 500)))
    (pages,) = driver_pages(slabinfo, 65536)
    assert (pages.cache, pages.objects, pages.bytes) == ("nvidia_pte_cache", 1500, 1500 * 65536)


@pytest.mark.parametrize(
    "name", ["nvidia_pte_cache_x", "my_nvidia_pte_cache", "nvidia_stack_cache"]
)
def test_another_name_is_no_evidence(name: str) -> None:
    assert driver_pages(Slabinfo((cache(name, 10_000_000),)), 4096) == []


def test_an_empty_cache_of_a_loaded_driver_holds_nothing() -> None:
    assert driver_pages(Slabinfo((cache("nvidia_pte_cache", 0),)), 4096) == []


def test_hints_leave_out_the_kernels_own_caches() -> None:
    near = [
        cache(name, 1_000_000) for name in ("dentry", "kmalloc-64", "ext4_inode_cache", "acme_rx")
    ]
    found = page_for_object([*near, cache("acme_far", 400_000)], 4096, 4_096_000_000, 0.15)
    assert [(c.name, size) for c, size in found] == [("acme_rx", 4_096_000_000)]
