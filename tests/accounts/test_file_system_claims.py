"""Memory of cluster file systems by name: Lustre, BeeGFS, GPFS, WEKA."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from seawall.accounts.claim import Claim
from seawall.accounts.claim_sources import hugetlb
from seawall.accounts.claim_sources.file_systems import claims
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.process import Process, Processes
from seawall.readings.slabinfo import Slabinfo, parse

MIB = 1 << 20
PAGE = 4096
KERNEL = cast("Kernel", SimpleNamespace(page_size=PAGE))
# name, active objects, all, size, objects and pages of a slab; slabs.
CACHES = (
    ("lustre_inode_cache", 30_000, 1_000, 8), ("ldlm_locks", 60_000, 2_000, 2),
    ("osc_object_kmem", 10_000, 100, 4), ("ll_file_data", 1_000, 10, 1),
    ("beegfs_inode_cache", 9_000, 800, 8), ("ext4_inode_cache", 9_000, 900, 8),
    ("llc_conn", 9_000, 900, 8), ("nfs_inode_cache", 9_000, 900, 8),
)  # fmt: skip


def slabinfo(caches: Any = CACHES) -> Slabinfo:
    lines = ["slabinfo - version: 2.1"]
    lines += [
        f"{name} {count} {count} 512 8 {pages} : tunables 0 0 0 : slabdata {slabs} {slabs} 0"
        for name, count, slabs, pages in caches
    ]
    return parse("\n".join(lines).encode())


def workload(unit: str, cgroup: str = "", *, is_tenant: bool = False) -> Workload:
    return Workload(
        kind="unit", name=f"unit:{unit}", cgroup=cgroup or f"/system.slice/{unit}", unit=unit,
        is_tenant=is_tenant,
    )  # fmt: skip


def process(pid: int, comm: str, mib: int) -> Process:
    numbers = dict.fromkeys(
        ("ppid", "flags", "minflt", "majflt", "utime_ticks", "stime_ticks", "num_threads",
         "starttime_ticks", "vsize_bytes"), 0,
    )  # fmt: skip
    return Process(pid=pid, comm=comm, state="S", rss_pages=mib * MIB // PAGE, **numbers)


def found(slab: Slabinfo | Unread, *owned: tuple[Process, Workload]) -> dict[str, Claim]:
    processes = Processes({one.pid: one for one, _ in owned}, ())
    by_pid = {one.pid: owner for one, owner in owned}
    workloads = cast("Workloads", SimpleNamespace(by_pid=by_pid))
    return {one.holder: one for one in claims(KERNEL, slab, processes, workloads).claims}


def test_slab_of_clients_in_the_kernel_is_theirs_and_no_other_cache() -> None:
    told = found(slabinfo())
    assert set(told) == {"the Lustre client", "the BeeGFS client"}
    lustre = told["the Lustre client"]
    assert lustre.bytes == (1_000 * 8 + 2_000 * 2 + 100 * 4 + 10) * PAGE
    assert (lustre.within, lustre.is_counted, lustre.cgroup) == ("slab", True, None)
    assert "4 caches, most in lustre_inode_cache" in lustre.source
    assert "lru_size=clear" in lustre.give_back
    assert told["the BeeGFS client"].bytes == 800 * 8 * PAGE


def test_little_is_not_worth_a_line_and_what_is_not_read_is_not_guessed() -> None:
    assert found(slabinfo((("ldlm_locks", 10, 10, 1),))) == {}
    assert found(Unread("/proc/slabinfo", "no_permission", "")) == {}


def test_the_page_pool_is_the_daemons_of_the_host_and_of_nobody_called_so() -> None:
    own = workload("gpfs.service")
    told = found(
        slabinfo((("ldlm_locks", 10, 10, 1),)),
        (process(10, "mmfsd", 4096), own),
        (process(11, "mmfsd", 900), workload("x", is_tenant=True)),
        (process(12, "mmfsd", 900), workload("session-3.scope", "/user.slice/user-7.slice/x")),
        (process(13, "mmfsd2", 900), workload("y.service")),
    )  # fmt: skip
    assert set(told) == {"unit:gpfs.service"}
    claim = told["unit:gpfs.service"]
    assert (claim.bytes, claim.driver, claim.within) == (4096 * MIB, "GPFS", "anonymous")
    assert claim.confidence == "bound"


@pytest.mark.parametrize(
    ("owner", "whose"),
    [
        (workload("weka-agent.service"), "WEKA"), (workload("weka@client.service"), "WEKA"),
        (workload("wekan.d.service.x"), None), (workload("dpdk.service"), None),
        (workload("weka.service", is_tenant=True), None),
    ],
)  # fmt: skip
def test_huge_pages_of_weka_are_called_so(owner: Workload, whose: str | None) -> None:
    assert hugetlb._claim(owner, (1, 2, 3), "source", "exact", "").driver == whose
