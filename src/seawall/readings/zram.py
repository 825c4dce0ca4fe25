# SPDX-License-Identifier: Apache-2.0
"""/sys/block/zram*/{disksize,mm_stat}: compressed block devices in RAM.

Kernel document: Documentation/admin-guide/blockdev/zram.rst.  mm_stat is there since 4.2
(same_pages in place of zero_pages since 4.11, huge_pages since 4.18); before it every value
had a file of its own.

>>> parse_mm_stat(b"8192 640 12288 0 12288 1 0 0\\n")["mem_used_total"]
12288
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, read_as

FOLDER: Final = "/sys/block"
_DEVICE: Final = re.compile(r"zram[0-9]{1,6}/?\Z")
_COLUMNS: Final = (
    "orig_data_size", "compr_data_size", "mem_used_total", "mem_limit",
    "mem_used_max", "same_pages", "pages_compacted", "huge_pages",
)  # fmt: skip
_OLD_FILES: Final = ("orig_data_size", "compr_data_size", "mem_used_total", "mem_limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZramDevice:
    """Bytes; None where this kernel prints fewer columns."""

    name: str
    disksize: int
    """What it pretends to be; 0 for one that is not set up."""
    orig_data_size: int | None
    """What was written to it, uncompressed, without pages of one repeated word."""
    compr_data_size: int | None
    mem_used_total: int | None
    """What it takes of RAM, fragmentation and bookkeeping included (nr_zspages)."""
    mem_limit: int | None
    """None for no limit as well as for an old kernel."""
    same_pages: int | None
    """Pages of one repeated word, which take no memory; pages, not bytes."""
    huge_pages: int | None
    """Pages that did not compress; pages, not bytes."""


@dataclass(frozen=True, slots=True)
class Zram:
    """Every device, set up or not; ``unread``: what of them could not be read."""

    devices: tuple[ZramDevice, ...]
    unread: tuple[Unread, ...] = ()


def parse_mm_stat(data: bytes) -> Mapping[str, int]:
    """The columns that this kernel prints, under the document's names."""
    words = data.split(None, len(_COLUMNS))
    if len(words) < 3:
        raise ParseProblem(1, "at least 3 columns of mm_stat", data)
    numbers = [parse_number(word, 1, name) for name, word in zip(_COLUMNS, words, strict=False)]
    return dict(zip(_COLUMNS, numbers, strict=False))


def parse_disksize(data: bytes) -> int:
    """The one number of the file, in bytes."""
    return parse_number(data.strip(), 1, "a size in bytes")


def read(host: Host) -> Zram | Unread:
    """An empty tuple when no zram device exists."""
    names = host.names(FOLDER)
    if isinstance(names, Unread):
        return names
    devices: list[ZramDevice] = []
    unread: list[Unread] = []
    for name in names:
        if not _DEVICE.match(name):
            continue
        device = _read_device(host, name.rstrip("/"), unread)
        if isinstance(device, Unread):
            unread.append(device)
        else:
            devices.append(device)
    return Zram(tuple(devices), tuple(unread))


def _read_device(host: Host, name: str, unread: list[Unread]) -> ZramDevice | Unread:
    disksize = read_as(host, f"{FOLDER}/{name}/disksize", parse_disksize)
    if isinstance(disksize, Unread):
        return disksize
    columns = read_as(host, f"{FOLDER}/{name}/mm_stat", parse_mm_stat)
    if isinstance(columns, Unread):
        if columns.why != "absent":
            unread.append(columns)
        columns = _read_old_files(host, name)
    return ZramDevice(
        name=name,
        disksize=disksize,
        orig_data_size=columns.get("orig_data_size"),
        compr_data_size=columns.get("compr_data_size"),
        mem_used_total=columns.get("mem_used_total"),
        mem_limit=columns.get("mem_limit") or None,
        same_pages=columns.get("same_pages"),
        huge_pages=columns.get("huge_pages"),
    )


def _read_old_files(host: Host, name: str) -> Mapping[str, int]:
    """A file for each value, as before 4.2."""
    columns = {}
    for column in _OLD_FILES:
        value = read_as(host, f"{FOLDER}/{name}/{column}", parse_disksize)
        if not isinstance(value, Unread):
            columns[column] = value
    return columns
