# SPDX-License-Identifier: Apache-2.0
"""The probe ``cri``: what the runtimes themselves have on record of containers (host/cri.py).

A config.json is what a container was started with; the record is what holds now: containerd
writes it anew at UpdateContainerResources.  Programs that wrap runc (nvidia-container-runtime)
change the config.json and not the record.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.device_specs import DeviceSpec, spec_of
from seawall.readings.oci_devices import config_of
from seawall.readings.probe_answer import reason, text

PROBE = "cri"
SOURCE: Final = "the runtime's own record (CRI)"
TOGETHER_MOST: Final = 200
"""Containers in one question."""
_NAMES_MOST: Final = 1024
_PATH_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class CriContainers:
    """The topic; read by itself it asks for no container."""

    by_id: Mapping[str, DeviceSpec | Unread | None]
    """None: its runtime has it and does not tell its config (cri-dockerd)."""
    unread: tuple[Unread, ...] = ()
    """Sockets that are there and gave no answer."""


def read(host: Host) -> CriContainers | Unread:
    """Which sockets answer; ``absent``: none is there."""
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
    unread = []
    by_id: dict[str, DeviceSpec | Unread | None] = {}
    for row in rows:
        values = row if isinstance(row, dict) else {}
        path = text(values.get("path")) or PROBE
        if (problem := reason(path, values.get("problem"))) is not None:
            unread.append(problem)
        told = values.get("containers")
        for key in wanted:
            is_open = key not in by_id or isinstance(by_id[key], Unread)
            if isinstance(told, dict) and key in told and is_open:
                by_id[key] = _record(key, path, told[key])
    return CriContainers(by_id, tuple(unread))


def _record(key: str, path: str, value: JSON) -> DeviceSpec | Unread | None:
    """CDI names stand in annotations, in the CRI's own field, or in both."""
    told = value if isinstance(value, dict) else {"problem": "none"}
    if (problem := reason(path, told.get("problem"))) is not None:
        return problem
    if told.get("spec") is None:
        return None
    try:
        found = config_of(told["spec"])
    except ParseProblem as wrong:
        return Unread(path, "malformed", str(wrong))
    names = told.get("cdi")
    some = names[:_NAMES_MOST] if isinstance(names, list) else []
    given = [name[:_PATH_MOST] for name in some if isinstance(name, str)]
    cdi_names = tuple(dict.fromkeys((*found.cdi_names, *given)))
    return spec_of(key, SOURCE, replace(found, cdi_names=cdi_names))
