# SPDX-License-Identifier: Apache-2.0
"""Where promises and configs are found: files of the kubelet, of runtimes and of CDI, and what
the kubelet and the runtimes themselves say.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from seawall.accounts.devices.kernel_rules.device_rules import USE
from seawall.accounts.devices.promised.promise import NODES_MOST, Promise, PromisedDevice
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiSpecs
from seawall.readings.cri_containers import CriContainers
from seawall.readings.device_specs import DeviceSpec, DeviceSpecs
from seawall.readings.kubelet_devices import KubeletDevices, PodDevices
from seawall.readings.pod_resources import DeviceOwner, PodResources, ResourceClaim

_NOT_ASKED: Final = Unread("not asked", "absent")
_ID_MOST: Final = 128
_NO_GAP: Final = ("absent", "vanished", "not_captured")
"""They are second witnesses: a machine, or a bundle of before, that has none lacks nothing."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The readings that say which devices a container was promised."""

    specs: DeviceSpecs | Unread
    kubelet: KubeletDevices | Unread
    cdi: CdiSpecs | Unread
    pods: PodResources | Unread = _NOT_ASKED
    cri: CriContainers | Unread = _NOT_ASKED
    _by_container: dict[tuple[str, str], list[PodDevices]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.kubelet, Unread):
            return
        for entry in self.kubelet.entries:
            self._by_container.setdefault(_key(entry.pod_uid, entry.container), []).append(entry)

    def unheard(self) -> Iterator[str]:
        """Sockets that are there and gave no answer."""
        if isinstance(self.pods, Unread) and self.pods.why not in _NO_GAP:
            yield f"the kubelet's pod-resources, {_words(self.pods)}"
        for one in (self.cri,) if isinstance(self.cri, Unread) else self.cri.unread:
            if one.why not in _NO_GAP:
                yield f"the runtime's own records (CRI), {_words(one)}"

    def spec_of(self, workload: Workload) -> DeviceSpec | Unread | None:
        """The runtime's record where it tells one, with what programs that wrap runc gave beside
        it; else its file.  None: nothing of a runtime tells of the container.
        """
        started, record = self.started(workload), self._record(workload)
        if not isinstance(record, DeviceSpec):
            return record if started is None else started
        return _merged(record, started) if isinstance(started, DeviceSpec) else record

    def started(self, workload: Workload) -> DeviceSpec | Unread | None:
        """Its file alone: as it was started."""
        if isinstance(self.specs, Unread):
            return self.specs
        return self.specs.by_id.get(workload.container_id or "")

    def record_and_start(self, workload: Workload) -> tuple[DeviceSpec, DeviceSpec] | None:
        """Both, where both tell of it."""
        record, started = self._record(workload), self.started(workload)
        if isinstance(record, DeviceSpec) and isinstance(started, DeviceSpec):
            return record, started
        return None

    def _record(self, workload: Workload) -> DeviceSpec | Unread | None:
        if isinstance(self.cri, Unread):
            return None
        return self.cri.by_id.get(workload.container_id or "")

    def entries_of(self, workload: Workload) -> list[PodDevices]:
        """What the kubelet's checkpoint says that it gave it."""
        if workload.pod_uid is None or workload.container is None:
            return []
        return self._by_container.get(_key(workload.pod_uid, workload.container), [])

    def given_to(self, workload: Workload) -> Mapping[str, tuple[str, ...]] | None:
        """Resource -> ids as the kubelet itself says now; None: it was not heard, or the
        container's names are not known.
        """
        owner = _owner(workload)
        return None if isinstance(self.pods, Unread) or owner is None else self.pods.ids(owner)

    def claims_of(self, workload: Workload) -> tuple[ResourceClaim, ...]:
        """Devices of its claims (DRA), as the kubelet itself says."""
        owner = _owner(workload)
        return () if isinstance(self.pods, Unread) or owner is None else self.pods.claimed(owner)


def _key(pod_uid: str, container: str) -> tuple[str, str]:
    # systemd's unit names write - as _.
    return pod_uid.replace("_", "-"), container


def _words(one: Unread) -> str:
    return f"{one.path}: {one.why} {one.detail}".rstrip()


def _owner(workload: Workload) -> DeviceOwner | None:
    if workload.namespace is None or workload.pod is None or workload.container is None:
        return None
    return DeviceOwner(workload.namespace, workload.pod, workload.container)


def _merged(record: DeviceSpec, started: DeviceSpec) -> DeviceSpec:
    """Programs that wrap runc (nvidia-container-runtime) write hooks, mounts and nodes into the
    config.json and into no record.
    """
    known = {device.path for device in record.devices}
    more = [device for device in started.devices if device.path not in known]
    return replace(
        record,
        devices=(*record.devices, *more),
        environment={**started.environment, **record.environment},
        cdi_names=tuple(dict.fromkeys((*record.cdi_names, *started.cdi_names))),
        hooks=tuple(dict.fromkeys((*record.hooks, *started.hooks))),
        device_mounts=tuple(dict.fromkeys((*record.device_mounts, *started.device_mounts))),
    )


def worth_asking(
    workloads: Iterable[Workload], promised: Iterable[Promise], sources: Sources
) -> set[str]:
    """Ids of containers whose runtime's record is wanted: those that were promised something,
    and those of which no file tells.
    """
    found = {promise.workload.container_id for promise in promised}
    for workload in workloads:
        if workload.kind == "container" and not workload.is_sandbox:
            started = sources.started(workload)
            if not isinstance(started, DeviceSpec):
                found.add(workload.container_id)
    return {key for key in found if key and len(key) <= _ID_MOST}


def cdi_nodes(
    names: Iterable[str], sources: Sources
) -> tuple[dict[str, PromisedDevice], tuple[str, ...]]:  # fmt: skip
    """Nodes by path, and words for each name that no file knows."""
    nodes: dict[str, PromisedDevice] = {}
    lost = []
    specs = () if isinstance(sources.cdi, Unread) else sources.cdi.specs
    for name in names:
        kind, _, device = name.partition("=")
        found = [spec for spec in specs if spec.kind == kind and device in spec.devices]
        if not found:
            lost.append(f"no CDI file on this host knows {name} now (/etc/cdi, /var/run/cdi)")
        for node in (node for spec in found for node in (*spec.common, *spec.devices[device])):
            number = None if node.major is None or node.minor is None else (node.major, node.minor)
            if len(nodes) < NODES_MOST:
                nodes[node.path] = PromisedDevice(
                    node.path, node.host_path or node.path, USE, number
                )
    return nodes, tuple(lost)
