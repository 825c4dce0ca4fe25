# SPDX-License-Identifier: Apache-2.0
"""Limits of the whole host that no container limit covers, with what is used of them.

pid_max and threads-max, open files (fs/file-nr), conntrack, inotify, ptys, neighbour tables.
"""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimit:
    name: str
    """``threads``, ``pids``, ``open files``, ``conntrack``, ``inotify instances``, ..."""
    used: int | None
    """None where the kernel gives no host-wide count (the reason is in ``unread``)."""
    limit: int
    source: str
    """The paths that give ``used`` and ``limit``, joined by " + "."""


@dataclass(frozen=True, slots=True)
class HostLimits:
    limits: tuple[HostLimit, ...]
    unread: tuple[Unread, ...]


def read(host: Host) -> HostLimits | Unread:
    raise NotImplementedError
