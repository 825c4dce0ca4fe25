# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes does with this node's devices that no container shows: F8 and F9.

A pod that was refused has no container, and a device that is not handed out is in none.  Both are
in the logs of the kubelet and of device plugins, which are read only where the kubelet has a
checkpoint of devices: without that there is no device plugin here.
"""

from dataclasses import dataclass, replace
from typing import Final

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import Diagnosis, RefusedPod
from seawall.accounts.devices.node_faults import admission, health
from seawall.accounts.devices.node_faults.health import Shortfall
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.readings.device_log import DeviceLog, Kind
from seawall.readings.kubelet_devices import KubeletDevices
from seawall.readings.pod_resources import PodResources
from seawall.readings.snapshot import Snapshot

_QUIET: Final = ("absent", "vanished", "not_captured")
_CUT_OFF: Final = ("too_big", "not_reached")
"""Logs that were there and are not, or not wholly, read."""
_LOGS: Final[dict[Kind, str]] = {
    "kubelet": "the kubelet's log",
    "plugin": "the device plugin's log",
    "kernel": "the kernel's log",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFaults:
    """The topic: pods that were refused devices (F8) and devices that are not handed out (F9)."""

    refused: tuple[RefusedPod, ...] = ()
    shortfall: Shortfall = Shortfall((), None, "")  # noqa: RUF009 - a NamedTuple
    of_pods: tuple[Diagnosis, ...] = ()
    of_devices: tuple[Diagnosis, ...] = ()
    read_from: float | None = None
    """Unix seconds, from when on the kubelet's log was read; None: it was not."""
    kubelet_unseen: tuple[Unread, ...] = ()
    """Why refused pods may be missing here."""
    devices_unseen: tuple[Unread, ...] = ()
    """Why unhealthy devices may be missing here."""


def account(snapshot: Snapshot) -> DeviceFaults:
    """Without Kubernetes' devices nothing is asked, and nothing is wrong."""
    kubelet = snapshot.get(KubeletDevices)
    if isinstance(kubelet, Unread):
        seen = () if kubelet.why in _QUIET else (kubelet,)
        return DeviceFaults(kubelet_unseen=seen, devices_unseen=seen)
    log = snapshot.get(DeviceLog)
    if isinstance(log, Unread):
        return DeviceFaults(kubelet_unseen=(log,), devices_unseen=(log,))
    said = snapshot.get(PodResources)
    live = None if isinstance(said, Unread) else said
    known = handed_out(kubelet, live)
    workloads = snapshot.get(Workloads)
    containers = () if isinstance(workloads, Unread) else workloads.by_cgroup.values()
    runs = {(one.namespace, one.pod) for one in containers if one.kind == "container"}
    runs |= set() if live is None else {(one.namespace, one.pod) for one in live.devices}
    return faults_of(log, known, DeviceFaults(
        refused=tuple(admission.refused_pods(log, known, runs)),
        shortfall=health.shortfall(log, known),
    ))  # fmt: skip


def handed_out(kubelet: KubeletDevices, live: PodResources | None) -> KubeletDevices:
    """The checkpoint, with what the kubelet itself says of now where it does (since 1.23): a
    resource of which nothing is healthy is not in its answer.
    """
    if live is None or live.allocatable is None:
        return kubelet
    silent = dict.fromkeys(kubelet.registered, ())
    return replace(kubelet, registered={**silent, **live.allocatable})


def faults_of(log: DeviceLog, kubelet: KubeletDevices, found: DeviceFaults) -> DeviceFaults:
    """The same with its diagnoses and with what was not seen."""
    gaps = tuple(_unseen(log, "plugin")) if kubelet.registered else ()
    if gaps and found.shortfall.not_comparable:
        gaps += (Unread("/proc/driver/nvidia/gpus", "absent", found.shortfall.not_comparable),)
    return replace(
        found,
        of_pods=tuple(admission.diagnoses(found.refused)),
        of_devices=tuple(health.diagnoses(found.shortfall.unhealthy)),
        read_from=min(
            (one.back_to for one in log.logs if one.kind == "kubelet" and one.back_to is not None),
            default=None,
        ),
        kubelet_unseen=tuple(_unseen(log, "kubelet")),
        devices_unseen=tuple(
            gap for gap in gaps if found.shortfall.driver_has is None or gap.why in _CUT_OFF
        ),
    )


def _unseen(log: DeviceLog, kind: Kind) -> list[Unread]:
    """Nothing where one log of the kind was read, or began to be: of plugins there are several,
    and any pod may be called one.
    """
    logs = [one for one in log.logs if one.kind == kind]
    problems = [one.problem for one in logs if one.problem is not None]
    if any(one.back_to is not None for one in logs):
        return [one for one in problems if kind == "plugin" and one.why in _CUT_OFF]
    return problems or [Unread("/var/log", "absent", f"{_LOGS[kind]} was not found")]


def with_faults(table: DeviceTable, faults: DeviceFaults | Unread) -> DeviceTable:
    """The same table, and what no container of it shows: not of every table, for a watch makes
    one each second and logs are long.
    """
    if isinstance(faults, Unread):
        return table
    return replace(
        table,
        host_diagnosis=(*table.host_diagnosis, *faults.of_pods, *faults.of_devices),
        refused_pods=faults.refused,
        unhealthy=faults.shortfall.unhealthy,
        log_unseen=tuple(_unseen_words(faults)),
    )


def _unseen_words(faults: DeviceFaults) -> list[str]:
    missing = (
        ("pods that were refused for want of a device", faults.kubelet_unseen),
        ("devices that a plugin calls unhealthy", faults.devices_unseen),
    )
    found = [
        f"{what}: {one.path}: {one.detail or one.why}".rstrip()
        for what, unseen in missing
        for one in unseen
        if one.why != "not_captured"
    ]
    return list(dict.fromkeys(found))
