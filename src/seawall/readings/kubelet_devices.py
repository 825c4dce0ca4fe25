# SPDX-License-Identifier: Apache-2.0
"""/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint: which devices the kubelet promised.

Kubernetes: pkg/kubelet/cm/devicemanager/checkpoint (JSON; AllocResp is the plugin's answer,
ContainerAllocateResponse of deviceplugin/v1beta1, as base64 of its protobuf).  Since 1.20 the
devices of an entry stand by NUMA node, before that in one list.  The kubelet keeps entries of
pods that ended until it needs their devices.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from seawall.formats.protobuf_wire import fields
from seawall.formats.strict_base64 import strict_base64
from seawall.host.host import Host, Unread
from seawall.kubelet_folders import ROOTS
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, read_as

PATHS: Final = tuple(f"{folder}/device-plugins/kubelet_internal_checkpoint" for folder in ROOTS)
LIMIT_BYTES: Final = 2 << 20
WORD_MOST: Final = 4096
CDI_ANNOTATION: Final = "cdi.k8s.io/"
# deviceplugin/v1beta1/api.proto, ContainerAllocateResponse and what is in it.
_ENVS, _MOUNTS, _DEVICES, _ANNOTATIONS, _CDI_DEVICES = range(1, 6)
_KEY, _VALUE = 1, 2
_CONTAINER_PATH, _HOST_PATH, _PERMISSIONS = 1, 2, 3
_CDI_NAME = 1


class KubeletDevice(NamedTuple):
    """``DeviceSpec`` of the plugin's answer."""

    container_path: str
    host_path: str
    permissions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDevices:
    """What one container was promised of one resource."""

    pod_uid: str
    container: str
    resource: str
    """``nvidia.com/gpu``."""
    ids: tuple[str, ...]
    devices: tuple[KubeletDevice, ...]
    environment: Mapping[str, str]
    cdi_names: tuple[str, ...]
    mounts: tuple[str, ...]
    """Destinations."""


@dataclass(frozen=True, slots=True)
class KubeletDevices:
    """The topic: devices that the kubelet's checkpoint says are promised to pods or registered."""

    entries: tuple[PodDevices, ...]
    registered: Mapping[str, tuple[str, ...]]
    """Resource -> ids of the devices that its plugin registered: only healthy ones are written
    there (manager.go, writeCheckpoint)."""


def parse(data: bytes) -> KubeletDevices:
    """A checkpoint of either shape; ParseProblem when any entry of it is not one."""
    if len(data) > LIMIT_BYTES:
        raise ParseProblem(0, f"at most {LIMIT_BYTES} bytes", data)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ParseProblem(0, "JSON", data) from error
    inner = document.get("Data") if isinstance(document, dict) else None
    if not isinstance(inner, dict):
        raise ParseProblem(0, "an object with 'Data'", data)
    rows, registered = inner.get("PodDeviceEntries"), inner.get("RegisteredDevices")
    if not isinstance(rows, list | None) or not isinstance(registered, dict | None):
        raise ParseProblem(0, "PodDeviceEntries and RegisteredDevices", data)
    return KubeletDevices(
        entries=tuple(_entry(row) for row in rows or ()),
        registered={_word(name): tuple(_words(ids)) for name, ids in (registered or {}).items()},
    )


def read(host: Host) -> KubeletDevices | Unread:
    """Of the kubelet's usual folder, or of k0s or MicroK8s; ``absent``: no kubelet ran here."""
    first: Unread | None = None
    for path in PATHS:
        found = read_as(host, path, parse, LIMIT_BYTES)
        if not isinstance(found, Unread) or found.why not in ("absent", "not_captured"):
            return found
        first = first or found
    return first or Unread(PATHS[0], "absent")


def _entry(row: Any) -> PodDevices:
    if not isinstance(row, dict):
        raise ParseProblem(0, "an object for each entry")
    answer = _answer(row.get("AllocResp"))
    return PodDevices(
        pod_uid=_word(row.get("PodUID")),
        container=_word(row.get("ContainerName")),
        resource=_word(row.get("ResourceName")),
        ids=tuple(_ids(row.get("DeviceIDs"))),
        devices=tuple(answer.devices),
        environment=answer.environment,
        cdi_names=tuple(dict.fromkeys(answer.cdi_names)),
        mounts=tuple(answer.mounts),
    )


def _ids(value: Any) -> Iterator[str]:
    """``["a"]``, or ``{"0": ["a"], "-1": ["b"]}`` by NUMA node; -1: the plugin names none."""
    if isinstance(value, dict):
        for node in sorted(value, key=lambda node: (len(node), node)):
            yield from _words(value[node])
    else:
        yield from _words(value)


def _words(value: Any) -> list[str]:
    if not isinstance(value, list | None):
        raise ParseProblem(0, "a list of device ids")
    return [_word(word) for word in value or ()]


def _word(value: Any) -> str:
    if not isinstance(value, str) or len(value) > WORD_MOST:
        raise ParseProblem(0, f"a name of at most {WORD_MOST} characters")
    return value


# --- the plugin's answer ------------------------------------------------------------------


class _Answer:
    """ContainerAllocateResponse, while it is read."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self.mounts: list[str] = []
        self.devices: list[KubeletDevice] = []
        self.cdi_names: list[str] = []

    def take(self, number: int, value: bytes) -> None:
        texts = {n: decode_name(v) for n, v in fields(value) if isinstance(v, bytes)}
        if number == _ENVS:
            self.environment[texts.get(_KEY, "")] = texts.get(_VALUE, "")
        elif number == _MOUNTS:
            self.mounts.append(texts.get(_CONTAINER_PATH, ""))
        elif number == _DEVICES:
            path, host_path = texts.get(_CONTAINER_PATH, ""), texts.get(_HOST_PATH, "")
            self.devices.append(KubeletDevice(path, host_path, texts.get(_PERMISSIONS, "")))
        elif number == _ANNOTATIONS and texts.get(_KEY, "").startswith(CDI_ANNOTATION):
            self.cdi_names += [name for name in texts.get(_VALUE, "").split(",") if name]
        elif number == _CDI_DEVICES and texts.get(_CDI_NAME):
            self.cdi_names.append(texts[_CDI_NAME])


def _answer(text: Any) -> _Answer:
    """Of base64; nothing where the plugin answered nothing."""
    answer = _Answer()
    if text is None:
        return answer
    if not isinstance(text, str):
        raise ParseProblem(0, "base64 in AllocResp")
    try:
        message = strict_base64(text)
    except ValueError as error:  # binascii.Error, and characters that are not ASCII
        raise ParseProblem(0, "base64 in AllocResp") from error
    for number, value in fields(message):
        if isinstance(value, bytes) and number <= _CDI_DEVICES:
            answer.take(number, value)
    return answer
