# SPDX-License-Identifier: Apache-2.0
"""Whether a line could be of a system's log at all: a picture, a web page, prose are none."""

import re
from typing import Final

_LOOKED_AT_BYTES: Final = 4096
_TIMED: Final = re.compile(
    rb"(?:[^\[]{0,120})\[[ <+]{0,12}\d{1,12}\.\d{3,9}>?\]"  # printk
    rb"|.{0,120}?\b(?:[A-Z][a-z]{2}|\d{1,2}\xe6\x9c\x88)\.? {1,2}\d{1,2} \d\d:\d\d:\d\d\b"  # syslog
    rb"|.{0,120}?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    rb"|\d{1,5},\d{1,20},\d{1,17},[^;\n]{1,80};"  # /dev/kmsg
    rb"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d"  # klog
    rb"|[ \t]{0,16}(?:_TRANSPORT|MESSAGE|__REALTIME_TIMESTAMP|SYSLOG_IDENTIFIER|PRIORITY)="
    rb"|.{0,400}?\"(?:MESSAGE|message|log|msg|textPayload|timestamp|@timestamp|time)\"\s{0,4}:"
)
# How messages of kernels begin where no time stands before them (dmesg -t, journalctl -o cat).
_SPOKEN: Final = re.compile(
    rb"[ \t>]{0,20}(?:<\d{1,3}>)?(?:Linux version \d|Command line: |BIOS-|ACPI: |smpboot: |x86/"
    rb"|pci \d{4}:|usb(?:core)?[ :]|EXT4-fs|XFS \(|BTRFS|audit: |systemd\[1\]: |systemd-\w+\[\d"
    rb"|IPv6: |device \S+ entered|\S{1,40}: port \d|Call Trace:|RIP: |Mem-Info:|NVRM: |nvme\S* |BUG: "  # noqa: E501
    rb"|INFO: task |CPU:? ?\d+[ :]|Hardware name: |Kernel panic|Node \d+ |SLUB: |\S{1,15}: page allocation"  # noqa: E501
    rb"|Memory: \d+K|Freeing |random: |Booting |scsi |sd \d|ata\d|e1000\S*:? |virtio|docker0|veth|cgroup: "  # noqa: E501
    rb"|\[ *\d{1,10}\] +\d| [a-z_]{3,60}\+0x[0-9a-f]+/0x|\S{1,30} invoked oom)"
)


def is_of_a_log(line: bytes) -> bool:
    """Whether one line has a log's time, a record's field, or begins as a kernel's message."""
    line = line[:_LOOKED_AT_BYTES]
    if b"\0" in line:
        return False
    return _TIMED.match(line) is not None or _SPOKEN.match(line) is not None
