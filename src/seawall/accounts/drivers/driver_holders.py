# SPDX-License-Identifier: Apache-2.0
"""Who holds which driver's files, and what drivers still hold when nobody does.

A driver that keeps memory after its last user has gone does not give it back to anyone: that
is a leak of the driver's.  It is said only where every process was asked, where nothing else
uses the module (a mapping keeps it in use as an open file does), and of memory that only this
driver can hold: objects of its own slab cache, or what it says of itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.accounts.drivers.driver_caches import driver_pages
from seawall.accounts.drivers.driver_names import AMD, NVIDIA, driver_of, node_name
from seawall.host.host import Unread
from seawall.readings.driver_files import DriverFiles
from seawall.readings.driver_modules import DriverModules
from seawall.readings.driver_pools import DriverPools
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.slabinfo import PATH as SLABINFO
from seawall.readings.slabinfo import Slabinfo

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""
_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    NVIDIA: ("nvidia", "nvidia_uvm"), AMD: ("amdgpu",), "the xe driver": ("xe",),
    "the nouveau driver": ("nouveau",), "the radeon driver": ("radeon",),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverHolder:
    """The processes that have files of one driver open."""

    driver: str
    """``the NVIDIA driver``."""
    pids: tuple[int, ...]
    """Oldest first."""
    nodes: tuple[str, ...]
    """``/dev/nvidia0``, as they are called on an ordinary host."""
    oldest_start_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """Memory that only ``driver`` can hold, though no process has its files open."""

    driver: str
    bytes: int
    """What the evidence says at most; the driver's own needs are in it."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverHolders:
    """The topic: which processes hold which driver's files, and what is left when nobody does."""

    by_driver: Mapping[str, DriverHolder]
    idle: frozenset[str]
    """Drivers that are loaded and provably used by nobody: no open file in any process, and no
    other reference to the module (a mapping, a descriptor that is being handed on)."""
    left_behind: tuple[LeftBehind, ...]
    """Largest first; empty as well where it cannot be known: see ``is_complete``."""
    is_complete: bool
    """Every process was asked, so that a driver not in ``by_driver`` has no holder."""


def account(
    files: DriverFiles,
    modules: DriverModules | Unread,
    pools: DriverPools,
    slabinfo: Slabinfo | Unread,
    meminfo: Meminfo | Unread,
    kernel: Kernel,
) -> DriverHolders:
    """Sum what processes hold, and set it against what drivers hold."""
    by_driver = {holder.driver: holder for holder in _holders(files)}
    is_complete = files.left_out == 0
    left: list[LeftBehind] = []
    idle: frozenset[str] = frozenset()
    if is_complete and not isinstance(modules, Unread):
        idle = frozenset(name for name in _MODULES if _is_idle(name, by_driver, modules))
        found = [
            *_of_caches(slabinfo, kernel.page_size), *_of_gtt(pools), *_of_ttm(meminfo, modules),
        ]  # fmt: skip
        left = [one for one in found if one.driver in idle]
    return DriverHolders(
        by_driver=by_driver,
        idle=idle,
        left_behind=tuple(sorted(left, key=lambda one: -one.bytes)),
        is_complete=is_complete,
    )


def _holders(files: DriverFiles) -> Iterator[DriverHolder]:
    pids: dict[str, dict[int, int]] = {}
    nodes: dict[str, set[str]] = {}
    for pid, holder in files.by_pid.items():
        for file in holder.devices:
            driver = driver_of(file, files.module_of)
            pids.setdefault(driver, {})[pid] = holder.start_ticks
            nodes.setdefault(driver, set()).add(node_name(file))
    for driver, started in pids.items():
        yield DriverHolder(
            driver=driver,
            pids=tuple(sorted(started, key=lambda pid: (started[pid], pid))),
            nodes=tuple(sorted(nodes[driver])),
            oldest_start_ticks=min(started.values()),
        )


def _is_idle(driver: str, held: Mapping[str, DriverHolder], modules: DriverModules) -> bool:
    """Loaded, and provably used by nobody: a module built in does not tell, so never."""
    loaded = [modules.by_name[name] for name in _MODULES[driver] if name in modules.by_name]
    return driver not in held and bool(loaded) and all(one.references == 0 for one in loaded)


def _of_caches(slabinfo: Slabinfo | Unread, page_size: int) -> Iterator[LeftBehind]:
    if isinstance(slabinfo, Unread):
        return
    for pages in driver_pages(slabinfo, page_size):
        source = f"{SLABINFO} {pages.cache}: {pages.objects:,} objects"
        yield LeftBehind(driver=pages.known.driver, bytes=pages.bytes, source=source)


def _of_gtt(pools: DriverPools) -> Iterator[LeftBehind]:
    for card, used in pools.gtt_used:
        source = f"/sys/class/drm/{card}/device/mem_info_gtt_used"
        yield LeftBehind(driver=AMD, bytes=used, source=source)


def _of_ttm(meminfo: Meminfo | Unread, modules: DriverModules) -> Iterator[LeftBehind]:
    """GPUActive (7.1+) is the only TTM driver's; of several nobody knows whose it is."""
    driver = modules.ttm_driver
    if isinstance(meminfo, Meminfo) and meminfo.gpu_active and driver is not None:
        source = f"{PATH} GPUActive"
        yield LeftBehind(driver=f"the {driver} driver", bytes=meminfo.gpu_active, source=source)
