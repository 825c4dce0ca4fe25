# SPDX-License-Identifier: Apache-2.0
"""How much of drivers' device files processes have mapped, page by page present.

From /proc/PID/maps and smaps (filesystems/proc.rst 3.1): pages that a driver inserted into the
mapping (vm_insert_page) are in its Rss, windows into a device (VM_PFNMAP) are not.  A mapping
is a driver's when device and inode are those of a device node that one of the asked processes
has open; its name proves nothing.  Both files take mmap_lock: asked in the expendable child.
"""

import os
import re
import stat
import time
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.descriptor_walk import FileWalker, OverTimeError, start_ticks
from seawall.host.driver_files import DeviceNames
from seawall.host.host import JSON

_BUDGET_SECONDS: Final = 0.4
_BYTES_MOST: Final = 64 << 20  # 65,530 mappings (vm.max_map_count) have less
_KIB: Final = 1024
_FIELD: Final = re.compile(
    rb"^(Rss|Pss|Private_Clean|Private_Dirty): +([0-9]{1,15}) kB$", re.MULTILINE
)
_NEXT: Final = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ ", re.MULTILINE)


class _Node(NamedTuple):
    """A driver's device node."""

    driver: str
    major: int
    minor: int


def driver_mappings(argument: str) -> JSON:
    """{"processes": [[pid, start_ticks, [[driver, major, minor, mappings, rss, pss, private],
    ...]], ...], "left_out": [pid, ...]}, in bytes.

    argument: the processes, with commas between.  ``private``: mapped by that process alone.
    ``left_out``: there was no time left, or they may not be looked into.
    """
    until = time.monotonic() + _BUDGET_SECONDS
    look, names = FileWalker(until), DeviceNames()
    left_out: list[JSON] = []
    nodes: dict[bytes, _Node] = {}
    pids: list[int] = []
    for pid in sorted((int(word) for word in argument.split(",") if word), key=_resident_pages):
        with suppress(FileNotFoundError, ProcessLookupError):
            try:
                nodes |= _nodes_of(look, names, pid)
                pids.append(pid)
            except (PermissionError, OverTimeError):
                left_out.append(pid)
    heads = _heads(nodes)
    processes: list[JSON] = []
    for pid in pids:
        if time.monotonic() > until:
            left_out.append(pid)
            continue
        try:
            if rows := _mapped(pid, heads, nodes):
                processes.append([pid, start_ticks(pid), rows])
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            left_out.append(pid)
    return {"processes": processes, "left_out": left_out}


def _resident_pages(pid: int) -> int:
    """Small processes first: one of a hundred gigabytes takes the kernel long to walk."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _nodes_of(look: FileWalker, names: DeviceNames, pid: int) -> dict[bytes, _Node]:
    """The device nodes that it has open, as ``maps`` would print device and inode."""
    found = {}
    for file in look.files_of(pid):
        if file.kind == stat.S_IFCHR and (driver := names.driver(file.rdev)) is not None:
            key = b"%02x:%02x %d" % (*file.device, file.inode)
            found[key] = _Node(driver, *file.rdev)
    return found


def _heads(nodes: dict[bytes, _Node]) -> re.Pattern[bytes] | None:
    """Finds the first lines of their mappings; None when there is no node."""
    if not nodes:
        return None
    choices = b"|".join(map(re.escape, sorted(nodes)))
    return re.compile(
        rb"^[0-9a-f]+-[0-9a-f]+ [-rwxsp]{4} [0-9a-f]+ (" + choices + rb")(?= |$).*$", re.MULTILINE
    )


def _mapped(
    pid: int, heads: re.Pattern[bytes] | None, nodes: dict[bytes, _Node]
) -> list[JSON]:  # fmt: skip
    """One row for each device; smaps only where maps shows such a mapping: it costs a walk."""
    if heads is None or not heads.search(_content(f"/proc/{pid}/maps")):
        return []
    return mapped_in(_content(f"/proc/{pid}/smaps"), heads, nodes)


def mapped_in(
    smaps: bytes, heads: re.Pattern[bytes], nodes: dict[bytes, _Node]
) -> list[JSON]:  # fmt: skip
    """The rows of one process's smaps."""
    sums: dict[_Node, list[int]] = {}
    for head in heads.finditer(smaps):
        row = sums.setdefault(nodes[head[1]], [0, 0, 0, 0])
        row[0] += 1
        after = _NEXT.search(smaps, head.end())
        end = after.start() if after else len(smaps)
        for name, size in _FIELD.findall(smaps, head.end(), end):
            place = (b"Rss", b"Pss").index(name) + 1 if name in (b"Rss", b"Pss") else 3
            row[place] += int(size) * _KIB
    return [[*node, *row] for node, row in sums.items()]


def _content(path: str) -> bytes:
    """OSError when it is longer than any address space."""
    with open(path, "rb", buffering=0) as file:
        parts = []
        size = 0
        while part := file.read(1 << 20):
            parts.append(part)
            size += len(part)
            if size > _BYTES_MOST:
                raise OSError(os.strerror(0), path)
        return b"".join(parts)
