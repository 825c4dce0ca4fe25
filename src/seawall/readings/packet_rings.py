# SPDX-License-Identifier: Apache-2.0
"""The probe ``packet_rings``: rings of packet sockets in every network namespace, exactly.

packet(7), kernel document networking/packet_mmap.rst; asked through NETLINK_SOCK_DIAG (3.6+,
module af_packet_diag), else only which sockets there are (/proc/net/packet).  Other namespaces
than the asker's need CAP_SYS_ADMIN, other users' processes CAP_SYS_PTRACE.

A namespace of a socket is that of the process which made it, for ever.  A namespace that only
a socket keeps (no process in it, no mount) cannot be found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from seawall.host.host import JSON, Host, Unread

PROBE: Final = "packet_rings"
MAPS_PROBE: Final = "packet_ring_maps"
_NUMBER_MOST: Final = 1 << 64
_BYTES_MOST: Final = 1 << 56
_TEXT_MOST: Final = 4096
_MAPS_ASKED_MOST: Final = 128
"""Sockets, and processes, in one question about mappings."""


class Ring(NamedTuple):
    """As it was asked for; the kernel takes each block as a power of two of pages."""

    block_bytes: int
    blocks: int

    def held_bytes(self, page_size: int) -> int:
        """What the kernel took for it."""
        pages = max(1, -(-self.block_bytes // page_size))
        return self.blocks * page_size * (1 << (pages - 1).bit_length())


class PacketSocket(NamedTuple):
    """One socket, in one namespace for ever."""

    inode: int
    namespace: int
    uid: int | None
    """Of who made it; it can be changed."""
    rx: Ring | None
    tx: Ring | None
    holders: tuple[int, ...] = ()
    """Processes that have it open, or its ring mapped; not all of many in one cgroup."""
    mapped_bytes: int = 0
    """How much of its ring a holder has mapped, where that was asked."""

    def held_bytes(self, page_size: int) -> int:
        """Of both rings; what is mapped, where the kernel does not tell its rings."""
        rings = sum(ring.held_bytes(page_size) for ring in (self.rx, self.tx) if ring)
        return rings or self.mapped_bytes


class SocketHolder(NamedTuple):
    """One process that holds a socket."""

    pid: int
    start_ticks: int
    comm: str
    namespace: int | None
    """None: it may not be seen."""
    bounding: int
    """The capabilities that it can have at most, as a mask."""
    cgroups: tuple[str, ...]
    """Lines of /proc/PID/cgroup."""


class Inhabitants(NamedTuple):
    """Who lives in a namespace."""

    is_whole: bool
    """False: there was no time to look at all."""
    cgroups: tuple[tuple[str, ...], ...]
    """The different contents of /proc/PID/cgroup among its processes."""
    bounding: tuple[int, ...] = ()
    """For each of them the capabilities that one of its processes can have; empty: not told."""


class DescriptorHolders(NamedTuple):
    """Processes of one workload that have more descriptors than there was time for."""

    cgroup: str
    processes: int
    descriptors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketRings:
    """The topic.  Without ``why_not`` only sockets that have rings, the largest first."""

    sockets: tuple[PacketSocket, ...]
    holders: Mapping[int, SocketHolder] = field(default_factory=dict)
    inhabitants: Mapping[int, Inhabitants] = field(default_factory=dict)
    """By namespace; not of the host's, and only where a ring is."""
    hidden: tuple[tuple[str, ...], ...] = ()
    """cgroups of processes whose namespace may not be seen."""
    host_namespace: int | None
    why_not: str
    """Why rings are not told; empty where they are."""
    is_looked: bool
    """Whether holders were looked for: not for rings of less than 1 MiB together."""
    holders_left_out: int
    """Processes that were not looked at, for lack of time or of the right."""
    crowds: tuple[DescriptorHolders, ...] = ()
    """Whose those are for which there was no time, the most descriptors first."""
    namespaces: int
    namespaces_left_out: int
    processes_left_out: int
    """Whose namespace is not known, so may be one that was not asked."""
    others: int
    """Smaller sockets that are not told."""
    others_bytes: int


