# SPDX-License-Identifier: Apache-2.0
"""Limits of the whole host that no container limit covers, with what is used of them.

pid_max and threads-max, open files (fs/file-nr), conntrack, inotify, ptys, neighbour tables.
Kernel documents: admin-guide/sysctl/{kernel,fs}.rst, networking/{ip,nf_conntrack}-sysctl.rst.

What belongs to a network namespace is the asking process's own: a reader in another one
than the host's says so and gives nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, read_as

T = TypeVar("T")

LOADAVG: Final = "/proc/loadavg"
FILE_NR: Final = "/proc/sys/fs/file-nr"
ARP: Final = "/proc/net/arp"
_STAT: Final = "/proc/net/stat"
_KERNEL: Final = "/proc/sys/kernel"
_NETFILTER: Final = "/proc/sys/net/netfilter"
_INOTIFY: Final = "/proc/sys/fs/inotify"
_PTY: Final = "/proc/sys/kernel/pty"

_HEXADECIMAL: Final = b"0123456789abcdef"
_OTHER_NETWORK: Final = "this process stands in another network namespace than the host"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimit:
    """One limit; counts, not bytes."""

    name: str
    """``threads``, ``pids``, ``open files``, ``conntrack``, ``ptys``, ``container ptys``,
    ``inotify instances``, ``inotify watches``, ``neighbours ipv4``, ``neighbours ipv6``."""
    used: int | None
    """None for inotify, which the kernel limits per user and counts nowhere, and where the
    count was not read (then the reason is in ``unread``)."""
    limit: int
    source: str
    """The paths that give ``used`` and ``limit``, joined by " + "."""


@dataclass(frozen=True, slots=True)
class HostLimits:
    """``unread`` names what could not be counted or read; an absent table is no limit."""

    limits: tuple[HostLimit, ...]
    unread: tuple[Unread, ...]


def parse_number_file(data: bytes) -> int:
    """A file with one number."""
    return parse_number(data.strip(), 1, "a count")


def parse_loadavg_threads(data: bytes) -> int:
    """Threads that exist now, of all namespaces: behind the slash in /proc/loadavg."""
    words = data.split(None, 4)
    running, slash, total = words[3].partition(b"/") if len(words) > 4 else (b"", b"", b"")
    if not (slash and running.isdigit()):
        raise ParseProblem(1, "'N N N RUNNING/THREADS PID'", data)
    return parse_number(total, 1, "threads")


def parse_file_nr(data: bytes) -> tuple[int, int]:
    """(open files, limit) of /proc/sys/fs/file-nr."""
    words = data.split(None, 3)
    if len(words) != 3:
        raise ParseProblem(1, "'ALLOCATED FREE MAX'", data)
    allocated, free, most = (parse_number(word, 1, "open files") for word in words)
    return max(0, allocated - free), most


def parse_neighbour_entries(data: bytes) -> int:
    """/proc/net/stat/{arp,ndisc}_cache: entries of all namespaces, the same on each line."""
    heading, _, rest = data.partition(b"\n")
    if not heading.startswith(b"entries "):
        raise ParseProblem(1, "the heading 'entries ...'", heading)
    for line in rest.split(b"\n"):
        words = line.split(None, 2)
        if len(words) == 3 and len(words[0]) <= 16 and not words[0].strip(_HEXADECIMAL):
            return int(words[0], 16)
    raise ParseProblem(2, "a line of hexadecimal numbers", rest)


def parse_arp(data: bytes) -> int:
    """How many entries /proc/net/arp lists, of this network namespace alone."""
    heading, _, rest = data.partition(b"\n")
    if not heading.startswith(b"IP address"):
        raise ParseProblem(1, "the heading 'IP address ...'", heading)
    return sum(1 for line in rest.split(b"\n") if line.partition(b" ")[0].count(b".") == 3)


def read(host: Host) -> HostLimits | Unread:
    """Every limit that this kernel has; Unread when not one could be read."""
    table = _Table(host)
    table.add("threads", f"{_KERNEL}/threads-max", LOADAVG, parse_loadavg_threads)
    # Each thread holds a pid; process groups and sessions without threads hold a few more.
    table.add("pids", f"{_KERNEL}/pid_max", LOADAVG, parse_loadavg_threads)
    _add_files(table)
    _add_ptys(table)
    for name in ("instances", "watches"):
        table.add(f"inotify {name}", f"{_INOTIFY}/max_user_{name}")
    if _same_network(host):
        _add_network(table)
    else:
        table.unread.append(Unread("/proc/sys/net", "not_captured", _OTHER_NETWORK))
    unread = tuple(dict.fromkeys(table.unread))
    if not table.limits:
        why = unread[0].why if unread else "absent"
        return Unread("/proc/sys", why, "no limit of the whole host could be read")
    return HostLimits(tuple(table.limits), unread)


class _Table:
    """Collects limits and the reasons for what is missing."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.limits: list[HostLimit] = []
        self.unread: list[Unread] = []

    def add(
        self,
        name: str,
        limit_path: str,
        used_path: str = "",
        parse_used: Callable[[bytes], int] = parse_number_file,
    ) -> bool:
        """Append one limit; False for one that this kernel has not or that was unreadable."""
        limit = self.value(limit_path, parse_number_file, may_be_absent=True)
        if limit is None:
            return False
        used = self.value(used_path, parse_used) if used_path else None
        source = limit_path if used is None else f"{used_path} + {limit_path}"
        self.limits.append(HostLimit(name=name, used=used, limit=limit, source=source))
        return True

    def value(
        self, path: str, parse: Callable[[bytes], T], *, may_be_absent: bool = False
    ) -> T | None:
        """A parsed file; None when there is no answer, and why is noted."""
        value = read_as(self.host, path, parse)
        if not isinstance(value, Unread):
            return value
        if value.why != "absent" or not may_be_absent:
            self.unread.append(value)
        return None


