# SPDX-License-Identifier: Apache-2.0
"""The probe ``pod_resources``: which devices the kubelet gave to whom, as it says itself
(host/pod_resources.py).  It knows pods by name, and devices by id: which nodes belong to an id
only the device plugin's answer in the kubelet's checkpoint tells, or CDI.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.readings.probe_answer import each, reason, text

PROBE = "pod_resources"


class DeviceOwner(NamedTuple):
    """One container of one pod."""

    namespace: str
    pod: str
    container: str


class ResourceClaim(NamedTuple):
    """One device of a claim (Dynamic Resource Allocation)."""

    namespace: str
    name: str
    driver: str
    """``gpu.nvidia.com``."""
    device: str
    cdi_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodResources:
    """The topic: the devices that the kubelet says each container was given."""

    socket: str
    devices: Mapping[DeviceOwner, Mapping[str, tuple[str, ...]]]
    """Resource -> ids, of every container that has any."""
    claims: Mapping[DeviceOwner, tuple[ResourceClaim, ...]]
    allocatable: Mapping[str, tuple[str, ...]] | None = field(default=None)
    """Resource -> ids of those that are healthy; None: this kubelet does not tell."""

    def ids(self, owner: DeviceOwner) -> Mapping[str, tuple[str, ...]]:
        """Of one container; empty: it was given none."""
        return self.devices.get(owner, {})

    def claimed(self, owner: DeviceOwner) -> tuple[ResourceClaim, ...]:
        """Devices of one container's resource claims; empty: it has none."""
        return self.claims.get(owner, ())


def read(host: Host) -> PodResources | Unread:
    """``absent``: no kubelet with that socket runs here."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    if answer is None:
        return Unread(PROBE, "absent", "no kubelet has a socket for it here")
    values = answer if isinstance(answer, dict) else {}
    path = text(values.get("path")) or PROBE
    if (problem := reason(path, values.get("problem"))) is not None:
        return problem
    rows, claims = each(values.get("devices"), _row), each(values.get("claims"), _claim)
    allocatable = _allocatable(values.get("allocatable"))
    if rows is None or claims is None or isinstance(allocatable, Unread):
        return Unread(path, "malformed", "expected devices, claims and allocatable")
    return PodResources(path, _by_owner(rows), _claims_by_owner(claims), allocatable)


def _by_owner(
    rows: tuple[tuple[DeviceOwner, str, tuple[str, ...]], ...],
) -> dict[DeviceOwner, dict[str, tuple[str, ...]]]:
    """Those of several NUMA nodes together."""
    found: dict[DeviceOwner, dict[str, tuple[str, ...]]] = {}
    for owner, resource, ids in rows:
        mine = found.setdefault(owner, {})
        mine[resource] = (*mine.get(resource, ()), *ids)
    return found


def _claims_by_owner(
    rows: tuple[tuple[DeviceOwner, ResourceClaim], ...],
) -> dict[DeviceOwner, tuple[ResourceClaim, ...]]:
    found: dict[DeviceOwner, list[ResourceClaim]] = {}
    for owner, claim in rows:
        found.setdefault(owner, []).append(claim)
    return {owner: tuple(claims) for owner, claims in found.items()}


def _row(value: JSON) -> tuple[DeviceOwner, str, tuple[str, ...]] | None:
    match value:
        case [str(namespace), str(pod), str(container), str(resource), ids]:
            told = each(ids, text)
            return (
                None if told is None else (DeviceOwner(namespace, pod, container), resource, told)
            )
    return None


def _claim(value: JSON) -> tuple[DeviceOwner, ResourceClaim] | None:
    match value:
        case [str(space), str(pod), str(container), str(of), str(name), str(driver), str(one), cdi]:
            names = each(cdi, text)
            if names is not None:
                return DeviceOwner(space, pod, container), ResourceClaim(
                    of, name, driver, one, names
                )
    return None


def _allocatable(value: JSON) -> dict[str, tuple[str, ...]] | Unread | None:
    if value is None:
        return None
    found = {}
    for resource, ids in value.items() if isinstance(value, dict) else ():
        if (told := each(ids, text)) is None:
            return Unread(PROBE, "malformed")
        found[resource] = told
    return found if isinstance(value, dict) else Unread(PROBE, "malformed")
