# SPDX-License-Identifier: Apache-2.0
"""What the kubelet promised a container: its checkpoint, which has the device plugin's answer, and
its own word on the pod-resources socket, which is of now and has claims (DRA) too.
"""

from collections.abc import Iterator, Sequence

from seawall.accounts.devices.classes import DeviceClass, class_of_resource
from seawall.accounts.devices.kernel_rules.device_rules import USE
from seawall.accounts.devices.promised.promise import NODES_MOST, Promise, PromisedDevice, some
from seawall.accounts.devices.promised.promise_sources import Sources, cdi_nodes
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.readings.kubelet_devices import PodDevices
from seawall.readings.pod_resources import ResourceClaim


def of_kubelet(workload: Workload, sources: Sources) -> Iterator[Promise]:
    """Entries of the checkpoint first: they know the nodes."""
    entries = sources.entries_of(workload)
    for entry in entries:
        yield _of_entry(entry, workload, sources)
    known = {entry.resource for entry in entries}
    for resource, ids in (sources.given_to(workload) or {}).items():
        if resource not in known:
            yield _of_listed(resource, ids, workload, sources)
    by_driver: dict[str, list[ResourceClaim]] = {}
    for claim in sources.claims_of(workload):
        by_driver.setdefault(claim.driver, []).append(claim)
    for driver, claims in by_driver.items():
        yield _of_claims(driver, claims, workload, sources)


def _of_entry(entry: PodDevices, workload: Workload, sources: Sources) -> Promise:
    one = class_of_resource(entry.resource)
    nodes = {
        given.container_path: PromisedDevice(
            given.container_path, given.host_path, _use(given.permissions), None
        )
        for given in entry.devices[:NODES_MOST]
    }
    cdi, lost = cdi_nodes(entry.cdi_names, sources)
    return Promise(
        workload=workload,
        device_class=one,
        name=one.name if one else entry.resource,
        source="kubelet",
        promised_by=f"{_who(entry, workload, sources)}: {len(entry.ids)} x {entry.resource}",
        nodes=nodes | cdi,
        names_nodes=bool(entry.devices or cdi) and not lost,
        unseen=lost,
    )


def _use(permissions: str) -> str:
    """What of reading and writing was promised; making nodes is not asked about."""
    return "".join(letter for letter in USE if letter in permissions) or USE


def _who(entry: PodDevices, workload: Workload, sources: Sources) -> str:
    """The checkpoint keeps entries of pods that ended; what the kubelet says itself is of now.
    Init containers it does not list.
    """
    listed = sources.given_to(workload)
    if listed is None:
        return "kubelet checkpoint"
    ids = listed.get(entry.resource)
    if ids is None:
        return "kubelet checkpoint (pod-resources does not list it now: a stale entry)"
    if not set(entry.ids) <= set(ids):
        return f"kubelet checkpoint (stale: pod-resources lists {some(ids)} instead)"
    return "kubelet checkpoint and pod-resources"


def _of_listed(
    resource: str, ids: Sequence[str], workload: Workload, sources: Sources
) -> Promise:  # fmt: skip
    """Ids alone: which nodes belong to them nobody tells."""
    one = class_of_resource(resource)
    why = sources.kubelet.why if isinstance(sources.kubelet, Unread) else "has no entry of it"
    words = f"the nodes of its {resource}: the kubelet's checkpoint, which tells them: {why}"
    return Promise(
        workload=workload,
        device_class=one,
        name=one.name if one else resource,
        source="kubelet",
        promised_by=f"kubelet pod-resources: {len(ids)} x {resource}",
        nodes={},
        names_nodes=False,
        unseen=(words,),
    )


def _of_claims(
    driver: str, claims: Sequence[ResourceClaim], workload: Workload, sources: Sources
) -> Promise:  # fmt: skip
    """A driver of Dynamic Resource Allocation gives its devices by CDI."""
    one = _class_of_driver(driver)
    nodes, lost = cdi_nodes(dict.fromkeys(name for c in claims for name in c.cdi_names), sources)
    whose = some([*dict.fromkeys(f"{claim.namespace}/{claim.name}" for claim in claims)])
    devices = some([claim.device for claim in claims if claim.device])
    return Promise(
        workload=workload,
        device_class=one,
        name=one.name if one else driver,
        source="kubelet",
        promised_by=f"DRA claim {whose}: {driver} {devices}".rstrip(),
        nodes=nodes,
        names_nodes=bool(nodes) and not lost,
        unseen=lost,
    )


def _class_of_driver(driver: str) -> DeviceClass | None:
    """``gpu.nvidia.com`` gives what a plugin calls ``nvidia.com/gpu``."""
    kind, _, domain = driver.partition(".")
    return class_of_resource(f"{domain}/{kind}")
