# SPDX-License-Identifier: Apache-2.0
"""The cgroup trees: where they are mounted, which cgroups exist, which processes are in them.

Kernel documents: admin-guide/cgroup-v1/cgroups.rst, admin-guide/cgroup-v2.rst.  A host may
have v1, v2, or both (systemd's hybrid layout).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupLayout:
    """Mount points, as on the host."""

    v1: Mapping[str, str]
    """controller -> mount point (``memory``, ``pids``, ``devices``, ``name=systemd``)."""
    v2: str | None
    v2_controllers: tuple[str, ...]
    """cgroup.controllers of the v2 root."""

    @property
    def memory_version(self) -> Literal[1, 2] | None:
        """Which tree counts memory; None when neither does."""
        if "memory" in self.v1:
            return 1
        return 2 if "memory" in self.v2_controllers else None


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The topic: the tree that counts memory, or v2 or name=systemd when none does."""

    layout: CgroupLayout
    paths: tuple[str, ...]
    """Every cgroup below the mount point, parents first; the root is ``/``."""
    mount_point: str
    pids: Mapping[str, tuple[int, ...]]
    """path -> cgroup.procs.  A process is in exactly one cgroup of a tree."""
    unread: tuple[Unread, ...]


def parse_proc_cgroup(data: bytes) -> Mapping[str, str]:
    """/proc/PID/cgroup: controller (or "" for v2) -> path.  co-mounted ones each."""
    raise NotImplementedError


def read(host: Host) -> Cgroups | Unread:
    raise NotImplementedError
