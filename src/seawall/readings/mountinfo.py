# SPDX-License-Identifier: Apache-2.0
"""/proc/self/mountinfo: what is mounted where.  Kernel document: filesystems/proc.rst 3.5.

Super options of filesystems that may carry credentials are removed by the host's sieve.
"""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    mount_id: int
    parent_id: int
    device: str
    """``major:minor``."""
    root: str
    mount_point: str
    """Octal escapes of the file (``\\040``) are undone."""
    options: tuple[str, ...]
    fs_type: str
    source: str
    super_options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mountinfo:
    mounts: tuple[Mount, ...]


def parse(data: bytes) -> Mountinfo:
    raise NotImplementedError


def read(host: Host) -> Mountinfo | Unread:
    """The host's own view: /proc/1/mountinfo, else /proc/self/mountinfo."""
    raise NotImplementedError
