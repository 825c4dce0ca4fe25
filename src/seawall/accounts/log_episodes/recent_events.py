# SPDX-License-Identifier: Apache-2.0
"""What logs, guard and black box say of the last minutes: kills, evictions, hangs, reboots.

One ``RecentEvent`` is one episode, not one line: five OOM kills within seconds are one event.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from seawall.host.host import Unread

EventKind: TypeAlias = Literal[
    "oom_kill",  # by the kernel, of the machine or of a cgroup's limit
    "userspace_kill",  # systemd-oomd, oomd, earlyoom, nohang, Talos
    "guard_decision",  # this project's own guard: done, or would have been
    "eviction",  # the kubelet ended a pod
    "container_oom",  # containerd, CRI-O or docker reported an OOM event
    "slurm_oom",
    "slurm_failure",  # a step ended, and its lines do not say that memory was the cause
    "node_not_ready",  # kubelet, PLEG or slurmctld
    "hung_task",
    "allocation_failure",  # a page allocation or a driver's own request failed
    "device_fault",  # Xid
    "unclean_reboot",
    "unrecognised",  # holds words of an OOM kill and was not understood: never silence
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentEvent:
    """One episode in the past, in a sentence, with the verb that tells more."""

    kind: EventKind
    """Oom_kill, userspace_kill, guard_decision, eviction, container_oom, slurm_oom,
    node_not_ready, hung_task, allocation_failure, device_fault, unclean_reboot; unrecognised:
    it holds words of an OOM kill and was not understood.
    """
    first_at_unix_seconds: float | None
    """None where the lines carry no date that can be placed (see ``when``)."""
    last_at_unix_seconds: float | None
    when: str = ""
    """As the log gives it, where there is no date: ``77.8 s after boot``, ``Feb 12 14:31:46``."""
    sentence: str
    """At most some 60 characters: ``kernel OOM-killed hog, login, bash and 2 more in 4 s``."""
    details: tuple[str, ...] = ()
    """What else the lines prove, and what they do not say; shown by ``oom explain``."""
    count: int = 1
    """How many it stands for."""
    workload: str | None = None
    more: str = ""
    """The command that tells more: ``seawall oom explain --last 1``; empty where none does."""
    source: str = ""
    """Where it was read: ``/dev/kmsg``, ``journal``, ``black box``, a file's path."""
    decision: str = ""
    """Of the guard, by its id: what several logs tell of one is one event."""
    last_log_seconds: float | None = None
    """By the log's own clock, whose zero is not known: for order and differences alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentEvents:
    """All that was read of a span of time, newest first."""

    since_seconds: float
    """How far back was asked."""
    events: tuple[RecentEvent, ...]
    unread: tuple[Unread, ...] = ()
    """Sources that could not be read, and why."""
    now_unix_seconds: float | None = None
    """Ages are counted from here."""
