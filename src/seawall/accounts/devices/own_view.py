# SPDX-License-Identifier: Apache-2.0
"""A workload's own view of its devices: what it was promised, and what refuses it, from inside.

From inside neither the plugin nor the host's /dev is seen, so a failure mode is named only where
what is seen here tells it; the sentence says how sure that is.
"""

import errno
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.devices.classes import (
    CLASSES,
    NVIDIA,
    DeviceClass,
    drivers_of,
    majors_now,
    needs_compute,
)
from seawall.accounts.devices.layers import Mode
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Tried

_NOT_ASKED: Final = frozenset({"", "none", "void"})
_WHOLE_DEVICE: Final = re.compile(r"(?:[0-9]{1,4}|GPU-[0-9a-fA-F-]+)\Z")
_GONE: Final = (errno.ENXIO, errno.ENODEV)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a process may count on, of one class."""

    device_class: DeviceClass
    by: str
    """``NVIDIA_VISIBLE_DEVICES=all``, ``/dev/kfd``, ``--need``."""
    units: int
    """Devices of its own that it was promised at least."""
    controls: tuple[str, ...]
    """Paths without which the class does not work."""


class Refusal(NamedTuple):
    """One device that cannot be used, and what that is a sign of."""

    path: str
    errno: int
    mode: Mode
    words: str


def promises(
    environment: Mapping[str, str], paths: Iterable[str], needed: Sequence[str] = ()
) -> tuple[Promise, ...]:
    """``paths``: of the nodes in this /dev; ``needed``: names of classes that must be there."""
    there = frozenset(paths)
    found = []
    for one in CLASSES:
        by, units = _promised(one, environment, there)
        if not by and one.name in needed:
            by, units = "--need", 1
        if by:
            controls = [
                control.path
                for control in one.controls
                if control.is_needed and (needs_compute(environment) or not control.is_for_compute)
            ]
            found.append(Promise(one, by, units, tuple(controls)))
    return tuple(found)


def _promised(
    one: DeviceClass, environment: Mapping[str, str], there: frozenset[str]
) -> tuple[str, int]:
    """(by what, how many); empty for a class that was not promised."""
    wanted = environment.get(one.visible, "").strip() if one.visible else ""
    if wanted not in _NOT_ASKED:
        parts = {part.strip() for part in wanted.split(",") if part.strip()}
        whole = all(_WHOLE_DEVICE.match(part) for part in parts)
        return f"{one.visible}={wanted[:80]}", len(parts) if whole else 1
    nodes = [control.path for control in one.controls if control.path in there]
    if not nodes and one is NVIDIA:
        nodes = sorted(path for path in there if one.unit.match(path))
    return (nodes[0], 1) if nodes else ("", 0)


def paths_to_try(promise: Promise, paths: Iterable[str]) -> tuple[str, ...]:
    """The control nodes, there or not, and each device of the class that is there."""
    units = sorted(path for path in paths if promise.device_class.unit.match(path))
    return (*promise.controls, *units)


def refusals(
    promise: Promise, tried: Sequence[Tried], drivers: CharDevices | None
) -> tuple[Refusal, ...]:
    """What keeps the promise from being kept; empty: it can be used."""
    units = [one for one in tried if promise.device_class.unit.match(one.path)]
    controls = [one for one in tried if one not in units]
    refused = [one for one in controls if _code(one)]
    refused_units = [one for one in units if _code(one)]
    if len(units) - len(refused_units) < promise.units:
        refused += refused_units
    everything = len(refused) == len(tried)
    found = [_refusal(one, drivers, everything=everything) for one in refused]
    if len(units) < promise.units:
        found.append(_too_few(promise, len(units)))
    return tuple(found)


def _code(one: Tried) -> int:
    """What open(2) said where it was asked, else faccessat(2); never 0 for what is no device."""
    if one.kind == "other":
        return errno.ENODEV
    return one.errno if one.open_errno is None else one.open_errno


def _too_few(promise: Promise, there: int) -> Refusal:
    name = promise.device_class.unit_name
    wanted = "a device" if promise.units == 1 else f"{promise.units} devices"
    words = (
        f"{promise.by} promises {wanted}, and {there or 'none'} of {name} is in this /dev: the "
        "runtime was not told of it (is it the vendor's, or has it CDI?), or the device plugin "
        "gave none; the pod has to be made anew"
    )
    return Refusal(name, errno.ENOENT, "unnamed", words)


def _refusal(one: Tried, drivers: CharDevices | None, *, everything: bool) -> Refusal:
    code = _code(one)
    mode, words = _why(one, code, drivers, everything=everything)
    return Refusal(one.path, code, mode, words)


def _why(
    one: Tried, code: int, drivers: CharDevices | None, *, everything: bool
) -> tuple[Mode, str]:
    names = drivers_of(one.path)
    majors = majors_now(drivers, names)
    if one.kind is None:
        return _missing(names, majors, drivers)
    if one.kind == "other":
        return "unnamed", "what lies there is no device node"
    if majors and one.major not in majors:
        now = ", ".join(map(str, majors))
        return "F10", (
            f"the node has major {one.major} and the driver {names[0]} has {now} now: the module "
            "was loaded again since the node was made; the pod has to be made anew"
        )
    if code in _GONE:
        return "F10", f"no driver answers at c {one.major}:{one.minor}: it is not loaded (any more)"
    if code == errno.EPERM:
        return _by_cgroup(everything=everything)
    if code == errno.EACCES:
        mode = "" if one.mode is None else f" (mode {one.mode:o})"
        return "mode", f"the node's mode or owner{mode}, or a security module, refuses this user"
    return "unnamed", "the driver itself refused: look for lines of it in dmesg"


def _missing(
    names: tuple[str, ...], majors: tuple[int, ...], drivers: CharDevices | None
) -> tuple[Mode, str]:
    if drivers is not None and names and not majors:
        return "F2", (
            f"the node is not there, and the driver {names[0]} is not loaded on this machine: load "
            "it, restart the device plugin's pod, then make this pod anew"
        )
    return "F1", (
        "the node is not in this container, though its driver is loaded: the device plugin or the "
        "runtime left it out (F1), or the host lacks it too (F2); make it on the host, restart the "
        "device plugin's pod, then make this pod anew"
    )


def _by_cgroup(*, everything: bool) -> tuple[Mode, str]:
    if everything:
        return "F3", (
            "the device cgroup of this container refuses it, and every other of its devices: "
            "access that was there and is gone is mostly a daemon-reload (F3), access that never "
            "was a runtime that left the rules out (F4); the pod has to be made anew"
        )
    return "F1", (
        "the device cgroup of this container refuses it, and not its other devices: mostly the "
        "device plugin left it out, because its own /dev lacked it when it started (F1): restart "
        "the plugin's pod, then make this pod anew"
    )
