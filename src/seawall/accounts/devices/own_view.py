# SPDX-License-Identifier: Apache-2.0
"""A workload's own view of its devices: what it was promised, and what refuses it, from inside.

From inside neither the plugin nor the host's /dev is seen, so a failure mode is named only where
what is seen here tells it; the sentence says how sure that is.
"""

import errno
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.devices.classes import (
    CLASSES,
    IMEX_CHANNEL,
    MIG_CAPABILITY,
    MIG_CONFIG,
    NOT_ASKED,
    NVIDIA,
    DeviceClass,
    class_of_path,
    drivers_of,
    majors_now,
    needs_compute,
)
from seawall.accounts.devices.layers import Mode
from seawall.host.host import Unread
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Tried

_WHOLE_DEVICE: Final = re.compile(r"(?:[0-9]{1,4}|GPU-[0-9a-fA-F-]+)\Z")
_MIG_DEVICE: Final = re.compile(r"(?:MIG-.+|[0-9]{1,4}:[0-9]{1,4})\Z")
_MIG_NODES: Final = 2
_MIG_ADMINISTRATION_MOST: Final = 2
"""Capabilities up to it are of no MIG device: 1 makes them, 2 watches them."""
_GONE: Final = (errno.ENXIO, errno.ENODEV)
_TRIED_MOST: Final = 256
"""Of capabilities, and of channels, of which a host may have 2048."""


@dataclass(frozen=True, slots=True)
class ClassPromise:
    """What a process may count on, of one class."""

    device_class: DeviceClass
    by: str
    """``NVIDIA_VISIBLE_DEVICES=all``, ``/dev/kfd``, ``--need``."""
    units: int
    """Devices of its own that it was promised at least."""
    controls: tuple[str, ...]
    """Paths without which the class does not work."""
    mig_devices: int = 0
    """MIG devices among ``units`` that were named."""
    channels: int = 0
    """IMEX channels that were named."""


class Refusal(NamedTuple):
    """One device that cannot be used, and what that is a sign of."""

    path: str
    errno: int
    mode: Mode
    words: str


def promises(
    environment: Mapping[str, str], paths: Iterable[str], needed: Sequence[str] = ()
) -> tuple[ClassPromise, ...]:
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
            mig, channels = _named(one, environment)
            found.append(ClassPromise(one, by, units, tuple(controls), mig, channels))
    return tuple(found)


def _named(one: DeviceClass, environment: Mapping[str, str]) -> tuple[int, int]:
    """(MIG devices, IMEX channels) that the environment names."""
    if one is not NVIDIA:
        return 0, 0
    visible = _parts(environment.get(one.visible, ""))
    channels = _parts(environment.get("NVIDIA_IMEX_CHANNELS", ""))
    return (
        sum(_MIG_DEVICE.match(part) is not None for part in visible),
        sum(part.isdecimal() for part in channels),
    )


def _parts(words: str) -> set[str]:
    return {part.strip() for part in words.split(",") if part.strip()}


def is_bare_all(promise: ClassPromise, paths: Iterable[str]) -> bool:
    """``all``, and not one node of the class: images of CUDA set the variable by themselves."""
    one = promise.device_class
    return promise.by == f"{one.visible}=all" and not any(map(one.member.match, paths))


def _promised(
    one: DeviceClass, environment: Mapping[str, str], there: frozenset[str]
) -> tuple[str, int]:
    """(by what, how many); empty for a class that was not promised."""
    wanted = environment.get(one.visible, "").strip() if one.visible else ""
    if wanted not in NOT_ASKED:
        parts = _parts(wanted)
        whole = all(_WHOLE_DEVICE.match(part) for part in parts)
        return f"{one.visible}={wanted[:80]}", len(parts) if whole else 1
    nodes = [control.path for control in one.controls if control.path in there]
    if not nodes and one is NVIDIA:
        nodes = sorted(path for path in there if one.unit.match(path))
    return (nodes[0], 1) if nodes else ("", 0)


def paths_to_try(promise: ClassPromise, paths: Iterable[str]) -> tuple[str, ...]:
    """The control nodes, there or not; the devices, capabilities and channels that are there."""
    there = frozenset(paths)
    units = sorted(path for path in there if promise.device_class.unit.match(path))
    if promise.device_class is not NVIDIA:
        return (*promise.controls, *units)
    channels = _numbered(there, IMEX_CHANNEL, 0)
    return (*promise.controls, *units, *_capabilities(promise, there), *channels)


