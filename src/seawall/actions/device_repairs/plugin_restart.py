# SPDX-License-Identifier: Apache-2.0
"""Restarting a device plugin's container from its node, and waiting for the new one.

The kubelet starts a container of a DaemonSet's pod again however it ended (restartPolicy Always
is the only one that a DaemonSet may have), and the runtime makes a new container's /dev from what
the host has by then.  No credentials for the cluster are needed, and the pod stays.
"""

import os
import re
import time
from collections.abc import Mapping
from typing import Final

from seawall.accounts.devices import plugins
from seawall.accounts.devices.container_processes import ContainerProcesses
from seawall.accounts.devices.layers import Plugin
from seawall.accounts.devices.repairs.plugin_proof import FOLDER, STARTING, proof
from seawall.accounts.workloads import Workload, Workloads
from seawall.actions.device_repairs.repair_run import RepairRun, RepairStepOutcome
from seawall.host.host import Unread
from seawall.host.own_commands import find, run
from seawall.host.process_ending import GRACE_SECONDS, ProcessIdentity, Stranger, end
from seawall.readings import device_nodes
from seawall.readings.cgroup import Cgroups
from seawall.readings.device_nodes import DeviceNode, DeviceNodes
from seawall.readings.process import Process, Processes
from seawall.readings.snapshot import Snapshot

EVERY_SECONDS: Final = 0.5
_CRICTL_CONFIG: Final = "/etc/crictl.yaml"
_CRICTL_ENDPOINT: Final = "CONTAINER_RUNTIME_ENDPOINT"
_NOBODY: Final = (
    "the kubelet started no new container; it waits longer after each end, up to 5 minutes:"
    " kubectl get pod says CrashLoopBackOff then"
)
_ID: Final = re.compile(r"[0-9a-f]{64}\Z")


def restart(repair: RepairRun, plugin: Plugin) -> RepairStepOutcome:
    """End it, wait for the next one, look into that one's /dev."""
    if proof(repair.snapshot, plugin.pid) != "proven":
        words = f"whether it is a device plugin was not seen: every one mounts {FOLDER}"
        return RepairStepOutcome("refused", words)
    processes = repair.snapshot.get(Processes)
    seen = None if isinstance(processes, Unread) else processes.by_pid.get(plugin.pid)
    if seen is None:
        return RepairStepOutcome("failed", f"its process {plugin.pid} is gone")
    try:
        repair.say(_end(repair, plugin, seen))
    except Stranger as stranger:
        return RepairStepOutcome("failed", f"nothing was sent: {stranger}")
    return _wait(repair, plugin)


def _end(repair: RepairRun, plugin: Plugin, seen: Process) -> str:
    """By the runtime's own tool where that is set up, else by a signal."""
    key = plugin.workload.container_id or ""
    tool = find("crictl")
    is_asked = False
    is_set_up = os.path.exists(_CRICTL_CONFIG) or _CRICTL_ENDPOINT in os.environ
    if tool is not None and is_set_up and _ID.match(key):
        words = ["crictl", "stop", f"--timeout={GRACE_SECONDS:g}", key]
        repair.say(f"runs: {' '.join(words)}")
        ran = run([tool, *words[1:]], min(4 * GRACE_SECONDS, repair.seconds_left()))
        is_asked = True
        if ran.status == 0:
            return f"crictl stopped container {key[:12]}"
        repair.say(f"crictl did not stop it: {ran.words}")
    repair.say(f"sends: SIGTERM to process {plugin.pid}, and SIGKILL {GRACE_SECONDS:g} s later")
    grace = min(GRACE_SECONDS, repair.seconds_left())
    try:
        return end(ProcessIdentity(plugin.pid, seen.starttime_ticks, plugin.workload.cgroup), grace)
    except Stranger as stranger:
        if not is_asked:
            raise
        return f"crictl stopped it all the same: {stranger}"  # it only did not return in time


# --- the new one ------------------------------------------------------------------------


def _wait(repair: RepairRun, plugin: Plugin) -> RepairStepOutcome:
    began, before, words = time.monotonic(), None, _NOBODY
    repair.say("waits for the kubelet to start a new container of the same pod")
    while time.monotonic() < repair.until:
        found = _next_one(repair.look(), plugin)
        if found is not None:
            workload, process, own = found
            words = _lacking(repair.snapshot, plugin, own)
            # Twice the same: while a runtime still makes it, /dev is the host's or half of one.
            if not words and before == (process.pid, process.starttime_ticks):
                return RepairStepOutcome("done", _done(plugin, workload, process), is_verified=True)
            before = (process.pid, process.starttime_ticks)
            words = words or "its new container had just been started"
        time.sleep(EVERY_SECONDS)
    waited = time.monotonic() - began
    return RepairStepOutcome("failed", f"it was ended, and {waited:.0f} s later: {words}")


def _next_one(
    snapshot: Snapshot, plugin: Plugin
) -> tuple[Workload, Process, Mapping[str, DeviceNode]] | None:
    """The container that came after it, with its first process and its /dev."""
    workloads, processes = snapshot.get(Workloads), snapshot.get(Processes)
    if isinstance(workloads, Unread) or isinstance(processes, Unread):
        return None
    members = ContainerProcesses.of(workloads, processes, snapshot.get(Cgroups))
    for workload in plugins.find(workloads.by_cgroup.values()):
        pid = members.pid_of(workload)
        process = None if pid is None else processes.by_pid.get(pid)
        if process is None or not _follows(workload, plugin.workload):
            continue
        own = device_nodes.ask(snapshot.host, (process.pid,)).get(process.pid)
        if not process.comm.startswith(STARTING) and own and not isinstance(own, Unread):
            return workload, process, own
    return None


def _follows(new: Workload, old: Workload) -> bool:
    is_same = (new.pod_uid, new.container) == (old.pod_uid, old.container)
    return is_same and new.cgroup != old.cgroup and not new.is_sandbox


def _lacking(snapshot: Snapshot, plugin: Plugin, own: Mapping[str, DeviceNode]) -> str:
    """What its /dev lacks still; empty: nothing."""
    nodes = snapshot.get(DeviceNodes)
    if isinstance(nodes, Unread):
        return f"the host's /dev was not seen: {nodes.detail or nodes.why}"
    lacks = []
    for path in plugin.lacks:
        want, has = nodes.by_path.get(path), own.get(path)
        if want is not None and (has is None or has[1:4] != want[1:4]):
            lacks.append(path)
    return f"the /dev of its new container lacks {', '.join(lacks)}" if lacks else ""


def _done(plugin: Plugin, workload: Workload, process: Process) -> str:
    what = f"{', '.join(plugin.lacks)} is in its /dev" if plugin.lacks else "it runs"
    key = (workload.container_id or workload.cgroup)[:12]
    return f"looked: new container {key} (pid {process.pid}): {what}"
