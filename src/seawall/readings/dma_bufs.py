# SPDX-License-Identifier: Apache-2.0
"""dma-bufs: every buffer once, by inode, with its exporter, its size and who holds it.

Kernel document driver-api/dma-buf.rst, source drivers/dma-buf/dma-buf.c.  All of the host's are
told by /sys/kernel/dmabuf/buffers (5.13+, CONFIG_DMABUF_SYSFS_STATS) or debugfs (4.7+, inodes
since 5.3); those that a process has open by its fdinfo, too (4.19+).  A name is what a program
wrote: up to 31 bytes of anything, so only whole lines of the kernel's shape count.

>>> parse_bufinfo(b"00008192\\t00080002\\t00080007\\t00000003\\tsystem\\t00000017\\tcamera\\n")
{17: (8192, 'system')}
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.driver_files import DriverFiles
from seawall.readings.process_maps import read_maps
from seawall.readings.reading import decode_name, parse_number, read_each_as

SYSFS: Final = "/sys/kernel/dmabuf/buffers"
BUFINFO: Final = "/sys/kernel/debug/dma_buf/bufinfo"
_LINE: Final = re.compile(
    rb"^(\d{8,20})\t[0-9a-f]{8}\t[0-9a-f]{8}\t\d{8,20}\t([\x21-\x7e]{1,64})\t(\d{8,20})(?:\t|$)",
    re.MULTILINE,
)
_MAPPED: Final = "/dmabuf:"
_BUFFERS_MOST: Final = 20_000
_ASKED_MOST: Final = 1024
"""By fdinfo; where the kernel lists them, none is asked that way."""
_MAPS_ASKED_MOST: Final = 16
_BYTES_MOST: Final = 1 << 56

Told = Mapping[int, tuple[int, str]]
"""inode -> (bytes, exporter)."""


class DmaBuf(NamedTuple):
    """One dma-buf: its size in bytes, who exports it, and which processes have it."""

    inode: int
    bytes: int
    exporter: str
    """``system`` for a heap, ``udmabuf``, ``drm``, ``amdgpu``, ..."""
    pids: tuple[int, ...]
    """Processes that have it open or mapped; none: a driver holds it, or it is not known."""


@dataclass(frozen=True, slots=True)
class DmaBufs:
    """The topic: the host's dma-bufs, each once."""

    buffers: tuple[DmaBuf, ...]
    lists_all: bool
    """Whether the kernel listed all of them; else only those that processes have open."""
    unnamed: int
    """Descriptors of buffers that cannot be told apart (to 5.2)."""
    unread: tuple[Unread, ...] = ()


class FdInfo(NamedTuple):
    """What /proc/PID/fdinfo/FD of a dma-buf tells."""

    bytes: int
    exporter: str


def parse_bufinfo(data: bytes) -> Told:
    """The buffers of debugfs; lines of attached devices and fences are skipped."""
    rows = _LINE.findall(data)[:_BUFFERS_MOST]
    return {
        int(inode): (min(int(size), _BYTES_MOST), decode_name(name)) for size, name, inode in rows
    }  # fmt: skip


def parse_fdinfo(data: bytes) -> FdInfo:
    """Of one descriptor; ParseProblem when it is none of a dma-buf's (it was closed since)."""
    told: dict[bytes, bytes] = {}
    for line in data.split(b"\n"):
        key, colon, value = line.partition(b":\t")
        if colon:
            told.setdefault(key, value)  # the name comes last, and may look like anything
    if b"size" not in told or b"exp_name" not in told:
        raise ParseProblem(0, "'size' and 'exp_name' of a dma-buf", data)
    held = parse_number(told[b"size"], 0, "size")
    return FdInfo(min(held, _BYTES_MOST), decode_name(told[b"exp_name"][:64]))


def read(host: Host, files: DriverFiles | Unread) -> DmaBufs | Unread:
    """What the kernel lists, else what processes have open."""
    opened = {} if isinstance(files, Unread) else _opened(files)
    listed = _listed(host)
    if isinstance(listed, Unread) and isinstance(files, Unread):
        return listed
    unread = [] if not isinstance(listed, Unread) or listed.why == "absent" else [listed]
    told = _asked(host, opened) if isinstance(listed, Unread) else listed
    mapped: dict[int, set[int]] = {}
    if not isinstance(files, Unread) and told.keys() - opened.keys():
        mapped = _mapped(host, sorted(files.by_pid)[:_MAPS_ASKED_MOST])
    buffers = [
        DmaBuf(
            inode, size, exporter, tuple(sorted({*opened.get(inode, {}), *mapped.get(inode, ())}))
        )
        for inode, (size, exporter) in sorted(told.items())
    ]
    unnamed = 0 if isinstance(files, Unread) else _unnamed(files)
    return DmaBufs(tuple(buffers), not isinstance(listed, Unread), unnamed, tuple(unread))


def _opened(files: DriverFiles) -> dict[int, dict[int, int]]:
    """Inode -> {pid: a descriptor}."""
    found: dict[int, dict[int, int]] = {}
    for pid, holder in files.by_pid.items():
        for inode, fd in holder.dmabufs:
            if inode:
                found.setdefault(inode, {})[pid] = fd
    return found


def _unnamed(files: DriverFiles) -> int:
    return sum(not inode for holder in files.by_pid.values() for inode, _ in holder.dmabufs)


def _listed(host: Host) -> Told | Unread:
    """All buffers of the host; sysfs takes no driver's lock, so it is asked first."""
    names = host.names(SYSFS)
    if isinstance(names, Unread):
        data = host.read(BUFINFO)
        return data if isinstance(data, Unread) else parse_bufinfo(data)
    inodes = [name[:-1] for name in names if name[:-1].isdecimal() and len(name) <= 20]
    inodes = inodes[:_BUFFERS_MOST]
    sizes = read_each_as(host, [f"{SYSFS}/{inode}/size" for inode in inodes], _one)
    names_of = read_each_as(host, [f"{SYSFS}/{inode}/exporter_name" for inode in inodes], _word)
    return {
        int(inode): (size, name)
        for inode, size, name in zip(inodes, sizes, names_of, strict=True)
        if isinstance(size, int) and isinstance(name, str)
    }


def _one(data: bytes) -> int:
    return min(parse_number(data.strip(), 1, "size"), _BYTES_MOST)


def _word(data: bytes) -> str:
    return decode_name(data.strip()[:64])


def _asked(host: Host, opened: Mapping[int, Mapping[int, int]]) -> Told:
    asked = dict(list(opened.items())[:_ASKED_MOST])
    paths = ["/proc/{}/fdinfo/{}".format(*next(iter(fds.items()))) for fds in asked.values()]
    answers = zip(asked, read_each_as(host, paths, parse_fdinfo), strict=True)
    return {inode: (one.bytes, one.exporter) for inode, one in answers if isinstance(one, FdInfo)}


def _mapped(host: Host, pids: Sequence[int]) -> dict[int, set[int]]:
    """Inode -> pids, of processes that could have closed a buffer and kept its mapping."""
    found: dict[int, set[int]] = {}
    for pid in pids:
        maps = read_maps(host, pid)
        for file in () if isinstance(maps, Unread) else maps:
            if file.name.startswith(_MAPPED):
                found.setdefault(file.inode, set()).add(pid)
    return found
