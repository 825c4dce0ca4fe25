# SPDX-License-Identifier: Apache-2.0
"""The probe ``gpu_query``: devices, versions and failures as the driver's libraries tell them.

It takes seconds where a device has to be woken, so it is no topic: ``seawall gpu query`` asks.
The version of the kernel's module: /proc/driver/nvidia/version (nv-procfs.c), line NVRM.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.probe_answer import each, number, text
from seawall.readings.reading import read_as

PROBE: Final = "gpu_query"
MODULE: Final = "/proc/driver/nvidia/version"
NOT_THERE: Final = "not there"
"""Of a place that has no such file at all."""
_VERSION: Final = re.compile(rb"\s(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)\s")
_FIGURES_MOST: Final = 64


class Library(NamedTuple):
    """One of the driver's libraries."""

    name: str
    path: str | None
    """Where it was loaded from; None: it was not found."""
    tried: tuple[tuple[str, str], ...]
    """(place, what the loader said)."""


class Failed(NamedTuple):
    """One call that did not succeed."""

    call: str
    code: int | None
    """None: the library has no such call."""


@dataclass(frozen=True, slots=True)
class QueriedDevice:
    """One device as one library tells it; ``figures`` hold what was told, by the probe's names."""

    index: int
    name: str | None
    uuid: str | None
    bus_id: str | None
    figures: Mapping[str, int]
    """Bytes, but where the name says MHz, kHz, milliwatts, bits."""
    failed: tuple[Failed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuQuery:
    """The answer of the probe ``gpu_query``: devices, versions and failed calls of the driver."""

    libraries: Mapping[str, Library]
    """``nvml``, ``cuda``, ``runtime``."""
    driver_version: str | None
    """As NVML tells it."""
    module_version: str | Unread
    """Of the kernel's module that is loaded."""
    cuda_version: int | None
    """1000 * major + 10 * minor, of the driver."""
    runtime_version: int | None
    """Of libcudart."""
    devices: tuple[QueriedDevice, ...]
    """NVML's."""
    cuda_devices: tuple[QueriedDevice, ...]
    failed: tuple[Failed, ...]
    """Calls that are of no single device."""
    environment: Mapping[str, str]
    """Variables that change what the libraries see."""


def parse_module(data: bytes) -> str:
    """``590.48.01`` of the NVRM line."""
    for line in data.split(b"\n"):
        if line.startswith(b"NVRM version:") and (found := _VERSION.search(line + b" ")):
            return found[1].decode("ascii")
    raise ParseProblem(0, "a version in a line NVRM version", data)


def ask(host: Host) -> GpuQuery | Unread:
    """Takes as long as the driver needs to wake up."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    return query_of(host, answer) or Unread(PROBE, "malformed", "expected libraries and devices")


def query_of(host: Host, answer: JSON) -> GpuQuery | None:
    """Of the answer of this probe, or of one that asks as somebody else."""
    return _parsed(answer, read_as(host, MODULE, parse_module))


def _parsed(answer: JSON, module: str | Unread) -> GpuQuery | None:
    whole = _mapping(answer)
    nvml, cuda = _mapping(whole.get("nvml")), _mapping(whole.get("cuda"))
    libraries = {
        name: found
        for name, value in _mapping(whole.get("libraries")).items()
        if (found := _library(value)) is not None
    }
    if set(libraries) != {"nvml", "cuda", "runtime"}:
        return None
    told = {name: text(value) for name, value in _mapping(whole.get("environment")).items()}
    return GpuQuery(
        libraries=libraries,
        driver_version=text(nvml.get("driver_version")),
        module_version=module,
        cuda_version=number(cuda.get("version")) or number(nvml.get("cuda_version")),
        runtime_version=number(whole.get("runtime_version")),
        devices=each(nvml.get("devices"), _device) or (),
        cuda_devices=each(cuda.get("devices"), _device) or (),
        failed=(*_failed(nvml.get("failed")), *_failed(cuda.get("failed"))),
        environment={name: value for name, value in told.items() if value is not None},
    )


def _mapping(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _library(value: JSON) -> Library | None:
    told = _mapping(value)
    name, tried = text(told.get("name")), each(told.get("tried"), _place)
    if name is None or tried is None:
        return None
    return Library(name, text(told.get("path")), tried)


def _place(value: JSON) -> tuple[str, str] | None:
    pair = each(value, text)
    return None if pair is None or len(pair) != 2 else (pair[0], pair[1])


def _failed(value: JSON) -> tuple[Failed, ...]:
    return each(value, _one_failed) or ()


def _one_failed(value: JSON) -> Failed | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    call = text(value[0])
    return None if call is None else Failed(call, number(value[1]))


def _device(value: JSON) -> QueriedDevice | None:
    told = _mapping(value)
    index = number(told.get("index"))
    if index is None:
        return None
    figures = {
        name: found
        for name, value in list(told.items())[:_FIGURES_MOST]
        if name != "index" and (found := number(value)) is not None
    }
    return QueriedDevice(
        index=index,
        name=text(told.get("name")),
        uuid=text(told.get("uuid")),
        bus_id=text(told.get("bus_id")),
        figures=figures,
        failed=_failed(told.get("failed")),
    )
