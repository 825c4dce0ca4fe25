# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/fdinfo/FD of graphics devices: what each client of a driver holds, by region.

Kernel document: Documentation/gpu/drm-usage-stats.rst (keys ``drm-*``; 5.19 and later,
memory since 6.5 in most drivers; ``drm-memory-*`` is the older name of ``drm-resident-*`` in
amdgpu).  nvidia prints nothing of the kind.

>>> parse(b"pos:\\t0\\ndrm-driver:\\txe\\ndrm-client-id:\\t3\\ndrm-total-gtt:\\t192 KiB\\n").driver
'xe'
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.driver_files import DriverFiles
from seawall.readings.process import sum_unread
from seawall.readings.reading import decode_name, parse_number, read_each_as

DRIVERS: Final = ("drm", "accel")
"""``DriverFile.driver`` of the nodes whose fdinfo is asked."""
_FILES_MOST: Final = 4096
_UNITS: Final = {b"": 1, b"KiB": 1 << 10, b"MiB": 1 << 20, b"GiB": 1 << 30}
_KEY: Final = re.compile(
    rb"drm-(total|shared|resident|purgeable|active|memory)-([A-Za-z0-9_.-]{1,32})\Z"
)
_NAME_MOST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DrmRegion:
    """Bytes of buffers in one kind of memory.  ``None``: the driver does not tell."""

    total: int | None = None
    shared: int | None = None
    """In more than one client, or exported."""
    resident: int | None = None
    """That have pages now."""
    purgeable: int | None = None
    active: int | None = None
    memory: int | None = None
    """The older name of ``resident``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrmFile:
    """The ``drm-`` keys of one /proc/PID/fdinfo/FD: which client it is, and memory by region."""

    driver: str | None
    """None when the file is no graphics device's, or its driver prints no statistics."""
    client_id: int | None
    pdev: str | None
    """PCI address; the client's id is unique in it, or everywhere where there is none."""
    regions: Mapping[str, DrmRegion]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrmClient:
    """One client, however many descriptors and processes hold it."""

    driver: str
    pdev: str | None
    client_id: int
    pids: tuple[int, ...]
    regions: Mapping[str, DrmRegion]


@dataclass(frozen=True, slots=True)
class DrmClients:
    """The topic: what each client of a graphics driver holds, and which drivers tell nothing."""

    clients: tuple[DrmClient, ...]
    silent: Mapping[str, tuple[int, ...]]
    """Driver, ``?`` where unknown -> processes that hold it and of which it tells no memory."""
    left_out: int
    """Descriptors that were not looked at."""
    unread: tuple[Unread, ...]


def parse(data: bytes) -> DrmFile:
    """The ``drm-`` keys of one file; others are skipped."""
    driver: str | None = None
    client_id: int | None = None
    pdev: str | None = None
    sizes: dict[str, dict[str, int]] = {}
    for line_number, line in enumerate(data.split(b"\n"), start=1):
        key, colon, value = line.partition(b":")
        if not colon or not key.startswith(b"drm-"):
            continue
        if key == b"drm-driver":
            driver = decode_name(value.strip()[:_NAME_MOST])
        elif key == b"drm-client-id":
            client_id = parse_number(value.strip(), line_number, "a client's id")
        elif key == b"drm-pdev":
            pdev = decode_name(value.strip()[:_NAME_MOST])
        # "drm-total-cycles-rcs" is a clock and no memory.
        elif (match := _KEY.match(key)) and not match[2].startswith(b"cycles-"):
            region = sizes.setdefault(decode_name(match[2]), {})
            region[match[1].decode()] = _size(value, line_number)
    regions = {name: DrmRegion(**fields) for name, fields in sizes.items()}
    return DrmFile(driver=driver or None, client_id=client_id, pdev=pdev or None, regions=regions)


def _size(value: bytes, line: int) -> int:
    """``NUMBER``, ``NUMBER KiB`` or ``NUMBER MiB`` as bytes."""
    count, _, unit = value.strip().partition(b" ")
    factor = _UNITS.get(unit.strip())
    if factor is None:
        raise ParseProblem(line, "'NUMBER', 'NUMBER KiB' or 'NUMBER MiB'", value)
    return parse_number(count, line, "a size") * factor


def read(host: Host, files: DriverFiles) -> DrmClients | Unread:
    """The clients of every graphics device that a process has open."""
    nodes = [
        (pid, file)
        for pid, holder in files.by_pid.items()
        for file in holder.devices
        if file.driver in DRIVERS
    ]
    asked = [(pid, fd) for pid, file in nodes for fd in file.fds]
    left_out = sum(file.descriptors for _, file in nodes) - len(asked[:_FILES_MOST])
    known: dict[tuple[str, str | None, int], tuple[set[int], Mapping[str, DrmRegion]]] = {}
    silent: dict[str, set[int]] = {}
    missed: list[Unread] = []
    for pid, found in _files(host, asked[:_FILES_MOST]):
        if isinstance(found, Unread):
            missed.append(found)
        elif found.driver is None or found.client_id is None or not found.regions:
            silent.setdefault(found.driver or "?", set()).add(pid)
        else:
            key = found.driver, found.pdev, found.client_id
            known.setdefault(key, (set(), found.regions))[0].add(pid)
    clients = tuple(
        DrmClient(driver=key[0], pdev=key[1], client_id=key[2], pids=tuple(sorted(pids)),
                  regions=regions)
        for key, (pids, regions) in known.items()
    )  # fmt: skip
    told = {driver: tuple(sorted(pids)) for driver, pids in silent.items()}
    return DrmClients(clients, told, max(0, left_out), sum_unread(missed))


def _files(
    host: Host, asked: list[tuple[int, int]]
) -> Iterator[tuple[int, DrmFile | Unread]]:  # fmt: skip
    paths = [f"/proc/{pid}/fdinfo/{fd}" for pid, fd in asked]
    for (pid, _), found in zip(asked, read_each_as(host, paths, parse), strict=True):
        yield pid, found