def read(host: Host) -> PacketRings | Unread:
    """All namespaces that can be reached; holders by their mappings where no descriptor told."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    try:
        found = _rings(answer)
    except (ValueError, TypeError, LookupError) as error:
        return Unread(PROBE, "malformed", f"expected sockets and their holders: {error!s:.60}")
    return _with_maps(host, found) if found.is_looked else found


def _with_maps(host: Host, found: PacketRings) -> PacketRings:
    """Mapped rings: of sockets that nobody has open, and of those whose rings are not told."""
    if found.why_not:
        asked = [one for one in found.sockets if one.holders]
        pids = sorted({pid for one in asked for pid in one.holders})[:_MAPS_ASKED_MOST]
    else:
        asked, pids = [one for one in found.sockets if not one.holders], []
    if not asked:
        return found
    pairs = ",".join(f"{one.inode}:{one.namespace}" for one in asked[:_MAPS_ASKED_MOST])
    answer = host.ask(MAPS_PROBE, f"{pairs}|{','.join(map(str, pids))}")
    try:
        return _joined(found, answer, {one.inode for one in asked[:_MAPS_ASKED_MOST]})
    except (ValueError, TypeError, LookupError):
        return replace(found, holders_left_out=found.holders_left_out + 1)


def _joined(found: PacketRings, answer: Any, asked: set[int]) -> PacketRings:
    """The same with mappings; ValueError and its like when there is no sound answer."""
    if not isinstance(answer, dict):
        raise TypeError(PROBE)
    people = dict(found.holders)
    for row in _list(answer["processes"]):
        people.setdefault((one := _holder(row)).pid, one)
    maps: dict[int, dict[int, int]] = {}
    for inode, pid, size in _rows(answer["maps"], 3):
        if inode in asked and pid in people and size < _BYTES_MOST:
            maps.setdefault(inode, {})[pid] = size
    sockets = [
        one._replace(
            holders=tuple(dict.fromkeys((*one.holders, *maps[one.inode]))),
            mapped_bytes=max(maps[one.inode].values()),
        )
        if one.inode in maps else one
        for one in found.sockets
    ]  # fmt: skip
    left_out = found.holders_left_out + _number(answer["left_out"])
    return replace(found, sockets=tuple(sockets), holders=people, holders_left_out=left_out)


# --- an answer may come from a bundle, so from anybody ----------------------------------


def _rings(answer: Any) -> PacketRings:
    people = {one.pid: one for one in map(_holder, _list(answer["processes"]))}
    holders: dict[int, list[int]] = {}
    for inode, pid in _rows(answer["holders"], 2):
        if pid in people:
            holders.setdefault(inode, []).append(pid)
    others, others_bytes = map(_number, _list(answer["others"]))
    return PacketRings(
        sockets=tuple(_socket(row, holders) for row in _list(answer["sockets"])),
        holders=people,
        inhabitants={
            _number(space): _inhabitants(told)
            for space, *told in map(_list, _list(answer["inhabitants"]))
        },
        hidden=_cgroups(answer["hidden"]),
        host_namespace=None if answer["host"] is None else _number(answer["host"]),
        why_not=_text(answer["why_not"]),
        is_looked=_flag(answer["is_looked"]),
        holders_left_out=_number(answer["holders_left_out"]),
        crowds=tuple(map(_crowd, _list(answer.get("crowds", [])))),
        namespaces=_number(answer["namespaces"]),
        namespaces_left_out=_number(answer["namespaces_left_out"]),
        processes_left_out=_number(answer["processes_left_out"]),
        others=others,
        others_bytes=min(others_bytes, _BYTES_MOST),
    )


def _socket(row: JSON, holders: Mapping[int, Sequence[int]]) -> PacketSocket:
    inode, namespace, uid, rx, tx = _list(row)
    number = _number(inode)
    who = None if uid is None else _number(uid)
    told = tuple(dict.fromkeys(holders.get(number, ())))
    return PacketSocket(number, _number(namespace), who, _ring(rx), _ring(tx), told)


def _crowd(row: JSON) -> DescriptorHolders:
    """Bundles of older versions have none."""
    cgroup, processes, descriptors = _list(row)
    return DescriptorHolders(_text(cgroup), _number(processes), _number(descriptors))


def _inhabitants(told: Sequence[JSON]) -> Inhabitants:
    """Bundles of older versions have no capabilities."""
    whole, cgroups, *more = told
    bounding = tuple(map(_number, _list(more[0]))) if more else ()
    found = Inhabitants(_flag(whole), _cgroups(cgroups), bounding)
    if bounding and len(bounding) != len(found.cgroups):
        raise ValueError("as many capabilities as cgroups")
    return found


def _ring(value: JSON) -> Ring | None:
    if value is None:
        return None
    size, blocks = map(_number, _list(value))
    if not 0 < size < 1 << 32 or not 0 < blocks < 1 << 32:
        raise ValueError("a ring")
    return Ring(size, blocks)


def _holder(row: JSON) -> SocketHolder:
    pid, ticks, comm, space, bounding, cgroups = _list(row)
    return SocketHolder(
        _number(pid), _number(ticks), _text(comm), None if space is None else _number(space),
        _number(bounding), _lines(cgroups),
    )  # fmt: skip


def _cgroups(value: JSON) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_lines, _list(value)))


def _lines(value: JSON) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _rows(value: JSON, width: int) -> list[list[int]]:
    rows = [list(map(_number, _list(row))) for row in _list(value)]
    if any(len(row) != width for row in rows):
        raise ValueError("rows of numbers")
    return rows


def _list(value: JSON) -> list[JSON]:
    if not isinstance(value, list):
        raise TypeError("a list")
    return value


def _number(value: JSON) -> int:
    if type(value) is not int or not 0 <= value < _NUMBER_MOST:
        raise ValueError("a number")
    return value


def _flag(value: JSON) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _text(value: JSON) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_MOST:
        raise TypeError("a text")
    return value
