# SPDX-License-Identifier: Apache-2.0
"""/dev/kmsg: the records of the kernel's log that belong to OOM reports, and no others.

Kernel document: Documentation/ABI/testing/dev-kmsg, since 3.5.  Every read gives one record,
``6,1234,5678901,-;text`` with lines of ``" KEY=value"`` after it; EAGAIN is the end, EPIPE says
that records were overwritten before we came to them.

A kernel log may hold anything: command lines, addresses, keys that a driver printed.  What is
not on the list below never leaves the reading child.  Call traces and registers are not on it.
"""

import errno
import os
import re
import time
from collections import deque
from typing import Final

PATH: Final = "/dev/kmsg"
KEPT_MOST_BYTES: Final = 1 << 20
"""Of the newest reports; the newest one is kept whole, however long it is."""
READ_MOST_BYTES: Final = 64 << 20
_READ_SECONDS: Final = 1.5  # the deadline of its reader is 2
_RECORD_MOST_BYTES: Final = 64 << 10  # PRINTKRB_RECORD_MAX is 1 KiB, with its head 8 KiB
_CLOCK_EVERY: Final = 256

_RECORD: Final = re.compile(rb"\d{1,5},\d{1,20},\d{1,20},[^;]{0,200};")
# With one of these the part of a report begins, or stands alone.
_BEGINS: Final = re.compile(
    rb".{1,64} invoked oom-killer: gfp_mask=0x"
    rb"|Task in /.{0,4096} killed as a result of limit of /"
    rb"|memory: usage \d+kB, limit \d+kB, failcnt \d+\Z"
    rb"|Memory cgroup (?:stats\b|out of memory\b)|Memory limit reached of cgroup "
    rb"|Tasks state \(memory values in pages\)|\[ *pid *\] +uid +tgid +total_vm "
    rb"|oom-kill:constraint=|Out of memory\b|Killed process \d"
)
# These are kept after such a line, as long as the report goes on.
_GOES_ON: Final = re.compile(
    rb"CPU: \d+ .{0,40}PID: \d+ Comm: |.{1,64} cpuset=\S* mems_allowed="
    rb"|(?:memory\+swap|kmem|swap): usage \d|Memory cgroup min protection "
    rb"|[a-z][a-z0-9_]{1,40} \d{1,20}\Z"
    rb"|Mem-Info:| ?[a-z_]{3,30}:\d{1,20}(?: |\Z)|lowmem_reserve\[\]:"
    rb"|(?:Node \d+ )?(?:[A-Z]\w{1,15} free:\d|[A-Z]\w{1,15}: \d+\*\d)"
    rb"|Node \d+ (?:active_anon:|hugepages_total=)|\d{1,20} total pagecache pages"
    rb"|\d{1,20} pages (?:in swap cache|RAM|HighMem|reserved|hwpoisoned|cma)"
    rb"|(?:Free|Total) swap +=|Swap cache stats:"
    rb"|Memory allocations| *[\d.]+ ?[KMGT]?i?B? +\d+ \S+:\d+ (?:\[\w+\] )?func:\w+\Z"
    rb"|Unreclaimable slab info:|[\w.:>-]{1,80} +\d+KB +\d+KB\Z"
    rb"|\[ *\d+\] +\d+ +\d+ +\d+ +\d+ "
)
_FOLLOWS: Final = re.compile(
    rb"oom_reaper: reaped process |Tasks in /.{0,4096} are going to be killed due to memory\.oom"
    rb"|Kernel panic - not syncing: (?:Out of memory|System is deadlocked on memory)"
)
_ENDS: Final = re.compile(rb"Out of memory and no|.{0,64}Killed process \d")
# Records that are not kept in the middle of a report: its call trace, other messages.
_GAP_MOST: Final = 400


def next_record(fd: int) -> bytes | None:
    """The next one of a descriptor that does not block; None when there is none now."""
    while True:
        try:
            return os.read(fd, _RECORD_MOST_BYTES) or None
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise


def read_records(fd: int) -> bytes:
    """Every record that the kernel still holds, oldest first; for a bounded time."""
    until = time.monotonic() + _READ_SECONDS
    records: list[bytes] = []
    size = 0
    while size < READ_MOST_BYTES:
        if len(records) % _CLOCK_EVERY == 0 and time.monotonic() > until:
            break  # it is written to faster than we read
        record = next_record(fd)
        if record is None:
            break
        records.append(record)
        size += len(record)
    return b"".join(records)


def _goes_on(text: bytes) -> bool:
    """Whether every line of a record is one of a report; before 6.5 many came in one record."""
    return all(_GOES_ON.match(line) for line in text.split(b"\\x0a"))


def keep_oom_records(data: bytes) -> bytes:
    """The records of OOM reports, the newest ones, without their dictionaries."""
    reports: deque[list[bytes]] = deque()
    size = 0
    gap = _GAP_MOST
    for record in data.split(b"\n"):
        head = _RECORD.match(record)
        if not head:
            continue
        text = record[head.end() :]
        begins = _BEGINS.match(text)
        if begins:
            if gap >= _GAP_MOST or b" invoked oom-killer: " in text or not reports:
                reports.append([])
            gap = 0
        elif not ((gap < _GAP_MOST and _goes_on(text)) or (reports and _FOLLOWS.match(text))):
            gap += 1
            continue
        reports[-1].append(record)
        size += len(record) + 1
        if _ENDS.match(text):
            gap = _GAP_MOST
        while size > KEPT_MOST_BYTES and len(reports) > 1:
            size -= sum(len(old) + 1 for old in reports.popleft())
    return b"".join(record + b"\n" for report in reports for record in report)
