# SPDX-License-Identifier: Apache-2.0
"""GPUs that are gone: fewer than wanted, off the bus, or without their driver.

NVIDIA's are counted by PCI (vendor 10de, a display or 3D class) and by the driver's own folders in
/proc; AMD's by amdgpu.  Of a function that fell off the bus every read gives all ones.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.words import counted

PCI: Final = "/sys/bus/pci/devices"
_VENDORS: Final = {"0x10de": "nvidia", "0x1002": "amdgpu"}
_DRIVERS: Final = {"0x10de": ("nvidia", "vfio-pci"), "0x1002": ("amdgpu", "vfio-pci")}
_CLASSES: Final = ("0x0300", "0x0302", "0x0380", "0x1200")
_LOADED: Final = {"0x10de": "/proc/driver/nvidia/version", "0x1002": "/sys/module/amdgpu"}
_DEVICES_MOST: Final = 4096
_LOST: Final = b"\xff" * 4


class _Gpu(NamedTuple):
    address: str
    vendor: str
    driver: str
    is_lost: bool


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """What is missing, by address where it has one."""
    names = host.names(PCI)
    if isinstance(names, Unread):
        if wanted.gpus:
            yield unseen(names)
        return
    gpus = [
        gpu for name in names[:_DEVICES_MOST]
        if (gpu := _gpu(host, name.rstrip("/"))) is not None
    ]  # fmt: skip
    good = 0
    for gpu in gpus:
        if gpu.is_lost:
            yield NodeFault(f"the GPU at {gpu.address} has fallen off the bus")
        elif not gpu.driver and _is_loaded(host, gpu.vendor):
            yield NodeFault(f"the GPU at {gpu.address} has no driver")
        elif gpu.driver:
            good += 1
    if wanted.gpus is not None and good < wanted.gpus:
        yield NodeFault(f"{good} of {counted(wanted.gpus, 'GPU')}")


def _gpu(host: Host, address: str) -> _Gpu | None:
    folder = f"{PCI}/{address}"
    vendor, kind = _word(host, f"{folder}/vendor"), _word(host, f"{folder}/class")
    if vendor not in _VENDORS or not kind.startswith(_CLASSES):
        return None
    link = host.link(f"{folder}/driver")
    driver = "" if isinstance(link, Unread) else link.rpartition("/")[2]
    config = host.read(f"{folder}/config", 4096)
    is_lost = not isinstance(config, Unread) and config[:4] == _LOST
    return _Gpu(address, vendor, driver if driver in _DRIVERS[vendor] else "", is_lost)


def _is_loaded(host: Host, vendor: str) -> bool:
    """Else nobody means these GPUs to be used, e.g. the console's own."""
    path = _LOADED[vendor]
    if path.startswith("/sys/"):
        return not isinstance(host.names(path), Unread)
    return not isinstance(host.read(path), Unread)


def _word(host: Host, path: str) -> str:
    data = host.read(path, 64)
    return "" if isinstance(data, Unread) else data.decode("ascii", "replace").strip()
