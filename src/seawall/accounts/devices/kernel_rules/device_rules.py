# SPDX-License-Identifier: Apache-2.0
"""What a list of rules says of one device: the kernel's v1 list, a runtime's spec, systemd's unit.

v1: security/device_cgroup.c match_exception: one rule must cover all of the access; a group in
allow-all mode prints ``a *:* rwm`` and hides its exceptions, so that such a list answers nothing.
OCI runtime-spec config-linux.md "Allowed Device list": in order, the last that matches decides;
what no rule names is denied.  runc adds the usual pseudo devices (AllowedDevices of
libcontainer/specconv) behind whatever the spec says.
systemd.resource-control(5) DevicePolicy= and DeviceAllow=; src/core/bpf-devices.c.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from seawall.accounts.devices.layers import DeviceRow, LayerAnswer
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.device_rule import DeviceRule, Kind
from seawall.readings.scope_devices import UnitDevices

USE: Final = "rw"
"""What whoever opens a device asks for."""
_PSEUDO: Final = {
    (1, 3): "null", (1, 5): "zero", (1, 7): "full", (1, 8): "random", (1, 9): "urandom",
    (5, 0): "tty", (5, 1): "console", (5, 2): "ptmx",
}  # fmt: skip
_PTS: Final = range(136, 144)
"""Majors of /dev/pts/N; runc names 136 alone."""
_SYSTEMD_PSEUDO: Final = frozenset({(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)})
_NUMBERED: Final = re.compile(r"/dev/(char|block)/(\d{1,10}):(\d{1,10})\Z")
_NAMED: Final = re.compile(r"(char|block)-(.+)\Z", re.DOTALL)
_KINDS: Final[dict[str, Kind]] = {"char": "c", "block": "b"}


class RuledDevice(NamedTuple):
    """A device about which device rules are asked: its kind and numbers."""

    kind: Kind
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.kind} {self.major}:{self.minor}"


def device_of(row: DeviceRow) -> RuledDevice | None:
    """None: nobody tells its numbers."""
    if row.major is None or row.minor is None:
        return None
    return RuledDevice(row.kind, row.major, row.minor)


def rule_text(rule: DeviceRule) -> str:
    """As devices.list prints it: ``c 195:* rw``."""
    major = "*" if rule.major is None else rule.major
    minor = "*" if rule.minor is None else rule.minor
    return f"{rule.kind or 'a'} {major}:{minor} {rule.access}"


def names(rule: DeviceRule, device: RuledDevice) -> bool:
    """Whether a rule is about the device, whatever access it tells."""
    return (
        rule.kind in (None, device.kind)
        and rule.major in (None, device.major)
        and rule.minor in (None, device.minor)
    )


def pseudo_name(device: RuledDevice) -> str | None:
    """``null``, ``pts``, ...: what every container may use anyway."""
    if device.kind != "c":
        return None
    return "pts" if device.major in _PTS else _PSEUDO.get((device.major, device.minor))


def listed(
    rules: Sequence[DeviceRule],
    device: RuledDevice,
    access: str = USE,
    source: str = "devices.list",
) -> LayerAnswer:
    """What a cgroup's ``devices.list`` says."""
    if any(is_everything(rule) for rule in rules):
        words = "lists everything as allowed (a *:* rwm), which hides its exceptions"
        return LayerAnswer("unread", f"{source} {words}")
    wanted = set(access)
    for rule in rules:
        if names(rule, device) and wanted <= set(rule.access):
            return LayerAnswer("yes", f"{source}: {rule_text(rule)}")
    near = [rule_text(rule) for rule in rules if names(rule, device)]
    most = f", the nearest is {near[-1]}" if near else ""
    return LayerAnswer("no", f"{source} has no rule that allows {device} {access}{most}")


def is_everything(rule: DeviceRule) -> bool:
    """``a *:* rwm``: all there is."""
    return rule.kind is None and rule.is_allow and rule.major is None and rule.minor is None


