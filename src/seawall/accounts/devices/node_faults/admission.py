# SPDX-License-Identifier: Apache-2.0
"""Pods that the kubelet refused because of a device, and whose fault that was.

F8: after a boot or a restart the kubelet admits the pods that it had in any order, and the device
plugin is one of them: until it has registered, a pod that needs its devices is refused, and a
refused pod is Failed for ever.  A plugin that had registered in time is not to blame for that.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from seawall.accounts.devices.layers import Diagnosis, Mode, RefusedPod
from seawall.accounts.devices.reasons.since import moment
from seawall.readings.device_log import DeviceLog, LogEvent
from seawall.readings.kubelet_devices import KubeletDevices
from seawall.words import first

_SHOWN: Final = 3
_RACES: Final = ("no_healthy", "unregistered")


def refused_pods(
    log: DeviceLog, kubelet: KubeletDevices, runs: Collection[tuple[str | None, str | None]]
) -> list[RefusedPod]:
    """Those for which nothing shows that it is over: each once, as it was refused last.

    runs: namespace and name of pods that have containers or devices now.
    """
    has_devices = {entry.pod_uid for entry in kubelet.entries}
    found: dict[tuple[str, str, str], RefusedPod] = {}
    for event in log.events:
        if event.what == "gone":
            for key in [key for key in found if key[:2] == (event.namespace, event.pod)]:
                del found[key]
        if event.what != "refused" or (event.uid and event.uid in has_devices):
            continue
        if (event.namespace, event.pod) in runs:
            continue  # it was made again under its name, as a StatefulSet does
        found[event.namespace, event.pod, event.uid] = _refused(event, log)
    return list(found.values())


def _refused(event: LogEvent, log: DeviceLog) -> RefusedPod:
    mode, why = _cause(event, log)
    after = (one.at for one in _registrations(event.resource, log.events) if one.at > event.at)
    return RefusedPod(
        event.namespace, event.pod, event.uid, event.resource, event.at, mode, why,
        next(after, None),
    )  # fmt: skip


def _registrations(resource: str, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
    return (one for one in events if one.what == "registered" and one.resource == resource)


def _cause(event: LogEvent, log: DeviceLog) -> tuple[Mode, str]:
    events = log.events
    if event.why == "not_healthy_any_more":
        return "F9", "the devices that it had are not healthy any more"
    if event.why not in _RACES:
        return "unnamed", "the scheduler counted on more devices than the kubelet had free"
    started = max((one.at for one in events if one.what == "started" and one.at <= event.at),
                  default=None)  # fmt: skip
    before = [
        one for one in _registrations(event.resource, events)
        if one.at <= event.at and (started is None or one.at >= started)
    ]  # fmt: skip
    is_cut = started is None or log.left_out > 0
    if not any(_registrations(event.resource, events)) and event.why == "no_healthy" and is_cut:
        return "unnamed", "its plugin may have registered: the logs do not reach back far enough"
    if not before:
        return "F8", "its plugin had not registered with the kubelet yet"
    marks = [
        one for one in events
        if one.what == "marked" and one.resource == event.resource
        and before[-1].at <= one.at <= event.at
    ]  # fmt: skip
    if marks:
        return "F9", "its plugin had registered, and called its devices unhealthy"
    if event.at - before[-1].at < _FIRST_LIST_SECONDS:
        return "F8", "its plugin had registered, and not yet told its devices"
    return "unnamed", "its plugin had registered, and no device of it was healthy"


_FIRST_LIST_SECONDS: Final = 10.0
"""Between a registration and the first list of devices; proposal."""


def diagnoses(refused: Sequence[RefusedPod]) -> Iterator[Diagnosis]:
    """One for each resource and cause."""
    groups: dict[tuple[Mode, str, str], list[RefusedPod]] = {}
    for one in refused:
        groups.setdefault((one.mode, one.resource, one.why), []).append(one)
    for (mode, resource, why), pods in groups.items():
        names = first([one.name for one in pods], _SHOWN)
        many = f"{len(pods)} pods were" if len(pods) > 1 else "1 pod was"
        yield Diagnosis(
            mode,
            f"{many} refused by the kubelet for want of {resource}: {names};"
            f" {'the last ' if len(pods) > 1 else ''}at {moment(max(one.at for one in pods))}",
            f"When {'they were' if len(pods) > 1 else 'it was'} admitted, {why}.{_then(pods)}"
            " A pod that was refused stays Failed: the kubelet does not try again.",
            _REMEDY[mode],
        )


def _then(pods: Sequence[RefusedPod]) -> str:
    later = [one.registered_at for one in pods if one.registered_at is not None]
    if pods[0].mode != "F8":
        return ""
    if not later:
        return " No later registration of it was seen in the logs."
    return f" It registered at {moment(min(later))}."


_REMEDY: Final[dict[Mode, str]] = {
    "F8": "Delete the pod (kubectl delete pod): its controller has made or makes a new one, which"
    " is admitted now. A bare pod has to be made again by hand. To let it not happen at the next"
    " boot, drain the node before it is rebooted; kubernetes#125579 is open.",
    "F9": "See to the device first, then restart the device plugin's pod, then delete the pod and"
    " let its controller make a new one.",
    "unnamed": "Delete the pod, so that it is made and placed again; if that is refused too, look"
    " at the device plugin's log and restart its pod.",
}
