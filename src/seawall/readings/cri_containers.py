# SPDX-License-Identifier: Apache-2.0
"""The probe ``cri``: what the runtimes themselves have on record of containers (host/cri.py).

A config.json is what a container was started with; the record is what holds now: containerd
writes it anew at UpdateContainerResources.  Programs that wrap runc (nvidia-container-runtime)
change the config.json and not the record.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.device_specs import DeviceSpec
from seawall.readings.oci_devices import ToldDevices, parse_config
from seawall.readings.probe_answer import number, reason, text

PROBE = "cri"
SOURCE: Final = "the runtime's own record (CRI)"
TOGETHER_MOST: Final = 200
"""Containers in one question."""
_NAMES_MOST: Final = 1024
_PATH_MOST: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class CriContainer:
    """One container as its runtime has it on record."""

    container_id: str
    socket: str
    pid: int | None
    runtime_type: str | None
    """``io.containerd.runc.v2``."""
    binary: str | None
    """The program that runs it, where that is not runc: ``/usr/bin/nvidia-container-runtime``."""
    spec: DeviceSpec | None
    """None: this runtime does not tell it (cri-dockerd)."""


@dataclass(frozen=True, slots=True)
class CriContainers:
    """The topic; read by itself it asks for no container."""

    runtime: tuple[str, str] | None
    """Name and version: ``containerd``, ``1.7.24``; of the first that answers."""
    by_id: Mapping[str, CriContainer | Unread]
    unread: tuple[Unread, ...] = field(default=())
    """Sockets that are there and gave no answer."""


def read(host: Host) -> CriContainers | Unread:
    """Which runtime it is; ``absent``: no socket of any is there."""
    return ask(host, ())


def ask(host: Host, ids: Iterable[str]) -> CriContainers | Unread:
    """What is on record of these containers; those that no runtime has are left out."""
    wanted = sorted(set(ids))
    parts = [wanted[at : at + TOGETHER_MOST] for at in range(0, len(wanted), TOGETHER_MOST)]
    found: CriContainers | None = None
    for part in parts or [[]]:
        more = _answer(host.ask(PROBE, json.dumps({"ids": part})), part)
        if isinstance(more, Unread):
            # One that was silent would be so again.
            return found or more
        found = more if found is None else _both(found, more)
    return found or Unread(PROBE, "absent")


def _both(one: CriContainers, other: CriContainers) -> CriContainers:
    return CriContainers(
        one.runtime or other.runtime,
        {**one.by_id, **other.by_id},
        tuple(dict.fromkeys((*one.unread, *other.unread))),
    )


def _answer(answer: JSON | Unread, wanted: list[str]) -> CriContainers | Unread:
    if isinstance(answer, Unread):
        return answer
    rows = answer.get("sockets") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Unread(PROBE, "malformed", "expected sockets")
    if not rows:
        return Unread(PROBE, "absent", "no socket of a runtime is here")
    runtime, unread = None, []
    by_id: dict[str, CriContainer | Unread] = {}
    for row in rows:
        values = row if isinstance(row, dict) else {}
        path = text(values.get("path")) or PROBE
        problem = reason(path, values.get("problem"))
        runtime = runtime or _runtime(values.get("runtime"))
        if problem is not None:
            unread.append(problem)
        told = values.get("containers")
        for key in wanted:
            if isinstance(told, dict) and key in told and not _is_known(by_id.get(key)):
                by_id[key] = _container(key, path, told[key])
    return CriContainers(runtime, by_id, tuple(unread))


def _is_known(one: CriContainer | Unread | None) -> bool:
    return isinstance(one, CriContainer)


def _runtime(value: JSON) -> tuple[str, str] | None:
    match value:
        case [str(name), str(version)]:
            return name[:128], version[:128]
    return None


def _container(key: str, path: str, value: JSON) -> CriContainer | Unread:
    told = value if isinstance(value, dict) else {"problem": "none"}
    if (problem := reason(path, told.get("problem"))) is not None:
        return problem
    names = told.get("cdi")
    try:
        spec = None if told.get("spec") is None else parse_config(_encoded(told["spec"]))
    except ParseProblem as wrong:
        return Unread(path, "malformed", str(wrong))
    return CriContainer(
        container_id=key,
        socket=path,
        pid=number(told.get("pid")),
        runtime_type=text(told.get("runtime_type")),
        binary=text(told.get("binary")),
        spec=None if spec is None else _spec(key, spec, names if isinstance(names, list) else []),
    )


def _encoded(spec: JSON) -> bytes:
    try:
        return json.dumps(spec).encode()
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "JSON") from error


def _spec(key: str, found: ToldDevices, names: list[JSON]) -> DeviceSpec:
    """CDI names stand in annotations, in the CRI's own field, or in both."""
    given = [name[:_PATH_MOST] for name in names[:_NAMES_MOST] if isinstance(name, str)]
    return DeviceSpec(
        container_id=key,
        source=SOURCE,
        devices=found.devices,
        rules=found.rules,
        environment=found.environment,
        cdi_names=tuple(dict.fromkeys((*found.cdi_names, *given))),
        hooks=found.hooks,
        device_mounts=found.device_mounts,
        cgroups_path=found.cgroups_path,
    )
