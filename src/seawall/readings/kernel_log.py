# SPDX-License-Identifier: Apache-2.0
"""/dev/kmsg: the OOM reports that the kernel still holds in its log.

Kernel document: Documentation/ABI/testing/dev-kmsg, since 3.5.  Read by root, or by anyone where
``kernel.dmesg_restrict`` is 0.  What the host hands out of it are the records of OOM reports
alone, the newest megabyte.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seawall.host.host import Host, Unread
from seawall.readings.reading import read_as

if TYPE_CHECKING:
    from seawall.readings.oom_log.oom_report import OomReport

PATH: Final = "/dev/kmsg"


@dataclass(frozen=True, slots=True)
class KernelLog:
    """What the kernel's log says of memory that ran out, since it was overwritten last."""

    reports: "tuple[OomReport, ...]"
    """Oldest first; their times are seconds of the kernel's own clock, since boot."""


def parse(data: bytes) -> KernelLog:
    """Every report; never a ParseProblem, for a log may hold anything."""
    if not data:
        return KernelLog(())
    # Imported here: a kernel that has not killed has none, and the reader is a tenth of a start.
    from seawall.readings.oom_log.parser import read_reports_in  # noqa: PLC0415

    return KernelLog(tuple(read_reports_in([data])))


def read(host: Host) -> KernelLog | Unread:
    """The reports; Unread (``refused``) without CAP_SYSLOG where dmesg is restricted."""
    return read_as(host, PATH, parse)
