# SPDX-License-Identifier: Apache-2.0
"""The few processes that a node cannot do without, and those that guard its memory.

Found by comm in /proc/PID/stat; of these alone /proc/PID/oom_score_adj is read.  ``comm`` is
at most 15 bytes, so systemd-journald is ``systemd-journal``.
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings import process
from seawall.readings.process_extra import read_oom_score_adj

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""
NEEDED: Final = frozenset(
    {"kubelet", "k3s-server", "k3s-agent", "containerd", "crio", "dockerd", "sshd",
     "systemd-journal"}
)  # fmt: skip
GUARDS: Final = frozenset({"earlyoom", "oomd", "systemd-oomd", "nohang"})
_DEAD: Final = "ZXx"


@dataclass(frozen=True, slots=True)
class Daemon:
    """One of them that lives."""

    pid: int
    comm: str
    oom_score_adj: int | Unread
    """-1000 (never killed) to 1000."""


@dataclass(frozen=True, slots=True)
class NodeDaemons:
    """The topic.  Sorted by comm and pid; of several of one name the eldest stands for all."""

    needed: tuple[Daemon, ...]
    guards: tuple[Daemon, ...]
    has_init: bool
    """pid 1 was seen: without it, whole parts of the machine may be hidden from us."""


def read(host: Host) -> NodeDaemons | Unread:
    """Unread only when no process could be read."""
    found = process.read(host)
    if isinstance(found, Unread):
        return found
    eldest: dict[str, process.Process] = {}
    for task in found.by_pid.values():
        if task.comm not in NEEDED | GUARDS or task.state in _DEAD or task.is_kernel_thread:
            continue
        known = eldest.setdefault(task.comm, task)
        if (task.starttime_ticks, task.pid) < (known.starttime_ticks, known.pid):
            eldest[task.comm] = task
    daemons = [
        Daemon(task.pid, name, read_oom_score_adj(host, task.pid))
        for name, task in sorted(eldest.items())
    ]
    return NodeDaemons(
        needed=tuple(daemon for daemon in daemons if daemon.comm in NEEDED),
        guards=tuple(daemon for daemon in daemons if daemon.comm in GUARDS),
        has_init=1 in found.by_pid,
    )
