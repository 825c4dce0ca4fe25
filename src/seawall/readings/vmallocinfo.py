# SPDX-License-Identifier: Apache-2.0
"""/proc/vmallocinfo: every area of the kernel's virtual address space (root only).

Kernel source: mm/vmalloc.c, since 2.6.28.  A line is ``START-END SIZE CALLER pages=N KINDS
N0=N``, of which only the first two are always there.  Addresses are hashed or zeroed for
most readers and are not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

PATH: Final = "/proc/vmallocinfo"

# What stands where a caller could, and is none.
_KINDS: Final = frozenset(
    {b"ioremap", b"sparse", b"vmalloc", b"vmap", b"user", b"dma-coherent", b"vpages",
     b"vm_map_ram", b"unpurged", b"vm_area"}
)  # fmt: skip
_WORDS_MOST: Final = 2048  # N0= to N1023= and a dozen others


@dataclass(frozen=True, slots=True, kw_only=True)
class VmallocArea:
    """One area.  A line without CALLER is of vm_map_ram or waits to be purged."""

    size_bytes: int
    """Of address space, guard page included."""
    caller: str | None
    """Symbol without offset, e.g. ``dup_task_struct``; with ``[module]`` where printed."""
    module: str | None
    pages: int | None
    """Pages that back it; None for ioremap, vmap of foreign pages and the like."""
    kinds: frozenset[str]
    """Words such as vmalloc, ioremap, vmap, user, vpages, unpurged, dma-coherent."""
    node_pages: Mapping[int, int]
    """NUMA node -> pages; empty on a kernel without NUMA."""


@dataclass(frozen=True, slots=True)
class Vmallocinfo:
    """Every area, in file order."""

    areas: tuple[VmallocArea, ...]


def parse(data: bytes) -> Vmallocinfo:
    """Every area; ParseProblem when there is none, for no kernel runs without."""
    areas = []
    known: dict[bytes, VmallocArea] = {}  # thousands are stacks, alike but for their address
    for number, line in enumerate(data.split(b"\n"), start=1):
        parts = line.split(None, 1)
        if len(parts) < 2 or not parts[0].startswith(b"0x") or b"-0x" not in parts[0]:
            continue
        area = known.get(parts[1])
        if area is None:
            area = known[parts[1]] = _parse_area(parts[1].split(None, _WORDS_MOST), number)
        areas.append(area)
    if not areas:
        raise ParseProblem(0, "'0xSTART-0xEND SIZE ...' lines", data)
    return Vmallocinfo(tuple(areas))


def read(host: Host) -> Vmallocinfo | Unread:
    """The host's /proc/vmallocinfo, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)


def _parse_area(words: list[bytes], number: int) -> VmallocArea:
    """``words``: without the address."""
    rest = words[1:]
    caller: str | None = None
    module: str | None = None
    if rest and rest[0] not in _KINDS and b"=" not in rest[0]:
        caller = decode_name(rest.pop(0).partition(b"+0x")[0])
        if rest and rest[0][:1] == b"[" and rest[0][-1:] == b"]":
            module = decode_name(rest.pop(0)[1:-1])
            caller = f"{caller} [{module}]"
    pages: int | None = None
    node_pages: dict[int, int] = {}
    kinds: set[str] = set()
    for word in rest:
        key, equals, value = word.partition(b"=")
        if not equals:
            kinds.add(decode_name(word))
        elif key == b"pages":
            pages = parse_number(value, number, "pages")
        elif key[:1] == b"N" and key[1:].isdigit():
            node = parse_number(key[1:], number, "a node")
            node_pages[node] = parse_number(value, number, "a node's pages")
    return VmallocArea(
        size_bytes=parse_number(words[0], number, "an area's size"),
        caller=caller,
        module=module,
        pages=pages,
        kinds=frozenset(kinds),
        node_pages=node_pages,
    )
