# SPDX-License-Identifier: Apache-2.0
"""What Docker was told about devices: hostconfig.json beside config.v2.json.  Pure.

``docker inspect`` shows it as HostConfig (Docker Engine API).  Devices stand by path, so their
numbers come from the host's /dev.  ``--gpus`` are DeviceRequests; for those that are not CDI's
dockerd itself sets NVIDIA_VISIBLE_DEVICES and runs nvidia-container-runtime-hook
(moby/daemon/nvidia_linux.go).  The rules that every container gets from dockerd and runc are not
in it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from seawall.problems import ParseProblem
from seawall.readings.device_nodes import DeviceNode
from seawall.readings.device_rule import DeviceRule, access_of, rule_of
from seawall.readings.oci_devices import (
    OciDevices,
    SpecDevice,
    environment_of,
    object_of,
    rows_of,
    word_of,
)

_NVIDIA_RUNTIME: Final = "nvidia"
_NVIDIA_RUNTIME_PROGRAM: Final = "nvidia-container-runtime"
_NVIDIA_HOOK: Final = "nvidia-container-runtime-hook"
_VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
_COUNT_MOST: Final = 1024


class DockerDevice(NamedTuple):
    """One device of ``docker run --device HOST:CONTAINER:rw``, as hostconfig.json has it."""

    host_path: str
    path: str
    access: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """The part of hostconfig.json that is about devices."""

    devices: tuple[DockerDevice, ...]
    rules: tuple[DeviceRule, ...]
    """``--device-cgroup-rule``."""
    cdi_names: tuple[str, ...]
    visible: str | None
    """What dockerd sets NVIDIA_VISIBLE_DEVICES to, for ``--gpus``."""
    is_nvidia_runtime: bool
    is_privileged: bool


def parse_hostconfig(data: bytes) -> HostConfig:
    """A hostconfig.json; ParseProblem when something about devices in it is malformed."""
    document = object_of(data)
    requests = rows_of(document.get("DeviceRequests"), "DeviceRequests")
    cdi = [row for row in requests if row.get("Driver") == "cdi"]
    gpus = [row for row in requests if row.get("Driver") in ("", "nvidia", None)]
    return HostConfig(
        devices=tuple(_device(row) for row in rows_of(document.get("Devices"), "Devices")),
        rules=tuple(_rules(document.get("DeviceCgroupRules"))),
        cdi_names=tuple(name for row in cdi for name in _ids(row)),
        visible=_visible(gpus[-1]) if gpus else None,
        is_nvidia_runtime=document.get("Runtime") == _NVIDIA_RUNTIME,
        is_privileged=document.get("Privileged") is True,
    )


def parse_environment(data: bytes) -> Mapping[str, str]:
    """Variables of ``Config.Env`` in Docker's config.v2.json; ParseProblem."""
    config = object_of(data).get("Config")
    if not isinstance(config, dict | None):
        raise ParseProblem(0, "an object for Config")
    return environment_of((config or {}).get("Env"))


def as_oci_devices(
    config: HostConfig, environment: Mapping[str, str], nodes: Mapping[str, DeviceNode]
) -> OciDevices:
    """The same as an OCI config would tell it.  A device that the host has not is left out:
    dockerd refuses to start such a container, so it went since.
    """
    visible = {_VISIBLE: config.visible} if config.visible is not None else {}
    programs = []
    if config.is_nvidia_runtime:
        programs.append(_NVIDIA_RUNTIME_PROGRAM)
    if config.visible is not None:
        programs.append(_NVIDIA_HOOK)
    return OciDevices(
        devices=tuple(
            SpecDevice(device.path, node.kind, node.major, node.minor, node.mode, None, None)
            for device in config.devices
            if (node := nodes.get(device.host_path))
        ),
        rules=tuple(_all_rules(config, nodes)),
        environment={**environment, **visible},
        cdi_names=config.cdi_names,
        hooks=tuple(programs),
    )


def _all_rules(config: HostConfig, nodes: Mapping[str, DeviceNode]) -> Iterator[DeviceRule]:
    yield DeviceRule(None, None, None, "rwm", is_allow=config.is_privileged)
    for device in config.devices:
        if node := nodes.get(device.host_path):
            yield DeviceRule(node.kind, node.major, node.minor, device.access)
    yield from config.rules


def _device(row: Mapping[str, Any]) -> DockerDevice:
    access = access_of(row.get("CgroupPermissions") or "rwm")
    if access is None:
        raise ParseProblem(0, "some of rwm for CgroupPermissions")
    host_path = word_of(row.get("PathOnHost"), "PathOnHost")
    return DockerDevice(host_path, word_of(row.get("PathInContainer"), "PathInContainer"), access)


def _rules(value: Any) -> Iterator[DeviceRule]:
    if not isinstance(value, list | None):
        raise ParseProblem(0, "a list for DeviceCgroupRules")
    for word in value or ():
        rule = rule_of(word) if isinstance(word, str) else None
        if rule is None:
            raise ParseProblem(0, "'TYPE MAJOR:MINOR ACCESS' in DeviceCgroupRules")
        yield rule


def _ids(request: Mapping[str, Any]) -> list[str]:
    ids = request.get("DeviceIDs")
    if not isinstance(ids, list | None):
        raise ParseProblem(0, "a list for DeviceIDs")
    return [word_of(one, "a device's id") for one in ids or ()]


def _visible(request: Mapping[str, Any]) -> str:
    """``--gpus all`` has the count -1."""
    if ids := _ids(request):
        return ",".join(ids)
    count = request.get("Count")
    if type(count) is not int or not -1 <= count <= _COUNT_MOST:
        raise ParseProblem(0, f"-1 to {_COUNT_MOST} for Count")
    return "all" if count < 0 else ",".join(map(str, range(count)))
