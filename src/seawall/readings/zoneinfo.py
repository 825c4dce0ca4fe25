# SPDX-License-Identifier: Apache-2.0
"""/proc/zoneinfo: watermarks and per-CPU lists of every memory zone.

Kernel source: mm/vmstat.c zoneinfo_show_print.  A zone is ``Node N, zone NAME``, before the
first zone of a node its "per-node stats" (since 4.8), then ``pages free`` with watermarks
and counters, then ``pagesets`` with a block for each CPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

COST: Final = 0
"""One small file (``findings/rule_costs.py``)."""
PATH: Final = "/proc/zoneinfo"

_WATERMARKS: Final = frozenset(
    {b"boost", b"min", b"low", b"high", b"promo", b"scanned", b"spanned", b"present",
     b"managed", b"cma"}
)  # fmt: skip
_NEEDED: Final = ("free", "min", "low", "high", "spanned", "present")
_PAGESET: Final = frozenset({b"count:", b"high:", b"batch:"})
_ZONES_MOST: Final = 64  # of a node, for lowmem_reserve; kernels have at most 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Pageset:
    """One CPU's list of free pages in a zone.  Pages."""

    cpu: int
    count: int
    high: int
    batch: int
    vm_stats_threshold: int | None
    """How far this CPU's share of a counter may drift; None on a kernel without SMP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """All in pages; ``min`` < ``low`` < ``high`` are the watermarks."""

    node: int
    name: str
    free: int
    min: int
    low: int
    high: int
    boost: int | None
    """Raises ``min`` for a while after fragmentation; since 5.0, printed since 5.14."""
    spanned: int
    present: int
    managed: int | None
    """What the page allocator manages: present less reserved; since 3.8."""
    cma: int | None
    protection: tuple[int, ...]
    """lowmem_reserve: pages kept from requests that could use zone N, by N."""
    counters: Mapping[str, int]
    """This zone's own ``nr_*`` and ``numa_*``, in pages and events."""
    pagesets: tuple[Pageset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoneinfo:
    """Zones in file order.  Unpopulated zones (present 0) are left out."""

    zones: tuple[Zone, ...]
    node_counters: Mapping[int, Mapping[str, int]]
    """Per NUMA node, the "per-node stats" block; empty before 4.8."""


@dataclass(slots=True)
class _Draft:
    """A zone while its lines come in."""

    line: int
    header: bytes
    node: int
    name: str
    section: Literal["", "node", "zone", "pagesets"] = ""
    values: dict[str, int] = field(default_factory=dict)
    protection: tuple[int, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)
    node_counters: dict[str, int] = field(default_factory=dict)
    pagesets: list[dict[str, int]] = field(default_factory=list)


def parse(data: bytes) -> Zoneinfo:
    """Every populated zone; ParseProblem for one that lacks a watermark or its size."""
    drafts: list[_Draft] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"Node "):
            drafts.append(_open_zone(line, number))
        elif drafts:
            _take(drafts[-1], line, number)
        elif line.split(None, 2)[:2] == [b"pages", b"free"]:
            raise ParseProblem(number, "'Node N, zone NAME' before the first zone", line)
    if not drafts:
        raise ParseProblem(0, "'Node N, zone NAME' lines", data)
    nodes: dict[int, dict[str, int]] = {}
    for draft in drafts:
        if draft.node_counters and nodes.setdefault(draft.node, draft.node_counters) is not (
            draft.node_counters
        ):
            raise ParseProblem(draft.line, "per-node stats once per node", draft.header)
    zones = [zone for zone in map(_finish, drafts) if zone.present]
    return Zoneinfo(zones=tuple(zones), node_counters=nodes)


