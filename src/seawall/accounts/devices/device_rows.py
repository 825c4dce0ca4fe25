# SPDX-License-Identifier: Apache-2.0
"""One device of one container: what each of the five layers says, and which is the first to
disagree.
"""

import errno as errnos
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.device_inputs import ContainerSide, DeviceRequest, HostSide
from seawall.accounts.devices.device_questions import device_requests, spec_device
from seawall.accounts.devices.kernel_rules.cgroup_rules import allowed
from seawall.accounts.devices.kernel_rules.device_rules import (
    USE,
    RuledDevice,
    configured,
    is_everything,
)
from seawall.accounts.devices.layers import LAYERS, DeviceRow, Layer, LayerAnswer
from seawall.accounts.devices.promised.promise import some
from seawall.host.host import Unread
from seawall.readings.device_access import Tried
from seawall.readings.device_specs import DeviceSpec

_NAMED_MOST: Final = 4
_WORDS: Final = {
    errnos.EPERM: "EPERM: the device cgroup refuses it",
    errnos.ENOENT: "ENOENT: no such node in its /dev",
    errnos.EACCES: "EACCES: the mode or owner of the node refuses it",
    errnos.ENXIO: "ENXIO: no driver behind this number",
    errnos.ENODEV: "ENODEV: no driver behind this number",
}


def rows(side: ContainerSide, host: HostSide) -> tuple[DeviceRow, ...]:
    """A row for each device path that the container should have; those it needs come first."""
    found = [_row(one, side, host) for one in device_requests(side, host)]
    return tuple(sorted(found, key=lambda row: not row.is_needed))


def _row(one: DeviceRequest, side: ContainerSide, host: HostSide) -> DeviceRow:
    tried = side.access.tried.get(one.path) if side.access else None
    layers: dict[Layer, LayerAnswer] = {
        "promised": _promised(one, side),
        "configured": _configured(one, side),
        "systemd": _systemd(one, side, host),
        "kernel": _kernel(one, side, host),
        "access": _access(one, side, tried),
    }
    device = one.device
    return DeviceRow(
        path=one.path,
        kind=device.kind if device else "c",
        major=device.major if device else None,
        minor=device.minor if device else None,
        is_needed=one.is_needed,
        layers=layers,
        errno=_errno(tried),
        broken_at=broken_at(layers),
    )


def broken_at(layers: dict[Layer, LayerAnswer]) -> Layer | None:
    """The first layer that says no, of a device that does not work as far as is seen."""
    says = {layer: answer.says for layer, answer in layers.items()}
    last = says["access"] if says["access"] in ("yes", "no") else says["kernel"]
    if last not in ("yes", "no"):
        # Neither the kernel nor a try could be seen: then what was configured is the evidence.
        last = says["configured"]
    if last != "no":
        return None
    return next((layer for layer in LAYERS if says[layer] == "no"), None)


def _errno(tried: Tried | None) -> int | None:
    if tried is None:
        return None
    return tried.errno or tried.open_errno or 0


# --- promised ---------------------------------------------------------------------------


def _promised(one: DeviceRequest, side: ContainerSide) -> LayerAnswer:
    promise = side.promise
    if promise.source == "spec":
        return LayerAnswer("none", "nobody promised it anything but its own config")
    if one.path in promise.nodes:
        return LayerAnswer("yes", f"{promise.promised_by} names it")
    if promise.names_nodes:
        words = f"{promise.promised_by} names {some([*promise.nodes])}, and not this"
        return LayerAnswer("no" if one.is_needed else "none", words)
    return LayerAnswer("yes" if one.is_needed else "none", f"{promise.promised_by} asks for it")


# --- configured -------------------------------------------------------------------------


def _configured(one: DeviceRequest, side: ContainerSide) -> LayerAnswer:
    """By the runtime's record, where it told one; what it was started with is compared."""
    if side.record_and_start is None:
        return _by_spec(one, side)
    record, started = side.record_and_start
    now, then = (
        _by_spec(one, replace(side, spec=spec, record_and_start=None)) for spec in (record, started)
    )
    if now.says == then.says:
        return now
    if now.says != "yes" and then.says in ("yes", "none"):
        # Programs that wrap runc give devices and hooks in the config.json alone.
        return LayerAnswer(then.says, f"{then.why}; {record.source} does not have it")
    return now._replace(why=f"{now.why}; as it was started, otherwise: {then.why}")


def _by_spec(one: DeviceRequest, side: ContainerSide) -> LayerAnswer:
    spec = side.spec
    if spec is None:
        return LayerAnswer("unread", "no runtime's config of it was found")
    if isinstance(spec, Unread):
        return LayerAnswer("unread", f"{spec.path}: {spec.why} {spec.detail}".rstrip())
    if any(is_everything(rule) for rule in spec.rules):
        return LayerAnswer("yes", f"{spec.source} allows everything")
    made = spec_device(one.path, side)
    if made is not None:
        number = RuledDevice(made.kind, made.major, made.minor)
        if one.is_sure and number != one.device:
            return LayerAnswer("no", f"{spec.source} makes it as {number}; it is {one.device} now")
        return configured(spec.rules, number, one.access, spec.source)
    if _is_mounted(one.path, spec) and one.device is not None:
        return configured(spec.rules, one.device, one.access, spec.source)
    return _left_out(side, spec)


