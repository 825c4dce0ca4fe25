# SPDX-License-Identifier: Apache-2.0
"""What drivers keep for themselves: pools of free pages, and totals that they tell in sysfs.

A pool is a cache: it stays when its user has ended and is given back when memory is short.  It
is no leak.  NVIDIA's open module has pools since 590, graphics drivers with TTM always.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.claim import RESIDUAL, Claim, ClaimClass, Confidence, SourceClaims
from seawall.accounts.drivers.driver_names import AMD, NVIDIA, TTM
from seawall.accounts.node_memory.ledger_parts import TTM_LINE
from seawall.host.host import Unread
from seawall.readings.driver_modules import DriverModules
from seawall.readings.driver_pools import SHRINKERS, TTM_POOL, DriverPools, TtmPool
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import PATH, Meminfo

_POOLS_SINCE: Final = 590
_ALONE: Final = "nothing to do: it comes back by itself when memory is short"
_END: Final = "end the programs that use the graphics device; its driver frees their buffers then"


def claims(
    pools: DriverPools, modules: DriverModules | Unread, kernel: Kernel, meminfo: Meminfo | Unread
) -> SourceClaims:
    """Pools as class ``pool``, and what drivers say they hold altogether."""
    has_line = isinstance(meminfo, Meminfo) and meminfo.gpu_active is not None
    found = list(_nvidia(pools, kernel.page_size))
    if isinstance(meminfo, Meminfo) and has_line:
        found += _meminfo(meminfo, _ttm_driver(modules))
    else:
        found += _ttm_pool(pools, kernel.page_size)
    found += _gtt(pools, has_line=has_line)
    return SourceClaims(tuple(found), unseen=tuple(_unseen(pools, modules)))


def _claim(
    driver: str, size: int, kind: ClaimClass, source: str, within: str,
    *, confidence: Confidence = "exact", missing: str = "",
) -> Claim:  # fmt: skip
    is_exact = confidence == "exact"
    return Claim(
        holder=driver,
        workload=None,
        cgroup=None,
        driver=driver,
        bytes=size,
        least_bytes=size if is_exact else 0,
        most_bytes=size,
        kind=kind,
        within=within,
        is_counted=False,
        source=source,
        confidence=confidence,
        missing=missing,
        give_back=_ALONE if kind == "pool" else _END,
    )


def _nvidia(pools: DriverPools, page_size: int) -> Iterator[Claim]:
    if isinstance(pools.nvidia_pages, int) and pools.nvidia_pages:
        size = pools.nvidia_pages * page_size
        yield _claim(NVIDIA, size, "pool", f"{SHRINKERS}/nv-sysmem-alloc-*", RESIDUAL)


def _ttm_pool(pools: DriverPools, page_size: int) -> Iterator[Claim]:
    if isinstance(pools.ttm, TtmPool) and pools.ttm.pages:
        yield _claim(TTM, pools.ttm.pages * page_size, "pool", TTM_POOL, RESIDUAL)


def _meminfo(meminfo: Meminfo, driver: str) -> Iterator[Claim]:
    """Since 7.1 the kernel counts what TTM holds, in use and in pools."""
    if meminfo.gpu_active:
        yield _claim(
            driver, meminfo.gpu_active, "surface", f"{PATH} GPUActive", TTM_LINE,
            missing="whose buffers they are",
        )  # fmt: skip
    if meminfo.gpu_reclaim:
        yield _claim(TTM, meminfo.gpu_reclaim, "pool", f"{PATH} GPUReclaim", TTM_LINE)


def _ttm_driver(modules: DriverModules | Unread) -> str:
    """The one driver that uses TTM, where there is only one."""
    only = None if isinstance(modules, Unread) else modules.ttm_driver
    return TTM if only is None else f"the {only} driver"


def _gtt(pools: DriverPools, *, has_line: bool) -> Iterator[Claim]:
    """The total of amdgpu itself, its kernel's and registered memory of processes included."""
    size = sum(used for _, used in pools.gtt_used)
    if size and not has_line:
        yield _claim(
            AMD, size, "surface", "/sys/class/drm/card*/device/mem_info_gtt_used", RESIDUAL,
            confidence="estimate",
            missing="whose buffers they are, and how much is memory of processes, registered",
        )  # fmt: skip


def _unseen(pools: DriverPools, modules: DriverModules | Unread) -> Iterator[str]:
    if isinstance(modules, Unread):
        return
    nvidia = modules.by_name.get("nvidia")
    may_have = nvidia is not None and _major(nvidia.version) >= _POOLS_SINCE
    is_on = modules.nvidia_is_open is not False and modules.nvidia_pools != 0
    if may_have and is_on and isinstance(pools.nvidia_pages, Unread):
        yield (
            f"how much NVIDIA's driver {nvidia.version if nvidia else ''} keeps in page pools "
            "(reclaimable, no leak): needs a kernel with CONFIG_SHRINKER_DEBUG and debugfs mounted"
        )
    if "ttm" in modules.by_name and isinstance(pools.ttm, Unread):
        yield (
            "how much the graphics drivers keep in the TTM page pool (reclaimable, no leak): "
            "mount -t debugfs none /sys/kernel/debug, as root"
        )


def _major(version: str | None) -> int:
    word = (version or "").partition(".")[0]
    return int(word) if word.isdecimal() and len(word) < 6 else 0
