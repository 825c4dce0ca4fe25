# SPDX-License-Identifier: Apache-2.0
"""The plan of one moment of a machine: the table, the host's nodes, and who is a plugin at all."""

from typing import Final, Literal, TypeAlias

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.repairs.plugin_proof import (
    STARTING,
    has_kubelets_folder,
    is_hosts,
)
from seawall.accounts.devices.repairs.repair_plan import plan
from seawall.accounts.devices.repairs.step import RepairFacts, RepairPlan, RepairScope
from seawall.host.host import Unread
from seawall.readings import mountinfo
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.process import Processes
from seawall.readings.reading import read_as
from seawall.readings.snapshot import Snapshot

Proof: TypeAlias = Literal["proven", "disproven", "unseen"]
_OWN_MOUNTS: Final = "/proc/self/mountinfo"


def plan_of(snapshot: Snapshot, scope: RepairScope) -> RepairPlan | Unread:
    """Unread: nothing can be told of devices."""
    table = snapshot.get(DeviceTable)
    if isinstance(table, Unread):
        return table
    only_called = frozenset(
        plugin.workload.cgroup
        for plugin in table.plugins
        if plugin.workload.pod_uid is not None and proof(snapshot, plugin.pid) == "disproven"
    )
    drivers, nodes = snapshot.get(CharDevices), snapshot.get(DeviceNodes)
    return plan(RepairFacts(table, drivers, nodes, only_called), scope)


def proof(snapshot: Snapshot, pid: int) -> Proof:
    """Whether a process is in a device plugin's container, by what is mounted there."""
    processes = snapshot.get(Processes)
    seen = None if isinstance(processes, Unread) else processes.by_pid.get(pid)
    if seen is not None and seen.comm.startswith(STARTING):
        return "unseen"
    own = read_as(snapshot.host, _OWN_MOUNTS, mountinfo.parse)
    its = read_as(snapshot.host, f"/proc/{pid}/mountinfo", mountinfo.parse)
    if isinstance(own, Unread) or isinstance(its, Unread) or is_hosts(own, its):
        return "unseen"
    return "proven" if has_kubelets_folder(own, its) else "disproven"
