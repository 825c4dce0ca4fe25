# SPDX-License-Identifier: Apache-2.0
"""Workloads: what people think in.  From cgroup paths to pods, containers and units."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from seawall.readings.cgroup import Cgroups
from seawall.readings.container_files import ContainerFiles

Kind: TypeAlias = Literal["container", "pod", "unit", "slice", "cgroup", "root"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One container, systemd unit or plain cgroup.  ``None``: unknown or does not apply."""

    kind: Kind
    name: str
    """Its address, as printed and as accepted wherever a verb takes a WORKLOAD:
    ``namespace/pod/container``; ``container:SHORTID`` or ``docker:NAME`` where no pod is
    known; ``unit:x.service``; else the cgroup path."""
    cgroup: str
    """Path below the mount point of the tree that counts memory."""
    runtime: str | None = None
    """containerd, cri-o, docker, podman, systemd-nspawn, ..."""
    container_id: str | None = None
    namespace: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    container: str | None = None
    qos: Literal["Guaranteed", "Burstable", "BestEffort"] | None = None
    unit: str | None = None
    is_sandbox: bool = False
    """The pod's pause container."""
    is_tenant: bool = False
    """A container or pod, not part of the host's own system."""


@dataclass(frozen=True, slots=True)
class Workloads:
    """The topic.  Leaves are containers, units and cgroups with processes of their own;
    pods and slices are there too, as parents."""

    by_cgroup: Mapping[str, Workload]
    by_pid: Mapping[int, Workload]

    def of_cgroup(self, path: str) -> Workload | None:
        """The nearest workload at or above ``path`` (containers nest cgroups of their own)."""
        while path not in self.by_cgroup and path != "/":
            path = path.rpartition("/")[0] or "/"
        return self.by_cgroup.get(path)


def account(cgroups: Cgroups, files: ContainerFiles) -> Workloads:
    raise NotImplementedError
