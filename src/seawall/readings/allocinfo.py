# SPDX-License-Identifier: Apache-2.0
"""/proc/allocinfo: bytes and calls by the line of source that allocated (root only).

Kernel document: mm/allocation-profiling.rst; since 6.10 with CONFIG_MEM_ALLOC_PROFILING, and
sysctl vm.mem_profiling = 1.  ``SIZE CALLS FILE:LINE [MODULE] func:FUNCTION``; version 2 adds
``accurate:no`` where calls were missed.  Only what could hold whole pages is kept.
"""

import re
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_signed, read_as

PATH: Final = "/proc/allocinfo"
KEPT_LEAST_BYTES: Final = 1 << 20
"""Of one site: thousands of others hold less together than one that matters."""
_LINE: Final = re.compile(
    rb" *(-?[0-9]+) +(-?[0-9]+) (\S+):([0-9]+)(?: \[([^\s\]]+)\])? func:(\S+)(.*)"
)
_SIZED: Final = re.compile(rb" *-?[0-9]+[* ]+-?[0-9]+[* ]+\S")
_VERSIONS: Final = (b"1.", b"2.")
_LINE_BYTES_MOST: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationSite:
    """One line of source.  ``bytes`` are held now, by ``calls`` allocations."""

    file: str
    line: int
    function: str
    module: str | None
    bytes: int
    calls: int
    is_accurate: bool
    """False: some calls were not accounted."""


@dataclass(frozen=True, slots=True)
class Allocinfo:
    """The topic: sites of at least KEPT_LEAST_BYTES, in file order, and how many there are."""

    sites: tuple[AllocationSite, ...]
    count: int


def parse(data: bytes) -> Allocinfo:
    """Every site that is large; ParseProblem for another version or when there is none."""
    sites = []
    count = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"allocinfo - version:"):
            version = line.partition(b":")[2].strip()
            if not version.startswith(_VERSIONS):
                raise ParseProblem(number, "allocinfo version 1.x or 2.x", line)
            continue
        match = _LINE.fullmatch(line) if len(line) <= _LINE_BYTES_MOST else None
        if match is None:
            if _SIZED.match(line):
                raise ParseProblem(number, "'SIZE CALLS FILE:LINE func:FUNCTION'", line)
            continue
        count += 1
        size = parse_signed(match[1], number, "a size")
        if size >= KEPT_LEAST_BYTES:
            sites.append(_site(match, size, number))
    if not count:
        raise ParseProblem(0, "'SIZE CALLS FILE:LINE func:FUNCTION' lines", data)
    return Allocinfo(tuple(sites), count)


def _site(match: re.Match[bytes], size: int, number: int) -> AllocationSite:
    _, calls, file, line, module, function, rest = match.groups()
    return AllocationSite(
        file=decode_name(file),
        line=parse_signed(line, number, "a line"),
        function=decode_name(function),
        module=None if module is None else decode_name(module),
        bytes=size,
        calls=max(0, parse_signed(calls, number, "calls")),
        is_accurate=b"accurate:no" not in rest,
    )


def read(host: Host) -> Allocinfo | Unread:
    """The host's /proc/allocinfo, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)
