# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern is read as one line
"""Which lines of a log tell of an event: of all others nothing leaves the child that reads it.

A log may hold anything: command lines, addresses, tokens.  Only lines of these kinds are kept,
and none that quotes a command line.

A block of many lines is searched for words, and a pattern is tried where one of them stands: a
pattern that is tried on every line takes ten times as long.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

LINE_MOST_BYTES: Final = 4096
"""Of a line so much is looked at, and kept."""

_NEEDLES: Final = (
    b"oom", b" cpuset=", b"memory: usage ", b"blocked ", b"allocation failure", b"lockup",
    b"nohang", b"vict", b"low on resource", b"ode became ", b"done with job", b"ot responding",
    b"srun: error: ", b"systemd-shutdown", b"systemd-modules-load", b"reboot: ", b"syslogd",
    b"seawall-guard", b"direct_compact", b"memory limit (", b"limit at least once",
)  # fmt: skip
_LINE_NEEDLES: Final = (b" tgid", b"  memory: ")
# Those with a capital are looked for at once: few letters of a log are one, and re goes past all
# others as for one word.  Only where each alternative begins with a letter, and with no group.
_CAPITALS: Final = re.compile(
    rb"OOM|Kill(?:ed process | process |ing JobId)|Memory (?:cgroup |limit reached)"
    rb"|Out [oO]f [mM]emory|OUT OF MEMORY|Tasks? in /|SLUB: Unable to allocate memory"
    rb"|NV(?:_ERR_NO_MEMORY|RM: )|Cannot allocate sysmem|Linux version |EvictionThresholdMet"
    rb"|PLEG is not healthy|Node(?:Not)?Ready|StopPodSandbox|STEP |DOWN|NODE_FAIL"
    rb"|Terminating job step|Journal st|Boot|Reboot|Reached target |Shutting down\.|System is "
    rb"|The system will |Sending SIGKILL to cgroup|Workqueue: |Mem-Info:"
    rb"|Exit Code: |Restart Count: |Finished: |Limits:|Requests:"
)
_OF_LINE: Final = frozenset(
    {b"Exit Code: ", b"Restart Count: ", b"Finished: ", b"Limits:", b"Requests:"}
)
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
    rb"|StopPodSandbox|(?<=must e)vict|(?<=e)victed successfully|STEP \d|done with job|Killing JobId|(?<=setting )DOWN"
    rb"|(?<=[Nn])ot responding|NODE_FAIL|srun: error: |Terminating job step|systemd-shutdown"
    rb"|systemd-modules-load|Journal st(?:art|opp)ed|(?<=-- )(?:Boot|Reboot)\b"
    rb"|Reached target [^\n]{0,40}(?:[Rr]eboot|[Pp]ower|[Ss]hutdown|Final|[Hh]alt)"
    rb"|(?<=systemd\[1\]: )Shutting down\.|reboot: (?:Restarting|Power|System)"
    rb"|syslogd[^\n]{0,300}exiting on signal|System is (?:rebooting|powering down|halting)"
    rb"|The system will (?:reboot|power off|halt)|Sending SIGKILL to cgroup"
    rb"|seawall-guard(?:: |\.service: Main process exited)"
    rb"|Workqueue: |Mem-Info:|direct_compact"
    rb"|memory limit \(\d{1,20} > \d|limit at least once during execution"
)
"""In lines of an event, and in those beside them that tell what it was.

Each alternative begins with one of _NEEDLES or _CAPITALS, but for what must stand before that.
"""

LINE_HINT: Final = re.compile(
    rb"[^\n]*?\[ *pid *\] +uid +tgid| {2,40}(?:Exit Code|Restart Count|Finished): "
    rb"| {2,40}(?:Limits|Requests):[ \t\r]*$| {2,40}memory: {1,9}\d",
    re.MULTILINE,
)
"""The same, from the beginning of a line; each alternative holds one of _LINE_NEEDLES
or of the last of _CAPITALS."""

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
    for needle in _NEEDLES:
        _find(partial(_places, needle), block, found)
    for needle in _LINE_NEEDLES:
        _find(partial(_places, needle, is_of_line=True), block, found)
    _find(_capitals, block, found)
    return [
        HintedLine(start, block[start : min(end, start + LINE_MOST_BYTES)])
        for start, end in sorted(found.items())[-most:]
    ]


class _Place(NamedTuple):
    """Where a needle stands; ``is_of_line``: LINE_HINT knows such a line, not HINT."""

    at: int
    is_of_line: bool


def _places(needle: bytes, block: bytes, at: int, *, is_of_line: bool = False) -> _Place | None:
    at = block.find(needle, at)
    return None if at < 0 else _Place(at, is_of_line)


def _capitals(block: bytes, at: int) -> _Place | None:
    found = _CAPITALS.search(block, at)
    return None if found is None else _Place(found.start(), found[0] in _OF_LINE)


def _find(
    next_place: Callable[[bytes, int], _Place | None], block: bytes, found: dict[int, int]
) -> None:
    """Puts start and end of each line with such a needle that its pattern knows into ``found``."""
    start, end = 0, -1
    place = next_place(block, 0)
    while place is not None:
        at, is_of_line = place
        if at > end:
            # A line may be as long as the block: no byte is searched twice for its ends.
            start = block.rfind(b"\n", end + 1, at) + 1 or end + 1
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
        limit = min(end, start + LINE_MOST_BYTES)
        is_over = at >= limit or start in found
        if not is_over:
            hint = LINE_HINT if is_of_line else HINT
            if hint.match(block, start if is_of_line else at, limit):
                found[start] = end
                is_over = True
        place = next_place(block, end if is_over else at + 1)


def is_kept(line: bytes) -> bool:
    """Whether a line tells of an event and quotes no command line."""
    return bool(hinted_lines(line[:LINE_MOST_BYTES])) and not quotes_command(line)


def quotes_command(line: bytes) -> bool:
    """Whether it may hold what must not leave this machine."""
    return QUOTES_COMMAND.search(line, 0, LINE_MOST_BYTES) is not None
