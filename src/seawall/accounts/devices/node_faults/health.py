# SPDX-License-Identifier: Apache-2.0
"""Devices that the driver has and the kubelet does not hand out, and what tells why.

F9: NVIDIA's device plugin calls a device unhealthy after any Xid that it does not ignore, and has
no way back (internal/plugin/server.go, a FIXME up to 0.20 at least): until its pod is restarted
the device is counted in the node's capacity and not in its allocatable.  What the kubelet's
checkpoint lists as registered are the healthy ones alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from seawall.accounts.devices.layers import Diagnosis, Mode, UnhealthyDevice
from seawall.accounts.devices.reasons.since import moment
from seawall.readings.device_log import DeviceLog, DriverGpu, LogEvent
from seawall.readings.kubelet_devices import KubeletDevices
from seawall.words import first
from seawall.xid_names import HARDWARE_XIDS, xid_words

IGNORED_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""By the plugin: 31, 43, 45 always, 13 and 68 since 0.10, 109 since 0.17.1 (health.go)."""
_NVIDIA: Final = "nvidia.com/gpu"
_TOGETHER_SECONDS: Final = 10.0
"""A plugin says why some lines before it marks; the kernel's clock and its own differ."""


class Shortfall(NamedTuple):
    """Unhealthy devices, and how many the driver has, where the kubelet's can be compared."""

    unhealthy: tuple[UnhealthyDevice, ...]
    driver_has: int | None
    """Devices of NVIDIA's driver; None where they cannot be held against the kubelet's."""
    not_comparable: str
    """Why the two cannot be compared; empty where they are, or where there is no such driver."""


def shortfall(log: DeviceLog, kubelet: KubeletDevices) -> Shortfall:
    """What plugins gave up since they registered last, and what the driver has beyond that."""
    found = {one.device: one for one in _marked(log.events, kubelet)}
    ids = kubelet.registered.get(_NVIDIA)
    why_not = _not_comparable(log.gpus, kubelet, ids)
    if why_not or not log.gpus or ids is None:
        return Shortfall(tuple(found.values()), None, why_not)
    uuids = {one.partition("::")[0] for one in ids}
    for gpu in log.gpus:
        if gpu.uuid not in uuids and not any(key.startswith(gpu.uuid) for key in found):
            found[gpu.uuid] = _lacking(gpu, log.events, is_alone=bool(uuids))
    return Shortfall(tuple(found.values()), len(log.gpus), "")


def _not_comparable(
    gpus: Sequence[DriverGpu], kubelet: KubeletDevices, ids: Sequence[str] | None
) -> str:
    """MIG makes many of one; a plugin may name devices otherwise than the driver."""
    resources = [name for name, some in kubelet.registered.items() if some]
    every = [one for some in kubelet.registered.values() for one in some]
    if any("nvidia.com/mig-" in name for name in resources) or any(
        one.startswith("MIG-") for one in every
    ):
        return "MIG divides GPUs here: their number is not that of the devices handed out"
    if ids is None or not gpus:
        return ""
    if not all(one.startswith("GPU-") for one in ids):
        return "the plugin calls its devices otherwise than the driver does"
    if not all(gpu.uuid for gpu in gpus):
        return "the driver does not tell the UUID of a GPU that nobody used since it was loaded"
    return ""


def _marked(events: Sequence[LogEvent], kubelet: KubeletDevices) -> Iterator[UnhealthyDevice]:
    """Marked since its plugin registered last, and not among the healthy ones of now."""
    marks: dict[tuple[str, str], LogEvent] = {}
    for event in events:
        if event.what == "registered":
            marks = {key: one for key, one in marks.items() if key[0] != event.resource}
        elif event.what == "marked":
            marks.setdefault((event.resource, event.device), event)
    for (resource, device), mark in marks.items():
        healthy = kubelet.registered.get(resource)
        if healthy is None or device in healthy:
            continue  # the resource is gone with its plugin; or it is handed out again
        xid, why = _reason(mark, events)
        yield UnhealthyDevice(resource, device, mark.at, xid, "F9", why)


