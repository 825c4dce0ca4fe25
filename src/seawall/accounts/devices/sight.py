# SPDX-License-Identifier: Apache-2.0
"""What the account of devices is made from: the host's side, and one container's side."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from seawall.accounts.devices.classes import drivers_of, majors_now
from seawall.accounts.devices.layers import Plugin
from seawall.accounts.devices.promises import Promise
from seawall.accounts.devices.rules import Believer, Device
from seawall.host.host import Unread
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Access
from seawall.readings.device_cgroups import DeviceCgroups
from seawall.readings.device_nodes import DeviceNodes, Node
from seawall.readings.device_specs import DeviceSpec
from seawall.readings.scope_devices import ScopeDevices, UnitDevices

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostSide:
    """What all containers have in common."""

    drivers: CharDevices | Unread
    nodes: DeviceNodes | Unread
    groups: DeviceCgroups | Unread
    scopes: ScopeDevices | Unread
    plugins: tuple[Plugin, ...] = ()
    believer: Believer = field(init=False)

    def __post_init__(self) -> None:
        believer = Believer(_known(self.drivers), _known(self.nodes))
        object.__setattr__(self, "believer", believer)

    def with_plugins(self, plugins: tuple[Plugin, ...]) -> "HostSide":
        """The same host, with the plugins that were found by looking at it."""
        return replace(self, plugins=plugins)

    def node(self, path: str) -> Node | None:
        """On the host; None: not there, or not known."""
        return None if isinstance(self.nodes, Unread) else self.nodes.by_path.get(path)

    def lacks(self, path: str) -> bool:
        """Whether it is certain that the host has no such node."""
        if isinstance(self.nodes, Unread) or self.nodes.left_out:
            return False
        return path not in self.nodes.by_path

    def lacks_link(self, device: Device) -> bool:
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
        if isinstance(self.scopes, Unread):
            return None
        for name in cgroup.split("/"):
            if name.endswith((".scope", ".service")) and name in self.scopes.by_unit:
                return name, self.scopes.by_unit[name]
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
    own_nodes: Mapping[str, Node] | Unread | None
    """Its /dev; None: no process of it is there."""
    access: Access | None
    """None: nothing was tried."""

    def own_node(self, path: str) -> Node | None:
        return (
            None
            if self.own_nodes is None or isinstance(self.own_nodes, Unread)
            else (self.own_nodes.get(path))
        )

    def own_paths(self) -> tuple[str, ...] | None:
        """Sorted; None: not seen."""
        if self.own_nodes is None or isinstance(self.own_nodes, Unread):
            return None
        return tuple(sorted(self.own_nodes))

    def with_access(self, access: Access | None) -> "ContainerSide":
        """The same container after it was tried."""
        return replace(self, access=access)


class Asked(NamedTuple):
    """One device of a row."""

    path: str
    host_path: str
    access: str
    device: Device | None
    """None: nobody tells its numbers."""
    is_sure: bool
    """The numbers are the driver's or the host's of now: another is stale."""
    is_needed: bool
    stands_for_any: bool
    """``/dev/nvidiaN``: it has none of them, and needs one."""