def _capabilities(promise: ClassPromise, there: frozenset[str]) -> list[str]:
    """Of MIG devices.  With the one that makes them this is the host's whole /dev, and they may
    be anybody's unless some were named.
    """
    if MIG_CONFIG in there and not promise.mig_devices:
        return []
    return _numbered(there, MIG_CAPABILITY, _MIG_ADMINISTRATION_MOST + 1)


def _numbered(there: frozenset[str], pattern: re.Pattern[str], least: int) -> list[str]:
    """None of too many: that is the host's whole /dev, and nobody's promise."""
    found = ((int(match[1]), path) for path in there if (match := pattern.match(path)))
    paths = [path for number, path in sorted(found) if number >= least]
    return paths if len(paths) <= _TRIED_MOST else []


def refusals(
    promise: ClassPromise, tried: Sequence[Tried], drivers: CharDevices | None
) -> tuple[Refusal, ...]:
    """What keeps the promise from being kept; empty: it can be used."""
    units = [one for one in tried if promise.device_class.unit.match(one.path)]
    capabilities = [one for one in tried if MIG_CAPABILITY.match(one.path)]
    channels = [one for one in tried if IMEX_CHANNEL.match(one.path)]
    others = {one.path for one in (*units, *capabilities, *channels)}
    refused = [one for one in tried if one.path not in others and not can_be_used(one)]
    refused += _short(units, promise.units)
    needed = _MIG_NODES * promise.mig_devices or len(capabilities)
    refused += _short(capabilities, min(len(capabilities), needed))
    refused += _short(channels, min(len(channels), promise.channels or 1))
    everything = len(refused) == len(tried)
    found = [_refusal(one, drivers, everything=everything) for one in refused]
    if len(units) < promise.units:
        found.append(_too_few(promise, len(units)))
    return tuple(found)


def nvidia_refusals(
    drivers: CharDevices | Unread, try_all: Callable[[ClassPromise], Sequence[Tried]]
) -> tuple[str, ...]:
    """A sentence for each node of NVIDIA that ``try_all`` finds refused: why its library fails."""
    known = None if isinstance(drivers, Unread) else drivers
    if known is not None and not majors_now(known, ("nvidia", "nvidia-frontend", "nvidiactl")):
        return ("/proc/devices knows no nvidia driver: its module is not loaded",)
    controls = tuple(control.path for control in NVIDIA.controls if control.is_needed)
    promise = ClassPromise(NVIDIA, "the driver", 1, controls)
    tried = try_all(promise)
    return tuple(
        f"{one.path}: {errno.errorcode.get(one.errno, one.errno)}: {one.words}"
        for one in (refusals(promise, tried, known) if tried else ())
    )


def _short(some: Sequence[Tried], needed: int) -> list[Tried]:
    """Those that are refused, where fewer than needed are not: the rest may be others'."""
    refused = [one for one in some if not can_be_used(one)]
    return refused if len(some) - len(refused) < needed else []


def can_be_used(one: Tried) -> bool:
    """Whether nothing refused it."""
    return _code(one) == 0


def _code(one: Tried) -> int:
    """What open(2) said where it was asked, else faccessat(2); never 0 for what is no device."""
    if one.kind == "other":
        return errno.ENODEV
    return one.errno if one.open_errno is None else one.open_errno


def _too_few(promise: ClassPromise, there: int) -> Refusal:
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
        return _missing(one.path, majors, drivers)
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


def _missing(path: str, majors: tuple[int, ...], drivers: CharDevices | None) -> tuple[Mode, str]:
    names = drivers_of(path)
    if drivers is not None and names and not majors:
        return "F2", (
            f"the node is not there, and {_unloaded(path, drivers)} is not loaded on this host: "
            f"load it there{_load(path)}, restart the device plugin's pod, then make this pod anew"
        )
    return "F1", (
        "the node is not in this container, though its driver is loaded: the device plugin or the "
        "runtime left it out (F1), or the host lacks it too (F2); make it on the host, restart the "
        "device plugin's pod, then make this pod anew"
    )


def _unloaded(path: str, drivers: CharDevices) -> str:
    """The vendor's whole driver, where nothing of it is loaded; else the one of this node."""
    one = class_of_path(path)
    if one is not None and not majors_now(drivers, one.unit_drivers):
        return f"the {one.name.upper()} driver"
    return f"the driver {drivers_of(path)[0]}"


def _load(path: str) -> str:
    one = class_of_path(path)
    return f" ({one.load})" if one else ""


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
