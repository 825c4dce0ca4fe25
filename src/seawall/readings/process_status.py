# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/status of every process: memory by kind, locked and pinned, swap, uid, threads.

Read only when a rule or a verb asks for it: it costs twice what ``stat`` does.  Takes no
mmap_lock (fs/proc/task_mmu.c task_mem sums counters).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.process import hidden_processes, list_pids, sum_unread
from seawall.readings.reading import decode_name, parse_number, read_as, read_each_as

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""
_KIB_FIELDS: Final = {
    b"VmRSS": "vm_rss", b"RssAnon": "rss_anon", b"RssFile": "rss_file",
    b"RssShmem": "rss_shmem", b"VmLck": "vm_lck", b"VmPin": "vm_pin", b"VmPTE": "vm_pte",
    b"VmSwap": "vm_swap", b"HugetlbPages": "hugetlb_pages",
}  # fmt: skip
_KNOWN_LINE: Final = re.compile(
    # A newline in front is found six times as fast as the start of a line.
    rb"\n(Name|Pid|Threads|Uid|NSpid|CapEff|" + b"|".join(_KIB_FIELDS) + rb"):\t(.*)"
)
_HEXADECIMAL: Final = re.compile(rb"[0-9a-f]{1,32}")
_FIELDS: Final = (
    "name", "uid", "threads", "pid", "ns_pids", "cap_eff", *_KIB_FIELDS.values(),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """Bytes; None where this kernel prints no such line, or for kernel threads."""

    pid: int
    name: str
    uid: int | None
    """The real one, as the OOM killer prints it."""
    vm_rss: int | None
    rss_anon: int | None
    """RssAnon, RssFile, RssShmem: since 4.5."""
    rss_file: int | None
    rss_shmem: int | None
    vm_lck: int | None
    vm_pin: int | None
    vm_pte: int | None
    vm_swap: int | None
    hugetlb_pages: int | None
    threads: int | None
    ns_pids: tuple[int, ...]
    """NSpid, outermost first; since 4.1, empty before."""
    cap_eff: int | None = None
    """Effective capabilities as a mask; of its own user namespace."""


@dataclass(frozen=True, slots=True)
class ProcessStatuses:
    """The topic: /proc/PID/status of every process, by pid."""

    by_pid: Mapping[int, ProcessStatus]
    unread: tuple[Unread, ...]


def parse(data: bytes) -> ProcessStatus:
    """One process; unknown lines are skipped."""
    values: dict[str, Any] = dict.fromkeys(_FIELDS)
    values["ns_pids"] = ()
    data = b"\n" + data
    for match in _KNOWN_LINE.finditer(data):
        name, rest = match.groups()
        field = _KIB_FIELDS.get(name)
        try:
            if field is not None:
                values[field] = _kib(rest, field)
            elif name == b"Name":
                values["name"] = _comm(rest)
            elif name == b"Uid":
                values["uid"] = parse_number(rest.partition(b"\t")[0], 0, "Uid")
            elif name == b"NSpid":
                values["ns_pids"] = tuple(parse_number(w, 0, "NSpid") for w in rest.split())
            elif name == b"CapEff":
                values["cap_eff"] = _mask(rest)
            else:
                values[name.decode().lower()] = parse_number(rest, 0, name.decode())
        except ParseProblem as problem:
            line = data.count(b"\n", 0, match.start()) + 1
            raise ParseProblem(line, problem.expected, problem.found) from None
    for needed in ("pid", "name"):
        if values[needed] is None:
            raise ParseProblem(0, f"a line for {needed}", data)
    return ProcessStatus(**values)


def _kib(rest: bytes, field: str) -> int:
    words = rest.split()
    if len(words) != 2 or words[1] != b"kB":
        raise ParseProblem(0, f"'NUMBER kB' for {field}", rest)
    return parse_number(words[0], 0, field) * 1024


def _mask(rest: bytes) -> int:
    if not _HEXADECIMAL.fullmatch(rest):
        raise ParseProblem(0, "a hexadecimal number for CapEff", rest)
    return int(rest, 16)


def _comm(raw: bytes) -> str:
    """The name as ``stat`` has it: this file writes newline and backslash escaped."""
    parts = raw.split(b"\\\\")
    return decode_name(b"\\".join(part.replace(b"\\n", b"\n") for part in parts))


def read_one(host: Host, pid: int) -> ProcessStatus | Unread:
    """One process; ``absent`` or ``vanished`` when it has ended."""
    return read_as(host, f"/proc/{pid}/status", parse)


def read(host: Host) -> ProcessStatuses | Unread:
    """Every process of the host's pid namespace, in one pass."""
    pids = list_pids(host)
    if isinstance(pids, Unread):
        return pids
    by_pid: dict[int, ProcessStatus] = {}
    missed = hidden_processes(pids)
    paths = [f"/proc/{pid}/status" for pid in pids]
    for status in read_each_as(host, paths, parse):
        if isinstance(status, Unread):
            missed.append(status)
        elif status.threads != 0:  # 0: it is being released, and half of it is gone
            by_pid[status.pid] = status
    return ProcessStatuses(by_pid, sum_unread(missed))
