# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern is read as one line
"""Which lines of a log tell of an event: of all others nothing leaves the child that reads it.

A log may hold anything: command lines, addresses, tokens.  Only lines of these kinds are kept,
and none that quotes a command line.
"""

import re
from typing import Final

LINE_MOST_BYTES: Final = 4096
"""Of a line so much is looked at, and kept."""

NEEDLES: Final = (
    b"oom", b"OOM", b"ut of memory", b"ut Of Memory", b"Killed process", b"Kill process",
    b"Memory cgroup", b" mems_allowed=", b"Task in /", b"memory: usage", b"blocked for more", b"blocked in I/O", b"allocation failure", b"Unable to allocate memory",
    b"NVRM: ", b"lockup", b"nohang", b"Linux version ", b"viction", b"low on resource", b"PLEG",
    b"NodeNotReady", b"NodeReady", b"ecame not ready", b"ecame ready", b"must evict",
    b"evicted successfully", b"StopPodSandbox", b"slurm", b"STEP ", b"sinfo", b"Killing JobId",
    b"not responding", b"Not responding", b"NODE_FAIL", b"srun: error", b"Terminating job", b"done with job",
    b"systemd-shutdown", b"systemd-modules-load", b"Journal st", b"-- Boot", b"-- Reboot",
    b"Reached target", b"Shutting down", b"reboot: ", b"rsyslogd", b"syslogd", b"System is ",
    b"The system will ", b"Sending SIGKILL", b"seawall-guard: ", b"Workqueue: ", b"Mem-Info",
    b"direct_compact", b"Main process exited", b"victim", b"SIGTERM", b"mem avail:",
    b"Path: /", b"Considered ", b"Current Memory Usage", b"VmRSS:", b"VmSwap:", b"Realpath:",
    b"Lifetime:", b"MemAvailable:", b"Inserted module", b"no resources are starved",
    b"CANCELLED", b"process exited",
)  # fmt: skip
"""One of these stands in every line that is kept: found in a block of lines at once."""

HINT: Final = re.compile(
    rb"invoked oom-killer|oom-kill:constraint=|Killed process \d|Kill process \d|oom_reaper: "
    rb"|Memory cgroup (?:out of memory|stats for)|Out of memory|OUT OF MEMORY|Memory limit reached"
    rb"|Tasks in /.{1,200} are going to be killed"
    rb"|\[ *pid *\] +uid +tgid| cpuset=[^\s]{1,200} mems_allowed=|Task in /|memory: usage \d|blocked (?:in I/O wait )?for more than|allocation failure"
    rb"|SLUB: Unable to allocate memory|NV_ERR_NO_MEMORY|Cannot allocate sysmem|NVRM: Xid"
    rb"|NVRM: loading|(?:soft|hard) lockup|Linux version \d|systemd-oomd|(?<![\w-])oomd\[|oomd kill:"
    rb"|earlyoom|nohang|OOMController|OOM controller|[Ee]viction[ _]manager|EvictionThresholdMet"
    rb"|low on resource|PLEG|NodeNotReady|NodeReady|[Nn]ode became (?:not )?ready|SystemOOM"
    rb"|System OOM encountered|TaskOOM|/tasks/oom|OOM (?:event )?received|OOMKilled|container oom "
    rb"|oom-kill'|killed by the OOM killer|StopPodSandbox|must evict|evicted successfully"
    rb"|oom-kill event|oom_kill event|Out Of Memory|OOM Killed"
    rb"|STEP \d|done with job|Killing JobId|setting DOWN|[Nn]ot responding|NODE_FAIL"
    rb"|srun: error: |Terminating job step|systemd-shutdown|systemd-modules-load|Journal (?:started|stopped)"
    rb"|-- (?:Boot|Reboot)\b"
    rb"|Reached target [^\n]{0,40}(?:[Rr]eboot|[Pp]ower|[Ss]hutdown|Final|[Hh]alt)"
    rb"|systemd\[1\]: Shutting down\.|reboot: (?:Restarting|Power|System)"
    rb"|syslogd[^\n]{0,300}exiting on signal|System is (?:rebooting|powering down|halting)"
    rb"|The system will (?:reboot|power off|halt)|Sending SIGKILL to cgroup|seawall-guard: "
    rb"|Workqueue: |Mem-Info:|direct_compact"
    rb"|^ {2,40}(?:Exit Code|Restart Count|Finished): |^ {2,40}(?:Limits|Requests):\s*$"
    rb"|^ {2,40}memory: {1,9}\d"
)
"""Lines of an event, and those beside them that tell what it was."""

QUOTES_COMMAND: Final = re.compile(rb"cmdline|Cmdline:|Cwd:|command line|Environ")
"""Such a line is never kept: it may hold a password."""

BEGINS_BOOT: Final = re.compile(
    rb"Linux version \d|systemd-modules-load|-- (?:Boot|Reboot)\b|Journal started"
)
"""Beside such a line the time of the line before it is kept, and nothing else of it."""


def is_kept(line: bytes) -> bool:
    """Whether a line tells of an event and quotes no command line."""
    return (
        HINT.search(line, 0, LINE_MOST_BYTES) is not None
        and QUOTES_COMMAND.search(line, 0, LINE_MOST_BYTES) is None
    )


def may_hold_one(block: bytes) -> bool:
    """Whether one of the needles is in many lines at once: much faster than line by line."""
    return any(needle in block for needle in NEEDLES)
