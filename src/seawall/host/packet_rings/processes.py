# SPDX-License-Identifier: Apache-2.0
"""Who holds packet sockets and who lives in their namespaces: rows about processes.

Between two files of /proc/PID the number may have become another process's, and that one's
cgroup would be told for this one's socket.  So the start of the process (field 22 of stat, proc(5))
is read before and after its cgroup, and its namespace once more.
"""

import time
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.host import JSON
from seawall.host.packet_rings.namespaces import Namespaces, inode_of

_HIDDEN_MOST: Final = 4096
_CLOCK_EVERY: Final = 64
_NET_RAW: Final = 1 << 13


class _Seen(NamedTuple):
    """One process, all of it read while it was the same."""

    comm: str
    start_ticks: int
    bounding: int
    cgroup: bytes
    namespace: int | None
    """When the cgroup had been read; None: it may not be seen."""


def process_row(pid: int, spaces: Namespaces) -> list[JSON]:
    """[pid, start_ticks, comm, namespace, bounding capabilities, [cgroup lines]]; OSError, also
    when it is another process than the one that was found to hold something.

    The namespace is None when it was left for another one meanwhile.
    """
    seen = _seen(pid, spaces)
    if seen.start_ticks >= spaces.began_ticks:
        raise ProcessLookupError(pid)  # it may have come by its number since
    space = spaces.by_pid.get(pid)
    return [
        pid,
        seen.start_ticks,
        seen.comm,
        space if seen.namespace == space else None,
        seen.bounding,
        lines_of(seen.cgroup),
    ]


def inhabitants(apart: set[int], spaces: Namespaces, until: float) -> list[JSON]:
    """[namespace, whether all were seen, [[cgroup lines], ...], [bounding capabilities, ...]]: in
    which cgroups the processes of each namespace are, and what those of each can have at most.
    """
    found: dict[int, dict[bytes, int]] = {space: {} for space in apart}
    cut: set[int] = set()
    asked, is_late = 0, False
    for pid, space in spaces.by_pid.items():
        if space not in found:
            continue
        asked += 1
        is_late = is_late or (asked % _CLOCK_EVERY == 0 and time.monotonic() > until)
        if is_late:
            cut.add(space)
            continue
        try:
            _note(found[space], pid, space, spaces)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except (OSError, ValueError, IndexError):
            cut.add(space)
    rows: list[JSON] = []
    for space, texts in found.items():
        told = sorted(texts)
        is_whole = not spaces.left_out and space not in cut
        cgroups: list[JSON] = [lines_of(text) for text in told]
        rows.append([space, is_whole, cgroups, [texts[text] for text in told]])
    return rows


def _note(texts: dict[bytes, int], pid: int, space: int, spaces: Namespaces) -> None:
    """Most processes of a pod tell nothing new, and cost one file."""
    cgroup = read(f"{spaces.folder(pid)}/cgroup")
    if texts.get(cgroup, 0) & _NET_RAW:
        return
    seen = _seen(pid, spaces)
    if seen.namespace == space:
        texts[seen.cgroup] = texts.get(seen.cgroup, 0) | seen.bounding


def hidden(pids: list[int]) -> list[JSON]:
    """In which cgroups they are; that may be seen of everybody."""
    texts = set()
    for pid in pids[:_HIDDEN_MOST]:
        with suppress(OSError):
            texts.add(read(f"/proc/{pid}/cgroup"))
    return [lines_of(text) for text in sorted(texts)]


def _seen(pid: int, spaces: Namespaces) -> _Seen:
    """OSError; ProcessLookupError when its number was another's at the end."""
    folder = spaces.folder(pid)
    comm, start = _stat(pid)
    bounding = read(f"{folder}/status").partition(b"\nCapBnd:")[2].split(None, 1)[0]
    cgroup = read(f"{folder}/cgroup")
    namespace = inode_of(f"{folder}/ns/net") if pid in spaces.by_pid else None
    if _stat(pid)[1] != start:
        raise ProcessLookupError(pid)
    return _Seen(comm, start, int(bounding, 16), cgroup, namespace)


def _stat(pid: int) -> tuple[str, int]:
    """Its name, and when it began in ticks since boot."""
    head, _, tail = read(f"/proc/{pid}/stat").rpartition(b") ")
    return head.partition(b" (")[2].decode("utf-8", "replace"), int(tail.split()[19])


def read(path: str) -> bytes:
    """All of a small file."""
    with open(path, "rb") as file:
        return file.read()


def lines_of(cgroups: bytes) -> JSON:
    """Cut at newlines only: a container names cgroups, and splitlines() cuts within names."""
    return [line for line in cgroups.decode("utf-8", "surrogateescape").split("\n") if line]
