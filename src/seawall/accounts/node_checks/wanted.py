# SPDX-License-Identifier: Apache-2.0
"""What a node should have, in its owner's words: the table ``[wanted]`` of slurm.toml.

What is empty or None is not judged, but for what no sound node lacks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedNode:
    """What one node is to have and to be."""

    mounts: tuple[str, ...] = ()
    """Paths; one may be followed by its type: ``/scratch lustre``."""
    writable: tuple[str, ...] = ()
    """Mounts that must not be read-only, besides those that fell to it."""
    free_percent: Mapping[str, float] = field(default_factory=lambda: {"/tmp": 2.0, "/var": 2.0})  # noqa: S108 - looked at
    """Of bytes and of inodes, by a path of the file system."""
    gpus: int | None = None
    nvidia_driver: str = ""
    memory_mib: int | None = None
    """MemTotal at least; RealMemory of slurm.conf fits."""
    cpus: int | None = None
    smt: bool | None = None
    swap: bool | None = None
    clock: bool = False
    """An unsynchronised clock is a finding."""
    kernel: str = ""
    """The release, as uname has it."""
    services: tuple[str, ...] = ()
    """Units of systemd that must have a process."""
    munge_socket: str = ""
    """Empty: the usual one, where munge's folder is there."""
    infiniband: tuple[str, ...] = ()
    """Ports that must be active, with their rate in Gb/s if that is judged: ``mlx5_0:1 200``."""
    links: tuple[str, ...] = ()
    """Network interfaces that must be up, with their rate in Mb/s: ``eth0 25000``."""
    huge_pages_idle: int | None = None
    """As many may be in use while no job runs."""
    stuck_tasks: int = 30
    """As many tasks may wait in state D while no job runs."""
