"""Who holds what drivers took: by hand, with the innocent beside it."""

from types import MappingProxyType
from typing import Any

import pytest
from tests.accounts.test_ledger import ledger_of, meminfo, zoneinfo
from tests.case_host import parse_case

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims
from seawall.accounts.claim_sources import (
    driver_mapping_claims,
    driver_pool_claims,
    driver_suspects,
    drm_client_claims,
    nvml_claims,
)
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings import kernel as kernel_file
from seawall.readings import meminfo as meminfo_file
from seawall.readings.driver_files import DriverFile, DriverFiles, Holder
from seawall.readings.driver_mappings import DriverMappings, MappedDriver
from seawall.readings.driver_modules import DriverModule, DriverModules
from seawall.readings.driver_pools import DriverPools, TtmPool
from seawall.readings.drm_clients import DrmClient, DrmClients, DrmRegion
from seawall.readings.kernel import Kernel
from seawall.readings.nvml import DeviceProcess, Nvml, NvmlDevice

MIB = 1 << 20
GIB = 1 << 30
NONE = Unread("x", "absent")
RENDER = Workload(kind="container", name="shop/render/main", cgroup="/pods/render", is_tenant=True)
OTHER = Workload(kind="container", name="shop/other/main", cgroup="/pods/other", is_tenant=True)
WORKLOADS = Workloads({}, {7: RENDER, 8: RENDER, 9: OTHER})


def kernel(release: str = "6.1.0") -> Kernel:
    text = f"why: x\n=== /proc/sys/kernel/osrelease\n{release}\n"
    found = kernel_file.read(parse_case(text.encode()).rounds[0])
    assert isinstance(found, Kernel)
    return found


def a_ledger() -> Ledger:
    return ledger_of(("/proc/meminfo", meminfo()), zoneinfo())


def mapped(driver: str, minor: int, rss: int, pss: int, private: int) -> MappedDriver:
    return MappedDriver(driver, 195 if driver.startswith("nvidia") else 10, minor, 3,
                        rss * MIB, pss * MIB, private * MIB)  # fmt: skip


def mapping_claims(
    rows: dict[int, tuple[MappedDriver, ...]], release: str = "6.1.0", **more: Any
) -> tuple[Claim, ...]:
    found = driver_mapping_claims.claims(
        DriverMappings(rows, more.get("left_out", ()), more.get("unread", ())),
        DriverFiles({}, {}, 0), WORKLOADS, kernel(release), a_ledger(),
    )  # fmt: skip
    return found.claims


# --- mappings ---------------------------------------------------------------------------


def test_pages_of_forked_workers_count_once() -> None:
    """Two workers of one pod map the same 100 MiB; one has 8 MiB of its own besides."""
    (claim,) = mapping_claims(
        {7: (mapped("nvidia", 0, 100, 50, 0),), 8: (mapped("nvidia", 0, 108, 58, 8),)}
    )
    assert (claim.workload, claim.cgroup, claim.driver) == (
        "shop/render/main", "/pods/render", "the NVIDIA driver",
    )  # fmt: skip
    assert (claim.least_bytes, claim.bytes) == (108 * MIB, 108 * MIB)
    assert (claim.kind, claim.within, claim.confidence) == ("surface", RESIDUAL, "exact")
    assert not claim.is_counted
    assert "2 processes" in claim.source
    assert "/dev/nvidia0" in claim.source


def test_what_another_pod_maps_too_is_certain_for_neither() -> None:
    """A descriptor was handed on: nothing says who took the 100 MiB."""
    render, other = mapping_claims(
        {7: (mapped("nvidia", 0, 130, 80, 30),), 9: (mapped("nvidia", 0, 100, 50, 0),)}
    )
    assert (render.least_bytes, render.bytes, render.most_bytes) == (
        30 * MIB, 80 * MIB, 130 * MIB,
    )  # fmt: skip
    assert (other.least_bytes, other.most_bytes) == (0, 100 * MIB)
    assert render.bytes + other.bytes == 130 * MIB


def test_shares_that_add_up_by_chance_prove_nothing() -> None:
    """A compositor shares 100 MiB with each of two clients: half of both is as much as one."""
    clients = mapping_claims(
        {
            7: (mapped("nvidia", 0, 100, 50, 0),), 8: (mapped("nvidia", 0, 100, 50, 0),),
            9: (mapped("nvidia", 0, 200, 100, 0),),
        }
    )  # fmt: skip
    assert [(c.workload, c.least_bytes, c.bytes) for c in clients] == [
        ("shop/render/main", 0, 100 * MIB), ("shop/other/main", 0, 100 * MIB),
    ]  # fmt: skip


