# SPDX-License-Identifier: Apache-2.0
"""Per-process files that few questions need, each parsed here and read one by one.

/proc/PID/{oom_score,oom_score_adj,io,smaps_rollup}; /proc/PID/cgroup is in ``cgroup``.
Kernel documents: filesystems/proc.rst 3.1 to 3.3, ABI/testing/procfs-smaps_rollup.
``io`` and ``smaps_rollup`` take another process's locks: the host reads them through its
expendable child.
"""

from dataclasses import dataclass
from typing import Any, Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, parse_signed, read_as

_IO_FIELDS: Final = frozenset(
    {b"read_bytes", b"write_bytes", b"cancelled_write_bytes", b"rchar", b"wchar"}
)
_ROLLUP_FIELDS: Final = {
    b"Rss": "rss", b"Pss": "pss", b"Pss_Anon": "pss_anon", b"Pss_File": "pss_file",
    b"Pss_Shmem": "pss_shmem", b"Private_Clean": "private_clean",
    b"Private_Dirty": "private_dirty", b"Shared_Clean": "shared_clean",
    b"Shared_Dirty": "shared_dirty", b"Anonymous": "anonymous", b"Swap": "swap",
    b"Locked": "locked",
}  # fmt: skip
_ROLLUP_OPTIONAL: Final = ("pss_anon", "pss_file", "pss_shmem", "locked")  # Pss_*: since 5.3


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
    """A process's mappings summed up, in bytes: /proc/PID/smaps_rollup, since 4.14."""

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
    """/proc/PID/io; unknown lines are skipped."""
    values: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        name, _, rest = line.partition(b": ")
        if name in _IO_FIELDS:
            values[name.decode()] = parse_number(rest, number, name.decode())
    if len(values) < len(_IO_FIELDS):
        raise ParseProblem(0, f"lines for {b', '.join(sorted(_IO_FIELDS)).decode()}", data)
    return ProcessIo(**values)


def parse_smaps_rollup(data: bytes) -> SmapsRollup:
    """/proc/PID/smaps_rollup; unknown lines are skipped."""
    values: dict[str, Any] = dict.fromkeys(_ROLLUP_OPTIONAL)
    for number, line in enumerate(data.split(b"\n"), start=1):
        name, _, rest = line.partition(b":")
        field = _ROLLUP_FIELDS.get(name)
        if field is None:
            continue
        words = rest.split()
        if len(words) != 2 or words[1] != b"kB":
            raise ParseProblem(number, f"'{name.decode()}: NUMBER kB'", line)
        values[field] = parse_number(words[0], number, field) * 1024
    for field in _ROLLUP_FIELDS.values():
        if field not in values:
            raise ParseProblem(0, f"a line for {field}", data)
    return SmapsRollup(**values)


def read_oom_score_adj(host: Host, pid: int) -> int | Unread:
    """-1000 (never killed) to 1000."""
    return read_as(host, f"/proc/{pid}/oom_score_adj", _number)


def _number(data: bytes) -> int:
    return parse_signed(data.strip(), 1, "a value")
