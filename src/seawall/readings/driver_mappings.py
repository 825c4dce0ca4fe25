# SPDX-License-Identifier: Apache-2.0
"""The probe ``driver_mappings``: pages of drivers that processes have in their address space.

Sums of /proc/PID/smaps (filesystems/proc.rst 3.1) over the mappings of device nodes, asked
only of processes that hold such nodes.  Whoever waits for its disk with mmap_lock held does
not answer: then the processes are asked one by one, and that one is named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.readings.driver_files import DriverFiles
from seawall.readings.probe_answer import each, number, numbers, text

PROBE: Final = "driver_mappings"
_TOGETHER_MOST: Final = 400  # processes of one question
_ALONE_MOST: Final = 32  # asked one by one after a silence


class MappedDriver(NamedTuple):
    """What one process maps of one device; bytes."""

    driver: str
    """As ``DriverFile.driver``."""
    major: int
    minor: int
    mappings: int
    rss: int
    """Pages present; a window into the device's own memory has none."""
    pss: int
    """The same, each page divided by the number of processes that map it."""
    private: int
    """Pages that no other process maps."""


@dataclass(frozen=True, slots=True)
class DriverMappings:
    """The topic: what each process maps of device nodes, in bytes, by pid."""

    by_pid: Mapping[int, tuple[MappedDriver, ...]]
    left_out: tuple[int, ...]
    """Processes that hold such nodes and were not asked, or not in time."""
    unread: tuple[Unread, ...]
    """Those that did not answer."""


def read(host: Host, files: DriverFiles) -> DriverMappings | Unread:
    """Of every process that has a device node of a driver open."""
    pids = [pid for pid, holder in files.by_pid.items() if holder.devices]
    by_pid: dict[int, tuple[MappedDriver, ...]] = {}
    left_out: list[int] = []
    unread: list[Unread] = []
    for asked, answer in _asked(host, pids):
        found = answer if isinstance(answer, Unread) else _parsed(answer)
        if isinstance(found, Unread):
            if found.why == "malformed":
                return found
            if len(asked) == 1:
                unread.append(Unread(f"/proc/{asked[0]}/smaps", found.why, found.detail))
            left_out += asked
            continue
        by_pid |= {
            pid: rows
            for pid, start_ticks, rows in found[0]
            if pid in files.by_pid and files.by_pid[pid].start_ticks == start_ticks
        }
        left_out += found[1]
    return DriverMappings(by_pid, tuple(left_out), tuple(unread))


def _asked(
    host: Host, pids: Sequence[int]
) -> Iterator[tuple[Sequence[int], JSON | Unread]]:  # fmt: skip
    """All at once; one by one those of a question that was met with silence."""
    for start in range(0, len(pids), _TOGETHER_MOST):
        some = pids[start : start + _TOGETHER_MOST]
        answer = host.ask(PROBE, ",".join(map(str, some)))
        if not isinstance(answer, Unread) or answer.why != "no_answer" or len(some) == 1:
            yield some, answer
            continue
        for pid in some[:_ALONE_MOST]:
            yield [pid], host.ask(PROBE, str(pid))
        if some[_ALONE_MOST:]:
            yield some[_ALONE_MOST:], answer


_Row = tuple[int, int, tuple[MappedDriver, ...]]


def _parsed(answer: JSON) -> tuple[tuple[_Row, ...], tuple[int, ...]] | Unread:
    values = answer if isinstance(answer, dict) else {}
    rows, left_out = each(values.get("processes"), _row), numbers(values.get("left_out"))
    if rows is None or left_out is None:
        return Unread(PROBE, "malformed", "expected rows of counts")
    return rows, left_out


def _row(value: JSON) -> _Row | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    pid, start_ticks, mapped = number(value[0]), number(value[1]), each(value[2], _mapped)
    if pid is None or start_ticks is None or mapped is None:
        return None
    return pid, start_ticks, mapped


def _mapped(value: JSON) -> MappedDriver | None:
    if not isinstance(value, list) or len(value) != 7:
        return None
    driver, counts = text(value[0]), numbers(value[1:], 6)
    return MappedDriver(driver, *counts) if driver and counts else None
