# SPDX-License-Identifier: Apache-2.0
"""A machine that is asked only what never waits: for no disk, no lock of a process, no driver.

What is not asked is "not captured", so nobody takes it for absent.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.host.blocking import deadline_seconds
from seawall.host.host import JSON, Host, Unread

PROBES: Final = frozenset({"now", "reader", "page_size", "clock_ticks", "machine", "node_name"})
FILE_MOST_BYTES: Final = 1 << 20
_MOUNTS: Final = frozenset({"/proc/1/mountinfo", "/proc/self/mountinfo"})
_MOUNTS_KEPT: Final = (b" - cgroup ", b" - cgroup2 ", b" - tmpfs ", b" - ramfs ", b" - hugetlbfs ")
_OF_PODS: Final = b"/kubelet/pods/"
_WHY: Final = "the black box asks nothing that may have to wait"


class CheapHost:
    """A ``Host`` in front of another one."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self, path: str, limit_bytes: int = FILE_MOST_BYTES) -> bytes | Unread:
        if deadline_seconds(path) is not None:
            return Unread(path, "not_captured", _WHY)
        data = self._host.read(path, min(limit_bytes, FILE_MOST_BYTES))
        if path in _MOUNTS and isinstance(data, bytes):
            return _few_mounts(data)
        return data

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        if any(deadline_seconds(path) is not None or path in _MOUNTS for path in paths):
            yield from map(self.read, paths)
        else:
            yield from self._host.read_each(paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        if deadline_seconds(path) is not None:
            return Unread(path, "not_captured", _WHY)
        return self._host.names(path)

    def link(self, path: str) -> str | Unread:
        if deadline_seconds(path) is not None:
            return Unread(path, "not_captured", _WHY)
        return self._host.link(path)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        if probe not in PROBES:
            return Unread(probe, "not_captured", _WHY)
        return self._host.ask(probe, argument)


def _few_mounts(mountinfo: bytes) -> bytes:
    """Without what a few hundred pods mount: no rule looks at it, and it is the longest file."""
    kept = [
        line
        for line in mountinfo.split(b"\n")
        if not line or (any(kind in line for kind in _MOUNTS_KEPT) and _OF_PODS not in line)
    ]
    return b"\n".join(kept)