def _reason(mark: LogEvent, events: Sequence[LogEvent]) -> tuple[int | None, str]:
    """What the plugin was told just before."""
    near = [
        one for one in events
        if one.what in ("xid", "lost") and 0 <= mark.at - one.at <= _TOGETHER_SECONDS
        and one.device in ("", mark.device)
    ]  # fmt: skip
    for one in reversed(near):
        if one.what == "xid" and one.xid is not None:
            return one.xid, f"its plugin called it unhealthy after {xid_words(one.xid)}"
    if near:
        return None, "its plugin could not ask the driver, and called all devices unhealthy"
    return None, "its plugin called it unhealthy"


def _lacking(gpu: DriverGpu, events: Sequence[LogEvent], *, is_alone: bool) -> UnhealthyDevice:
    """No log has the plugin's line; the kernel's Xid is evidence, where it came after."""
    registered = max(
        (one.at for one in events if one.what == "registered" and one.resource == _NVIDIA),
        default=None,
    )
    address = gpu.address.partition(".")[0][-10:]
    xids = [
        one for one in events
        if one.what == "kernel_xid" and one.device[-10:] == address
        and one.xid not in IGNORED_XIDS and registered is not None and one.at >= registered
    ]  # fmt: skip
    if xids:
        first = xids[0]
        words = f"the kernel logged {xid_words(first.xid or 0)}, after which a plugin gives it up"
        return UnhealthyDevice(_NVIDIA, gpu.uuid, first.at, first.xid, "F9", words)
    words = (
        "the kubelet's checkpoint does not list it as healthy, and no log that was seen says why"
        if is_alone
        else "no device of the resource is healthy: its plugin has not registered, or gave up all"
    )
    return UnhealthyDevice(_NVIDIA, gpu.uuid, None, None, "unnamed", words)


def diagnoses(found: Iterable[UnhealthyDevice]) -> Iterator[Diagnosis]:
    """A diagnosis of unhealthy devices for each cause, with all devices that share it."""
    groups: dict[tuple[Mode, str, str], list[UnhealthyDevice]] = {}
    for one in found:
        groups.setdefault((one.mode, one.resource, one.why), []).append(one)
    for (mode, resource, why), devices in groups.items():
        names = first([one.device for one in devices], 2)
        since = [one.since for one in devices if one.since is not None]
        when = f" since {moment(min(since))}" if since else ""
        many = f"{len(devices)} devices" if len(devices) > 1 else "1 device"
        yield Diagnosis(
            mode,
            f"{many} of {resource} {'are' if len(devices) > 1 else 'is'} not handed out to new"
            f" pods{when}: {names}",
            f"{why[:1].upper()}{why[1:]}.{_FOR_EVER if mode == 'F9' else ''}",
            remedy(mode, {one.xid for one in devices}),
        )


_FOR_EVER: Final = " It never calls one healthy again by itself. Pods that have it already keep it."


def remedy(mode: Mode, xids: Iterable[int | None]) -> str:
    """The device first, where the Xid is one of hardware."""
    if mode != "F9":
        return (
            "See whether the device plugin's pod runs and what its log says; a plugin can also be"
            " told to leave devices out (NVIDIA_VISIBLE_DEVICES of its own pod)."
        )
    restart = "Restart the device plugin's pod: it registers all devices anew."
    if bad := sorted(xid for xid in xids if xid in HARDWARE_XIDS):
        told = ", ".join(xid_words(xid) for xid in bad)
        return (
            f"See to the device first: {told} can mean hardware. Drain the node, reset the GPU or"
            f" reboot; an Xid that comes again is for the vendor. Then: {restart}"
        )
    return (
        f"{restart} If it is an Xid that a program caused, the plugin can be told to ignore it:"
        " DP_DISABLE_HEALTHCHECKS=NUMBER in its environment."
    )
