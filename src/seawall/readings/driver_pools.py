# SPDX-License-Identifier: Apache-2.0
"""Pages that drivers keep for themselves: pools for reuse, and what sysfs says they hold.

- /sys/kernel/debug/shrinker/nv-sysmem-alloc-node-N-order-K-ID/count (CONFIG_SHRINKER_DEBUG,
  6.0+; NVIDIA's open module from 590 on): pool entries of 2^K pages, by node.  Kernel document:
  admin-guide/mm/shrinker_debugfs.rst.
- /sys/kernel/debug/ttm/page_pool (5.11+; amdgpu, xe, nouveau, radeon, ...): pages, by order and
  caching, and their sum.  drivers/gpu/drm/ttm/ttm_pool.c.
- /sys/class/drm/cardN/device/mem_info_gtt_used (amdgpu, 4.19+): bytes of system memory in the
  card's address space.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, read_as

SHRINKERS: Final = "/sys/kernel/debug/shrinker"
TTM_POOL: Final = "/sys/kernel/debug/ttm/page_pool"
_CARDS: Final = "/sys/class/drm"
_NVIDIA: Final = re.compile(r"nv-sysmem-alloc-node-([0-9]{1,4})-order-([0-9]{1,2})-[0-9]+/?\Z")
_CARD: Final = re.compile(r"card[0-9]{1,4}/?\Z")
_TOTAL: Final = re.compile(rb"total\s*: +([0-9]{1,20}) of +([0-9]{1,20})\Z")


@dataclass(frozen=True, slots=True)
class TtmPool:
    """Pages kept for reuse, and how many there may be at most."""

    pages: int
    pages_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPools:
    """The topic.  An Unread of why ``absent`` says that this kernel or driver has none."""

    nvidia_pages: int | Unread
    """In all its pools, in pages of the asked kernel."""
    ttm: TtmPool | Unread
    gtt_used: tuple[tuple[str, int], ...]
    """(card, bytes) of every amdgpu card."""


def parse_count(data: bytes) -> int:
    """Objects of one shrinker: ``CGROUP_INODE NODE0 NODE1 ...``, a line for each cgroup."""
    total = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split()
        if len(words) == 1:
            raise ParseProblem(number, "'CGROUP COUNT ...'", line)
        total += sum(parse_number(word, number, "a count of objects") for word in words[1:])
    return total


def parse_ttm_pool(data: bytes) -> TtmPool:
    """The sum at the end."""
    for line in data.split(b"\n"):
        if match := _TOTAL.match(line.rstrip()):
            return TtmPool(int(match[1]), int(match[2]))
    raise ParseProblem(0, "a line 'total : PAGES of PAGES'", data)


def parse_gtt_used(data: bytes) -> int:
    """System memory that an amdgpu card uses, in bytes: its sysfs file mem_info_gtt_used."""
    return parse_number(data.strip(), 1, "bytes")


def read(host: Host) -> DriverPools:
    """Never wholly unread: each part says why it is missing."""
    return DriverPools(
        nvidia_pages=_nvidia(host),
        ttm=read_as(host, TTM_POOL, parse_ttm_pool),
        gtt_used=tuple(_gtt_used(host)),
    )


def _nvidia(host: Host) -> int | Unread:
    names = host.names(SHRINKERS)
    if isinstance(names, Unread):
        return names
    found = [(match, name) for name in names if (match := _NVIDIA.match(name))]
    if not found:
        return Unread(SHRINKERS, "absent", "no pool of the NVIDIA driver is there")
    pages = 0
    for match, name in found:
        objects = read_as(host, f"{SHRINKERS}/{name.rstrip('/')}/count", parse_count)
        if isinstance(objects, Unread):
            return objects
        pages += objects << int(match[2])
    return pages


def _gtt_used(host: Host) -> Iterator[tuple[str, int]]:
    names = host.names(_CARDS)
    for name in () if isinstance(names, Unread) else names:
        if not _CARD.match(name):
            continue
        card = name.rstrip("/")
        used = read_as(host, f"{_CARDS}/{card}/device/mem_info_gtt_used", parse_gtt_used)
        if isinstance(used, int):
            yield card, used
