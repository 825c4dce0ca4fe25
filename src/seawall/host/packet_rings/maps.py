# SPDX-License-Identifier: Apache-2.0
"""Which processes have packet rings mapped: sockets that are closed and still there.

/proc/PID/maps names a mapped socket ``socket:[INODE]``.  packet(7) maps all of a ring or
nothing, so a mapping that was not cut tells its size too.  ``maps`` is read under another
process's mmap_lock: asked in the expendable child, and only when no descriptor told.
"""

import re
import time
from typing import Final

from seawall.host.host import JSON
from seawall.host.packet_rings.namespaces import network_namespaces
from seawall.host.packet_rings.processes import process_row

_LOOK_SECONDS: Final = 0.4
_TOLD_MOST: Final = 4096
_LINE: Final = re.compile(
    rb"^([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S+ ([0-9a-f]{1,16}) \S+ \d+ +socket:\[(\d{1,20})\]",
    re.MULTILINE,
)


def ring_maps(argument: str) -> JSON:
    """{"maps": [[inode, pid, bytes], ...], "processes": [as of ``process_row``], "left_out"} for
    ``INODE:NAMESPACE,...|PID,...``.

    Only the processes that are named; with none, every process, those of the namespaces first.
    ``bytes``: as far into the ring as the mapping reaches.
    """
    sockets, _, pids = argument.partition("|")
    pairs = [pair.split(":") for pair in sockets.split(",")]
    wanted = {int(inode) for inode, _ in pairs}
    spaces = {int(space) for _, space in pairs}
    found = network_namespaces(time.monotonic() + _LOOK_SECONDS)
    by_pid = found.by_pid
    until = time.monotonic() + _LOOK_SECONDS
    asked = [int(pid) for pid in pids.split(",") if pid]
    asked = asked or sorted(by_pid, key=lambda pid: by_pid[pid] not in spaces)
    rows: list[JSON] = []
    processes: list[JSON] = []
    left_out = 0
    for done, pid in enumerate(asked):
        if time.monotonic() > until or len(rows) >= _TOLD_MOST:
            left_out += len(asked) - done
            break
        try:
            mapped = _mapped(found.folder(pid), wanted)
            if mapped:
                processes.append(process_row(pid, found))
        except PermissionError:
            left_out += 1
            continue
        except (FileNotFoundError, ProcessLookupError, ValueError, IndexError):
            continue  # it has ended, or half of its stat has
        rows += [[inode, pid, size] for inode, size in mapped.items()]
    return {"maps": rows, "processes": processes, "left_out": left_out}


def _mapped(folder: str, wanted: set[int]) -> dict[int, int]:
    """Inode -> how far into the ring one process has it mapped."""
    with open(f"{folder}/maps", "rb") as maps:
        data = maps.read()
    mapped: dict[int, int] = {}
    if b" socket:[" in data:
        for start, end, offset, inode in _LINE.findall(data):
            reach = int(end, 16) - int(start, 16) + int(offset, 16)
            if int(inode) in wanted:
                mapped[int(inode)] = max(mapped.get(int(inode), 0), reach)
    return mapped
