# SPDX-License-Identifier: Apache-2.0
"""How often the limit that holds for a group was hit, and what the kernel's OOM killer ended in it.

v2 counts ``max`` where the limit was and for all above it, ``oom_kill`` where the victim was and
for all above it (memory.events; before 5.2, and with memory_localevents, nothing for those above).
v1 counts both only where they happen: memory.failcnt, memory.memsw.failcnt (it refuses first
where both limits are one), memory.oom_control (4.13; 5.2 to 5.6 for all above too).
"""

import os
from typing import Final

from seawall.guard.sense.details import below, rows
from seawall.guard.sense.files import first_bytes, number_of, open_quietly
from seawall.guard.sense.member import GroupMember, Names, limiter_of, plain

_FOLDERS_MOST: Final = 256


def hits_and_kills(member: GroupMember, names: Names) -> tuple[int | None, int | None]:
    """Since the groups were made; None: this kernel does not tell."""
    own = member.folder.path
    place = limiter_of(member.folder) or member.folder
    file = names.of(place.path, "memory.events" if names.version == 2 else "memory.failcnt")
    if member.events_path != file:
        if member.events_fd >= 0:
            os.close(member.events_fd)
        member.events_fd, member.events_path = open_quietly(file), file
        member.hits.was = None  # another counter
    if member.events_fd < 0:
        return None, None
    if names.version == 1:
        return _v1_hits(member.events_fd, names, own, place.path), _v1_kills(names, own)
    try:
        events = os.pread(member.events_fd, 512, 0)
    except OSError:
        # Of one above it, whose controller was switched off and on again: other files.
        os.close(member.events_fd)
        member.events_fd = -1
        return None, None
    inside = events
    if place is not member.folder:
        inside = first_bytes(names.of(own, "memory.events"), 512) or b""
    return rows(events).get(b"max"), rows(inside).get(b"oom_kill")


def _v1_hits(fd: int, names: Names, own: str, place: str) -> int | None:
    hits = number_of(fd)
    if hits is None:
        return None
    files = ["memory.memsw.failcnt"] if place == own else ["memory.memsw.failcnt", "memory.failcnt"]
    return hits + sum(plain(names.of(own, name)) for name in files)


def _v1_kills(names: Names, own: str) -> int | None:
    total: int | None = None
    for count, folder in enumerate(below(names.of(own, "").rstrip("/"))):
        text = first_bytes(f"{folder}/memory.oom_control", 256) or b""
        kills = rows(text).get(b"oom_kill")
        if kills is not None:
            total = (total or 0) + kills
        if count >= _FOLDERS_MOST:
            break
    return total
