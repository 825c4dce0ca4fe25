# SPDX-License-Identifier: Apache-2.0
"""One device of one container through five layers of truth; the first that disagrees is it."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.workloads import Workload
from seawall.readings.device_rule import Kind

Layer: TypeAlias = Literal["promised", "configured", "systemd", "kernel", "access"]
LAYERS: Final[tuple[Layer, ...]] = ("promised", "configured", "systemd", "kernel", "access")
Mode: TypeAlias = Literal[
    "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "mode", "unnamed"
]


Names: TypeAlias = Literal["yes", "no", "unknown"]


class LayerAnswer(NamedTuple):
    """What one layer says of one device."""

    says: Literal["yes", "no", "none", "unread"]
    """``none``: this layer has no say here (no systemd, no Kubernetes)."""
    why: str
    """In words, with the source: a file, a rule, an errno."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One device of one container."""

    path: str
    kind: Kind
    major: int | None
    minor: int | None
    is_needed: bool
    """Without it the device class does not work (nvidia-uvm for CUDA); others are optional."""
    layers: dict[Layer, LayerAnswer]
    errno: int | None
    """Of the try; None: it was not tried."""
    broken_at: Layer | None
    """Null: it works, as far as was seen."""


class Since(NamedTuple):
    """From when on a device was refused, as far as anything tells."""

    at: float
    """Unix seconds."""
    how: str
    """What tells it: ``the container was started``, ``the last daemon-reload``,
    ``the cgroup's device program was loaded``."""


class Diagnosis(NamedTuple):
    """Why a container cannot use what it was promised."""

    mode: Mode
    """Failure mode, see docs/gpu.md; unnamed: refused, and no evidence says why; there may be
    more.
    """
    headline: str
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerDevices:
    """One container that was promised devices, or that has them."""

    workload: Workload
    device_class: str
    """``nvidia``, ``amd``, or the resource's name."""
    promised_by: str
    """``kubelet checkpoint``, ``NVIDIA_VISIBLE_DEVICES=all``, ``CDI nvidia.com/gpu=0``,
    ``OCI config``."""
    devices: tuple[DeviceRow, ...]
    diagnosis: Diagnosis | None
    """None: everything that was tried works."""
    unseen: tuple[str, ...] = ()
    """What could not be seen of it, and what would provide it."""
    since: Since | None = None
    """Of the diagnosis; None: nothing that was seen tells it."""

    @property
    def works(self) -> bool:
        """Each device that it needs was tried and answered: what was not tried is never healthy."""
        rows = [row for row in self.devices if row.is_needed] or self.devices
        is_tried = bool(rows) and all(row.layers["access"].says == "yes" for row in rows)
        return self.diagnosis is None and is_tried


class UpcomingLoss(NamedTuple):
    """Works now, and is about to stop."""

    workload: Workload | None
    """None: the host, or the plugin."""
    device: str
    why: str
    when: str
    """``the next daemon-reload``, ``the next update of the container``."""
    remedy: str
    command: str = ""
    """What a person types; empty: there is no such command, or more than one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNode:
    """A control node that a loaded module implies."""

    path: str
    driver: str
    """As /proc/devices calls it."""
    major: int
    minor: int
    is_there: bool
    """With this number."""
    found: str = ""
    """What is there instead: ``c 510:0`` where the major is 511 now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A device plugin's own container."""

    workload: Workload
    pid: int
    lacks: tuple[str, ...]
    """Paths that the host's /dev has and its own has not: what it cannot hand out.  Empty where
    its answers are seen to name no nodes."""
    names_nodes: Names = "unknown"
    """Whether its answers name nodes, as far as anything that was seen tells."""


class RefusedPod(NamedTuple):
    """One pod that is Failed, as far as this node's files tell."""

    namespace: str
    pod: str
    uid: str
    """Empty where the kubelet's line has none."""
    resource: str
    """Nvidia.com/gpu."""
    at: float
    """Unix seconds."""
    mode: Mode
    why: str
    """In words."""
    registered_at: float | None
    """When the resource's plugin registered after that; None: that was not seen."""

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.pod}"


class UnhealthyDevice(NamedTuple):
    """One device that new pods do not get."""

    resource: str
    device: str
    """As the plugin calls it, or the driver's UUID."""
    since: float | None
    """Unix seconds, of the plugin's line; None: no log that was seen has it."""
    xid: int | None
    mode: Mode
    """``unnamed`` where nothing tells that a plugin gave it up."""
    why: str
    """In words."""
