# SPDX-License-Identifier: Apache-2.0
"""Which devices of a container are asked about, and which numbers they have now."""

from collections.abc import Iterator

from seawall.accounts.devices.classes import Control, DeviceClass, needs_compute
from seawall.accounts.devices.device_inputs import ContainerSide, DeviceRequest, HostSide
from seawall.accounts.devices.kernel_rules.device_rules import USE, RuledDevice
from seawall.accounts.devices.promised.promises import PromisedDevice
from seawall.readings.device_specs import DeviceSpec, SpecDevice


def device_requests(side: ContainerSide, host: HostSide) -> list[DeviceRequest]:
    """Control nodes first, then the devices: each path once."""
    found: dict[str, DeviceRequest] = {}
    for path, is_needed in _paths(side, host):
        if path not in found:
            found[path] = _asked(path, side, host, is_needed=is_needed)
    return list(found.values())


def _paths(side: ContainerSide, host: HostSide) -> Iterator[tuple[str, bool]]:
    one, promise = side.promise.device_class, side.promise
    if one is None or any(host.node(path) for path in one.elsewhere):
        yield from ((path, True) for path in promise.nodes)
        return
    optional = {control.path for control in one.controls if not control.is_needed}
    given = list(dict.fromkeys([*promise.nodes, *_spec_paths(one, side)]))
    for control in one.controls:
        if _is_needed(control, one, side):
            yield control.path, True
    devices = [path for path in given if path not in optional]
    yield from ((path, True) for path in devices)
    yield from ((path, False) for path in given if path in optional)
    units = [path for path in devices if one.unit.match(path)]
    if not units and not promise.names_nodes:
        units = [path for path in side.own_paths() or () if one.unit.match(path)]
        yield from ((path, True) for path in units)
    if not units and promise.source != "spec" and not _is_unseen(side):
        yield one.unit_name, True


def _is_unseen(side: ContainerSide) -> bool:
    """Whether its devices may be there without being seen."""
    return not side.promise.names_nodes and side.own_paths() is None


def _is_needed(control: Control, one: DeviceClass, side: ContainerSide) -> bool:
    """Whoever was only given control nodes looks on, and does not compute."""
    if not control.is_needed or not control.is_for_compute:
        return control.is_needed
    promise = side.promise
    if promise.source == "spec" and not any(one.unit.match(path) for path in promise.nodes):
        return False
    return needs_compute(side.spec.environment if isinstance(side.spec, DeviceSpec) else {})


def _spec_paths(one: DeviceClass, side: ContainerSide) -> list[str]:
    """What the config has of the class, whoever promised what."""
    if not isinstance(side.spec, DeviceSpec) or side.promise.source == "spec":
        return []
    return [device.path for device in side.spec.devices if one.member.match(device.path)]


def _asked(path: str, side: ContainerSide, host: HostSide, *, is_needed: bool) -> DeviceRequest:
    wanted = side.promise.nodes.get(path)
    host_path = wanted.host_path if wanted else path
    device, is_sure = _device(path, host_path, side, host)
    one = side.promise.device_class
    return DeviceRequest(
        path=path,
        host_path=host_path,
        access=wanted.access if wanted else USE,
        device=device,
        is_sure=is_sure,
        is_needed=is_needed,
        stands_for_any=one is not None and path == one.unit_name,
    )


def _device(
    path: str, host_path: str, side: ContainerSide, host: HostSide
) -> tuple[RuledDevice | None, bool]:
    """The numbers now, and whether they are sure: of the driver, or of the host's node."""
    wanted, node, told = side.promise.nodes.get(path), host.node(host_path), spec_device(path, side)
    majors = host.majors(path)
    if majors:
        minor = _minor(path, side, node.minor if node else None)
        major = node.major if node and node.major in majors else majors[0]
        return (RuledDevice("c", major, minor), True) if minor is not None else (None, False)
    if side.promise.source in ("kubelet", "cdi") and node is not None:
        return RuledDevice(node.kind, node.major, node.minor), not host.is_unloaded(path)
    return _told(wanted, told, path, side), False


def _minor(path: str, side: ContainerSide, on_host: int | None) -> int | None:
    """Of a path whose driver is known: that of a control node never changes."""
    one = side.promise.device_class
    for control in one.controls if one else ():
        if control.path == path:
            return control.minor
    if on_host is not None:
        return on_host
    told = _told(side.promise.nodes.get(path), spec_device(path, side), path, side)
    return told.minor if told else None


def _told(
    wanted: PromisedDevice | None, spec: SpecDevice | None, path: str, side: ContainerSide
) -> RuledDevice | None:
    """As the config, the promise or the container's own node says."""
    if spec is not None:
        return RuledDevice(spec.kind, spec.major, spec.minor)
    if wanted is not None and wanted.number is not None:
        return RuledDevice("c", *wanted.number)
    node = side.own_node(path)
    return RuledDevice(node.kind, node.major, node.minor) if node else None


def spec_device(path: str, side: ContainerSide) -> SpecDevice | None:
    """The node that the config makes there."""
    if not isinstance(side.spec, DeviceSpec):
        return None
    return next((device for device in side.spec.devices if device.path == path), None)
