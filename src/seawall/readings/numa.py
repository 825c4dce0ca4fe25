# SPDX-License-Identifier: Apache-2.0
"""/sys/devices/system/node/node*/: memory per NUMA node.

Kernel source: drivers/base/node.c.  A node without CPUs holds memory that a driver or a
device brought online (GPU memory of Grace machines, CXL).

>>> parse_meminfo(b"Node 0 MemTotal:  4 kB\\nNode 0 HugePages_Total:     2\\n")
{'MemTotal': 4096, 'HugePages_Total': 2}
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as
from seawall.readings.vmstat import Vmstat
from seawall.readings.vmstat import parse as parse_vmstat

FOLDER: Final = "/sys/devices/system/node"
_NODE: Final = re.compile(r"node([0-9]{1,6})/?\Z")
_HUGEPAGES: Final = re.compile(r"hugepages-([0-9]{1,12})kB/?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """One node; what of it could not be read is in ``NumaNodes.unread``."""

    number: int
    has_cpus: bool | None
    """From cpulist; None where it could not be read."""
    fields: Mapping[str, int]
    """nodeN/meminfo: kernel's field name (``MemTotal``, ``AnonPages``) -> bytes
    (``HugePages_*``: pages)."""
    hugetlb_bytes: int | None
    """All sizes: sum over hugepages/hugepages-*kB/nr_hugepages."""
    vmstat: Mapping[str, int]
    """nodeN/vmstat; empty where it could not be read."""


@dataclass(frozen=True, slots=True)
class NumaNodes:
    """Nodes by number.  A kernel without CONFIG_NUMA has no such folder: Unread."""

    nodes: tuple[NumaNode, ...]
    unread: tuple[Unread, ...] = ()


def parse_meminfo(data: bytes) -> Mapping[str, int]:
    """nodeN/meminfo: every field under the kernel's name, bytes where it says kB."""
    fields: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.startswith(b"Node "):
            continue
        words = line.split(None, 5)
        if len(words) not in (4, 5) or words[2][-1:] != b":" or words[4:] not in ([], [b"kB"]):
            raise ParseProblem(number, "'Node N FIELD: NUMBER kB'", line)
        name = decode_name(words[2][:-1])
        unit = 1024 if len(words) == 5 else 1
        if unit == 1 and not name.startswith("HugePages_"):
            raise ParseProblem(number, "'kB' behind the number", line)
        fields.setdefault(name, parse_number(words[3], number, name) * unit)
    if "MemTotal" not in fields:
        raise ParseProblem(0, "a line 'Node N MemTotal: NUMBER kB'", data)
    return fields


def parse_cpulist(data: bytes) -> bool:
    """Whether nodeN/cpulist names any CPU; an empty line means none."""
    text = data.strip()
    if text.strip(b"0123456789,-"):
        raise ParseProblem(1, "a list of CPUs such as 0-3,8", data)
    return bool(text)


def parse_count(data: bytes) -> int:
    """A file with one number (nr_hugepages)."""
    return parse_number(data.strip(), 1, "a count")


def read(host: Host) -> NumaNodes | Unread:
    """Every node; one whose meminfo could not be read is named in ``unread`` alone."""
    names = host.names(FOLDER)
    if isinstance(names, Unread):
        return names
    numbers = sorted(int(match[1]) for match in map(_NODE.match, names) if match)
    unread: list[Unread] = []
    nodes = []
    for number in numbers:
        fields = read_as(host, f"{FOLDER}/node{number}/meminfo", parse_meminfo)
        if isinstance(fields, Unread):
            unread.append(fields)
        else:
            nodes.append(_read_node(host, number, fields, unread))
    if not nodes:
        return unread[0] if unread else Unread(FOLDER, "absent", "no NUMA node in it")
    return NumaNodes(tuple(nodes), tuple(unread))


def _read_node(
    host: Host, number: int, fields: Mapping[str, int], unread: list[Unread]
) -> NumaNode:
    folder = f"{FOLDER}/node{number}"
    has_cpus = read_as(host, f"{folder}/cpulist", parse_cpulist)
    vmstat = read_as(host, f"{folder}/vmstat", parse_vmstat)
    hugetlb = _read_hugetlb(host, f"{folder}/hugepages")
    unread.extend(
        answer for answer in (has_cpus, vmstat, hugetlb)
        if isinstance(answer, Unread) and answer.why != "absent"
    )  # fmt: skip
    return NumaNode(
        number=number,
        has_cpus=None if isinstance(has_cpus, Unread) else has_cpus,
        fields=fields,
        hugetlb_bytes=None if isinstance(hugetlb, Unread) else hugetlb,
        vmstat=vmstat.counters if isinstance(vmstat, Vmstat) else {},
    )


def _read_hugetlb(host: Host, folder: str) -> int | Unread:
    """Bytes in the pools of all sizes; Unread as soon as one size is."""
    names = host.names(folder)
    if isinstance(names, Unread):
        return names
    total = 0
    for match in filter(None, map(_HUGEPAGES.match, names)):
        pages = read_as(host, f"{folder}/hugepages-{match[1]}kB/nr_hugepages", parse_count)
        if isinstance(pages, Unread):
            return pages
        total += pages * int(match[1]) * 1024
    return total
