# SPDX-License-Identifier: Apache-2.0
"""Data that waits in queues of TCP and UDP, and the processes that hold those sockets.

/proc/net/{tcp,tcp6,udp,udp6} tell ``tx_queue``, ``rx_queue`` and the inode of each socket of a
network namespace (proc(5), net/ipv4/udp.c udp4_format_sock, tcp_ipv4.c get_tcp4_sock).  Of UDP they
are what the kernel took for the data (truesize), of TCP bytes of payload.  The kernel walks one
table for all namespaces, tens of milliseconds on a large node: so a namespace's are read only
where its /proc/net/sockstat tells of sockets, the fewest first.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.host.host import JSON
from seawall.host.packet_rings.namespaces import Namespaces, in_each, inode_of, network_namespaces
from seawall.host.packet_rings.processes import process_row
from seawall.host.packet_rings.socket_search import SocketHolders, SocketSearch

_LOOK_SECONDS: Final = 0.4
"""At most, to find the namespaces; as much again to read their tables, and to find holders."""
_QUEUES_MOST: Final = 16_384
"""Sockets whose holders are looked for."""
_QUEUES_FIRST: Final = 1024
"""Of each namespace, the largest, before those of any other beyond that."""
_ROWS_MOST: Final = 1024
_PIDS_MOST: Final = 8
_PIECE_BYTES: Final = 64 << 10
_LINE: Final = re.compile(
    rb"^ *\d+: \S+ \S+ (?!0A)[0-9A-F]{2} (?!0{8}:0{8} )([0-9A-F]{8,16}):([0-9A-F]{8,16}) \S+ \S+"
    rb" +\d+ +\d+ (\d{1,20}) ",
    re.MULTILINE,
)
"""Of a socket whose queues are not both empty; of one that listens (0A) they are no bytes."""
_IN_USE: Final = re.compile(rb"^(TCP|UDP)6?: inuse (\d{1,10})\b", re.MULTILINE)
_TABLES: Final = {"tcp": ("tcp", "tcp6"), "udp": ("udp", "udp6")}
_SEARCH: Final = SocketSearch()


class _Queue(NamedTuple):
    """One socket."""

    inode: int
    namespace: int
    protocol: str
    rx_bytes: int
    tx_bytes: int


_Key = tuple[tuple[tuple[str, ...], ...], str]
"""The cgroups of all that hold a socket, each as its lines; and the protocol."""


class _Sums(NamedTuple):
    """Lists for the answer."""

    rows: list[JSON]
    rest: list[JSON]


class _Table(NamedTuple):
    """Sockets of one namespace."""

    queues: list[_Queue]
    is_whole: bool


def socket_queues(protocols: str) -> JSON:
    """{"rows": [[[cgroup lines, ...], [pid, ...], protocol, sockets, rx, tx], ...],
    "rest": [[protocol, sockets, rx, tx], ...], "namespaces", "namespaces_left_out",
    "tables_cut", "processes_left_out", "holders_left_out", "crowds": as of ``packet_rings``} for
    ``tcp``, ``udp`` or ``tcp,udp``.

    A row: sockets that the same cgroups hold; ``rest``: of sockets whose holder was not found or
    not looked for.
    """
    wanted = [name for name in protocols.split(",") if name in _TABLES]
    spaces = network_namespaces(time.monotonic() + _LOOK_SECONDS)
    counts, left_out = in_each(spaces, _sockets_in_use, time.monotonic() + _LOOK_SECONDS)
    order = sorted(
        (sum(counts[space][name] for name in wanted), space) for space in counts
    )  # fmt: skip
    tables = _read(spaces, [space for size, space in order if size], wanted)
    queues = _largest(queue for table in tables for queue in table.queues)
    asked = {one.inode: one.namespace for one in queues[:_QUEUES_MOST] if one.inode}
    holders = _SEARCH.find(asked, spaces, time.monotonic() + _LOOK_SECONDS)
    pids = (pid for found in holders.by_inode.values() for pid in found)
    sums = _rows(queues, holders, _cgroups(pids, spaces))
    return {
        "rows": sums.rows,
        "rest": sums.rest,
        "namespaces": len(counts),
        "namespaces_left_out": left_out,
        "tables_cut": sum(not table.is_whole for table in tables),
        "processes_left_out": spaces.left_out + len(spaces.refusals),
        "holders_left_out": holders.left_out,
        "crowds": _SEARCH.crowds(holders),
    }


def _sockets_in_use() -> Counter[str]:
    """Of the namespace that we are in."""
    found: Counter[str] = Counter()
    for name in ("sockstat", "sockstat6"):
        with suppress(OSError), open(f"/proc/thread-self/net/{name}", "rb") as file:
            for protocol, count in _IN_USE.findall(file.read()):
                found[protocol.decode().lower()] += int(count)
    return found


def _read(spaces: Namespaces, order: list[int], protocols: list[str]) -> list[_Table]:
    """The tables of each of these namespaces; none has less than its share of the time."""
    until = time.monotonic() + _LOOK_SECONDS
    left = len(order)
    ordered = replace(spaces, paths={space: spaces.paths[space] for space in order})

    def tables() -> _Table:
        nonlocal left
        now = time.monotonic()
        share = now + max(0.0, until - now) / max(1, left)
        left -= 1
        return _table(inode_of("/proc/thread-self/ns/net"), protocols, share)

    found, left_out = in_each(ordered, tables, until)
    return [*found.values(), *[_Table([], is_whole=False)] * left_out]


def _table(space: int, protocols: list[str], until: float) -> _Table:
    """Of the namespace that we are in; what was read until then."""
    found: list[_Queue] = []
    for protocol in protocols:
        for name in _TABLES[protocol]:
            with suppress(FileNotFoundError), open(f"/proc/thread-self/net/{name}", "rb") as file:
                rest = b""
                while piece := file.read(_PIECE_BYTES):
                    lines, newline, rest = (rest + piece).rpartition(b"\n")
                    found += _queues(lines + newline, space, protocol)
                    if time.monotonic() > until:
                        return _Table(found, is_whole=False)
    return _Table(found, is_whole=True)


def _queues(lines: bytes, space: int, protocol: str) -> Iterator[_Queue]:
    for tx, rx, inode in _LINE.findall(lines):
        yield _Queue(int(inode), space, protocol, int(rx, 16), int(tx, 16))


def _largest(queues: Iterable[_Queue]) -> list[_Queue]:
    """First the largest of every namespace, then all others."""
    seen: Counter[int] = Counter()
    first: list[_Queue] = []
    more: list[_Queue] = []
    for one in sorted(queues, key=lambda one: -(one.rx_bytes + one.tx_bytes)):
        seen[one.namespace] += 1
        (first if seen[one.namespace] <= _QUEUES_FIRST else more).append(one)
    return first + more


def _rows(queues: list[_Queue], found: SocketHolders, cgroups: dict[int, tuple[str, ...]]) -> _Sums:
    """Sums by holder, and of what has none."""
    sums: dict[_Key, list[int]] = {}
    pids: dict[_Key, dict[int, None]] = {}
    for one in queues:
        own = [pid for pid in found.by_inode.get(one.inode, ()) if pid in cgroups]
        key = tuple(sorted({cgroups[pid] for pid in own})), one.protocol
        row = sums.setdefault(key, [0, 0, 0])
        row[0] += 1
        row[1] += one.rx_bytes
        row[2] += one.tx_bytes
        pids.setdefault(key, {}).update(dict.fromkeys(own))
    held = sorted((key for key in sums if key[0]), key=lambda key: -sum(sums[key][1:]))
    rest: dict[str, list[int]] = {}
    for key in [*held[_ROWS_MOST:], *(key for key in sums if not key[0])]:
        before = rest.get(key[1], [0, 0, 0])
        rest[key[1]] = [a + b for a, b in zip(before, sums[key], strict=True)]
    rows: list[JSON] = []
    for key in held[:_ROWS_MOST]:
        groups: list[JSON] = [list(lines) for lines in key[0]]
        some: list[JSON] = [*list(pids[key])[:_PIDS_MOST]]
        rows.append([groups, some, key[1], *sums[key]])
    return _Sums(
        rows,
        [[protocol, *row] for protocol, row in rest.items()],
    )


def _cgroups(pids: Iterable[int], spaces: Namespaces) -> dict[int, tuple[str, ...]]:
    """Lines of /proc/PID/cgroup of those that are the same processes still."""
    found: dict[int, tuple[str, ...]] = {}
    for pid in dict.fromkeys(pids):
        with suppress(OSError, ValueError, IndexError):
            lines = process_row(pid, spaces)[-1]
            found[pid] = tuple(map(str, lines)) if isinstance(lines, list) else ()
    return found