def configured(
    rules: Sequence[DeviceRule], device: RuledDevice, access: str = USE, source: str = "the spec"
) -> LayerAnswer:
    """What the rules of an OCI config say, as runc and crun carry them out."""
    if pseudo := pseudo_name(device):
        return LayerAnswer("yes", f"runtimes always allow /dev/{pseudo}")
    last = [_last(rules, device, letter) for letter in access]
    for rule in last:
        if rule is None:
            return LayerAnswer("no", f"{source} has no rule for {device} {access}")
        if not rule.is_allow:
            return LayerAnswer("no", f"{source} denies {device} {access}: deny {rule_text(rule)}")
    # Runtimes merge rules of the same device; one of what is left has to cover all of it.
    allowing = [rule for rule in last if rule is not None]
    whole = next((rule for rule in allowing if set(access) <= set(rule.access)), None)
    if whole is None and len({rule[:3] for rule in allowing}) > 1:
        return LayerAnswer("no", f"{source} has no single rule for {device} {access}")
    return LayerAnswer("yes", f"{source}: allow {rule_text(whole or allowing[-1])}")


def _last(rules: Sequence[DeviceRule], device: RuledDevice, letter: str) -> DeviceRule | None:
    for rule in reversed(rules):
        if letter in rule.access and names(rule, device):
            return rule
    return None


class Believer:
    """What systemd makes of the devices of its units, with the names that it would look up now."""

    def __init__(self, drivers: CharDevices | None, nodes: DeviceNodes | None) -> None:
        self._drivers = drivers
        self._nodes = nodes

    def believed(self, unit: UnitDevices, device: RuledDevice, access: str = USE) -> LayerAnswer:
        """What systemd puts into the kernel at its next reload."""
        if unit.policy == "auto" and not unit.allow:
            return LayerAnswer("yes", "systemd keeps no list of devices for it")
        if unit.policy in ("auto", "closed") and self._is_standard(device):
            return LayerAnswer(
                "yes", f"DevicePolicy={unit.policy} allows /dev/{pseudo_name(device)}"
            )
        wanted, unknown, given = set(access), "", set[str]()
        for what, letters in unit.allow:
            about = self._is_about(what, device)
            if about is None:
                unknown = unknown or what
            elif about:
                given |= set(letters)
                # Each line is a rule of its own in the kernel: one must cover all of it.
                if wanted <= set(letters):
                    return LayerAnswer("yes", f"DeviceAllow={what} {letters}")
        if unknown:
            return LayerAnswer("unread", f"DeviceAllow={unknown} could not be resolved")
        most = f" more than {''.join(sorted(given))}" if given else ""
        return LayerAnswer("no", f"its DeviceAllow= does not have {device} {access}{most}")

    @staticmethod
    def _is_standard(device: RuledDevice) -> bool:
        is_pseudo = (device.major, device.minor) in _SYSTEMD_PSEUDO or device.major in _PTS
        return device.kind == "c" and is_pseudo

    def _is_about(self, what: str, device: RuledDevice) -> bool | None:
        """Whether one DeviceAllow= names the device; None: that cannot be told."""
        if match := _NUMBERED.match(what):
            kind, major, minor = match.groups()
            return (_KINDS[kind], int(major), int(minor)) == device
        if match := _NAMED.match(what):
            kind, pattern = match.groups()
            return _KINDS[kind] == device.kind and self._is_of(pattern, device)
        if self._nodes is None:
            return None
        node = self._nodes.by_path.get(what)
        return node is not None and (node.kind, node.major, node.minor) == device

    def _is_of(self, pattern: str, device: RuledDevice) -> bool | None:
        """Whether the device's driver is meant by ``nvidia*``; a number is a major, ``*`` all."""
        if pattern == "*":
            return True
        if pattern.isascii() and pattern.isdigit():
            return int(pattern[:10]) == device.major
        if self._drivers is None:
            return None
        return any(fnmatchcase(name, pattern) for name in driver_names(self._drivers, device))


def driver_names(drivers: CharDevices, device: RuledDevice) -> tuple[str, ...]:
    """What /proc/devices calls the device's major now."""
    of_kind = drivers.char if device.kind == "c" else drivers.block
    more = drivers.more.get(device.major, ()) if device.kind == "c" else ()
    return (*filter(None, (of_kind.get(device.major),)), *more)