def _is_mounted(path: str, spec: DeviceSpec) -> bool:
    return any(
        path == place or path.startswith(place.rstrip("/") + "/") for place in spec.device_mounts
    )


def _left_out(side: ContainerSide, spec: DeviceSpec) -> LayerAnswer:
    """The config does not have the node: that is no fault where a hook gives it."""
    hook = side.hook()
    members = _members(side, spec)
    if hook is not None and not members:
        return LayerAnswer("none", f"{hook} gives it at start; {spec.source} does not tell")
    words = f"{spec.source} names {', '.join(members[:_NAMED_MOST])}, and not this"
    return LayerAnswer("no", words if members else f"{spec.source} does not have it")


def _members(side: ContainerSide, spec: DeviceSpec) -> list[str]:
    one = side.promise.device_class
    return [device.path for device in spec.devices if one and one.member.match(device.path)]


# --- systemd, kernel --------------------------------------------------------------------


def _systemd(one: DeviceRequest, side: ContainerSide, host: HostSide) -> LayerAnswer:
    if isinstance(host.scopes, Unread):
        return LayerAnswer("unread", f"{host.scopes.path}: {host.scopes.why}")
    if not host.scopes.is_systemd:
        return LayerAnswer("none", "this machine is not run by systemd")
    found = host.unit_of(side.cgroup)
    if found is None:
        return LayerAnswer("none", "its cgroup is no unit of systemd's")
    name, unit = found
    if one.device is None:
        return LayerAnswer("unread", "its number is not known")
    if above := host.slice_that_refuses(side.cgroup, one.device, one.access):
        return LayerAnswer("no", f"{above}, which {name} is in: its DeviceAllow= does not have it")
    says, why = host.believer.believed(unit, one.device, one.access)
    return LayerAnswer(says, f"{name}: {why}")


def _kernel(one: DeviceRequest, side: ContainerSide, host: HostSide) -> LayerAnswer:
    if one.device is None:
        return LayerAnswer("unread", "its number is not known")
    return allowed(host.groups, side.cgroup, one.device, one.access)


# --- access -----------------------------------------------------------------------------


def _access(one: DeviceRequest, side: ContainerSide, tried: Tried | None) -> LayerAnswer:
    if side.access is None:
        return LayerAnswer("unread", "no process of it was there to try as")
    if tried is None:
        problem = side.access.problem
        if problem is None:
            return _unnamed(one, side)
        return LayerAnswer("unread", f"could not be tried: {problem.why} {problem.detail}".rstrip())
    if tried.kind == "other":
        return LayerAnswer("no", "what is there is no device")
    if tried.errno == 0 and (words := _stale(one, tried)):
        return LayerAnswer("no", words)
    if tried.errno or tried.open_errno:
        return _refused(one, tried)
    return LayerAnswer("yes", "reading and writing are allowed to it")


def _unnamed(one: DeviceRequest, side: ContainerSide) -> LayerAnswer:
    """``/dev/nvidiaN``: a device of which no number is known stands for any."""
    if one.stands_for_any and side.own_paths() is not None:
        return LayerAnswer("no", "its /dev has no such device")
    return LayerAnswer("unread", "it was not tried")


def _stale(one: DeviceRequest, tried: Tried) -> str:
    if not one.is_sure or tried.major is None or tried.minor is None or one.device is None:
        return ""
    found = (tried.kind, tried.major, tried.minor)
    if found == one.device:
        return ""
    return f"its node is {tried.kind} {tried.major}:{tried.minor}; it is {one.device} now"


def is_for_all(tried: Tried) -> bool:
    """Whether its mode lets everybody read and write."""
    return tried.mode is not None and tried.mode & 0o666 == 0o666


def _refused(one: DeviceRequest, tried: Tried) -> LayerAnswer:
    number = tried.errno or tried.open_errno or 0
    if tried.errno in (errnos.EPERM, errnos.EACCES) and one.access != USE:
        return LayerAnswer(
            "unread", f"only {one.access} was promised; reading and writing were tried"
        )
    name = errnos.errorcode.get(number, str(number))
    words = _WORDS.get(number, f"{name}: refused")
    if number == errnos.EACCES and is_for_all(tried):
        words = "EACCES: refused, and the node's mode is not why: it lets everybody read and write"
    if stale := _stale(one, tried):
        words = f"{words}; {stale}"
    return LayerAnswer("no", words if tried.errno else f"on opening, {words}")
