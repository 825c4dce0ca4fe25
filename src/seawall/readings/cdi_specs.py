# SPDX-License-Identifier: Apache-2.0
"""Container Device Interface: /etc/cdi and /var/run/cdi, JSON, and YAML as nvidia-ctk writes it.

CNCF container-device-interface SPEC.md, cdiVersion 0.3.0 to 0.8.0.  Its writers leave out fields
that are 0: a node with a major and no minor has minor 0, one without a major takes both from the
host's node when a container starts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.device_rule import NUMBER_MOST
from seawall.readings.reading import read_as

FOLDERS: Final = (("/etc/cdi",), ("/var/run/cdi", "/run/cdi"))
"""Of each the first that is there; /var/run is nearly always a link to /run."""
LIMIT_BYTES: Final = 1 << 20
FILES_MOST: Final = 256
NAME_MOST: Final = 256
_PATH_MOST: Final = 4096


class CdiNode(NamedTuple):
    """A device node that a spec injects; numbers are None where it leaves them to the host."""

    path: str
    host_path: str
    major: int | None
    minor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiSpec:
    """One CDI spec file: the device nodes that it injects, for all devices and for each."""

    source: str
    kind: str
    """``nvidia.com/gpu``."""
    common: tuple[CdiNode, ...]
    devices: Mapping[str, tuple[CdiNode, ...]]
    """Name (``0``, ``all``, a UUID) -> its own nodes."""


@dataclass(frozen=True, slots=True)
class CdiSpecs:
    """The topic: the CDI spec files of /etc/cdi and /var/run/cdi."""

    specs: tuple[CdiSpec, ...]
    unread: tuple[Unread, ...] = ()
    """Specs that are there and could not be read, or are not what the format says."""


def parse(data: bytes) -> CdiSpec:
    """A spec in either form; its ``source`` is empty until somebody knows where it lay."""
    if len(data) > LIMIT_BYTES:
        raise ParseProblem(0, f"at most {LIMIT_BYTES} bytes", data)
    document = _json(data) if data.lstrip()[:1] == b"{" else _yaml(data)
    if not isinstance(document, dict):
        raise ParseProblem(0, "a CDI spec", data)
    kind = _name(document.get("kind"), "kind")
    if "/" not in kind:
        raise ParseProblem(0, "VENDOR/CLASS for kind")
    devices: dict[str, tuple[CdiNode, ...]] = {}
    for row in _rows(document.get("devices"), "devices"):
        name = _name(row.get("name"), "the name of a device")
        if name in devices:
            raise ParseProblem(0, "each name of a device once")
        devices[name] = _nodes(row.get("containerEdits"))
    common = _nodes(document.get("containerEdits"))
    return CdiSpec(source="", kind=kind, common=common, devices=devices)


def read(host: Host) -> CdiSpecs | Unread:
    """Every spec; none at all is an answer, a folder that may not be listed is ``unread``."""
    specs: list[CdiSpec] = []
    unread: list[Unread] = []
    for folders in FOLDERS:
        for path in _files(host, folders, unread):
            spec = read_as(host, path, parse, LIMIT_BYTES)
            if isinstance(spec, CdiSpec):
                specs.append(replace(spec, source=path))
            elif spec.why not in ("absent", "vanished"):
                unread.append(spec)
    return CdiSpecs(tuple(specs), tuple(unread))


def _files(host: Host, folders: tuple[str, ...], unread: list[Unread]) -> list[str]:
    for folder in folders:
        names = host.names(folder)
        if isinstance(names, Unread):
            if names.why != "absent":
                unread.append(names)
            continue
        wanted = [name for name in names if name.endswith((".json", ".yaml"))]
        if wanted[FILES_MOST:]:
            words = f"more than {FILES_MOST} specs; {len(wanted) - FILES_MOST} were not read"
            unread.append(Unread(folder, "too_big", words))
        return [f"{folder}/{name}" for name in wanted[:FILES_MOST]]
    return []


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "JSON", data) from error


def _yaml(data: bytes) -> Any:
    from seawall.readings.cdi_yaml import load  # noqa: PLC0415 - where a spec is YAML, and no other

    return load(data)


def _nodes(edits: Any) -> tuple[CdiNode, ...]:
    """The device nodes in ``containerEdits.deviceNodes``; ParseProblem for another shape."""
    if not isinstance(edits, dict | None):
        raise ParseProblem(0, "an object for containerEdits")
    return tuple(_node(row) for row in _rows((edits or {}).get("deviceNodes"), "deviceNodes"))


def _node(row: dict[str, Any]) -> CdiNode:
    path = _path(row.get("path"))
    host_path = _path(row["hostPath"]) if row.get("hostPath") else path
    major, minor = (_number(row.get(key)) for key in ("major", "minor"))
    if not major:
        return CdiNode(path, host_path, None, None)
    return CdiNode(path, host_path, major, minor)


def _rows(value: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(value, list | None) or not all(isinstance(row, dict) for row in value or ()):
        raise ParseProblem(0, f"a list of objects for {what}")
    return value or []


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_MOST:
        raise ParseProblem(0, f"words for {what}")
    return value


def _path(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/") or len(value) > _PATH_MOST:
        raise ParseProblem(0, "a path of a device node")
    return value


def _number(value: Any) -> int:
    """A major or minor; left out it is 0.  YAML's numbers come as text."""
    if value is None:
        return 0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if type(value) is not int or not 0 <= value <= NUMBER_MOST:
        raise ParseProblem(0, "a number of a device")
    return value
