# SPDX-License-Identifier: Apache-2.0
"""The probe ``socket_queues``: whose queues data of TCP and UDP lies in.

proc(5), /proc/net/tcp and /proc/net/udp, of every network namespace; other namespaces than the
asker's need CAP_SYS_ADMIN, other users' processes CAP_SYS_PTRACE.  It is asked only where
/proc/net/sockstat, which is one small file, tells of much.  A namespace that only a socket keeps
cannot be found, and of a socket that is on its way in another one's queue no process is told.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.readings.probe_answer import each, number, numbers, text
from seawall.readings.sockstat import Sockstat

PROBE: Final = "socket_queues"
ASKED_FROM_BYTES: Final = 32 << 20
"""In all sockets of a protocol together, as sockstat tells: below, nobody is looked for."""
_BYTES_MOST: Final = 1 << 56
_CGROUPS_MOST: Final = 4096


class QueueRow(NamedTuple):
    """Sockets that the same cgroups hold."""

    cgroups: tuple[tuple[str, ...], ...]
    """Of each holder the lines of /proc/PID/cgroup; none: of nobody who was found."""
    pids: tuple[int, ...]
    """Some of the processes."""
    protocol: str
    """``tcp`` or ``udp``."""
    sockets: int
    rx_bytes: int
    """In receive queues: of UDP what the kernel took for the data, of TCP the payload."""
    tx_bytes: int
    """In send queues, likewise."""

    @property
    def bytes(self) -> int:
        """In receive and send queues together."""
        return self.rx_bytes + self.tx_bytes


class QueueCrowd(NamedTuple):
    """Processes of one workload that have more descriptors than there was time for."""

    cgroup: str
    processes: int
    descriptors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketQueues:
    """The topic: data in queues by holder, the most first; empty where there is little."""

    rows: tuple[QueueRow, ...] = ()
    namespaces_left_out: int = 0
    tables_cut: int = 0
    """Namespaces of which not all sockets were looked at, for lack of time."""
    processes_left_out: int = 0
    """Whose namespace is not known, so may be one that was not asked."""
    holders_left_out: int = 0
    """Processes that were not looked at, for lack of time or of the right."""
    crowds: tuple[QueueCrowd, ...] = ()


def read(host: Host, sockstat: Sockstat) -> SocketQueues | Unread:
    """Of those protocols that hold much."""
    much = {"tcp": sockstat.tcp_bytes, "udp": sockstat.udp_bytes}
    wanted = [name for name, held in much.items() if held >= ASKED_FROM_BYTES]
    if not wanted:
        return SocketQueues()
    answer = host.ask(PROBE, ",".join(wanted))
    if isinstance(answer, Unread):
        return answer
    found = _queues(answer) if isinstance(answer, dict) else None
    return found or Unread(PROBE, "malformed", "expected rows of sockets and their holders")


def _queues(answer: dict[str, JSON]) -> SocketQueues | None:
    """An answer may come from a bundle, so from anybody."""
    rows, rest = each(answer.get("rows"), _row), each(answer.get("rest"), _rest)
    crowds = each(answer.get("crowds"), _crowd)
    names = ("namespaces_left_out", "tables_cut", "processes_left_out", "holders_left_out")
    counts = [number(answer.get(name)) for name in names]
    known = [count for count in counts if count is not None]
    if rows is None or rest is None or crowds is None or len(known) < len(counts):
        return None
    return SocketQueues(
        rows=(*rows, *rest), crowds=crowds, namespaces_left_out=known[0], tables_cut=known[1],
        processes_left_out=known[2], holders_left_out=known[3],
    )  # fmt: skip


def _row(value: JSON) -> QueueRow | None:
    match value:
        case [list(cgroups), list(pids), str(), *_] if len(cgroups) <= _CGROUPS_MOST:
            told, known = each(cgroups, _lines), numbers(pids)
            sums = _rest(value[2:])
            if told is None or known is None or sums is None:
                return None
            return sums._replace(cgroups=told, pids=known)
    return None


def _rest(value: JSON) -> QueueRow | None:
    match value:
        case [("tcp" | "udp") as protocol, *counts]:
            sums = numbers(counts, 3)
            if sums is not None and max(sums) < _BYTES_MOST:
                return QueueRow((), (), protocol, *sums)
    return None


def _lines(value: JSON) -> tuple[str, ...] | None:
    return each(value, _line)


def _line(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


def _crowd(value: JSON) -> QueueCrowd | None:
    match value:
        case [str(group), processes, descriptors]:
            counts = numbers([processes, descriptors])
            cgroup = text(group)
            if counts is not None and cgroup is not None:
                return QueueCrowd(cgroup, *counts)
    return None
