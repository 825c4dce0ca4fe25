# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a pattern is read as one line
"""What the kernel's log says of hardware and of stuck tasks since boot; asked in a child.

Of each line nothing but a kind and a short word of a fixed form leaves the child.  Lines that a
program wrote into /dev/kmsg have another facility than the kernel's own and are passed over
(Documentation/ABI/testing/dev-kmsg).
"""

import os
import re
import time
from typing import Final

from seawall.host.host import JSON
from seawall.host.kmsg import PATH, next_record

_SECONDS_MOST: Final = 1.5
_FAULTS_MOST: Final = 2000
_HEAD: Final = re.compile(rb"(\d{1,5}),\d{1,20},(\d{1,20}),[^;]{0,200};")
_FACILITY_SHIFT: Final = 3
_KINDS: Final = (
    ("xid", re.compile(rb"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{1,16})\): (\d{1,6}),")),
    ("driver_loaded", re.compile(rb"NVRM: loading NVIDIA")),
    ("hung", re.compile(
        rb"(?:INFO: )?task .{1,64}:\d{1,10} blocked (?:in I/O wait )?for more than (\d{1,10}) seconds"
    )),
    ("disk", re.compile(
        rb"(?:blk_update_request: |print_req_error: )?(?:critical medium|I/O) error, dev ([a-z0-9-]{1,24}),"
    )),
    ("disk", re.compile(rb"EXT4-fs error \(device ([a-z0-9-]{1,24})\)")),
    ("disk", re.compile(rb"XFS \(([a-z0-9-]{1,24})\): (?:Corruption|Metadata I/O error|Log I/O error)")),
    ("disk", re.compile(rb"nvme (nvme\d{1,4}): (?:controller is down|Device not ready; aborting|I/O \d+ .{0,20}timeout, disable)")),
    ("thermal", re.compile(rb"(?:mce: )?CPU(\d{1,5}): (?:Core|Package) temperature(?:/speed)? above threshold")),
    ("daemon_oom", re.compile(
        rb"oom-kill:constraint=CONSTRAINT_NONE,.{0,400},global_oom,task_memcg=/system\.slice/([\w@.:-]{1,80})[,/]"
    )),
)  # fmt: skip


def kernel_faults() -> JSON:
    """{"now": seconds since boot, "faults": [[seconds, kind, word, number], ...], "is_whole"}."""
    fd = os.open(PATH, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    until = time.monotonic() + _SECONDS_MOST
    faults: list[JSON] = []
    is_whole = True
    try:
        while (record := next_record(fd)) is not None:
            if len(faults) >= _FAULTS_MOST or time.monotonic() > until:
                is_whole = False
                break
            fault = fault_of(record)
            if fault is not None:
                faults.append(fault)
    finally:
        os.close(fd)
    return {
        "now": time.clock_gettime(time.CLOCK_MONOTONIC), "faults": faults, "is_whole": is_whole,
    }  # fmt: skip


def fault_of(record: bytes) -> JSON:
    """One row, or None."""
    head = _HEAD.match(record)
    if head is None or int(head[1]) >> _FACILITY_SHIFT:
        return None
    text = record[head.end() :].partition(b"\n")[0]
    for kind, pattern in _KINDS:
        found = pattern.match(text)
        if found is not None:
            words = [word.decode("ascii", "replace") for word in found.groups() if word]
            number = int(words[-1]) if words and words[-1].isdecimal() else 0
            return [int(head[2]) / 1e6, kind, words[0] if words else "", number]
    return None
