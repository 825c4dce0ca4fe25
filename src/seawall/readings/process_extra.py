# SPDX-License-Identifier: Apache-2.0
"""Per-process files that few questions need, each parsed here and read one by one.

/proc/PID/{oom_score,oom_score_adj,io,smaps_rollup,cgroup}.  ``io`` and ``smaps_rollup`` take
another process's locks: the host reads them through its expendable child.
"""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True)
class ProcessIo:
    """Bytes that really came from or went to storage, and characters read or written."""

    read_bytes: int
    write_bytes: int
    cancelled_write_bytes: int
    rchar: int
    wchar: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SmapsRollup:
    """Bytes; since 4.14."""

    rss: int
    pss: int
    pss_anon: int | None
    pss_file: int | None
    pss_shmem: int | None
    private_clean: int
    private_dirty: int
    shared_clean: int
    shared_dirty: int
    anonymous: int
    swap: int
    locked: int | None


def parse_io(data: bytes) -> ProcessIo:
    raise NotImplementedError


def parse_smaps_rollup(data: bytes) -> SmapsRollup:
    raise NotImplementedError


def read_io(host: Host, pid: int) -> ProcessIo | Unread:
    raise NotImplementedError


def read_smaps_rollup(host: Host, pid: int) -> SmapsRollup | Unread:
    raise NotImplementedError


def read_oom_score(host: Host, pid: int) -> int | Unread:
    raise NotImplementedError


def read_oom_score_adj(host: Host, pid: int) -> int | Unread:
    raise NotImplementedError
