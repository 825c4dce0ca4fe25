# SPDX-License-Identifier: Apache-2.0
"""What no file of the machine tells, each under a name that a bundle can hold.

``now``           {"unix_seconds", "monotonic_seconds"}: both clocks, one after the other
``page_size``     bytes of a page of the asked kernel
``clock_ticks``   jiffies a second in /proc/PID/stat (USER_HZ)
``machine``       uname's machine, e.g. ``x86_64``
``node_name``     uname's nodename
``reader``        {"uid", "capabilities": [...]} of the process that asks: who could see
``inode``         {"device", "inode"} of a path: a path comes again, its inode does not
``pipes``         {"pipes", "pages", "processes_left_out"}: data that lies in pipes
``residency``     how much of a file is in the page cache (``residency_asking.py``); likewise
                  ``residency_each``, ``residency_walk`` and ``page_owners``
``socket_queues``  whose queues data of TCP and UDP lies in (``socket_queue_probe.py``)
``descriptors``   files, terminals and inotify watches of each process (``descriptors.py``)
``device_nodes``  nodes below /dev, of the host and of processes (``device_access/nodes.py``)
``device_access``  whether processes may use devices, by trying (``device_access/trying.py``)
``device_programs``  device programs of cgroups (``device_access/bpf_programs.py``)
``device_log``    what logs say of devices that cannot be had (``device_log/probe.py``)
``event_log``     lines of logs that tell of kills, hangs, evictions (``event_log/probe.py``)
``cri``           what container runtimes have on record of containers' devices (``cri.py``)
``pod_resources``  which devices the kubelet gave to which container (``pod_resources.py``)
``driver_files``  device nodes, dma-bufs and sockets that processes hold (``driver_files.py``)
``driver_mappings``  what they have mapped of those nodes (``driver_mappings.py``)
``nvml``          what the NVIDIA driver says of its devices (``nvml.py``)
``gpu_query``     devices as NVML and CUDA's driver API tell of them (``gpu_query.py``); asked only
                  by the verb, for it wakes devices
``gpu_query_inside``  the same as a container may ask (``gpu_inside/asking.py``); likewise
``page_census``   page frames by their flags and cgroup, all or a sample (``page_census/``)
``task_stacks``   threads that run or are blocked, and their kernel stacks (``task_stacks.py``)
``sysrq``         ``l`` or ``w``: backtraces that the kernel prints (``sysrq.py``); asked only when
                  somebody wants them, for they go to its log
"""

import os
import time
from typing import Final

from seawall.host.host import JSON, Unread

RESIDENCY_PROBES: Final = frozenset(
    {"residency", "residency_each", "residency_walk", "page_owners"}
)
_CAPABILITIES: Final = {
    1: "DAC_OVERRIDE", 2: "DAC_READ_SEARCH", 3: "FOWNER", 12: "NET_ADMIN", 13: "NET_RAW",
    19: "SYS_PTRACE", 21: "SYS_ADMIN", 24: "SYS_RESOURCE", 34: "SYSLOG", 38: "PERFMON",
    39: "BPF", 40: "CHECKPOINT_RESTORE",
}  # fmt: skip


def ask_live(probe: str) -> JSON | Unread:
    """The answer of the machine on which this runs."""
    match probe:
        case "now":
            return {"unix_seconds": time.time(), "monotonic_seconds": time.monotonic()}
        case "page_size":
            return os.sysconf("SC_PAGE_SIZE")
        case "clock_ticks":
            return os.sysconf("SC_CLK_TCK")
        case "machine":
            return os.uname().machine
        case "node_name":
            return os.uname().nodename
        case "reader":
            return _reader()
    return Unread(probe, "absent", "no such probe")


def _reader() -> JSON:
    """Effective user and those capabilities that decide what can be read."""
    mask = 0
    with open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"CapEff:"):
                mask = int(line.split()[1], 16)
    names: list[JSON] = [name for bit, name in _CAPABILITIES.items() if mask >> bit & 1]
    return {"uid": os.geteuid(), "capabilities": names}
