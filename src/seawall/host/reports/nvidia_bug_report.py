# SPDX-License-Identifier: Apache-2.0
"""``nvidia-bug-report.log``, plain or .gz: one file of sections between lines of underscores.

A section is a file (``*** /proc/meminfo``, then ``*** ls: ...``, then what it held) or a command
(its words, an empty line, what it printed).  The script is nvidia-bug-report.sh of the driver.
"""

import re
import zlib
from typing import Final

from seawall.host.blocking import KERNEL_LOG
from seawall.host.input_file import open_input
from seawall.host.recording import Round
from seawall.host.reports.report_host import unix_seconds_of
from seawall.problems import BundleProblem

_BEGINS: Final = b"Start of NVIDIA bug report log file"
_GLANCE_BYTES: Final = 4096
_MOST_BYTES: Final = 128 << 20
_SECTION: Final = re.compile(rb"^_{40,}\n", re.MULTILINE)
_FILE: Final = re.compile(rb"\s*\*\*\* (/\S{1,4000})\n\*\*\* ls: [^\n]*\n")
_DMESG: Final = re.compile(rb"\s*(?:/\S*/)?dmesg\b[^\n]*\n")
_JOURNAL: Final = re.compile(rb"\s*(?:/\S*/)?journalctl -b -?0\b[^\n]*\n")
_DATE: Final = re.compile(rb"^Date: ([^\n]{1,100})$", re.MULTILINE)
_UNAME: Final = re.compile(
    rb"^uname: Linux (\S{1,255}) (\S{1,255}) [^\n]{0,999} (\S{1,99}) GNU/Linux", re.MULTILINE
)


def is_report(path: str) -> bool:
    """Whether the file begins as one does; False for what cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(_GLANCE_BYTES)
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(31).decompress(head, _GLANCE_BYTES)
    except (OSError, ValueError, zlib.error):
        return False
    return _BEGINS in head


def round_of(path: str) -> Round:
    """What it holds, as one pass over the machine; BundleProblem when it is too large."""
    with open_input(path, "a report") as file:
        data = file.read(_MOST_BYTES + 1)
    if data.startswith(b"\x1f\x8b"):
        unpacker = zlib.decompressobj(31)  # a cut one gives what is whole
        try:
            data = unpacker.decompress(data, _MOST_BYTES + 1)
        except zlib.error as error:
            raise BundleProblem(f"{path}: cannot be unpacked: {error}") from error
    if len(data) > _MOST_BYTES:
        raise BundleProblem(f"{path}: more than {_MOST_BYTES >> 20} MiB of report")
    return parse(data)


def parse(data: bytes) -> Round:
    """Files at their paths, dmesg (or the journal of this boot) as the kernel's log."""
    found = Round()
    journal: bytes | None = None
    for section in _SECTION.split(data):
        if head := _FILE.match(section):
            name = head[1].decode("utf-8", "surrogateescape")
            found.files.setdefault(name, section[head.end() :].rstrip(b"\n") + b"\n")
        elif head := _DMESG.match(section):
            found.files.setdefault(KERNEL_LOG, section[head.end() :].strip(b"\n") + b"\n")
        elif head := _JOURNAL.match(section):
            journal = section[head.end() :].strip(b"\n") + b"\n"
    if journal:
        found.files.setdefault(KERNEL_LOG, journal)
    if (date := _DATE.search(data)) and (seconds := unix_seconds_of(date[1].decode("latin-1"))):
        found.probes["now", ""] = {"unix_seconds": seconds, "monotonic_seconds": 0.0}
    if uname := _UNAME.search(data):
        node, release, machine = (word.decode("utf-8", "replace") for word in uname.groups())
        found.probes["node_name", ""] = node
        found.probes["machine", ""] = machine
        found.files.setdefault("/proc/sys/kernel/osrelease", release.encode() + b"\n")
    return found
