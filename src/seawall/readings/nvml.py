# SPDX-License-Identifier: Apache-2.0
"""The probe ``nvml``: what the NVIDIA driver says of its devices, where that is system memory.

Device memory is not the host's, except where a device has none of its own (GB10, Jetson): then
NVML answers "not supported" for it, and its figures of processes are of the host's memory.
GH200 and GB200 have their own, a NUMA node of its own.  Initialising NVML wakes devices and can
take seconds, so only a machine with a model of that kind is asked (/proc/driver/nvidia/gpus).
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.probe_answer import each, number, text
from seawall.readings.reading import decode_name, read_as

PROBE: Final = "nvml"
_GPUS: Final = "/proc/driver/nvidia/gpus"
_UNIFIED: Final = re.compile(r"\b(?:GB10|Orin|Thor|Xavier|Tegra)\b", re.IGNORECASE)
_NOT_SUPPORTED: Final = "not supported"


class DeviceProcess(NamedTuple):
    """One process that works on a device."""

    pid: int
    bytes: int | None
    """None when the driver does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlDevice:
    """One NVIDIA device by NVML: its memory in bytes, and who uses it; None: not told."""

    name: str
    uuid: str | None
    total: int | None
    used: int | None
    is_unified: bool
    """Its memory is the host's."""
    processes: tuple[DeviceProcess, ...] | None
    """None when the driver does not tell."""
    problem: str
    """Why something is None."""


@dataclass(frozen=True, slots=True)
class Nvml:
    """The topic: asked only where a device may share the host's memory."""

    driver_version: str | None
    devices: tuple[NvmlDevice, ...]


def parse_information(data: bytes) -> str:
    """The GPU's model: line ``Model`` of /proc/driver/nvidia/gpus/ADDRESS/information.
    ParseProblem without that line.
    """
    for line in data.split(b"\n"):
        key, colon, value = line.partition(b":")
        if colon and key.strip() == b"Model" and value.strip():
            return decode_name(value.strip()[:128])
    raise ParseProblem(0, "a line for Model", data)


def read(host: Host) -> Nvml | Unread:
    """``absent`` as well where no device of the kind is there."""
    names = host.names(_GPUS)
    if isinstance(names, Unread):
        return names
    for name in names:
        path = f"{_GPUS}/{name.rstrip('/')}/information"
        model = read_as(host, path, parse_information)
        if isinstance(model, str) and _UNIFIED.search(model):
            return ask(host)
    return Unread(_GPUS, "absent", "no device whose memory is the host's")


def ask(host: Host) -> Nvml | Unread:
    """Every device, whatever its memory; not a topic, for it may take seconds."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    values = answer if isinstance(answer, dict) else {}
    problem = text(values.get("problem"))
    if problem:
        return Unread(PROBE, "refused" if problem == "no permission" else "failed", problem)
    devices = each(values.get("devices"), _device)
    if devices is None:
        return Unread(PROBE, "malformed", "expected devices")
    return Nvml(text(values.get("driver_version")), devices)


def _device(value: JSON) -> NvmlDevice | None:
    if not isinstance(value, dict):
        return None
    memory, processes = value.get("memory"), value.get("processes")
    name = text(value.get("name")) or "a device without a name"
    sizes = memory if isinstance(memory, dict) else {}
    told = None if isinstance(processes, str) else each(processes, _process)
    if not isinstance(memory, dict | str) or (told is None and not isinstance(processes, str)):
        return None
    is_unified = value.get("numa_node") is None and bool(_UNIFIED.search(name))
    words = [text(part) for part in (memory, processes) if isinstance(part, str)]
    return NvmlDevice(
        name=name,
        uuid=text(value.get("uuid")),
        total=number(sizes.get("total")),
        used=number(sizes.get("used")),
        is_unified=is_unified and (memory == _NOT_SUPPORTED or isinstance(memory, dict)),
        processes=told,
        problem="; ".join(word for word in words if word),
    )


def _process(value: JSON) -> DeviceProcess | None:
    """One row ``[pid, bytes or null, kind]``."""
    if not isinstance(value, list) or len(value) != 3:
        return None
    pid = number(value[0])
    return None if pid is None else DeviceProcess(pid, number(value[1]))
