# SPDX-License-Identifier: Apache-2.0
"""Packet sockets of every network namespace, their rings, and the processes that hold them.

With the module af_packet_diag the kernel tells each ring; without it /proc/net/packet tells
which sockets there are.  Their holders are looked for only where that matters, beginning with
the processes of the same namespace.  Asked in the expendable child: it changes its namespace,
and the kernel may wait for a sender before it tells of a ring.
"""

import errno
import time
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.host import JSON
from seawall.host.packet_rings.diag import SOCKETS_MOST, DiagSocket, packet_sockets
from seawall.host.packet_rings.namespaces import Namespaces, in_each, network_namespaces
from seawall.host.packet_rings.processes import hidden, inhabitants
from seawall.host.packet_rings.socket_search import SocketHolders, SocketSearch

_LOOK_SECONDS: Final = 0.4
"""At most, to find the namespaces; as much again to ask them, to find holders, to name them."""
_TRIVIAL_BYTES: Final = 1 << 20
_SOCKETS_TOLD_MOST: Final = 4096
_PRESSED_PERCENT: Final = 5.0


_SEARCH: Final = SocketSearch()


def packet_rings() -> JSON:
    """{"why_not", "host", "namespaces", "namespaces_left_out", "processes_left_out", "is_looked",
    "holders_left_out", "crowds": [[cgroup, processes, descriptors], ...],
    "others": [sockets, bytes], "holders": [[inode, pid], ...],
    "sockets": [[inode, namespace, uid, rx, tx], ...], "processes": [as of ``process_row``],
    "inhabitants": [as of ``inhabitants``], "hidden": [[cgroup lines], ...]}.

    ``is_looked``: whether holders were looked for; ``others``: smaller sockets not told;
    ``crowds``: of processes for which there was no time, whose they are;
    ``hidden``: cgroups of processes whose namespace may not be seen.
    """
    spaces = network_namespaces(time.monotonic() + _LOOK_SECONDS)
    asked = _ask(spaces, time.monotonic() + _LOOK_SECONDS)
    told, others = asked.sockets[:_SOCKETS_TOLD_MOST], asked.sockets[_SOCKETS_TOLD_MOST:]
    is_large = sum(map(_size, asked.sockets)) >= _TRIVIAL_BYTES
    is_asked = bool(told) and (bool(asked.why_not) or is_large)
    wanted = {one.inode: space for space, one in told}
    until = time.monotonic() + _LOOK_SECONDS
    holders = _SEARCH.find(wanted, spaces, until) if is_asked else SocketHolders({}, 0, [])
    apart = set(wanted.values()) - {spaces.host} if is_asked else set()
    return {
        "why_not": asked.why_not,
        "host": spaces.host,
        "namespaces": asked.namespaces,
        "namespaces_left_out": asked.left_out,
        "processes_left_out": spaces.left_out + len(spaces.refusals),
        "others": [len(others), sum(map(_size, others))],
        "is_looked": is_asked,
        "sockets": [
            [one.inode, space, one.uid, _plain(one.rx), _plain(one.tx)] for space, one in told
        ],
        **_SEARCH.told(holders, spaces),
        "inhabitants": inhabitants(apart, spaces, time.monotonic() + _LOOK_SECONDS),
        "hidden": hidden(spaces.refusals) if apart else [],
    }


class _Asked(NamedTuple):
    """What the kernel told: sockets with their namespaces, largest first."""

    sockets: list[tuple[int, DiagSocket]]
    namespaces: int
    left_out: int
    why_not: str
    """Rings are not told, only sockets; and what would help."""


def _ask(spaces: Namespaces, until: float) -> _Asked:
    why_not = why_not_asked()
    answers: dict[int, list[DiagSocket]] = {}
    left_out = 0
    if not why_not:
        try:
            answers, left_out = in_each(spaces, packet_sockets, until)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINVAL, errno.EPROTONOSUPPORT):
                raise
            why_not = "the kernel has no af_packet_diag: modprobe af_packet_diag"
    if why_not:
        answers, left_out = in_each(spaces, _listed, until)
    # Where there are more than are listed, larger ones may be among the others.
    left_out += sum(len(sockets) >= SOCKETS_MOST for sockets in answers.values())
    found = [(space, one) for space, sockets in answers.items() for one in sockets]
    if not why_not:
        found = [pair for pair in found if _size(pair)]
    return _Asked(sorted(found, key=_size, reverse=True), len(answers), left_out, why_not)


def why_not_asked(
    modules: str = "/proc/modules", pressure: str = "/proc/pressure/memory"
) -> str:  # fmt: skip
    """Asking loads the module where it is not: not on a node that is short of memory."""
    try:
        with open(modules, "rb") as loaded:
            if any(line.startswith(b"af_packet_diag ") for line in loaded):
                return ""
    except FileNotFoundError:
        return ""  # a kernel without modules loads none
    with suppress(OSError, ValueError, IndexError), open(pressure, "rb") as file:
        full = file.read().split(b"full avg10=")[1]
        if float(full.split()[0]) >= _PRESSED_PERCENT:
            return (
                "af_packet_diag is not loaded, and is not while the node is short of memory:"
                " modprobe af_packet_diag"
            )
    return ""


def _listed() -> list[DiagSocket]:
    """Of /proc/net/packet: which sockets there are, not what rings they have."""
    found = []
    with open("/proc/thread-self/net/packet", "rb") as table:
        for line in list(table)[1:]:
            words = line.split()
            if len(words) >= 9 and words[8].isdigit() and words[7].isdigit():
                found.append(DiagSocket(int(words[8]), int(words[7]), None, None))
    return found


def _size(found: tuple[int, DiagSocket]) -> int:
    return sum(ring[0] * ring[1] for ring in (found[1].rx, found[1].tx) if ring)


def _plain(ring: tuple[int, int] | None) -> JSON:
    return list(ring) if ring else None
