# SPDX-License-Identifier: Apache-2.0
"""One device of one container: what each of the five layers says, and which is the first to
disagree.
"""

import errno as errnos
from dataclasses import replace
from typing import Final

from seawall.accounts.devices.asked import asked, spec_device
from seawall.accounts.devices.kernel_rules.programs import allowed
from seawall.accounts.devices.kernel_rules.rules import USE, Device, configured, is_everything
from seawall.accounts.devices.layers import LAYERS, Answer, DeviceRow, Layer
from seawall.accounts.devices.promised.promise import some
from seawall.accounts.devices.sight import Asked, ContainerSide, HostSide
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
    """Needed ones first."""
    found = [_row(one, side, host) for one in asked(side, host)]
    return tuple(sorted(found, key=lambda row: not row.is_needed))


def _row(one: Asked, side: ContainerSide, host: HostSide) -> DeviceRow:
    tried = side.access.tried.get(one.path) if side.access else None
    layers: dict[Layer, Answer] = {
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


def broken_at(layers: dict[Layer, Answer]) -> Layer | None:
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


def _promised(one: Asked, side: ContainerSide) -> Answer:
    promise = side.promise
    if promise.source == "spec":
        return Answer("none", "nobody promised it anything but its own config")
    if one.path in promise.nodes:
        return Answer("yes", f"{promise.promised_by} names it")
    if promise.names_nodes:
        words = f"{promise.promised_by} names {some([*promise.nodes])}, and not this"
        return Answer("no" if one.is_needed else "none", words)
    return Answer("yes" if one.is_needed else "none", f"{promise.promised_by} asks for it")


# --- configured -------------------------------------------------------------------------


def _configured(one: Asked, side: ContainerSide) -> Answer:
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
        return Answer(then.says, f"{then.why}; {record.source} does not have it")
    return now._replace(why=f"{now.why}; as it was started, otherwise: {then.why}")


def _by_spec(one: Asked, side: ContainerSide) -> Answer:
    spec = side.spec
    if spec is None:
        return Answer("unread", "no runtime's config of it was found")
    if isinstance(spec, Unread):
        return Answer("unread", f"{spec.path}: {spec.why} {spec.detail}".rstrip())
    if any(is_everything(rule) for rule in spec.rules):
        return Answer("yes", f"{spec.source} allows everything")
    made = spec_device(one.path, side)
    if made is not None:
        number = Device(made.kind, made.major, made.minor)
        if one.is_sure and number != one.device:
            return Answer("no", f"{spec.source} makes it as {number}; it is {one.device} now")
        return configured(spec.rules, number, one.access, spec.source)
    if _is_mounted(one.path, spec) and one.device is not None:
        return configured(spec.rules, one.device, one.access, spec.source)
    return _left_out(side, spec)


def _is_mounted(path: str, spec: DeviceSpec) -> bool:
    return any(
        path == place or path.startswith(place.rstrip("/") + "/") for place in spec.device_mounts
    )


def _left_out(side: ContainerSide, spec: DeviceSpec) -> Answer:
    """The config does not have the node: that is no fault where a hook gives it."""
    hook = side.hook()
    members = _members(side, spec)
    if hook is not None and not members:
        return Answer("none", f"{hook} gives it at start; {spec.source} does not tell")
    words = f"{spec.source} names {', '.join(members[:_NAMED_MOST])}, and not this"
    return Answer("no", words if members else f"{spec.source} does not have it")


def _members(side: ContainerSide, spec: DeviceSpec) -> list[str]:
    one = side.promise.device_class
    return [device.path for device in spec.devices if one and one.member.match(device.path)]


# --- systemd, kernel --------------------------------------------------------------------


def _systemd(one: Asked, side: ContainerSide, host: HostSide) -> Answer:
    if isinstance(host.scopes, Unread):
        return Answer("unread", f"{host.scopes.path}: {host.scopes.why}")
    if not host.scopes.is_systemd:
        return Answer("none", "this machine is not run by systemd")
    found = host.unit_of(side.cgroup)
    if found is None:
        return Answer("none", "its cgroup is no unit of systemd's")
    name, unit = found
    if one.device is None:
        return Answer("unread", "its number is not known")
    if above := host.slice_that_refuses(side.cgroup, one.device, one.access):
        return Answer("no", f"{above}, which {name} is in: its DeviceAllow= does not have it")
    says, why = host.believer.believed(unit, one.device, one.access)
    return Answer(says, f"{name}: {why}")


def _kernel(one: Asked, side: ContainerSide, host: HostSide) -> Answer:
    if one.device is None:
        return Answer("unread", "its number is not known")
    return allowed(host.groups, side.cgroup, one.device, one.access)


# --- access -----------------------------------------------------------------------------


def _access(one: Asked, side: ContainerSide, tried: Tried | None) -> Answer:
    if side.access is None:
        return Answer("unread", "no process of it was there to try as")
    if tried is None:
        problem = side.access.problem
        if problem is None:
            return _unnamed(one, side)
        return Answer("unread", f"could not be tried: {problem.why} {problem.detail}".rstrip())
    if tried.kind == "other":
        return Answer("no", "what is there is no device")
    if tried.errno == 0 and (words := _stale(one, tried)):
        return Answer("no", words)
    if tried.errno or tried.open_errno:
        return _refused(one, tried)
    return Answer("yes", "reading and writing are allowed to it")


def _unnamed(one: Asked, side: ContainerSide) -> Answer:
    """``/dev/nvidiaN``: a device of which no number is known stands for any."""
    if one.stands_for_any and side.own_paths() is not None:
        return Answer("no", "its /dev has no such device")
    return Answer("unread", "it was not tried")


def _stale(one: Asked, tried: Tried) -> str:
    if not one.is_sure or tried.major is None or tried.minor is None or one.device is None:
        return ""
    found = (tried.kind, tried.major, tried.minor)
    if found == one.device:
        return ""
    return f"its node is {tried.kind} {tried.major}:{tried.minor}; it is {one.device} now"


def is_for_all(tried: Tried) -> bool:
    """Whether its mode lets everybody read and write."""
    return tried.mode is not None and tried.mode & 0o666 == 0o666


def _refused(one: Asked, tried: Tried) -> Answer:
    number = tried.errno or tried.open_errno or 0
    if tried.errno in (errnos.EPERM, errnos.EACCES) and one.access != USE:
        return Answer("unread", f"only {one.access} was promised; reading and writing were tried")
    name = errnos.errorcode.get(number, str(number))
    words = _WORDS.get(number, f"{name}: refused")
    if number == errnos.EACCES and is_for_all(tried):
        words = "EACCES: refused, and the node's mode is not why: it lets everybody read and write"
    if stale := _stale(one, tried):
        words = f"{words}; {stale}"
    return Answer("no", words if tried.errno else f"on opening, {words}")
