# SPDX-License-Identifier: Apache-2.0
"""The driver has a device that the kubelet does not hand out.

NVIDIA's device plugin calls a device unhealthy after an Xid, and never healthy again until its
pod is restarted: the node's allocatable stays below its capacity for months after an error that
a program caused.  Or the device is really broken; the number of the Xid tells which it may be.
"""

from collections.abc import Sequence

from seawall.accounts.devices.layers import UnhealthyDevice
from seawall.accounts.devices.node_faults.faults import DeviceFaults
from seawall.accounts.devices.node_faults.health import Shortfall
from seawall.accounts.devices.reasons.since import moment
from seawall.findings.device_words import SHOWN, names
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.readings.kubelet_devices import PATHS
from seawall.xid_names import HARDWARE_XIDS


@rule(
    id="SW407",
    title="A device of this node is not handed out",
    severity="warning",
    confirm=(
        "grep -h unhealthy /var/log/pods/*device-plugin*/*/*.log",
        "dmesg | grep 'NVRM: Xid'",
        "kubectl describe node | grep -A9 Allocatable",
    ),
    remedy=(
        "look at the Xid first: 48, 63, 64, 74, 79, 94, 95 and 119 can mean hardware; then drain",
        "restart the device plugin's pod: it registers every device anew",
        "an Xid that programs cause: DP_DISABLE_HEALTHCHECKS in the plugin's environment",
    ),
    provide="root on the host: the device plugin's log below /var/log/pods, and the driver's"
    " devices in /proc/driver/nvidia/gpus",
)
def judge(faults: DeviceFaults) -> Sequence[Finding]:
    found = faults.shortfall.unhealthy
    if found:
        return [_finding(found, faults)]
    if faults.devices_unseen:
        words = "is every device of this node handed out? Not known"
        return [blind(words, *faults.devices_unseen)]
    return [quiet(_in_order(faults.shortfall))]


def _in_order(shortfall: Shortfall) -> str:
    if shortfall.driver_has is None:
        return "no log tells of a device that is not handed out"
    return f"all {shortfall.driver_has} devices of the driver are handed out"


def _finding(found: Sequence[UnhealthyDevice], faults: DeviceFaults) -> Finding:
    known = [one for one in found if one.mode == "F9"]
    modes = ", ".join(dict.fromkeys(one.mode for one in (*known, *found)))
    is_hardware = any(one.xid in HARDWARE_XIDS for one in found)
    of_all = faults.shortfall.driver_has
    many = len(found) > 1
    why = (known or found)[0].why
    count = f"{len(found)} of {of_all}" if of_all is not None else str(len(found))
    return fires(
        "warning",
        f"{count} device{'s' if many or of_all else ''} {'are' if many else 'is'} not handed out"
        f" to new pods ({modes}): {names([one.device for one in found])}: {why}",
        [_row(one) for one in found[:SHOWN]],
        outlook="An Xid of this kind can mean that the device is broken."
        if is_hardware
        else "It does not come back by itself: pods that need as many devices stay Pending.",
        remedy=list(dict.fromkeys(one.remedy for one in faults.of_devices))[:3],
    )


def _row(one: UnhealthyDevice) -> Evidence:
    since = "" if one.since is None else f" since {moment(one.since)}"
    source = "the device plugin's log" if one.since is not None else PATHS[0]
    return Evidence(f"{one.device} ({one.resource})", f"{one.mode}{since}", "text",
                    f"{one.why}; {source}")  # fmt: skip
