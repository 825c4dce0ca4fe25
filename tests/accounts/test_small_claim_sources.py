"""Sources of claims that one file each answers: huge pages, vmalloc, pinned, dying, allocinfo."""

import re

from tests.case_host import parse_case
from tests.readings.kernel_files import EL8, content

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.claim_sources import allocation_site_claims, dying, hugetlb, pinned, vmalloc
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.workloads import Workloads
from seawall.readings.allocinfo import Allocinfo
from seawall.readings.hugetlb_groups import HugetlbGroups
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.readings.vmstat import Vmstat

MIB = 1 << 20
GIB = 1 << 30
MEMINFO = """=== /proc/meminfo
MemTotal:       65011712 kB
MemFree:        50000000 kB
HugePages_Total:    4096
HugePages_Free:        0
Hugepagesize:       2048 kB
Hugetlb:         8388608 kB
"""
V2 = "=== /proc/1/mountinfo\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw{}\n"
V2 += "=== /sys/fs/cgroup/cgroup.controllers\nhugetlb memory\n"
V1 = """=== /proc/1/mountinfo
36 32 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
37 32 0:33 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb
"""


def snapshot_of(*parts: str) -> Snapshot:
    return Snapshot(parse_case("".join(("why: x\n", *parts)).encode()).rounds[0])


def v2_group(path: str, pids: str, **files: int) -> str:
    texts = {"memory.current": "4096", "memory.max": "max", "cgroup.procs": pids}
    texts |= {name.replace("_", "."): str(value) for name, value in files.items()}
    return "".join(f"=== /sys/fs/cgroup{path}/{name}\n{text}\n" for name, text in texts.items())


def hugetlb_of(snapshot: Snapshot) -> dict[str, Claim]:
    workloads = snapshot.get(Workloads)
    assert isinstance(workloads, Workloads)
    meminfo = snapshot.get(Meminfo)
    assert isinstance(meminfo, Meminfo)
    answer = hugetlb.claims(snapshot.get(HugetlbGroups), meminfo, workloads, snapshot)
    return {claim.holder: claim for claim in answer.claims}


def test_huge_pages_of_v2_by_cgroup_and_without_those_below() -> None:
    found = hugetlb_of(snapshot_of(
        MEMINFO, V2.format(""), v2_group("/db", "10", hugetlb_2MB_current=6 * GIB),
        v2_group("/db/in", "11", hugetlb_2MB_current=GIB, hugetlb_1GB_current=GIB),
        v2_group("/innocent", "12", hugetlb_2MB_current=0),
    ))  # fmt: skip
    assert {name: claim.bytes for name, claim in found.items()} == {
        "/db": 4 * GIB, "/db/in": 2 * GIB,
    }  # fmt: skip
    one = found["/db"]
    assert (one.within, one.confidence, one.is_counted) == ("hugetlb", "exact", False)
    assert (one.least_bytes, one.most_bytes) == (4 * GIB, 4 * GIB)


def test_huge_pages_that_memory_current_counts_are_no_shadow() -> None:
    option = ",memory_hugetlb_accounting"
    found = hugetlb_of(
        snapshot_of(MEMINFO, V2.format(option), v2_group("/db", "10", hugetlb_2MB_current=GIB))
    )
    assert found["/db"].is_counted


def test_huge_pages_of_v1_lie_in_a_tree_of_their_own() -> None:
    found = hugetlb_of(snapshot_of(
        MEMINFO, V1, "=== /sys/fs/cgroup/memory/db/memory.usage_in_bytes\n1\n",
        "=== /sys/fs/cgroup/memory/db/cgroup.procs\n10\n",
        f"=== /sys/fs/cgroup/hugetlb/db/hugetlb.2MB.usage_in_bytes\n{GIB}\n",
    ))  # fmt: skip
    assert {name: claim.bytes for name, claim in found.items()} == {"/db": GIB}


def test_huge_pages_without_a_controller_are_estimated_by_process() -> None:
    """Three processes map the same 4 GiB, or each its own: between nothing and 12 GiB."""
    status = "Name:\tdb\nPid:\t{0}\nHugetlbPages:\t 4194304 kB\n"
    parts = [f"=== /proc/{pid}/status\n{status.format(pid)}\n" for pid in (10, 11, 12)]
    text = V2.format("").replace("hugetlb memory", "memory")
    found = hugetlb_of(snapshot_of(MEMINFO, text, v2_group("/db", "10\n11\n12"), *parts))
    one = found["/db"]
    assert (one.least_bytes, one.bytes, one.most_bytes) == (0, 4 * GIB, 12 * GIB)
    assert one.confidence == "estimate"


def test_empty_pools_ask_no_cgroup() -> None:
    empty = MEMINFO.replace("8388608", "0").replace("4096", "0")
    group = v2_group("/db", "10", hugetlb_2MB_current=GIB)
    groups = snapshot_of(empty, V2.format(""), group).get(HugetlbGroups)
    assert isinstance(groups, HugetlbGroups)
    assert groups.by_path == {}


