# SPDX-License-Identifier: Apache-2.0
"""The kubelet refused a pod because of a device, and will not try it again.

After a boot the kubelet admits its pods in any order, and the device plugin is one of them.  A
pod that needs a device before the plugin has registered is refused (UnexpectedAdmissionError) and
is Failed for ever: a bare pod is simply gone, and nothing on the node shows it, for it has no
container.  The kubelet's log has it.
"""

from collections.abc import Sequence

from seawall.accounts.devices.layers import RefusedPod
from seawall.accounts.devices.node_faults.faults import DeviceFaults
from seawall.accounts.devices.reasons.since import moment
from seawall.findings.device_words import SHOWN, names
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.findings.shell import quote


@rule(
    id="SW406",
    title="Pods were refused for want of a device, and stay Failed",
    severity="warning",
    confirm=("journalctl -u kubelet -b -g UnexpectedAdmissionError", "seawall gpu"),
    remedy=(
        "delete the pods: a controller makes new ones, which are admitted now",
        "make bare pods again: nobody else does",
        "drain a node before it is rebooted: nothing then waits for a device at boot",
    ),
    provide="root on the host: the kubelet's journal, or its log below /var/log",
)
def judge(faults: DeviceFaults) -> Sequence[Finding]:
    if faults.refused:
        return [_finding(faults)]
    if faults.kubelet_unseen:
        words = "were pods refused for want of a device? Not known"
        return [blind(words, *faults.kubelet_unseen)]
    since = "" if faults.read_from is None else f" since {moment(faults.read_from)}"
    return [quiet(f"no pod that was refused{since} for want of a device is left")]


def _finding(faults: DeviceFaults) -> Finding:
    pods = sorted(faults.refused, key=lambda one: (one.mode != "F8", one.at))
    many = len(pods) > 1
    causes = names(list(dict.fromkeys(f"{one.why} ({one.mode})" for one in pods)))
    return fires(
        "warning",
        f"{len(pods)} pod{'s' if many else ''} {'were' if many else 'was'} refused for want of"
        f" {names(sorted({one.resource for one in pods}))} and"
        f" {'stay' if many else 'stays'} Failed: {names([one.name for one in pods])}; {causes}",
        [_row(one) for one in pods[:SHOWN]],
        outlook="The kubelet does not try a refused pod again. Whether somebody deleted one that"
        " its log does not tell of is known to the API server alone.",
        confirm=[
            f"kubectl get pod -n {quote(one.namespace)} {quote(one.pod)} -o wide"
            for one in pods[:2]
        ],
        remedy=list(dict.fromkeys(one.remedy for one in faults.of_pods))[:3],
    )


def _row(one: RefusedPod) -> Evidence:
    later = "" if one.registered_at is None else f"; registered at {moment(one.registered_at)}"
    value = f"{one.mode}, {one.resource}: {one.why}{later}"
    return Evidence(f"{one.name} at {moment(one.at)}", value, "text", "the kubelet's log")