def _add_files(table: _Table) -> None:
    files = table.value(FILE_NR, parse_file_nr, may_be_absent=True)
    if files:
        used, limit = files
        table.limits.append(HostLimit(name="open files", used=used, limit=limit, source=FILE_NR))


def _add_ptys(table: _Table) -> None:
    """All of them, and what containers may have: ``reserve`` is for the host's own devpts."""
    if not table.add("ptys", f"{_PTY}/max", f"{_PTY}/nr"):
        return
    reserve = table.value(f"{_PTY}/reserve", parse_number_file, may_be_absent=True)
    if reserve is not None:
        ptys = table.limits[-1]
        limit = max(0, ptys.limit - reserve)
        source = f"{ptys.source} + {_PTY}/reserve"
        table.limits.append(
            HostLimit(name="container ptys", used=ptys.used, limit=limit, source=source)
        )


def _add_network(table: _Table) -> None:
    table.add("conntrack", f"{_NETFILTER}/nf_conntrack_max", f"{_NETFILTER}/nf_conntrack_count")
    ipv4 = "/proc/sys/net/ipv4/neigh/default/gc_thresh3"
    arp_cache = f"{_STAT}/arp_cache"
    if isinstance(table.host.read(arp_cache), Unread):
        table.add("neighbours ipv4", ipv4, ARP, parse_arp)  # fewer: this namespace alone
    else:
        table.add("neighbours ipv4", ipv4, arp_cache, parse_neighbour_entries)
    ipv6 = "/proc/sys/net/ipv6/neigh/default/gc_thresh3"
    table.add("neighbours ipv6", ipv6, f"{_STAT}/ndisc_cache", parse_neighbour_entries)


def _same_network(host: Host) -> bool:
    """False only when both namespaces are known and differ."""
    own, first = host.link("/proc/self/ns/net"), host.link("/proc/1/ns/net")
    return isinstance(own, Unread) or isinstance(first, Unread) or own == first