def vmalloc_of(text: str, page_size: int = 4096) -> SourceClaims:
    snapshot = snapshot_of(f"=== ?page_size\n{page_size}\n=== /proc/vmallocinfo\n{text}\n")
    kernel, areas = snapshot.get(Kernel), snapshot.get(Vmallocinfo)
    assert isinstance(kernel, Kernel)
    assert isinstance(areas, Vmallocinfo)
    return vmalloc.claims(kernel, areas)


AREAS = """0x0-0x1 67112960 bpf_map_area_alloc+0x32/0x90 pages=16384 vmalloc N0=16384
0x0-0x1 33558528 os_alloc_mem+0x8c/0xb0 [nvidia] pages=8192 vmalloc N0=8192
0x0-0x1 8392704 other+0x8c/0xb0 [nvidia] pages=2048 vmalloc N0=2048
0x0-0x1 33558528 dup_task_struct+0x8c/0xb0 pages=8192 vmalloc N0=8192
0x0-0x1 67112960 nv_map+0x1/0x2 [nvidia] vmap pages=16384
0x0-0x1 1052672 xt_alloc_table_info+0x2/0x9 pages=256 vmalloc N0=256"""


def test_vmalloc_by_driver_without_stacks_maps_and_small_ones() -> None:
    found = vmalloc_of(AREAS).claims
    assert [(c.holder, c.driver, c.bytes // MIB) for c in found] == [
        ("bpf_map_area_alloc() of the kernel", None, 64),
        ("nvidia (kernel module)", "nvidia", 40),
    ]
    assert {(c.within, c.workload) for c in found} == {("vmalloc", None)}
    assert vmalloc_of(AREAS, 65536).claims[0].bytes == GIB


def test_vmalloc_of_a_real_host_is_bounded() -> None:
    text = content(EL8, "/proc/vmallocinfo").decode()
    assert len(vmalloc_of(text, 65536).claims) <= 8


def pinned_of(snapshot: Snapshot) -> tuple[Claim, ...]:
    kernel, meminfo = snapshot.get(Kernel), snapshot.get(Meminfo)
    workloads = snapshot.get(Workloads)
    assert isinstance(kernel, Kernel)
    assert isinstance(meminfo, Meminfo)
    assert isinstance(workloads, Workloads)
    return pinned.claims(meminfo, snapshot.get(Vmstat), kernel, workloads, snapshot).claims


def test_nobody_is_asked_where_nothing_is_pinned() -> None:
    """16,383 pages that are pinned now are just under 64 MiB; one more and it is asked."""
    status = "=== /proc/10/status\nName:\tx\nPid:\t10\nRssAnon:\t 512000 kB\nVmPin:\t 512000 kB\n"
    for pins, expected in ((16383, 0), (16384, 1)):
        vmstat = f"nr_foll_pin_acquired {pins + 7}\nnr_foll_pin_released 7\n"
        parts = (V2.format(""), v2_group("/rdma", "10"), status)
        assert (
            len(pinned_of(snapshot_of(MEMINFO, f"=== /proc/vmstat\n{vmstat}", *parts))) == expected
        )
    vmstat = "=== /proc/vmstat\nnr_foll_pin_acquired 0\n"
    assert len(pinned_of(snapshot_of(MEMINFO + "Mlocked: 65536 kB\n", vmstat, *parts))) == 1


def test_pinned_memory_is_told_in_the_line_that_has_it() -> None:
    """800 MiB pinned: 500 anonymous and the rest shared; a daemon's 5 MiB is nobody's news."""
    status = "Name:\tx\nPid:\t{}\nRssAnon:\t {} kB\nRssShmem:\t 409600 kB\nVmLck:\t 100 kB\n"
    one = status.format(10, 512000) + "VmPin:\t 819200 kB\n"
    two = status.format(11, 512000) + "VmPin:\t 5120 kB\n"
    snapshot = snapshot_of(
        MEMINFO, V2.format(""), v2_group("/rdma", "10"), v2_group("/daemon", "11"),
        f"=== /proc/10/status\n{one}=== /proc/11/status\n{two}",
    )  # fmt: skip
    found = pinned_of(snapshot)
    assert {(c.holder, c.within): c.most_bytes // MIB for c in found} == {
        ("/rdma", "anonymous"): 500, ("/rdma", "tmpfs and shared"): 300,
    }  # fmt: skip
    assert all(c.is_counted and c.least_bytes == 0 for c in found)


def test_dying_cgroups_are_a_bound_in_the_lines_that_hold_them() -> None:
    stat = "anon 0\nfile {}\nshmem {}\nkernel {}\n"
    base = "=== /sys/fs/cgroup"
    text = (
        f"{base}/jobs/memory.current\n{900 * MIB}\n{base}/jobs/cgroup.procs\n\n"
        f"{base}/jobs/memory.stat\n{stat.format(800 * MIB, 500 * MIB, 60 * MIB)}"
        f"{base}/jobs/cgroup.stat\nnr_descendants 1\nnr_dying_descendants 12\n"
        f"{base}/jobs/now/memory.current\n{300 * MIB}\n{base}/jobs/now/cgroup.procs\n10\n"
        f"{base}/jobs/now/memory.stat\n{stat.format(250 * MIB, 50 * MIB, 20 * MIB)}"
        f"{base}/jobs/now/cgroup.stat\nnr_descendants 0\nnr_dying_descendants 0\n"
    )
    groups = snapshot_of(MEMINFO, V2.format(""), text).get(MemoryGroups)
    assert isinstance(groups, MemoryGroups)
    found = dying.claims(groups).claims
    assert {(c.holder, c.within): c.most_bytes // MIB for c in found} == {
        ("removed cgroups below /jobs", "tmpfs and shared"): 450,
        ("removed cgroups below /jobs", "page cache"): 100,
        ("removed cgroups below /jobs", "slab"): 40,
    }
    assert all(c.confidence == "bound" and c.cgroup is None for c in found)


SITES = """allocinfo - version: 1.0
#     <size>  <calls> <tag info>
  1073741824   262144 net/packet/af_packet.c:4439 func:alloc_one_pg_vec_page
   536870912   131072 mm/filemap.c:1978 func:__filemap_get_folio
   127664128    31168 mm/page_ext.c:270 func:alloc_page_ext
   104857600    25600 drivers/net/ethernet/intel/ice/ice_txrx.c:655 [ice] func:ice_alloc_mapped_page
    56373248     4737 mm/slub.c:2259 func:alloc_slab_page
    52428800   409600 drivers/net/ethernet/intel/ice/ice_main.c:99 [ice] func:ice_small_objects
    33554432     8192 drivers/iommu/amd/iommu.c:1 func:alloc_pgtable_page
  2147483648   524288 kernel-open/nvidia/nv-vm.c:300 [nvidia] func:nv_alloc_system_pages accurate:no
"""


def allocinfo_of(text: str, meminfo: str = MEMINFO) -> dict[str, Claim]:
    snapshot = snapshot_of(meminfo, f"=== /proc/allocinfo\n{text}")
    sites, kernel, ledger = snapshot.get(Allocinfo), snapshot.get(Kernel), snapshot.get(Ledger)
    assert isinstance(sites, Allocinfo)
    assert isinstance(kernel, Kernel)
    assert isinstance(ledger, Ledger)
    return {
        claim.holder: claim for claim in allocation_site_claims.claims(sites, kernel, ledger).claims
    }


def test_allocinfo_tells_only_what_no_counter_has() -> None:
    found = allocinfo_of(SITES)
    assert {name: (c.bytes, c.confidence) for name, c in found.items()} == {
        "packet rings": (GIB, "exact"),
        "page_ext of the kernel": (127664128, "exact"),
        "the driver ice": (104857600, "bound"),
        "the driver nvidia": (2 * GIB, "bound"),
    }
    assert {c.within for c in found.values()} == {RESIDUAL}
    assert {c.workload for c in found.values()} == {None}
    assert (found["packet rings"].kind, found["the driver nvidia"].kind) == ("ring", "surface")


def test_rings_that_may_lie_in_vmalloc_are_less_certain() -> None:
    """The same function takes vmalloc where pages are short, and that is counted."""
    counted = MEMINFO + "KReclaimable: 5 kB\nVmallocUsed: 307200 kB\n"
    one = allocinfo_of(SITES, counted)["packet rings"]
    assert (one.least_bytes, one.most_bytes) == (GIB - 300 * MIB, GIB)


def test_ttm_is_a_line_of_its_own_since_7_1() -> None:
    site = " 268435456 65536 drivers/gpu/drm/ttm/ttm_pool.c:170 [ttm] func:ttm_pool_alloc_page\n"
    assert allocinfo_of(site)["graphics memory (TTM)"].within == RESIDUAL
    newer = MEMINFO + "GPUActive: 262144 kB\nGPUReclaim: 0 kB\n"
    assert allocinfo_of(site, newer)["graphics memory (TTM)"].within == "gpu (ttm)"


def test_sources_say_how_to_give_back_and_what_they_miss() -> None:
    claims = [*allocinfo_of(SITES).values(), *vmalloc_of(AREAS).claims]
    assert all(re.search(r"\w{3}", claim.give_back) for claim in claims)
    assert all(claim.missing for claim in claims)


def test_no_controller_and_no_processes_claims_nothing() -> None:
    assert hugetlb_of(snapshot_of(MEMINFO, V2.format("").replace("hugetlb ", ""))) == {}
