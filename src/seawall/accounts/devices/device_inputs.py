# SPDX-License-Identifier: Apache-2.0
"""What the account of devices is made from: the host's side, and one container's side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from seawall.accounts.devices.classes import drivers_of, majors_now
from seawall.accounts.devices.kernel_rules.device_rules import Believer, RuledDevice
from seawall.accounts.devices.layers import Plugin
from seawall.accounts.devices.promised.promises import Promise, hook_of
from seawall.host.host import Unread
from seawall.readings.boot_time import BootTime
from seawall.readings.cdi_specs import CdiSpecs
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Access
from seawall.readings.device_cgroups import DeviceCgroups
from seawall.readings.device_nodes import DeviceNode, DeviceNodes
from seawall.readings.device_specs import DeviceSpec
from seawall.readings.kernel import Kernel
from seawall.readings.runtime_versions import RuntimeVersions
from seawall.readings.scope_devices import ScopeDevices, UnitDevices

T = TypeVar("T")
_NOT_ASKED: Final = Unread("runtime_versions", "absent", "not asked")


class Clock(NamedTuple):
    """What turns the kernel's times into Unix seconds."""

    booted_at: float
    """A wall clock that was set meanwhile does not matter: it is as of now."""
    ticks_each_second: int
    start_ticks: Mapping[int, int]
    """By pid."""

    @classmethod
    def of(
        cls, kernel: Kernel | Unread, boot: BootTime | Unread, start_ticks: Mapping[int, int]
    ) -> "Clock | None":
        """None: it is not known what time it was."""
        if isinstance(kernel, Unread):
            return None
        if not isinstance(boot, Unread):
            return cls(boot.unix_seconds, kernel.clock_ticks, start_ticks)
        now, uptime = kernel.taken_at_unix_seconds, kernel.uptime_seconds
        if now is None or uptime is None:
            return None
        return cls(now - uptime, kernel.clock_ticks, start_ticks)

    def start_of(self, pid: int | None) -> float | None:
        """When a process was started."""
        ticks = None if pid is None else self.start_ticks.get(pid)
        return None if ticks is None else self.booted_at + ticks / self.ticks_each_second


@dataclass(frozen=True, slots=True)
class HostSide:
    """What all containers have in common."""

    drivers: CharDevices | Unread
    nodes: DeviceNodes | Unread
    groups: DeviceCgroups | Unread
    scopes: ScopeDevices | Unread
    plugins: tuple[Plugin, ...] = ()
    versions: RuntimeVersions | Unread = _NOT_ASKED
    clock: Clock | None = None
    cdi: CdiSpecs | Unread = _NOT_ASKED
    believer: Believer = field(init=False)

    def __post_init__(self) -> None:
        believer = Believer(_known(self.drivers), _known(self.nodes))
        object.__setattr__(self, "believer", believer)

    def started_at(self, pid: int | None) -> float | None:
        """Unix seconds; None: not known."""
        return None if self.clock is None else self.clock.start_of(pid)

    def reloaded_at(self) -> float | None:
        """Unix seconds of systemd's last daemon-reload, or of the boot; None: not known."""
        return None if isinstance(self.versions, Unread) else self.versions.units_loaded

    def changed_at(self, path: str) -> int | None:
        """Unix second at which a node of the host was made, or its mode was changed."""
        return None if isinstance(self.nodes, Unread) else self.nodes.ctime_by_path.get(path)

    def node(self, path: str) -> DeviceNode | None:
        """On the host; None: not there, or not known."""
        return None if isinstance(self.nodes, Unread) else self.nodes.by_path.get(path)

    def lacks(self, path: str) -> bool:
        """Whether it is certain that the host has no such node."""
        if isinstance(self.nodes, Unread) or self.nodes.left_out:
            return False
        return path not in self.nodes.by_path

    def lacks_link(self, device: RuledDevice) -> bool:
        """Whether it is certain that /dev/char/M:m is missing."""
        if device.kind != "c" or isinstance(self.nodes, Unread):
            return False
        return (device.major, device.minor) not in self.nodes.char_links

    def majors(self, path: str) -> tuple[int, ...]:
        """Of the driver that a path is known to be of; empty: none is known, or none is loaded."""
        return majors_now(_known(self.drivers), drivers_of(path))

    def is_unloaded(self, path: str) -> bool:
        """Whether it is certain that the path's driver is not there."""
        known = drivers_of(path)
        return bool(known) and not isinstance(self.drivers, Unread) and not self.majors(path)

    def unit_of(self, cgroup: str) -> tuple[str, UnitDevices] | None:
        """The unit that has this cgroup, from the top: what lies below one of systemd's units is
        the container's own, whatever it calls it.
        """
        found = list(self.units_of(cgroup))
        return found[-1] if found and not found[-1][0].endswith(".slice") else None

    def units_of(self, cgroup: str) -> Iterator[tuple[str, UnitDevices]]:
        """The same with the slices above it, whose rules hold for it too, the topmost first."""
        known = {} if isinstance(self.scopes, Unread) else self.scopes.by_unit
        for name in cgroup.split("/"):
            if name in known and name.endswith((".slice", ".scope", ".service")):
                yield name, known[name]
                if not name.endswith(".slice"):
                    return

    def slice_that_refuses(self, cgroup: str, device: RuledDevice, access: str) -> str | None:
        """The topmost slice whose rules lack the device."""
        for name, unit in self.units_of(cgroup):
            if not name.endswith(".slice"):
                break
            if self.believer.believed(unit, device, access).says == "no":
                return name
        return None


def _known(value: T | Unread) -> T | None:
    return None if isinstance(value, Unread) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSide:
    """One container that was promised devices of one class."""

    promise: Promise
    spec: DeviceSpec | Unread | None
    cgroup: str
    """Where the process is that tries."""
    own_nodes: Mapping[str, DeviceNode] | Unread | None
    """Its /dev; None: no process of it is there."""
    access: Access | None
    """None: nothing was tried."""
    pid: int | None = None
    """Its eldest process."""
    record_and_start: tuple[DeviceSpec, DeviceSpec] | None = None
    """The runtime's record of now and the config as it was started, where both tell; ``spec`` is
    of both."""

    def hook(self) -> str | None:
        """What gives it its devices at start, if its config has such a program."""
        one, spec = self.promise.device_class, self.spec
        return hook_of(one, spec) if isinstance(spec, DeviceSpec) else None

    def own_node(self, path: str) -> DeviceNode | None:
        """In its /dev; None: not there, or not seen."""
        return self.own_nodes.get(path) if isinstance(self.own_nodes, Mapping) else None

    def own_paths(self) -> tuple[str, ...] | None:
        """Paths of the nodes in its own /dev, sorted; None: it was not seen."""
        return tuple(sorted(self.own_nodes)) if isinstance(self.own_nodes, Mapping) else None


class DeviceRequest(NamedTuple):
    """One device of a row."""

    path: str
    host_path: str
    access: str
    device: RuledDevice | None
    """None: nobody tells its numbers."""
    is_sure: bool
    """The numbers are the driver's or the host's of now: another is stale."""
    is_needed: bool
    stands_for_any: bool
    """``/dev/nvidiaN``: it has none of them, and needs one."""
