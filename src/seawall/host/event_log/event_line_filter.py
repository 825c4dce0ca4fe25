# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern is read as one line
"""Which lines of a log tell of an event: of all others nothing leaves the child that reads it.

A log may hold anything: command lines, addresses, tokens.  Only lines of these kinds are kept,
and none that quotes a command line.

A block of many lines is searched for words, and a pattern is tried where one of them stands: a
pattern that is tried on every line takes ten times as long.
"""

import re
from typing import Final, NamedTuple

LINE_MOST_BYTES: Final = 4096
"""Of a line so much is looked at, and kept."""

NEEDLES: Final = (
    b"oom", b"OOM", b"Killed process ", b"Kill process ", b"Memory cgroup ", b"Out of memory",
    b"OUT OF MEMORY", b"Out Of Memory", b"Memory limit reached", b"Tasks in /", b"Task in /",
    b" cpuset=", b"memory: usage ", b"blocked ", b"allocation failure",
    b"SLUB: Unable to allocate memory", b"NV_ERR_NO_MEMORY", b"Cannot allocate sysmem", b"NVRM: ",
    b"lockup", b"Linux version ", b"nohang", b"viction", b"EvictionThresholdMet",
    b"low on resource", b"PLEG is not healthy", b"NodeNotReady", b"NodeReady", b"ode became ",
    b"StopPodSandbox", b"must evict", b"evicted successfully", b"STEP ", b"done with job",
    b"Killing JobId", b"setting DOWN", b"ot responding", b"NODE_FAIL", b"srun: error: ",
    b"Terminating job step", b"systemd-shutdown", b"systemd-modules-load", b"Journal st",
    b"-- Boot", b"-- Reboot", b"Reached target ", b"Shutting down.", b"reboot: ", b"syslogd",
    b"System is ", b"The system will ", b"Sending SIGKILL to cgroup", b"seawall-guard",
    b"Workqueue: ", b"Mem-Info:", b"direct_compact",
)  # fmt: skip
HINT: Final = re.compile(
    rb"(?<=invoked )oom-killer|oom-kill(?::constraint=|'| event)|oom_(?:reaper: |kill event)"
    rb"|(?<=systemd-)oomd|(?<![\w-])oomd(?:\[|\.service: Main process)|oomd kill:|(?<=early)oom|(?<=/tasks/)oom|(?<=container )oom "
    rb"|OOMController|OOMKilled|OOM (?:controller|Killed|(?:event )?received)|(?<=System)OOM|(?<=Task)OOM"
    rb"|(?<=System )OOM encountered|(?<=killed by the )OOM killer"
    rb"|Kill(?:ed)? process \d|Memory cgroup (?:out of memory|stats for)"
    rb"|Out of memory|OUT OF MEMORY|Out Of Memory|Memory limit reached"
    rb"|Tasks in /.{1,200} are going to be killed|Task in /| cpuset=[^\s]{1,200} mems_allowed="
    rb"|memory: usage \d|blocked (?:in I/O wait )?for more than|allocation failure"
    rb"|SLUB: Unable to allocate memory|NV_ERR_NO_MEMORY|Cannot allocate sysmem|NVRM: (?:Xid|loading)"
    rb"|(?<=soft |hard )lockup|Linux version \d|nohang|(?<=[Ee])viction[ _]manager|EvictionThresholdMet"
    rb"|low on resource|PLEG is not healthy|NodeNotReady|NodeReady|(?<=[Nn])ode became (?:not )?ready"
    rb"|StopPodSandbox|must evict|evicted successfully|STEP \d|done with job|Killing JobId|setting DOWN"
    rb"|(?<=[Nn])ot responding|NODE_FAIL|srun: error: |Terminating job step|systemd-shutdown"
    rb"|systemd-modules-load|Journal st(?:art|opp)ed|-- (?:Boot|Reboot)\b"
    rb"|Reached target [^\n]{0,40}(?:[Rr]eboot|[Pp]ower|[Ss]hutdown|Final|[Hh]alt)"
    rb"|(?<=systemd\[1\]: )Shutting down\.|reboot: (?:Restarting|Power|System)"
    rb"|syslogd[^\n]{0,300}exiting on signal|System is (?:rebooting|powering down|halting)"
    rb"|The system will (?:reboot|power off|halt)|Sending SIGKILL to cgroup"
    rb"|seawall-guard(?:: |\.service: Main process exited)"
    rb"|Workqueue: |Mem-Info:|direct_compact"
)
"""In lines of an event, and in those beside them that tell what it was.

Each alternative begins with one of NEEDLES, but for what must stand before that.
"""

LINE_NEEDLES: Final = (
    b" tgid", b"  Exit Code: ", b"  Restart Count: ", b"  Finished: ", b"  Limits:",
    b"  Requests:", b"  memory: ",
)  # fmt: skip
LINE_HINT: Final = re.compile(
    rb"[^\n]*?\[ *pid *\] +uid +tgid| {2,40}(?:Exit Code|Restart Count|Finished): "
    rb"| {2,40}(?:Limits|Requests):[ \t\r]*$| {2,40}memory: {1,9}\d",
    re.MULTILINE,
)
"""The same, from the beginning of a line; each alternative holds one of LINE_NEEDLES."""

QUOTES_COMMAND: Final = re.compile(rb"cmdline|Cmdline:|Cwd:|command line|Environ")
"""Such a line is never kept: it may hold a password."""

BEGINS_BOOT: Final = re.compile(
    rb"Linux version \d|systemd-modules-load|-- (?:Boot|Reboot)\b|Journal started"
)
"""Beside such a line the time of the line before it is kept, and nothing else of it."""


class HintedLine(NamedTuple):
    """A line that tells of an event, or of what stands beside one."""

    start: int
    """In its block."""
    text: bytes
    """At most LINE_MOST_BYTES of it, without its newline."""


def hinted_lines(block: bytes, most: int = 0) -> list[HintedLine]:
    """The lines of many that HINT or LINE_HINT knows, in their order; ``most``: the last so many
    (0: all).
    """
    found: dict[int, int] = {}
    for needle in NEEDLES:
        _find(needle, HINT, block, found)
    for needle in LINE_NEEDLES:
        _find(needle, LINE_HINT, block, found, is_of_line=True)
    return [
        HintedLine(start, block[start : min(end, start + LINE_MOST_BYTES)])
        for start, end in sorted(found.items())[-most:]
    ]


def _find(
    needle: bytes, hint: "re.Pattern[bytes]", block: bytes, found: dict[int, int],
    *, is_of_line: bool = False,
) -> None:  # fmt: skip
    """Puts start and end of each line with the needle that ``hint`` knows into ``found``."""
    start, end = 0, -1
    at = block.find(needle)
    while at >= 0:
        if at > end:
            # A line may be as long as the block: no byte is searched twice for its ends.
            start = block.rfind(b"\n", end + 1, at) + 1 or end + 1
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
        limit = min(end, start + LINE_MOST_BYTES)
        is_over = is_of_line or at >= limit or start in found
        if (
            at < limit
            and start not in found
            and hint.match(block, start if is_of_line else at, limit)
        ):
            found[start] = end
            is_over = True
        at = block.find(needle, end if is_over else at + 1)


def is_kept(line: bytes) -> bool:
    """Whether a line tells of an event and quotes no command line."""
    return bool(hinted_lines(line[:LINE_MOST_BYTES])) and not quotes_command(line)


def quotes_command(line: bytes) -> bool:
    """Whether it may hold what must not leave this machine."""
    return QUOTES_COMMAND.search(line, 0, LINE_MOST_BYTES) is not None
