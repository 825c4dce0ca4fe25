# SPDX-License-Identifier: Apache-2.0
"""/proc/net/sockstat: how much memory the sockets of TCP and UDP hold, host-wide.

Kernel source: net/ipv4/proc.c, since 2.4; man 5 proc.  ``mem`` is of the whole host in every
network namespace, the other numbers are of the asker's.  It counts what is in send and receive
queues (truesize), in units of ``memory_unit``.

>>> parse(b"sockets: used 9\\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 7\\nUDP: inuse 0 mem 3\\n")
Sockstat(tcp_units=7, udp_units=3, memory_unit=0)
"""

from dataclasses import dataclass, replace
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.kernel import Kernel
from seawall.readings.reading import parse_number, read_as

PATHS: Final = ("/proc/net/sockstat", "/proc/1/net/sockstat")
_QUANTUM_BYTES: Final = 4096
_QUANTUM_SINCE, _QUANTUM_UNTIL = (4, 11), (6, 0)


@dataclass(frozen=True, slots=True)
class Sockstat:
    """The topic: memory that all TCP and UDP sockets of the host hold (/proc/net/sockstat)."""

    tcp_units: int
    """TCP over IPv4 and IPv6."""
    udp_units: int | None
    """None: not before 2.6.25."""
    memory_unit: int = 0
    """Bytes of a unit: a page, but 4096 from 4.11 to 5.19 whatever the page (SK_MEM_QUANTUM)."""

    @property
    def tcp_bytes(self) -> int:
        """In all queues of TCP."""
        return self.tcp_units * self.memory_unit

    @property
    def udp_bytes(self) -> int:
        """In all queues of UDP."""
        return (self.udp_units or 0) * self.memory_unit


def parse(data: bytes) -> Sockstat:
    """The ``mem`` of TCP and UDP; ParseProblem when TCP has none, for every kernel prints it."""
    found: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        head, *words = line.split(None, 64) or [b""]
        if not words or head not in (b"TCP:", b"UDP:"):
            continue
        pairs = dict(zip(words[::2], words[1::2], strict=False))
        if b"mem" in pairs:
            found[head] = parse_number(pairs[b"mem"], number, "mem")
    if b"TCP:" not in found:
        raise ParseProblem(0, "a line 'TCP: ... mem N'", data)
    return Sockstat(found[b"TCP:"], found.get(b"UDP:"))


def read(host: Host, kernel: Kernel) -> Sockstat | Unread:
    """Of the asker's own namespace, which for these numbers is as good as any."""
    found = read_as(host, PATHS[0], parse)
    if isinstance(found, Unread):
        other = read_as(host, PATHS[1], parse)
        found = found if isinstance(other, Unread) else other
    if isinstance(found, Unread):
        return found
    has_quantum = _QUANTUM_SINCE <= kernel.version < _QUANTUM_UNTIL
    return replace(found, memory_unit=_QUANTUM_BYTES if has_quantum else kernel.page_size)
