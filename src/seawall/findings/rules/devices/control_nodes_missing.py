# SPDX-License-Identifier: Apache-2.0
"""A driver is loaded, and its control nodes are missing from /dev, or are those of before.

The kernel makes no nodes for some drivers: somebody has to run nvidia-modprobe after each boot
and each load of the module.  Until then whoever starts gets a container without them, for as
long as it lives.  A dynamic major (nvidia-uvm) is another one after the module was loaded again:
nodes with the old one lead nowhere.
"""

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import HostNode
from seawall.findings.device_words import missing_nodes, names, needed_paths, unread
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.findings.shell import quote


@rule(
    id="SW402",
    title="Control nodes of a loaded driver are missing or stale",
    severity="critical",
    confirm=("cat /proc/devices ; ls -l /dev/nvidia* /dev/kfd /dev/dri",),
    remedy=(
        "make them: nvidia-modprobe -u -c 0; for AMD's: modprobe amdgpu",
        "then restart the device plugin's pod, and after it recreate the pods that it served",
        "for the next boot: a unit with seawall gpu wait --create, before the runtime's",
    ),
    provide="root on the host, not in a container: the host's own /dev",
)
def judge(table: DeviceTable) -> Finding:
    wrong = missing_nodes(table)
    if not wrong:
        if table.unseen and not table.host_nodes:
            missing = unread("/dev", table.unseen)
            return blind("which nodes loaded drivers need is not known", *missing)
        return quiet(f"{len(table.host_nodes)} control nodes of loaded drivers are all there")
    stale = [node for node in wrong if node.found]
    needed = needed_paths(table).intersection(node.path for node in wrong)
    what = "missing" if not stale else "stale" if len(stale) == len(wrong) else "missing or stale"
    number = f"{len(wrong)} control node{'s' if len(wrong) > 1 else ''} of loaded drivers"
    return fires(
        "critical" if needed else "warning",
        f"{number} {'are' if len(wrong) > 1 else 'is'} {what} on the host:"
        f" {names([node.path for node in wrong])}; containers that start now do not get them",
        [_row(node) for node in wrong],
        outlook="Containers keep what they had when they were made: each that starts before the"
        " nodes are right has to be made again.",
        confirm=("cat /proc/devices", f"ls -l {' '.join(quote(node.path) for node in wrong)}"),
    )


def _row(node: HostNode) -> Evidence:
    wants = f"{node.driver} is c {node.major}:{node.minor}"
    is_now = f"{node.found or 'not there'}, though {wants}"
    return Evidence(node.path, is_now, "text", "/proc/devices + /dev")
