# SPDX-License-Identifier: Apache-2.0
"""Who was promised which devices, by whom.

In this order of proof: the kubelet's checkpoint with the plugin's answer; CDI names; the variable
that asks for devices; the nodes of the OCI config.  A promise that names its nodes can lack one;
a promise that does not leaves them to a hook or to the runtime.  ``all`` in the variable alone is
no promise: images of CUDA carry it, wherever they run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.devices.classes import (
    CLASSES,
    OTHER,
    DeviceClass,
    class_of_path,
    class_of_paths,
    class_of_resource,
)
from seawall.accounts.devices.rules import USE, Device, is_everything, pseudo_name
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiNode, CdiSpecs
from seawall.readings.device_specs import DeviceSpec, DeviceSpecs
from seawall.readings.kubelet_devices import KubeletDevices, PodDevices

Source: TypeAlias = Literal["kubelet", "cdi", "environment", "spec"]
NODES_MOST: Final = 64
"""Of one container and class; one that is given hundreds is given /dev itself."""
_NOTHING: Final = ("", "void", "none")


class Wanted(NamedTuple):
    """One node of a promise."""

    path: str
    """In the container."""
    host_path: str
    access: str
    number: tuple[int, int] | None
    """As the promise itself tells it (CDI)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Devices of one class for one container."""

    workload: Workload
    device_class: DeviceClass | None
    name: str
    source: Source
    promised_by: str
    nodes: Mapping[str, Wanted]
    names_nodes: bool
    """Whether it tells all its nodes, so that what it does not tell was not promised."""
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where promises are found."""

    specs: DeviceSpecs | Unread
    kubelet: KubeletDevices | Unread
    cdi: CdiSpecs | Unread
    _by_container: dict[tuple[str, str], list[PodDevices]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.kubelet, Unread):
            return
        for entry in self.kubelet.entries:
            self._by_container.setdefault(_key(entry.pod_uid, entry.container), []).append(entry)

    def spec_of(self, workload: Workload) -> DeviceSpec | Unread | None:
        """None: no runtime's file tells of it."""
        if isinstance(self.specs, Unread):
            return self.specs
        return self.specs.by_id.get(workload.container_id or "")

    def entries_of(self, workload: Workload) -> list[PodDevices]:
        """What the kubelet gave it."""
        if workload.pod_uid is None or workload.container is None:
            return []
        return self._by_container.get(_key(workload.pod_uid, workload.container), [])

    def resolved(self, names: Iterable[str]) -> Iterator[tuple[str, tuple[CdiNode, ...] | None]]:
        """Each CDI name with its nodes; None: no file on this host knows it."""
        for name in names:
            kind, _, device = name.partition("=")
            specs = () if isinstance(self.cdi, Unread) else self.cdi.specs
            found = [spec for spec in specs if spec.kind == kind and device in spec.devices]
            nodes = tuple(node for spec in found for node in (*spec.common, *spec.devices[device]))
            yield name, nodes if found else None


def _key(pod_uid: str, container: str) -> tuple[str, str]:
    # systemd's unit names write - as _.
    return pod_uid.replace("_", "-"), container


def promises(workloads: Iterable[Workload], sources: Sources) -> list[Promise]:
    """Of every container, one for each class."""
    return [
        promise
        for workload in workloads
        if workload.kind == "container" and not workload.is_sandbox
        for promise in _of_container(workload, sources)
    ]


def _of_container(workload: Workload, sources: Sources) -> list[Promise]:
    spec = sources.spec_of(workload)
    known = spec if isinstance(spec, DeviceSpec) else None
    found: dict[str, Promise] = {}
    candidates = [*_kubelet(workload, sources)]
    if known is not None:
        candidates += [*_cdi(workload, known, sources), *_environment(workload, known)]
        candidates += _configured(workload, known)
    for promise in candidates:
        before = found.get(promise.name)
        if before is None:
            found[promise.name] = promise
        elif before.source == promise.source:
            found[promise.name] = _both(before, promise)
    told = {path for name, one in found.items() if name != OTHER for path in one.nodes}
    if other := found.pop(OTHER, None):
        rest = {path: node for path, node in other.nodes.items() if path not in told}
        if rest:
            found[OTHER] = replace(other, nodes=rest)
    return list(found.values())


def _both(one: Promise, other: Promise) -> Promise:
    """Several entries of one class: four of one resource may stand in four."""
    return replace(
        one,
        nodes={**one.nodes, **other.nodes},
        names_nodes=one.names_nodes and other.names_nodes,
        unseen=(*one.unseen, *other.unseen),
    )


