# SPDX-License-Identifier: Apache-2.0
"""What runtimes were told about devices: each container's OCI config, Docker's own files.

Of each container the first of these that there is: the config.json that containerd, Podman, CRI-O
or crun gave the runtime; runc's state.json, with what its bundle's config.json has beyond it
(environment, CDI names, mounts); Docker's hostconfig.json.  One that is there and cannot be read is
the answer, for what stands in the next may be older.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from seawall.host.host import Host, Unread
from seawall.readings.container_files import (
    CONFIGS_MOST,
    CONTAINERD,
    DOCKER_LIB,
    DOCKER_RUN,
    OCI_STATE,
    STORAGE_LIB,
    STORAGE_RUN,
    ContainerFiles,
)
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.device_rule import DeviceRule
from seawall.readings.docker_devices import as_oci_devices, parse_environment, parse_hostconfig
from seawall.readings.oci_devices import (
    LIMIT_BYTES,
    OciDevices,
    SpecDevice,
    parse_config,
    parse_state,
)
from seawall.readings.reading import read_as

__all__ = ["DeviceSpec", "DeviceSpecs", "SpecDevice", "read"]

Parser: TypeAlias = Callable[[bytes], OciDevices]
_GONE: Final = ("absent", "vanished", "not_captured")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """One container's config as far as devices go."""

    container_id: str
    source: str
    """The file."""
    devices: tuple[SpecDevice, ...]
    rules: tuple[DeviceRule, ...]
    """``linux.resources.devices``, in order: the last that matches decides."""
    environment: Mapping[str, str]
    """NVIDIA_*, CUDA_*, HIP_*, ROCR_* and the like, no other."""
    cdi_names: tuple[str, ...]
    """Of annotations ``cdi.k8s.io/*``: ``nvidia.com/gpu=0``."""
    hooks: tuple[str, ...]
    """Programs that the runtime runs before it starts (nvidia-container-runtime-hook)."""
    device_mounts: tuple[str, ...]
    """Destinations below /dev of bind mounts."""
    cgroups_path: str | None


@dataclass(frozen=True, slots=True)
class DeviceSpecs:
    """The topic: each container's config as far as devices go, by container id."""

    by_id: Mapping[str, DeviceSpec | Unread]


class _File(NamedTuple):
    path: str
    parse: Parser


def read(host: Host, files: ContainerFiles, nodes: DeviceNodes | Unread) -> DeviceSpecs | Unread:
    """Of the containers that the node's files name, at most CONFIGS_MOST.  ``nodes`` give the
    numbers of what Docker knows by path alone.
    """
    known = files.by_id.keys()
    places: dict[str, list[_File]] = {key: [] for key in list(known)[:CONFIGS_MOST]}
    for key, file in _candidates(host):
        if key in places:
            places[key].append(file)
    by_id: dict[str, DeviceSpec | Unread] = {}
    for key, candidates in places.items():
        by_id[key] = _first(host, key, candidates) or _docker(host, key, nodes)
    words = f"more than {CONFIGS_MOST} containers; this one was not asked"
    by_id |= {key: Unread(key, "too_big", words) for key in list(known)[CONFIGS_MOST:]}
    return DeviceSpecs(by_id)


def _candidates(host: Host) -> Iterator[tuple[str, _File]]:
    """Where the folders of containers are now, best source first."""
    for root in CONTAINERD:
        for namespace in _folders(host, root):
            yield from _below(host, f"{root}/{namespace}", "config.json", parse_config)
    for key in _folders(host, STORAGE_RUN):
        for root in (STORAGE_RUN, STORAGE_LIB):
            yield key, _File(f"{root}/{key}/userdata/config.json", parse_config)
    for root, runtime in OCI_STATE:
        if runtime == "crun":
            yield from _below(host, root, "config.json", parse_config)
        else:
            yield from _below(host, root, "state.json", parse_state)
    for root in DOCKER_RUN:
        yield from _below(host, root, "state.json", parse_state)


def _below(host: Host, root: str, name: str, parse: Parser) -> Iterator[tuple[str, _File]]:
    for key in _folders(host, root):
        yield key, _File(f"{root}/{key}/{name}", parse)


def _folders(host: Host, folder: str) -> list[str]:
    names = host.names(folder)
    return [] if isinstance(names, Unread) else [n[:-1] for n in names if n.endswith("/")]


def _first(host: Host, key: str, candidates: list[_File]) -> DeviceSpec | Unread | None:
    for file in candidates:
        found = read_as(host, file.path, file.parse, LIMIT_BYTES)
        if isinstance(found, OciDevices):
            return spec_of(key, file.path, _with_bundle(host, found))
        if found.why not in _GONE:
            return found
    return None


def _with_bundle(host: Host, state: OciDevices) -> OciDevices:
    """The rest of what runc was started with.  The bundle is whoever's: it may be gone, or changed
    since, so that devices and rules are the state's.
    """
    if state.bundle is None:
        return state
    config = read_as(host, f"{state.bundle}/config.json", parse_config, LIMIT_BYTES)
    if isinstance(config, Unread):
        return state
    return replace(
        state,
        environment=config.environment,
        cdi_names=config.cdi_names,
        device_mounts=config.device_mounts,
        hooks=state.hooks or config.hooks,
        cgroups_path=config.cgroups_path,
    )


def _docker(host: Host, key: str, nodes: DeviceNodes | Unread) -> DeviceSpec | Unread:
    folder = f"{DOCKER_LIB}/{key}"
    source = f"{folder}/hostconfig.json"
    config = read_as(host, source, parse_hostconfig, LIMIT_BYTES)
    if isinstance(config, Unread):
        if config.why not in _GONE:
            return config
        return Unread(key, config.why, "no file of a runtime tells how it was configured")
    if config.devices and isinstance(nodes, Unread):
        words = "it names devices by path, and the host's /dev was not read"
        return Unread(source, nodes.why, words)
    environment = read_as(host, f"{folder}/config.v2.json", parse_environment, LIMIT_BYTES)
    if isinstance(environment, Unread):
        if environment.why not in _GONE:
            return environment
        environment = {}
    by_path = {} if isinstance(nodes, Unread) else nodes.by_path
    return spec_of(key, source, as_oci_devices(config, environment, by_path))


def spec_of(key: str, source: str, found: OciDevices) -> DeviceSpec:
    """What a file, or a record, tells of one container."""
    return DeviceSpec(
        container_id=key,
        source=source,
        devices=found.devices,
        rules=found.rules,
        environment=found.environment,
        cdi_names=found.cdi_names,
        hooks=found.hooks,
        device_mounts=found.device_mounts,
        cgroups_path=found.cgroups_path,
    )
