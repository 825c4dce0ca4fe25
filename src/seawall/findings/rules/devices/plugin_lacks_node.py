# SPDX-License-Identifier: Apache-2.0
"""A device plugin does not see a node in its own /dev that the host has.

A plugin's container gets a /dev of its own when it is made.  Nodes that the host got later never
come into it, so the plugin does not put them on the list that it gives to the kubelet: every pod
that it serves from now on lacks them, though the host is in order.  It happens when the plugin
started before somebody made the nodes, as after a boot.

That holds for a plugin whose answers name nodes (PASS_DEVICE_SPECS, or CDI files of its own).
Where the kubelet's checkpoint shows that they name none, a hook or the runtime gives the nodes
and nothing is wrong; where neither can be seen, this is a warning.
"""

from seawall.accounts.devices.classes import NEEDED
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import Plugin
from seawall.findings.device_words import names, needed_paths, unread
from seawall.findings.finding import Brief, Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule

_IF = "if it names nodes in its answers (PASS_DEVICE_SPECS), "


@rule(
    id="SW403",
    title="A device plugin cannot hand out a node that the host has",
    severity="critical",
    confirm=("ls -l /dev/nvidia*", "ls -l /proc/PID/root/dev/nvidia*"),
    remedy=(
        "restart the device plugin's pod: a new container gets the host's /dev of now",
        "then recreate the pods that it served: a running container keeps its list",
        "seawall gpu repair --plugin shows both steps; with --do 6 it does the first",
    ),
    provide="root on the host: the plugin's /dev is read through /proc/PID/root",
)
def judge(table: DeviceTable) -> list[Finding]:
    found = [_finding(one, needed_paths(table)) for one in table.plugins if one.lacks]
    if not found and not table.plugins and table.unseen:
        missing = unread("plugins", table.unseen)
        return [blind("what a device plugin sees here is not known", *missing)]
    or_not = any(one.names_nodes == "no" for one in table.plugins)
    more = ", or name no nodes in their answers" if or_not else ""
    return found or [quiet(f"{len(table.plugins)} device plugins see what the host has{more}")]


def _finding(one: Plugin, needed: set[str]) -> Finding:
    more = "nodes" if len(one.lacks) > 1 else "node"
    # Whether a container asked for its class yet or not.
    is_needed = not needed.union(NEEDED).isdisjoint(one.lacks)
    is_sure = one.names_nodes == "yes"
    return fires(
        "critical" if is_needed and is_sure else "warning",
        f"{len(one.lacks)} {more} of the host {'are' if len(one.lacks) > 1 else 'is'} not in the"
        f" device plugin's own /dev: {names(one.lacks)}; {'' if is_sure else _IF}no pod that it"
        f" serves gets {'them' if len(one.lacks) > 1 else 'it'}",
        [
            Evidence(path, "on the host, not in the plugin", "text", f"/proc/{one.pid}/root/dev")
            for path in one.lacks
        ],
        outlook="Every pod that it serves until it is restarted is made without."
        if is_sure
        else "Whether it names nodes was not seen: where a hook gives them, nothing is wrong.",
        workload=one.workload.name,
        brief=Brief(
            headline=f"{len(one.lacks)} {more} of the host {'are' if len(one.lacks) > 1 else 'is'}"
            f" not in the device plugin's own /dev: {names(one.lacks)}",
            why="every pod that it serves until it is restarted is made without"
            if is_sure
            else "not seen whether its answers name nodes: where a hook gives them all is well",
        ),
        confirm=("ls -l /dev/nvidia*", f"ls -l /proc/{one.pid}/root/dev/"),
    )
