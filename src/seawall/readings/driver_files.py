# SPDX-License-Identifier: Apache-2.0
"""The probe ``driver_files``: which processes hold device nodes of drivers, and dma-bufs.

Device nodes are judged by number (/proc/devices, /proc/misc), not by name; those of the kernel
itself and of terminals, disks and the like are left out.  Which driver is behind a graphics or
RDMA node, /sys/dev/char tells (ABI/stable/sysfs-devices).  Looking into other processes needs
CAP_SYS_PTRACE.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.readings.probe_answer import each, number, numbers, text

PROBE: Final = "driver_files"
_REFUSED_AT: Final = "/proc/1/fd"
_NAME_MOST: Final = 128


class DriverFile(NamedTuple):
    """One device node in one process."""

    driver: str
    """As it registered the number: ``nvidia``, ``drm``, ``kfd``, ``misc:vfio``."""
    major: int
    minor: int
    descriptors: int
    """That are open on it; a file that two processes share counts for both."""
    fds: tuple[int, ...]
    """The first 64 of them."""


class Holder(NamedTuple):
    """One process that has something of drivers open."""

    pid: int
    start_ticks: int
    """With the pid it identifies the process."""
    devices: tuple[DriverFile, ...]
    dmabufs: tuple[tuple[int, int], ...]
    """(inode, one of its descriptors); inode 0 where this kernel gives all the same (to 5.2)."""


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """The topic.  What is not in it may still be held when ``left_out`` is not 0."""

    by_pid: Mapping[int, Holder]
    module_of: Mapping[tuple[int, int], str]
    """(major, minor) -> the kernel's name of the driver bound to the device behind a node:
    ``amdgpu``, ``mlx5_core``; only where sysfs tells."""
    left_out: int
    """Processes that were not asked: for lack of time, or because they may not be."""


def read(host: Host) -> DriverFiles | Unread:
    """Of the machine itself; ``refused`` when most processes may not be looked into."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    values = answer if isinstance(answer, dict) else {}
    holders, left_out = each(values.get("processes"), _holder), number(values.get("left_out"))
    if holders is None or left_out is None:
        return Unread(PROBE, "malformed", "expected processes with counts, and left_out")
    if left_out and not holders and _is_blind(host):
        words = f"{left_out} processes may not be looked into or there was no time"
        return Unread(_REFUSED_AT, "refused", words)
    by_pid = {holder.pid: holder for holder in holders}
    nodes = {(file.major, file.minor) for holder in by_pid.values() for file in holder.devices}
    return DriverFiles(by_pid, dict(_modules(host, sorted(nodes))), left_out)


def _modules(
    host: Host, nodes: Iterable[tuple[int, int]]
) -> Iterable[tuple[tuple[int, int], str]]:  # fmt: skip
    for major, minor in nodes:
        link = host.link(f"/sys/dev/char/{major}:{minor}/device/driver")
        if isinstance(link, str) and (name := link.rpartition("/")[2]):
            yield (major, minor), name[:_NAME_MOST]


def _is_blind(host: Host) -> bool:
    """Whether the one who asks may not look into others' processes."""
    reader = host.ask("reader")
    capabilities = reader.get("capabilities") if isinstance(reader, dict) else None
    return isinstance(capabilities, list) and "SYS_PTRACE" not in capabilities


def _holder(value: JSON) -> Holder | None:
    if not isinstance(value, dict):
        return None
    pid, start_ticks = number(value.get("pid")), number(value.get("start_ticks"))
    devices, dmabufs = each(value.get("devices"), _device), each(value.get("dmabufs"), _dmabuf)
    if pid is None or start_ticks is None or devices is None or dmabufs is None:
        return None
    return Holder(pid, start_ticks, devices, dmabufs)


def _device(value: JSON) -> DriverFile | None:
    """One row ``[driver, major, minor, descriptors, [descriptor, ...]]``."""
    if not isinstance(value, list) or len(value) != 5:
        return None
    driver, counts, fds = text(value[0]), numbers(value[1:4], 3), numbers(value[4])
    if not driver or counts is None or fds is None:
        return None
    return DriverFile(driver, counts[0], counts[1], counts[2], fds)


def _dmabuf(value: JSON) -> tuple[int, int] | None:
    pair = numbers(value, 2)
    return None if pair is None else (pair[0], pair[1])
