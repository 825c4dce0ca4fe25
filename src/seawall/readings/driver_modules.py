# SPDX-License-Identifier: Apache-2.0
"""/sys/module of the drivers that take memory of their own: version, and who else uses them.

ABI/stable/sysfs-module (refcnt, holders, since 2.6); ``version`` where the module has one.  A
driver that is built into the kernel has no refcnt.  Which flavour of NVIDIA's module it is,
/proc/driver/nvidia/version tells, and whether it keeps pools, /proc/driver/nvidia/params.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

_TTM: Final = (
    "amdgpu", "radeon", "nouveau", "xe", "i915", "vmwgfx", "qxl", "drm_vram_helper",
)  # fmt: skip
NAMES: Final[tuple[str, ...]] = ("nvidia", "nvidia_uvm", "ttm", *_TTM)
_SYSFS: Final = "/sys/module"
_NVIDIA: Final = "/proc/driver/nvidia"
_POOLS: Final = b"EnableSystemMemoryPools"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverModule:
    """One driver that is loaded."""

    name: str
    version: str | None
    references: int | None
    """Open files, mappings and other users, modules on top not counted; None when built in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverModules:
    """The topic: the loaded kernel modules of drivers that take memory of their own."""

    by_name: Mapping[str, DriverModule]
    nvidia_is_open: bool | None
    """Whether NVIDIA's is the open kernel module; None where there is none."""
    nvidia_pools: int | None
    """Its parameter EnableSystemMemoryPools (590+): a bit for each size; 0 when switched off."""

    @property
    def ttm_driver(self) -> str | None:
        """The only one that can use TTM; None where there are several, or none."""
        loaded = [name for name in _TTM if name in self.by_name]
        return loaded[0] if len(loaded) == 1 else None


def parse_reference_count(data: bytes) -> int:
    """How many use a module: /sys/module/NAME/refcnt; ParseProblem for no number."""
    return parse_number(data.strip(), 1, "a reference count")


def parse_version(data: bytes) -> str:
    """A module's version: the line of /sys/module/NAME/version; ParseProblem for another shape."""
    word = data.strip()
    if not word or b"\n" in word or len(word) > 64:
        raise ParseProblem(1, "a version", data)
    return decode_name(word)


def parse_flavour(data: bytes) -> bool:
    """/proc/driver/nvidia/version: whether the kernel module is the open one."""
    for line in data.split(b"\n"):
        if line.startswith(b"NVRM version:"):
            return b" Open Kernel Module " in line
    raise ParseProblem(0, "a line 'NVRM version: ...'", data)


def parse_pools(data: bytes) -> int | None:
    """EnableSystemMemoryPools in /proc/driver/nvidia/params; None where it is not known."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        key, colon, value = line.partition(b":")
        if colon and key.strip() == _POOLS:
            return parse_number(value.strip(), number, "EnableSystemMemoryPools")
    return None


def read(host: Host) -> DriverModules | Unread:
    """Those of NAMES that are loaded."""
    loaded = host.names(_SYSFS)
    if isinstance(loaded, Unread):
        return loaded
    there = {name.rstrip("/") for name in loaded}
    by_name = {name: _module(host, name) for name in NAMES if name in there}
    flavour = pools = None
    if "nvidia" in by_name:
        known = read_as(host, f"{_NVIDIA}/version", parse_flavour)
        flavour = None if isinstance(known, Unread) else known
        told = read_as(host, f"{_NVIDIA}/params", parse_pools)
        pools = None if isinstance(told, Unread) else told
    return DriverModules(by_name=by_name, nvidia_is_open=flavour, nvidia_pools=pools)


def _module(host: Host, name: str) -> DriverModule:
    folder = f"{_SYSFS}/{name}"
    version = read_as(host, f"{folder}/version", parse_version)
    count = read_as(host, f"{folder}/refcnt", parse_reference_count)
    above = host.names(f"{folder}/holders")
    references = None
    if not isinstance(count, Unread) and not isinstance(above, Unread):
        references = max(0, count - len(above))
    return DriverModule(
        name=name, version=None if isinstance(version, Unread) else version, references=references
    )