def test_rounding_of_smaps_is_no_stranger() -> None:
    """Pss is rounded down for each mapping: three of them may lack 3 kB in each process."""
    rows = {
        pid: (MappedDriver("nvidia", 195, 0, 3, 9 * MIB, 9 * MIB // 2 - 3 * 1024, 0),)
        for pid in (7, 8)
    }
    (claim,) = mapping_claims(rows)
    assert claim.least_bytes == claim.bytes == 9 * MIB - 6 * 1024


def test_managed_memory_is_charged_where_the_driver_can() -> None:
    rows = {7: (mapped("nvidia-uvm", 0, 64, 64, 64), mapped("nvidia", 255, 32, 32, 32))}
    new = {claim.kind: claim for claim in mapping_claims(rows, "5.14.0")}
    old = {claim.kind: claim for claim in mapping_claims(rows, "5.10.0")}
    assert (new["managed"].is_counted, old["managed"].is_counted) == (True, False)
    assert new["managed"].bytes == 64 * MIB
    assert not new["surface"].is_counted
    assert "/dev/nvidiactl" in new["surface"].source


def test_windows_into_a_device_and_doorbells_are_no_claim() -> None:
    assert mapping_claims({7: (MappedDriver("nvidia", 195, 0, 40, 0, 0, 0),)}) == ()
    assert mapping_claims({7: (MappedDriver("misc:vfio", 10, 196, 1, 8192, 8192, 8192),)}) == ()


def test_locked_address_space_is_named() -> None:
    locked = Unread("/proc/8/smaps", "no_answer", "a process did not let go")
    found = driver_mapping_claims.claims(
        DriverMappings({}, (8,), (locked,)), DriverFiles({}, {}, 0), WORKLOADS, kernel(),
        a_ledger(),
    )  # fmt: skip
    (words,) = found.unseen
    assert "1 process" in words
    assert "pid 8 did not answer (address space locked)" in words


def test_process_of_no_workload_is_named_by_its_pid() -> None:
    (claim,) = mapping_claims({4711: (mapped("nvidia", 0, 100, 100, 100),)})
    assert (claim.holder, claim.workload, claim.cgroup) == ("process 4711", None, None)


# --- DRM clients ------------------------------------------------------------------------


def client(driver: str, pids: tuple[int, ...], number: int = 1, **regions: DrmRegion) -> DrmClient:
    named = MappingProxyType({name.replace("_", "-"): one for name, one in regions.items()})
    return DrmClient(driver=driver, pdev="0000:04:00.0", client_id=number, pids=pids, regions=named)


def drm(*clients: DrmClient, gpu_active: int | None = None, **more: Any) -> SourceClaims:
    told = DrmClients(clients, more.get("silent", {}), 0, ())
    extra = {} if gpu_active is None else {"gpu_active": gpu_active}
    info = meminfo_file.Meminfo(mem_total=1 << 40, mem_free=0, **extra)
    return drm_client_claims.claims(told, WORKLOADS, info)


def test_amdgpu_system_memory_is_an_estimate() -> None:
    """Video memory is none of the host's; registered memory of the process is in gtt too."""
    gtt = DrmRegion(total=300 * MIB, resident=200 * MIB, shared=40 * MIB, memory=200 * MIB)
    vram = DrmRegion(total=4 * GIB, resident=4 * GIB)
    (claim,) = drm(client("amdgpu", (7,), gtt=gtt, vram=vram)).claims
    assert (claim.least_bytes, claim.bytes, claim.most_bytes) == (0, 180 * MIB, 200 * MIB)
    assert (claim.workload, claim.driver, claim.within) == (
        "shop/render/main", "the amdgpu driver", RESIDUAL,
    )  # fmt: skip
    assert "registered" in claim.missing


def test_older_amdgpu_tells_by_the_older_name() -> None:
    (claim,) = drm(client("amdgpu", (7,), gtt=DrmRegion(memory=100 * MIB))).claims
    assert (claim.bytes, claim.most_bytes) == (100 * MIB, 100 * MIB)


def test_xe_counts_only_pages_of_its_own() -> None:
    gtt = DrmRegion(total=GIB, resident=GIB, shared=200 * MIB)
    (claim,) = drm(client("xe", (7,), gtt=gtt)).claims
    assert (claim.least_bytes, claim.bytes, claim.most_bytes) == (
        GIB - 200 * MIB, GIB - 100 * MIB, GIB,
    )  # fmt: skip


def test_kernel_that_counts_ttm_has_a_line_for_it() -> None:
    gtt = DrmRegion(resident=GIB, shared=0)
    (claim,) = drm(client("xe", (7,), gtt=gtt), gpu_active=GIB).claims
    assert claim.within == "gpu (ttm)"


@pytest.mark.parametrize(
    ("driver", "region"),
    [("i915", "system0"), ("panthor", "memory"), ("v3d", "memory"), ("unheard_of", "memory")],
)
def test_drivers_that_take_tmpfs_pages_are_counted_already(driver: str, region: str) -> None:
    sizes = {region: DrmRegion(total=GIB, resident=500 * MIB), "stolen-system0": DrmRegion(
        total=GIB, resident=GIB)}  # fmt: skip
    (claim,) = drm(client(driver, (7,), **sizes)).claims
    assert (claim.within, claim.is_counted, claim.bytes) == ("tmpfs and shared", True, 500 * MIB)


def test_client_whose_descriptor_was_handed_on_is_nobodys_for_sure() -> None:
    gtt = DrmRegion(resident=GIB, shared=0)
    both, own = drm(client("xe", (8, 9), gtt=gtt), client("xe", (9,), 2, gtt=gtt)).claims
    assert (both.workload, both.cgroup) == (None, None)
    assert both.holder == "shop/other/main or shop/render/main"
    assert "share the descriptor" in both.missing
    assert own.workload == "shop/other/main"


def test_client_that_a_process_of_no_workload_holds_too_is_nobodys_for_sure() -> None:
    """Whoever is not known may have made it and handed it on."""
    (both,) = drm(client("xe", (7, 4711), gtt=DrmRegion(resident=GIB, shared=0))).claims
    assert (both.holder, both.workload) == ("process 4711 or shop/render/main", None)
    (alone,) = drm(client("xe", (4711,), gtt=DrmRegion(resident=GIB, shared=0))).claims
    assert (alone.holder, alone.workload) == ("process 4711", None)


def test_driver_that_prints_no_memory_is_told() -> None:
    assert drm(silent={"?": (7,), "nvidia-drm": (8,)}).unseen == ()
    (words,) = drm(silent={"nouveau": (7, 8)}).unseen
    assert words.startswith("what 2 processes hold of nouveau")


# --- NVML -------------------------------------------------------------------------------


def device(**changes: Any) -> NvmlDevice:
    values = {
        "name": "NVIDIA GB10", "uuid": None, "total": None, "used": None, "is_unified": True,
        "processes": (DeviceProcess(7, 12 * GIB),), "problem": "not supported",
    }  # fmt: skip
    return NvmlDevice(**{**values, **changes})


def test_unified_memory_is_claimed_for_who_uses_it() -> None:
    """Each process once, though it is listed for computing and for graphics."""
    twice = (DeviceProcess(7, 12 * GIB), DeviceProcess(7, 12 * GIB), DeviceProcess(8, GIB))
    (claim,) = nvml_claims.claims(Nvml("580", (device(processes=twice),)), WORKLOADS).claims
    assert (claim.workload, claim.kind, claim.bytes) == ("shop/render/main", "unified", 13 * GIB)
    assert (claim.least_bytes, claim.confidence, claim.within) == (0, "estimate", RESIDUAL)


def test_memory_of_a_device_of_its_own_is_no_claim() -> None:
    other = device(name="NVIDIA H200", is_unified=False, total=140 * GIB, used=100 * GIB)
    assert nvml_claims.claims(Nvml("580", (other,)), WORKLOADS) == SourceClaims()


def test_device_that_does_not_tell_is_unseen() -> None:
    silent = nvml_claims.claims(
        Nvml("580", (device(processes=None, problem="unknown error"),)), WORKLOADS
    )
    assert silent.unseen == ("who uses NVIDIA GB10: NVML says unknown error",)
    missing = nvml_claims.claims(Unread("nvml", "absent", "no libnvidia-ml.so.1"), WORKLOADS)
    assert missing.unseen == ("device memory that is the host's own: nvml: no libnvidia-ml.so.1",)
    none = Unread("/proc/driver/nvidia/gpus", "absent", "No such file or directory")
    assert nvml_claims.claims(none, WORKLOADS) == SourceClaims()


# --- pools ------------------------------------------------------------------------------


def modules(*names: str, version: str | None = None, is_open: bool | None = None) -> DriverModules:
    return DriverModules(
        by_name={n: DriverModule(name=n, version=version, references=0) for n in names},
        nvidia_is_open=is_open, nvidia_pools=None,
    )  # fmt: skip


def pools(**changes: Any) -> DriverPools:
    return DriverPools(**{"nvidia_pages": NONE, "ttm": NONE, "gtt_used": (), **changes})


def test_pool_is_a_cache_and_no_leak() -> None:
    told = pools(nvidia_pages=2048, ttm=TtmPool(256, 1000))
    found = driver_pool_claims.claims(told, modules("nvidia", "ttm"), kernel(), NONE)
    assert [(c.driver, c.bytes, c.least_bytes, c.kind, c.workload) for c in found.claims] == [
        ("the NVIDIA driver", 8 * MIB, 8 * MIB, "pool", None),
        ("the TTM graphics drivers", MIB, MIB, "pool", None),
    ]
    assert all("comes back by itself" in claim.give_back for claim in found.claims)
    assert found.unseen == ()


@pytest.mark.parametrize(
    ("version", "is_open", "is_told"),
    [("590.48.01", True, True), ("595.1", None, True), ("580.95.05", True, False),
     ("590.48.01", False, False), (None, True, False)],
)  # fmt: skip
def test_pools_that_cannot_be_seen_are_told(
    version: str | None, is_open: bool | None, is_told: bool
) -> None:
    told = modules("nvidia", version=version, is_open=is_open)
    found = driver_pool_claims.claims(pools(), told, kernel(), NONE)
    assert any("CONFIG_SHRINKER_DEBUG" in words for words in found.unseen) is is_told


def test_kernel_that_counts_ttm_is_believed_rather_than_debugfs() -> None:
    info = meminfo_file.Meminfo(mem_total=GIB, mem_free=0, gpu_active=3 * MIB, gpu_reclaim=MIB)
    told = pools(ttm=TtmPool(256, 1000), gtt_used=(("card0", 3 * MIB),))
    found = driver_pool_claims.claims(told, modules("amdgpu", "ttm"), kernel(), info)
    assert [(c.holder, c.bytes, c.kind, c.is_counted) for c in found.claims] == [
        ("the amdgpu driver", 3 * MIB, "surface", False),
        ("the TTM graphics drivers", MIB, "pool", False),
    ]
    assert {claim.within for claim in found.claims} == {"gpu (ttm)"}


def test_what_ttm_holds_is_the_only_drivers_that_uses_it() -> None:
    info = meminfo_file.Meminfo(mem_total=GIB, mem_free=0, gpu_active=3 * MIB)
    for loaded, driver in (
        (("xe", "ttm"), "the xe driver"),
        (("xe", "i915", "ttm"), "the TTM graphics drivers"),
        (("xe", "vmwgfx", "ttm"), "the TTM graphics drivers"),
    ):
        (claim,) = driver_pool_claims.claims(pools(), modules(*loaded), kernel(), info).claims
        assert claim.driver == driver


def test_amdgpus_own_total_stands_where_nobody_holds_it() -> None:
    told = pools(gtt_used=(("card0", GIB), ("card1", GIB)))
    (claim,) = driver_pool_claims.claims(told, NONE, kernel(), NONE).claims
    assert (claim.driver, claim.bytes, claim.least_bytes) == ("the amdgpu driver", 2 * GIB, 0)


# --- suspects ---------------------------------------------------------------------------


def holder(pid: int, start_ticks: int, *devices: DriverFile) -> Holder:
    return Holder(pid, start_ticks, devices, ())


NVIDIA0 = DriverFile("nvidia", 195, 0, 4, (3, 4, 5, 6))
CONTROL = DriverFile("nvidia", 195, 255, 1, (7,))
UVM = DriverFile("nvidia-uvm", 235, 0, 1, (8,))
MLX5 = DriverFile("infiniband_verbs", 231, 192, 1, (9,))
KVM = DriverFile("misc:kvm", 10, 232, 1, (9,))


def test_suspects_by_processes_then_by_age() -> None:
    """Uptime of the case is a day; its ticks are a hundredth of a second."""
    files = DriverFiles(
        {
            7: holder(7, 100 * 3600, NVIDIA0, CONTROL, UVM),
            8: holder(8, 200 * 3600, NVIDIA0),
            9: holder(9, 8_640_000 - 700, MLX5, KVM),
        },
        {(231, 192): "mlx5_core"}, 0,
    )  # fmt: skip
    found = driver_suspects.claims(files, WORKLOADS, kernel())
    assert found.claims == ()
    assert [(s.workload, s.cgroup, s.driver, s.pids, s.why) for s in found.suspects] == [
        ("shop/render/main", "/pods/render", "the NVIDIA driver", (7, 8),
         "2 processes have /dev/nvidia-uvm, /dev/nvidia0 and 1 more open, the oldest for 23 h"),
        ("shop/other/main", "/pods/other", "the mlx5_core driver", (9,),
         "1 process has /dev/infiniband/uverbs0 open, for 7 s"),
    ]  # fmt: skip


def test_who_was_not_asked_is_told() -> None:
    found = driver_suspects.claims(DriverFiles({}, {}, 3), WORKLOADS, kernel())
    assert found.unseen == (
        "which drivers' files 3 processes hold: not asked, for lack of time or rights",
    )