def read(host: Host) -> Zoneinfo | Unread:
    """The host's /proc/zoneinfo, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)


def _open_zone(line: bytes, number: int) -> _Draft:
    words = line.split(None, 4)
    if len(words) != 4 or words[1][-1:] != b"," or words[2] != b"zone":
        raise ParseProblem(number, "'Node N, zone NAME'", line)
    node = parse_number(words[1][:-1], number, "a node")
    return _Draft(number, line, node, decode_name(words[3]))


def _take(draft: _Draft, line: bytes, number: int) -> None:
    """One line of a zone, by the section in which it stands."""
    words = line.split(None, 4)
    if words == [b"per-node", b"stats"]:
        draft.section = "node"
    elif len(words) == 3 and words[:2] == [b"pages", b"free"]:
        if "free" in draft.values:
            raise ParseProblem(number, "a 'Node' line before the next zone", line)
        draft.section = "zone"
        draft.values["free"] = parse_number(words[2], number, "pages free")
    elif words == [b"pagesets"]:
        draft.section = "pagesets"
    elif draft.section == "pagesets":
        _take_pageset(draft, words, number)
    elif words[:1] == [b"protection:"]:
        draft.protection = _protection(line, number)
    elif words[:1] == [b"cpu:"]:
        raise ParseProblem(number, "'pagesets' before the first CPU", line)
    elif len(words) == 2 and not words[0].endswith(b":"):
        _take_counter(draft, words, number)


def _take_counter(draft: _Draft, words: list[bytes], number: int) -> None:
    """A ``name number`` line of the node's block or of the zone's."""
    value = parse_number(words[1], number, "pages")
    name = decode_name(words[0])
    if draft.section == "node":
        draft.node_counters.setdefault(name, value)
    elif draft.section != "zone":
        raise ParseProblem(number, "'per-node stats' or 'pages free' before counters", words[0])
    elif words[0] in _WATERMARKS:
        draft.values[name] = value
    else:
        draft.counters.setdefault(name, value)


def _take_pageset(draft: _Draft, words: list[bytes], number: int) -> None:
    """A line below ``pagesets``; others (node_unreclaimable, start_pfn) are skipped."""
    if len(words) == 2 and words[0] == b"cpu:":
        draft.pagesets.append({"line": number, "cpu": parse_number(words[1], number, "a CPU")})
        return
    if len(words) == 2 and words[0] in _PAGESET:
        name = words[0][:-1].decode()
    elif len(words) == 4 and words[:3] == [b"vm", b"stats", b"threshold:"]:
        name = "vm_stats_threshold"
    else:
        return
    if not draft.pagesets or name in draft.pagesets[-1]:
        raise ParseProblem(number, f"'cpu: N' before {name}", b" ".join(words))
    draft.pagesets[-1][name] = parse_number(words[-1], number, name)


def _protection(line: bytes, number: int) -> tuple[int, ...]:
    inner = line.strip()[len("protection:") :].strip()
    if inner[:1] != b"(" or inner[-1:] != b")":
        raise ParseProblem(number, "'protection: (N, ...)'", line)
    parts = inner[1:-1].split(b",", _ZONES_MOST)
    return tuple(parse_number(part.strip(), number, "protection") for part in parts)


def _finish(draft: _Draft) -> Zone:
    values = draft.values
    for needed in _NEEDED:
        if needed not in values:
            raise ParseProblem(draft.line, f"a zone with {needed!r}", draft.header)
    return Zone(
        node=draft.node,
        name=draft.name,
        free=values["free"],
        min=values["min"],
        low=values["low"],
        high=values["high"],
        boost=values.get("boost"),
        spanned=values["spanned"],
        present=values["present"],
        managed=values.get("managed"),
        cma=values.get("cma"),
        protection=draft.protection,
        counters=draft.counters,
        pagesets=tuple(map(_finish_pageset, draft.pagesets)),
    )


def _finish_pageset(values: dict[str, int]) -> Pageset:
    for needed in ("count", "high", "batch"):
        if needed not in values:
            raise ParseProblem(values["line"], f"a pageset with {needed!r}")
    return Pageset(
        cpu=values["cpu"],
        count=values["count"],
        high=values["high"],
        batch=values["batch"],
        vm_stats_threshold=values.get("vm_stats_threshold"),
    )