# --- kubelet ----------------------------------------------------------------------------


def _kubelet(workload: Workload, sources: Sources) -> Iterator[Promise]:
    for entry in sources.entries_of(workload):
        one = class_of_resource(entry.resource)
        nodes = {
            given.container_path: Wanted(
                given.container_path, given.host_path, _use(given.permissions), None
            )
            for given in entry.devices[:NODES_MOST]
        }
        cdi, lost = _cdi_nodes(entry.cdi_names, sources)
        yield Promise(
            workload=workload,
            device_class=one,
            name=one.name if one else entry.resource,
            source="kubelet",
            promised_by=f"kubelet checkpoint: {len(entry.ids)} x {entry.resource}",
            nodes=nodes | cdi,
            names_nodes=bool(entry.devices or cdi) and not lost,
            unseen=tuple(_lost(name) for name in lost),
        )


def _use(permissions: str) -> str:
    """What of reading and writing was promised; making nodes is not asked about."""
    return "".join(letter for letter in USE if letter in permissions) or USE


# --- CDI --------------------------------------------------------------------------------


def _cdi(workload: Workload, spec: DeviceSpec, sources: Sources) -> Iterator[Promise]:
    by_kind: dict[str, list[str]] = {}
    for name in spec.cdi_names:
        by_kind.setdefault(name.partition("=")[0], []).append(name)
    for kind, names in by_kind.items():
        one = class_of_resource(kind)
        nodes, lost = _cdi_nodes(names, sources)
        yield Promise(
            workload=workload,
            device_class=one,
            name=one.name if one else kind,
            source="cdi",
            promised_by=f"CDI {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}",
            nodes=nodes,
            names_nodes=bool(nodes) and not lost,
            unseen=tuple(_lost(name) for name in lost),
        )


def _cdi_nodes(names: Iterable[str], sources: Sources) -> tuple[dict[str, Wanted], list[str]]:
    """Nodes by path, and the names that no file knows."""
    nodes: dict[str, Wanted] = {}
    lost = []
    for name, found in sources.resolved(names):
        if found is None:
            lost.append(name)
        for node in found or ():
            has_number = node.major is not None and node.minor is not None
            number = (node.major or 0, node.minor or 0) if has_number else None
            if len(nodes) < NODES_MOST:
                nodes[node.path] = Wanted(node.path, node.host_path or node.path, USE, number)
    return nodes, lost


def _lost(name: str) -> str:
    return f"no CDI file on this host knows {name} now (/etc/cdi, /var/run/cdi)"


# --- the variable, and the config itself ------------------------------------------------


def _environment(workload: Workload, spec: DeviceSpec) -> Iterator[Promise]:
    for one in CLASSES:
        value = spec.environment.get(one.visible, "").strip() if one.visible else ""
        if value in _NOTHING or (value == "all" and not hook_of(one, spec)):
            continue
        yield Promise(
            workload=workload,
            device_class=one,
            name=one.name,
            source="environment",
            promised_by=f"{one.visible}={value}",
            nodes={},
            names_nodes=False,
        )


def hook_of(one: DeviceClass | None, spec: DeviceSpec) -> str | None:
    """The program that gives the class's devices at start, if the container has one."""
    for hook in spec.hooks if one else ():
        name = hook.rpartition("/")[2]
        if one is not None and any(name.startswith(word) for word in one.hooks):
            return name
    return None


def _configured(workload: Workload, spec: DeviceSpec) -> Iterator[Promise]:
    """Nodes beyond those that every container has; whoever may use everything was not given
    anything in particular.
    """
    if any(is_everything(rule) for rule in spec.rules):
        return
    paths = [
        device.path
        for device in spec.devices
        if pseudo_name(Device(device.kind, device.major, device.minor)) is None
    ]
    # /dev/dri is of any vendor: it is of a class where a node tells which.
    main = class_of_paths(paths)
    by_class: dict[str, list[str]] = {}
    for path in paths:
        one = class_of_path(path)
        is_of = one is not None and (one is main or not path.startswith("/dev/dri/"))
        by_class.setdefault(one.name if one and is_of else OTHER, []).append(path)
    for name, members in by_class.items():
        nodes = {path: Wanted(path, path, USE, None) for path in members[:NODES_MOST]}
        yield Promise(
            workload=workload,
            device_class=next((one for one in CLASSES if one.name == name), None),
            name=name,
            source="spec",
            promised_by="OCI config",
            nodes=nodes,
            names_nodes=True,
        )
