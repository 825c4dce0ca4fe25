# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/mountinfo: what is mounted where.

Kernel document: filesystems/proc.rst 3.5; since 2.6.26.  Super options of filesystems that
may carry credentials are removed by the host's sieve, which leaves ``-`` in their place.
"""

import re
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

PATHS: Final = ("/proc/1/mountinfo", "/proc/self/mountinfo")
_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of the file."""

    mount_id: int
    parent_id: int
    device: str
    """``major:minor``."""
    root: str
    """The folder of the filesystem that is seen here: not ``/`` for a bind mount."""
    mount_point: str
    """Octal escapes of the file (``\\040``) are undone."""
    options: tuple[str, ...]
    fs_type: str
    source: str
    super_options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mountinfo:
    """The topic: mounts in the order of the file, so a later one may hide an earlier one."""

    mounts: tuple[Mount, ...]


def parse(data: bytes) -> Mountinfo:
    """Every mount; ParseProblem for a line that is not one."""
    lines = enumerate(data.split(b"\n"), start=1)
    return Mountinfo(tuple(_mount(line, number) for number, line in lines if line))


def _mount(line: bytes, number: int) -> Mount:
    # Optional fields (shared:N, master:N, ...) come before the dash, any number of them.
    head, dash, tail = line.partition(b" - ")
    words, rest = head.split(b" "), tail.split(b" ", 2)
    if not dash or len(words) < 6 or len(rest) < 2:
        raise ParseProblem(number, "'ID PARENT DEVICE ROOT POINT OPTIONS ... - TYPE SOURCE'", line)
    return Mount(
        mount_id=parse_number(words[0], number, "mount id"),
        parent_id=parse_number(words[1], number, "parent id"),
        device=decode_name(words[2]),
        root=_text(words[3]),
        mount_point=_text(words[4]),
        options=_options(words[5]),
        fs_type=_text(rest[0]),
        source=_text(rest[1]),
        super_options=_options(rest[2]) if len(rest) > 2 else (),
    )


def _options(words: bytes) -> tuple[str, ...]:
    return tuple(_text(word) for word in words.split(b",") if word not in (b"", b"-"))


def _text(raw: bytes) -> str:
    if b"\\" in raw:
        raw = _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), raw)
    return decode_name(raw)


def read(host: Host) -> Mountinfo | Unread:
    """The host's own view, that of pid 1; the reader's own where that one is not to be had."""
    first = read_as(host, PATHS[0], parse)
    if isinstance(first, Mountinfo) or first.why == "malformed":
        return first
    second = read_as(host, PATHS[1], parse)
    return first if isinstance(second, Unread) else second
