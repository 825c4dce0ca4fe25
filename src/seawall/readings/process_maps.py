# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/maps: which files a process has in its address space.

Kernel document: filesystems/proc.rst 3.1.  Reading it takes mmap_lock, so the host asks
through its expendable child.  ``device`` and ``inode`` are those of the file as the process
sees it: on overlayfs the layer's up to about 6.6, the overlay's own later.

>>> found = parse(b"00400000-0040b000 r-xp 00000000 fd:00 17 /bin/a b\\n")
>>> found[0].span, found[0].name, found[0].is_code
('400000-40b000', '/bin/a b', True)
"""

import re
from typing import Final, NamedTuple

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

LIMIT_BYTES: Final = 64 << 20  # 65,530 mappings (vm.max_map_count) with long names
_SPAN: Final = re.compile(rb"0*([0-9a-f]{1,16})-0*([0-9a-f]{1,16})\Z")


class MappedFile(NamedTuple):
    """One file, however many mappings it has."""

    span: str
    """Its first mapping, as its link in /proc/PID/map_files is called."""
    device: str
    """``major:minor``, hexadecimal as the kernel prints it."""
    inode: int
    name: str
    """The path as the process sees it; ends with `` (deleted)`` when it has none any more."""
    is_code: bool
    """Whether some of it is mapped executable."""


def parse(data: bytes) -> tuple[MappedFile, ...]:
    """The files in the order of their first mapping; ParseProblem for a line that is none."""
    found: dict[tuple[bytes, bytes, bytes], tuple[bytes, int, bool]] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split(None, 5)
        if len(words) < 6 or words[5][:1] != b"/":
            if line and len(words) < 5:
                raise ParseProblem(number, "'START-END PERMS OFFSET DEVICE INODE PATH'", line)
            continue
        key = words[3], words[4], words[5]
        known = found.get(key)
        is_code = words[1][2:3] == b"x"
        if known is None:
            found[key] = words[0], number, is_code
        elif is_code and not known[2]:
            found[key] = known[0], known[1], True
    return tuple(_file(key, *first) for key, first in found.items())


def _file(
    key: tuple[bytes, bytes, bytes],
    span: bytes,
    number: int,
    is_code: bool,  # noqa: FBT001
) -> MappedFile:
    match = _SPAN.match(span)
    if match is None:
        raise ParseProblem(number, "'START-END' in hexadecimal", span)
    return MappedFile(
        span=f"{match[1].decode()}-{match[2].decode()}",
        device=decode_name(key[0]),
        inode=parse_number(key[1], number, "inode"),
        name=decode_name(key[2].replace(b"\\012", b"\n")),
        is_code=is_code,
    )


def read_maps(host: Host, pid: int) -> tuple[MappedFile, ...] | Unread:
    """The files of one process; ``no_answer`` while its address space is locked."""
    return read_as(host, f"/proc/{pid}/maps", parse, LIMIT_BYTES)
